"""The status of a group of VMs: the VMs with their start-up, and the resize requests."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, Final

from provision import words
from provision.catalogue import names
from provision.codes import Code
from provision.errors import Problem
from provision.google import refusals
from provision.google.resources import GROUP
from provision.kinds.vms import instances, interruptions, startup
from provision.kinds.vms.resize_requests import ResizeRequest

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from provision.context import Cloud, Context
    from provision.kinds.vms.interruptions import Interruption, Member
    from provision.kinds.vms.startup import Startup
    from provision.state.record import Record
    from provision.time.clock import Clock

_VMS: Final = 50
"""The number of VMs in the text; the JSON has all of them."""


def look(context: Context, cloud: Cloud, record: Record) -> dict[str, Any]:
    """The VMs of a group and its resize requests, as the JSON has them.

    `down` has the VMs of the group that do not run, those too that do not exist now, and
    `interruption` the last that Google did to a VM of its own accord, as far as it still tells.
    """
    members = instances.managed(cloud.api, record)
    found = instances.find(cloud.api, record, context.clock, members)
    context.note(instances.ending_soon(found))
    told = startups(context, cloud, record, [vm.name for vm in found])
    known = interruptions.read(cloud.api, record, context.clock)
    down = interruptions.down(members)
    requests = _requests(cloud, record)
    wanted = record.settings.get("INSTANCE_COUNT")
    context.note(_ended(record, wanted, len(members), requests))
    return {
        "image": {key: record.image.get(key) for key in ("project", "family", "name")},
        "wanted": wanted,
        "running": sum(vm.status == "RUNNING" for vm in found),
        "vms": [_vm(vm, told[vm.name], known.get(vm.name)) for vm in found],
        "down": [_down(one, known.get(one.name)) for one in down],
        "requests": [_request(one, context.clock) for one in requests],
    }


def _ended(
    record: Record, wanted: object, there: int, requests: Sequence[ResizeRequest]
) -> list[Problem]:
    """A note on VMs whose run duration is over: Google deletes them, and nothing tells of them."""
    limit = record.settings.get("MAX_RUN_DURATION")
    if not isinstance(wanted, int) or there >= wanted or not limit:
        return []
    if any(request.is_open for request in requests):
        return []
    return [
        Problem(
            code=Code.MACHINES_GONE,
            setting="MAX_RUN_DURATION",
            what=f"{wanted - there} of {wanted} VMs are no longer part of the group",
            why=f"Google deletes a VM when its run duration of {words.duration(float(limit))} is"
            " over, and its group makes no new one",
            fix="run Create to get new VMs, or Destroy if you are done",
        )
    ]


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
    wanted = found["wanted"] or len(found["vms"])
    yield f"{found['running']} of {wanted} VMs run in {found['zone']}:"
    yield from (f"  {_vm_line(vm)}" for vm in found["vms"][:_VMS])
    if len(found["vms"]) > _VMS:
        yield f"  ... and {len(found['vms']) - _VMS} more: --output json lists all of them"
    for one in found["down"]:
        event = f"{one['interruption']['words']}; it " if one["interruption"] else ""
        yield f"{one['name']} {event}{one['words']}"
        yield from (f"  {line}" for line in one["reasons"])
    for request in found["requests"]:
        yield f"{request['words']}, for {words.duration(request['age_seconds'])}"
        yield from (f"  {line}" for line in request["reasons"])


def _vm_line(vm: Mapping[str, Any]) -> str:
    name = f"{vm['name']} {vm['status']}"
    # The start-up of a VM that is down says nothing: it begins anew.
    parts = [f"{name}, {vm['startup']['words']}" if vm["status"] == "RUNNING" else name]
    if vm["startup"]["state"] == "failed" and vm["startup"]["detail"]:
        parts += [vm["startup"]["detail"].splitlines()[-1]]
    if vm["remaining_seconds"] is not None:
        parts += [f"{words.duration(vm['remaining_seconds'])} left"]
    if vm["maintenance_seconds"] is not None:
        begins = words.duration(vm["maintenance_seconds"])
        parts += [f"Google stops it in {begins} to maintain its host"]
    if vm["interruption"] and vm["interruption"]["seconds_ago"] < interruptions.LATELY:
        parts += [vm["interruption"]["words"]]
    if vm["notebook"]:
        parts += [vm["notebook"]]
    return "; ".join(parts)


def _down(one: Member, known: Interruption | None) -> dict[str, Any]:
    return {
        "name": one.name,
        "status": one.status or None,
        "action": one.action,
        "words": one.words,
        "reasons": list(one.reasons),
        "interruption": _interruption(known),
    }


def _interruption(known: Interruption | None) -> dict[str, Any] | None:
    if known is None:
        return None
    event = known.event.name.lower().replace("_", "-")
    return {"event": event, "seconds_ago": int(known.ago), "words": known.words}


def _vm(vm: instances.Vm, told: Startup, known: Interruption | None) -> dict[str, Any]:
    return {
        "name": vm.name,
        "status": vm.status,
        "machine_type": vm.machine_type,
        "remaining_seconds": None if vm.remaining is None else int(vm.remaining),
        "maintenance_seconds": None if vm.maintenance is None else int(vm.maintenance),
        "interruption": _interruption(known),
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
