"""What Compute Engine says of a project, and the operations that run in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rehearsal.cloud import projects
from rehearsal.cloud.compute import links, lists, operations, quotas, resources, shared_vpc

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rehearsal.cloud.compute.resources import Call, Resource

_CREATED = "2024-01-01T00:00:00.000-08:00"


def _get(call: Call) -> Resource:
    project = projects.require(call.project, call.store)
    return {
        "kind": "compute#project",
        "id": project.number,
        "creationTimestamp": _CREATED,
        "name": project.id,
        "commonInstanceMetadata": {
            "kind": "compute#metadata",
            "fingerprint": resources.fingerprint([]),
        },
        "quotas": quotas.of_project(call),
        "selfLink": f"{links.ROOT}projects/{project.id}",
        "defaultServiceAccount": project.compute_account,
        "xpnProjectStatus": shared_vpc.status(call),
        "defaultNetworkTier": "PREMIUM",
        "vmDnsSetting": "ZONAL_ONLY",
        "cloudArmorTier": "CA_STANDARD",
    }


def _scope(call: Call) -> str:
    for place in ("zone", "region"):
        if place in call.parameters:
            return f"projects/{call.project}/{place}s/{call.parameters[place]}/operations"
    return f"projects/{call.project}/global/operations"


def _get_operation(call: Call) -> Resource:
    name = f"{_scope(call)}/{call.parameters['operation']}"
    return operations.get(call.request, call.store, name)


def _list_operations(call: Call) -> Resource:
    scope = _scope(call)
    found = call.store.list(operations.COLLECTION, f"{scope}/")
    entries = ((name, operations.view(body, call.now)) for name, body in found)
    return lists.listed(call, "operation", scope, entries)


# `wait` answers at once: it may, by its contract, when it has waited long enough, and a request
# that slept would keep all others from the database.
METHODS: Mapping[str, Callable[[Call], Resource]] = {
    "projects.get": _get,
    **{
        f"{collection}.{verb}": handler
        for collection in ("globalOperations", "regionOperations", "zoneOperations")
        for verb, handler in (
            ("get", _get_operation),
            ("wait", _get_operation),
            ("list", _list_operations),
        )
    },
}
