"""Long-running operations of Compute Engine, and how long things take.

An operation knows from its start when it will end, so nothing has to run in between: whoever reads
it compares that moment with the present one. The moments are wall time, so processes of different
clock rates agree about them.
"""

from dataclasses import dataclass
from typing import Any

from rehearsal.cloud.compute import links
from rehearsal.cloud.store import Store
from rehearsal.cloud.wire import GoogleError, Request, rfc3339

COLLECTION = "compute/operations"
_USER = "rehearsal@example.com"

_DEFAULT_SECONDS = 3.0
SECONDS = {
    "addresses.insert": 4.0,
    "disks.delete": 4.0,
    "firewalls.delete": 6.0,
    "firewalls.insert": 6.0,
    "firewalls.patch": 6.0,
    "images.insert": 180.0,
    "instanceGroupManagers.insert": 6.0,
    "instanceTemplates.delete": 2.0,
    "instanceTemplates.insert": 2.0,
    "networks.delete": 22.0,
    "networks.insert": 12.0,
    "networks.patch": 12.0,
    "routers.delete": 10.0,
    "routers.insert": 10.0,
    "routers.patch": 6.0,
    "subnetworks.delete": 14.0,
    "subnetworks.expandIpCidrRange": 12.0,
    "subnetworks.insert": 14.0,
    "subnetworks.patch": 12.0,
}
"""How long the operation of a method takes, in seconds of cloud time; about what Google takes."""


def duration(method: str) -> float:
    """Seconds of cloud time that the operation of a method takes ("networks.insert")."""
    return SECONDS.get(method, _DEFAULT_SECONDS)


@dataclass(frozen=True, kw_only=True)
class Work:
    """What an operation does."""

    method: str  # the method that begins it ("networks.insert")
    target: str  # the name of what it works on ("projects/p/global/networks/n")
    target_id: str
    end: float  # when it is done (Unix epoch)
    kind: str = ""  # its type, where that is not the method's name
    user: str = _USER


def start(request: Request, store: Store, work: Work) -> dict[str, Any]:
    """Begin an operation, and answer it as the request that begins it is answered."""
    number = store.count("compute/operations")
    name = f"operation-{int(request.now * 1000)}-{number:013x}"
    scope = links.scope(work.target)
    body = {
        "kind": "compute#operation",
        "id": str(links.FIRST_ID + store.count("compute/ids")),
        "name": name,
        "operationType": work.kind or work.method.rpartition(".")[2],
        "targetLink": links.ROOT + work.target,
        "targetId": work.target_id,
        "user": work.user,
        "insertTime": rfc3339(request.now),
        "startTime": rfc3339(request.now),
        "selfLink": f"{links.ROOT}{scope}/operations/{name}",
        **links.place_fields(work.target),
        "_end": work.end,
    }
    store.put(COLLECTION, f"{scope}/operations/{name}", body)
    return view(body, request.now)


def warn(store: Store, operation: dict[str, Any], warning: dict[str, Any]) -> dict[str, Any]:
    """Let a begun operation warn of something; returns it as it is answered."""
    name = links.name_of(operation["selfLink"])
    body = store.get(COLLECTION, name) or {}
    store.put(COLLECTION, name, {**body, "warnings": [*body.get("warnings", []), warning]})
    return {**operation, "warnings": [*operation.get("warnings", []), warning]}


def end_at(store: Store, name: str, end: float) -> None:
    """Let a running operation end at another moment than it was begun with (Unix epoch)."""
    body = store.get(COLLECTION, name)
    if body is not None:
        store.put(COLLECTION, name, {**body, "_end": end})


def get(request: Request, store: Store, name: str) -> dict[str, Any]:
    """The operation of that name ("projects/p/global/operations/operation-1")."""
    body = store.get(COLLECTION, name)
    if body is None:
        raise GoogleError(404, f"The resource '{name}' was not found")
    return view(body, request.now)


def view(body: dict[str, Any], now: float) -> dict[str, Any]:
    """A kept operation as it is answered at a moment."""
    shown = {key: value for key, value in body.items() if not key.startswith("_")}
    if body["_end"] > now:
        return {**shown, "status": "RUNNING", "progress": 0}
    return {**shown, "status": "DONE", "progress": 100, "endTime": rfc3339(body["_end"])}


def tell(request: Request, store: Store, kind: str, name: str, target_id: str) -> None:
    """Put what Google did of its own accord among the zone's operations, where it tells of it."""
    work = Work(
        method="", target=name, target_id=target_id, end=request.now, kind=kind, user="system"
    )
    start(request, store, work)
