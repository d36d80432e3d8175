"""Flex start in Create and Plan: compare VMs and resize requests with what the settings ask for."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from provision.catalogue import limits
from provision.errors import SettingsError
from provision.google.api import Service
from provision.google.resources import GROUP, RESIZE_REQUEST
from provision.kinds.vms import resize_requests, variables
from provision.kinds.vms.resize_requests import ResizePlan, ResizeRequest
from provision.spec.pools import Group

if TYPE_CHECKING:
    from provision.context import Cloud
    from provision.deployment.deployment import Deployment
    from provision.deployment.workspace import Workspace
    from provision.spec.cluster import VmSpec


def prepare(
    cloud: Cloud, target: Deployment[VmSpec], workspace: Workspace
) -> tuple[Deployment[VmSpec], int]:
    """Decide on the resize requests, put them into the variables, drop ended ones from the state.

    The number of a new request is recorded before the request is made, so that a killed run does
    not lead to a second request of the same name. Plan changes neither state nor record: there,
    requests that have ended stay until the next Create.
    """
    kept = cloud.folder.of_type(RESIZE_REQUEST.type)
    is_flex, path = target.spec.group.mode.means.flex_start, group(target.spec).path
    if workspace.live:
        workspace.tool.forget(_over(cloud, kept, path if is_flex else ""))
    if not is_flex:
        return target, 0
    requests = [ResizeRequest.of(document) for document in cloud.api.resize_requests(path)]
    plan = _decide(cloud, target.spec, requests)
    if workspace.live:
        workspace.tool.forget(_ended(kept, plan, target.spec.zone))
        _keep_number(cloud, plan)
    else:
        in_state = {attributes["name"] for attributes in kept.values()}
        ended = {one.name: one.as_made for one in requests if one.name in in_state}
        plan = dataclasses.replace(plan, requests=ended | plan.requests)
    prepared = variables.with_requests(target, plan.requests)
    workspace.tell(prepared)
    return prepared, plan.postponed


def require_replaceable(spec: VmSpec) -> None:
    """See that running VMs can be replaced."""
    if spec.group.mode.means.flex_start:
        raise SettingsError(
            "--replace-vms can't replace flex start VMs",
            why="Google gives such VMs only by a new request, and neither updates nor recreates"
            " them",
            fix="run Destroy and Create; or, for VMs with a run duration, Create once it is over",
            setting="ENABLE_FLEX_START",
        )


def group(spec: VmSpec) -> Group:
    """The managed instance group of the VMs."""
    return Group.of(spec.project_id, spec.group)


def _over(cloud: Cloud, kept: dict[str, dict[str, Any]], but: str) -> list[str]:
    """The addresses of requests in the state that have ended, but those of one group.

    Terraform would cancel them, as it goes by the state of when it last applied, and Google cancels
    none that has ended (rule M15). They go with their group. `but`: the path of the group on whose
    requests `_decide` decides; "" for none.
    """
    found = []
    for address, attributes in kept.items():
        zone, name = (
            str(attributes[it]).rpartition("/")[2] for it in ("zone", "instance_group_manager")
        )
        path = f"projects/{attributes['project']}/zones/{zone}/{GROUP.look.collection}/{name}"
        requests = [ResizeRequest.of(it) for it in cloud.api.resize_requests(path)]
        if path != but and not any(it.is_open for it in requests if it.name == attributes["name"]):
            found.append(address)
    return found


def _ended(kept: dict[str, dict[str, Any]], plan: ResizePlan, zone: str) -> list[str]:
    """The addresses of requests in the state that have ended."""
    return [
        address
        for address, attributes in kept.items()
        # A group in another zone is about to be replaced; its requests are destroyed before it.
        if attributes["name"] not in plan.requests and str(attributes["zone"]).endswith(zone)
    ]


def _keep_number(cloud: Cloud, plan: ResizePlan) -> None:
    record = cloud.folder.record()
    if record is not None and plan.last > record.last_request:
        cloud.folder.write_record(dataclasses.replace(record, last_request=plan.last))


def _decide(cloud: Cloud, spec: VmSpec, requests: list[ResizeRequest]) -> ResizePlan:
    mine = group(spec)
    exists = cloud.api.find(Service.COMPUTE, mine.path) is not None
    instances = cloud.api.managed_instances(mine.project, mine.zone, mine.name) if exists else []
    record = cloud.folder.record()
    return resize_requests.decide(
        mine,
        vms=resize_requests.present(instances, requests),
        requests=requests,
        prefix=spec.name_prefix,
        last=record.last_request if record else 0,
        run_seconds=spec.group.max_run_seconds or limits.LONGEST_RUN,
    )
