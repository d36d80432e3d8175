"""What exists of a deployment and how it stands; nothing is written and no lock is taken."""

from __future__ import annotations

import dataclasses
import re
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from provision import words
from provision.catalogue import names
from provision.deployment.kind import Kind
from provision.google import refusals
from provision.google.resources import GROUP
from provision.kinds.gke import status
from provision.kinds.vms import instances, startup
from provision.kinds.vms.requests import Request

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from provision.context import Cloud, Context
    from provision.deployment.record import Record
    from provision.kinds.vms.startup import Startup
    from provision.time.clock import Clock

_CONSOLE: Final = "https://console.cloud.google.com"
_INDEX: Final = re.compile(r"\[[^]]*\]")
_VMS: Final = 50
"""VMs that are listed for people; the JSON has all."""


def look(context: Context, cloud: Cloud, record: Record) -> dict[str, Any]:
    """Find out how a deployment stands.

    Args:
        context: The run.
        cloud: Where it is.
        record: What it is.
    """
    addresses = sorted(cloud.folder.addresses())
    outputs = cloud.folder.outputs()
    is_gke = record.kind == Kind.GKE
    own = status.look(context, cloud, record) if is_gke else _group(context, cloud, record)
    return {
        "kind": record.kind,
        "cluster_id": record.cluster_id,
        "zone": record.zone,
        "locked_by": getattr(cloud.folder.lock(), "who", None),
        "resources": addresses,
        **own,
        "filestores": outputs.get("filestores") or [],
        "links": _links(record, outputs),
        "last_log": cloud.folder.last_log(),
        "state": cloud.folder.location.url,
    }


def _group(context: Context, cloud: Cloud, record: Record) -> dict[str, Any]:
    """The VMs of a group, and the requests for more."""
    found = instances.find(
        cloud.api, record.project_id, record.zone, record.cluster_id, context.clock
    )
    context.note(instances.ending_soon(found))
    told = read_startups(context, cloud, record, [vm.name for vm in found])
    return {
        "vms": [_vm(vm, told[vm.name]) for vm in found],
        "requests": [_request(one, context.clock) for one in _requests(cloud, record)],
    }


def read_startups(
    context: Context, cloud: Cloud, record: Record, wanted: list[str]
) -> dict[str, Startup]:
    """What the VMs of a deployment say of their start-up."""
    zone = f"projects/{record.project_id}/zones/{record.zone}"
    return startup.Reader(cloud.api, zone, context.clock).read(wanted)


def text(found: Mapping[str, Any]) -> str:
    """The status for people."""
    return "\n".join(_lines(found))


def _lines(found: Mapping[str, Any]) -> Iterator[str]:
    kinds = Counter(_INDEX.sub("", address).split(".")[-2] for address in found["resources"])
    yield f"{len(found['resources'])} resources in {found['state']}:"
    yield from (f"  {count} {kind}" for kind, count in sorted(kinds.items()))
    if found["locked_by"]:
        yield f"Somebody is at work on it: {found['locked_by']}"
    yield from status.lines(found) if found["kind"] == Kind.GKE else _group_lines(found)
    for share in found["filestores"]:
        yield f"Filestore {share['name']} at {share['path']}: {share['ip']}"
    yield from (f"{name}: {url}" for name, url in found["links"].items())
    if found["last_log"]:
        yield f"Last log: {found['last_log']}"


def _group_lines(found: Mapping[str, Any]) -> Iterator[str]:
    yield f"{len(found['vms'])} VMs in {found['zone']}:"
    yield from (f"  {_vm_line(vm)}" for vm in found["vms"][:_VMS])
    if len(found["vms"]) > _VMS:
        yield f"  ... and {len(found['vms']) - _VMS} more: --output json has all"
    for request in found["requests"]:
        yield f"{request['words']}, since {words.duration(request['age_seconds'])}"
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


def _requests(cloud: Cloud, record: Record) -> list[Request]:
    name = names.GROUP.of(record.name_prefix)
    path = GROUP.path(project=record.project_id, zone=record.zone, name=name)
    return [Request.of(document) for document in cloud.api.resize_requests(path)]


def _request(request: Request, clock: Clock) -> dict[str, Any]:
    return {
        "name": request.name,
        "count": request.count,
        "run_seconds": request.run_seconds,
        "state": request.state,
        "words": request.words[0].upper() + request.words[1:],
        "age_seconds": int(clock.since(request.created)),
        "reasons": list(dict.fromkeys(map(refusals.words, request.errors))),
    }


def _links(record: Record, outputs: Mapping[str, Any]) -> dict[str, str]:
    """Pages of Google's console, by what they show."""
    project = f"project={record.project_id}"
    links = {
        **_own_link(record, project),
        "Bucket": f"{_CONSOLE}/storage/browser?{project}",
        "Quotas": f"{_CONSOLE}/iam-admin/quotas?{project}",
    }
    dashboard = (outputs.get("dashboard") or {}).get("url")
    return links | ({"Dashboard": dashboard} if dashboard else {})


def _own_link(record: Record, project: str) -> dict[str, str]:
    """The page of what the deployment is about."""
    if record.kind == Kind.GKE:
        cluster = f"{record.region}/{names.CLUSTER.of(record.name_prefix)}"
        return {"Cluster": f"{_CONSOLE}/kubernetes/clusters/details/{cluster}?{project}"}
    group = f"{record.zone}/{names.GROUP.of(record.name_prefix)}"
    return {"VMs": f"{_CONSOLE}/compute/instanceGroups/details/{group}?{project}"}
