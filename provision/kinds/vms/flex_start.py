"""Flex start in a Create: what the group has and has asked for, and what is to be asked."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from provision.catalogue import names
from provision.deployment import deployment
from provision.google.api import Service
from provision.google.resources import RESIZE_REQUEST
from provision.kinds.vms import requests as resize_requests
from provision.kinds.vms.requests import Asking, Request
from provision.spec.group import Group

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path
    from typing import Any

    from provision.context import Cloud
    from provision.deployment.deployment import Deployment
    from provision.google.api import GoogleApi
    from provision.terraform import Terraform

_LONGEST_RUN: Final = 604800
"""Seconds that Google lets flex start VMs run at most (rule M3), for settings that say nothing."""


@dataclass(frozen=True)
class Asked:
    """A deployment with its requests, and how many VMs are to be asked for later."""

    target: Deployment
    postponed: int = 0


def is_used(target: Deployment) -> bool:
    """Whether a deployment's VMs come by flex start."""
    found: Mapping[str, Any] = target.variables.get("capacity", {})
    return found.get("model") == "flex_start"


def group(target: Deployment) -> Group:
    """The group of VMs that a deployment has or will have."""
    settings = target.settings
    attached = target.variables["group"]["gpu"] or {"type": None, "count": 0}
    return Group(
        project=settings.project_id,
        zone=settings.zone,
        name=names.GROUP.of(settings.name_prefix),
        size=settings.instance_count,
        machine_type=settings.vm_type,
        gpu=attached["type"],
        gpus=attached["count"],
    )


def ask(cloud: Cloud, target: Deployment, root: Path, tool: Terraform) -> Asked:
    """Find out what to ask Google for, and have Terraform know of that and of nothing that ended.

    The number of a new request is kept before the request is made, so that a run that is killed
    does not lead to a second request of the same name.

    Args:
        cloud: Has the group and the record.
        target: The deployment; its lock-holder is the only one at work.
        root: The run folder; gets the variables.
        tool: Terraform in it, initialised.

    Raises:
        SettingsError: There would have to be fewer VMs than there are.
    """
    if not is_used(target):
        return Asked(target)
    asking = _decide(cloud, target, _requests(cloud.api, target))
    kept = cloud.folder.of_type(RESIZE_REQUEST.type)
    tool.forget(
        [
            address
            for address, attributes in kept.items()
            # A group in another zone is about to go, and its requests go before it.
            if attributes["name"] not in asking.requests
            and str(attributes["zone"]).endswith(target.settings.zone)
        ]
    )
    record = cloud.folder.record()
    if record is not None and asking.last > record.last_request:
        cloud.folder.write_record(dataclasses.replace(record, last_request=asking.last))
    return _with(target, asking, root)


def ask_nothing_yet(cloud: Cloud, target: Deployment, root: Path) -> Asked:
    """The same for a Plan, which leaves the state alone: what ended stays until a Create.

    Args:
        cloud: Has the group and the record.
        target: The deployment.
        root: The run folder; gets the variables.
    """
    if not is_used(target):
        return Asked(target)
    requests = _requests(cloud.api, target)
    asking = _decide(cloud, target, requests)
    kept = {attributes["name"] for attributes in cloud.folder.of_type(RESIZE_REQUEST.type).values()}
    ended = {one.name: one.as_made for one in requests if one.name in kept}
    return _with(target, dataclasses.replace(asking, requests=ended | asking.requests), root)


def _requests(api: GoogleApi, target: Deployment) -> list[Request]:
    return [Request.of(document) for document in api.resize_requests(group(target).path)]


def _decide(cloud: Cloud, target: Deployment, requests: list[Request]) -> Asking:
    mine = group(target)
    exists = cloud.api.find(Service.COMPUTE, mine.path) is not None
    instances = cloud.api.managed_instances(mine.project, mine.zone, mine.name) if exists else []
    record = cloud.folder.record()
    return resize_requests.decide(
        mine,
        vms=resize_requests.present(instances, requests),
        requests=requests,
        prefix=target.settings.name_prefix,
        last=record.last_request if record else 0,
        run_seconds=target.settings.max_run_duration or _LONGEST_RUN,
    )


def _with(target: Deployment, asking: Asking, root: Path) -> Asked:
    asked = target.asking(asking.requests)
    deployment.write_variables(root, asked)
    return Asked(asked, asking.postponed)
