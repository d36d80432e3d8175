"""The status of a group of VMs: the VMs with their start-up, and the resize requests."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, Final

from provision import words
from provision.catalogue import names
from provision.google import refusals
from provision.google.resources import GROUP
from provision.kinds.vms import instances, startup
from provision.kinds.vms.resize_requests import ResizeRequest

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from provision.context import Cloud, Context
    from provision.kinds.vms.startup import Startup
    from provision.state.record import Record
    from provision.time.clock import Clock

_VMS: Final = 50
"""The number of VMs in the text; the JSON has all of them."""


def look(context: Context, cloud: Cloud, record: Record) -> dict[str, Any]:
    """The VMs of a group and its resize requests, as the JSON has them."""
    found = instances.find(cloud.api, record, context.clock)
    context.note(instances.ending_soon(found))
    told = startups(context, cloud, record, [vm.name for vm in found])
    return {
        "image": {key: record.image.get(key) for key in ("project", "family", "name")},
        "vms": [_vm(vm, told[vm.name]) for vm in found],
        "requests": [_request(one, context.clock) for one in _requests(cloud, record)],
    }


def startups(
    context: Context, cloud: Cloud, record: Record, wanted: list[str]
) -> dict[str, Startup]:
    """What the VMs of a deployment report of their start-up, by name."""
    zone = f"projects/{record.project_id}/zones/{record.zone}"
    return startup.Reader(cloud.api, zone, context.clock).read(wanted)


def lines(found: Mapping[str, Any]) -> Iterator[str]:
    """The VMs and the resize requests as text."""
    if found["image"]["name"]:
        yield f"New VMs boot {found['image']['name']} of {found['image']['project']}"
    yield f"{len(found['vms'])} VMs in {found['zone']}:"
    yield from (f"  {_vm_line(vm)}" for vm in found["vms"][:_VMS])
    if len(found["vms"]) > _VMS:
        yield f"  ... and {len(found['vms']) - _VMS} more: --output json lists all of them"
    for request in found["requests"]:
        yield f"{request['words']}, for {words.duration(request['age_seconds'])}"
        yield from (f"  {line}" for line in request["reasons"])


def _vm_line(vm: Mapping[str, Any]) -> str:
    parts = [f"{vm['name']} {vm['status']}, {vm['startup']['words']}"]
    if vm["startup"]["state"] == "failed" and vm["startup"]["detail"]:
        parts += [vm["startup"]["detail"].splitlines()[-1]]
    if vm["remaining_seconds"] is not None:
        parts += [f"{words.duration(vm['remaining_seconds'])} left"]
    if vm["notebook"]:
        parts += [vm["notebook"]]
    return "; ".join(parts)


def _vm(vm: instances.Vm, told: Startup) -> dict[str, Any]:
    return {
        "name": vm.name,
        "status": vm.status,
        "machine_type": vm.machine_type,
        "remaining_seconds": None if vm.remaining is None else int(vm.remaining),
        "notebook": vm.notebook,
        "startup": {
            "state": told.state or None,
            "step": told.step or None,
            "words": told.words,
            "detail": told.detail,
            "steps": {name: dataclasses.asdict(step) for name, step in told.steps.items()},
        },
        "gpu_check": told.gpu_check,
    }


def _requests(cloud: Cloud, record: Record) -> list[ResizeRequest]:
    name = names.GROUP.of(record.name_prefix)
    path = GROUP.path(project=record.project_id, zone=record.zone, name=name)
    return [ResizeRequest.of(document) for document in cloud.api.resize_requests(path)]


def _request(request: ResizeRequest, clock: Clock) -> dict[str, Any]:
    return {
        "name": request.name,
        "count": request.count,
        "run_seconds": request.run_seconds,
        "state": request.state,
        "words": request.words[0].upper() + request.words[1:],
        "age_seconds": int(clock.since(request.created)),
        "reasons": list(dict.fromkeys(map(refusals.words, request.errors))),
    }
