"""Whether all VMs of a group are there: a test of a part of them would say nothing of the rest."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provision.catalogue import names
from provision.codes import Code
from provision.documents import json_object
from provision.errors import ClusterError, StillWaiting
from provision.google.resources import GROUP
from provision.kinds.vms.resize_requests import ResizeRequest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from provision.context import Cloud
    from provision.kinds.vms.instances import Vm
    from provision.state.record import Record


def require(cloud: Cloud, record: Record, found: Sequence[Vm]) -> None:
    """See that as many VMs run as Create was to make.

    Raises:
        StillWaiting: Google is still making them.
        ClusterError: There are others than those.
    """
    running = sum(vm.status == "RUNNING" for vm in found)
    wanted = _wanted(cloud, record)
    if running == wanted:
        return
    group = names.GROUP.of(record.name_prefix)
    have = f"{running} of {wanted} VMs of {group} run"
    if running < wanted and _are_coming(cloud, record, wanted):
        raise StillWaiting(
            f"{have}; Google has not given the rest yet",
            why="a test of a part of them would not say whether all are well",
            fix="run Create again to wait for them, then Test",
        )
    raise ClusterError(
        have,
        code=Code.MACHINES_GONE,
        why="somebody changed the size of the group, or deleted VMs, after the last Create",
        fix=f"run Create to have {wanted} again; or set INSTANCE_COUNT to what you want, and run"
        " Create",
        setting="INSTANCE_COUNT",
    )


def _wanted(cloud: Cloud, record: Record) -> int:
    """How many VMs the last Create was to make; 1 at least."""
    group = json_object.inner(cloud.folder.outputs().get("group"))
    return json_object.whole(group.get("size")) or record.settings.get("INSTANCE_COUNT") or 1


def _are_coming(cloud: Cloud, record: Record, wanted: int) -> bool:
    """Whether the group, or a request for flex start VMs, still asks for what is missing."""
    name = names.GROUP.of(record.name_prefix)
    path = GROUP.path(project=record.project_id, zone=record.zone, name=name)
    group = cloud.api.find(GROUP.look.service, path)
    if group is None:
        return False
    requests = map(ResizeRequest.of, cloud.api.resize_requests(path))
    return int(group.get("targetSize", 0)) >= wanted or any(it.is_open for it in requests)
