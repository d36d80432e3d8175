"""What a cluster asks of Google for itself, as any client does: things, nodes all at once, rests.

Nodes come all at once by resize requests. A group that could not grow rests, as GKE's autoscaler
lets it (published source, 2026-08-21): 5 minutes, twice as long after each failure that follows, 30
minutes at most; all is forgotten 3 hours after the last failure.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from rehearsal.cloud import compute, filestore
from rehearsal.cloud.container.records import Record
from rehearsal.cloud.kubernetes import kinds, pools
from rehearsal.cloud.kubernetes.objects import Object, World
from rehearsal.cloud.kubernetes.reasons import Error
from rehearsal.cloud.store import Store
from rehearsal.cloud.wire import GoogleError, Request

_NOT_FOUND = 404


def call(
    request: Request,
    store: Store,
    method: str,
    path: str,
    body: Object | None = None,
    **query: str,
) -> dict[str, Any]:
    """One request to Compute Engine, or to Filestore, whose things are in locations."""
    service = (filestore if "/locations/" in path else compute).service
    reply = service(request.asking(method, path, body, **query), store)
    return reply.body if isinstance(reply.body, dict) else {}


def has(world: World, path: str) -> bool:
    """Whether there is a resource of that path."""
    try:
        call(world.request, world.store, "GET", path)
    except GoogleError as error:
        if error.code == _NOT_FOUND:
            return False
        raise
    return True


def make(world: World, collection: str, body: Object) -> None:
    """Make a resource, unless there is one of its name."""
    if not has(world, f"{collection}/{body['name']}"):
        call(world.request, world.store, "POST", collection, body)


def remove(world: World, path: str) -> None:
    """Delete a resource that may be gone already."""
    if has(world, path):
        call(world.request, world.store, "DELETE", path)


ASKED: Final = "requests for nodes"
"""A cluster's collection of what it has asked for: documents with `group` and `name`."""

MISSING: Final = "MISSING"  # the state of a request that is not there (any more)
_OPEN: Final = frozenset({"CREATING", "ACCEPTED"})


@dataclass(frozen=True)
class Answer:
    """What Compute Engine says of a request for nodes."""

    state: str  # CREATING, ACCEPTED, SUCCEEDED, FAILED, CANCELLED or `MISSING`
    errors: tuple[Error, ...] = ()  # of it, or of its last attempt

    @property
    def is_open(self) -> bool:
        """Whether it waits."""
        return self.state in _OPEN


def ask_for_nodes(world: World, group: str, name: str, count: int, seconds: int | None) -> Answer:
    """Ask for so many nodes more in a group.

    `seconds`: how long they will run at most; None for what the pool says. Returns what it is at
    first; FAILED when Compute Engine refuses to take it.
    """
    body: Object = {"name": name, "resizeBy": count}
    if seconds is not None:
        body["requestedRunDuration"] = {"seconds": str(seconds)}
    try:
        _prepare_group(world, group)
        call(world.request, world.store, "POST", f"{group}/resizeRequests", body)
    except GoogleError as error:
        # What is wrong with the request itself, Compute Engine says in the insert's operation;
        # here it is the answer, which has no such code.
        code = "INVALID_ARGUMENT" if error.reason == "invalid" else ""
        return Answer("FAILED", (Error(code, error.message, {}),))
    return request_for_nodes(world.request, world.store, group, name)


def request_for_nodes(request: Request, store: Store, group: str, name: str) -> Answer:
    """What has become of a request for nodes."""
    try:
        found = call(request, store, "GET", f"{group}/resizeRequests/{name}")
    except GoogleError:
        return Answer(MISSING)
    status = found.get("status") or {}
    said = status.get("error") or (status.get("lastAttempt") or {}).get("error") or {}
    return Answer(found["state"], tuple(_error(it) for it in said.get("errors") or []))


def _error(found: Object) -> Error:
    details = [it["errorInfo"] for it in found.get("errorDetails") or [] if "errorInfo" in it]
    info: Object = next(iter(details), {})
    known = {"reason": info.get("reason", ""), **(info.get("metadatas") or {})} if info else {}
    return Error(str(found.get("code", "")), str(found.get("message", "")), known)


def withdraw(request: Request, store: Store, group: str, name: str) -> bool:
    """Delete a request for nodes; one that waits is cancelled first, and deleted the next time."""
    answer = request_for_nodes(request, store, group, name)
    if answer.state == MISSING:
        return True
    if answer.is_open:
        cancel(request, store, group, name)
        return False
    call(request, store, "DELETE", f"{group}/resizeRequests/{name}")
    return True


def cancel(request: Request, store: Store, group: str, name: str) -> None:
    """Give up a request for nodes that waits; one that is over stays as it is."""
    if request_for_nodes(request, store, group, name).is_open:
        call(request, store, "POST", f"{group}/resizeRequests/{name}/cancel")


def release(world: World, asked: Iterable[Object]) -> None:
    """Cancel what was asked of groups whose pool is being deleted: they wait for that."""
    groups = {group for pool in pools.every(world) for group in pool.groups}
    for it in asked:
        if it["group"] not in groups:
            cancel(world.request, world.store, it["group"], it["name"])


def catch_up(world: World, group: str) -> None:
    """Let happen what is due in Compute Engine: any request to it does."""
    call(world.request, world.store, "GET", group)


def delete_nodes(world: World, group: str, names: list[str]) -> None:
    """Delete nodes of a group, which is smaller then."""
    zone = group.partition("/instanceGroupManagers/")[0]
    links = [f"{zone}/instances/{name}" for name in names]
    body = {"instances": links}
    call(world.request, world.store, "POST", f"{group}/deleteInstances", body)


def _prepare_group(world: World, group: str) -> None:
    """Let a group take requests: it must not repair what does not come (rule M4)."""
    policy = call(world.request, world.store, "GET", group)["instanceLifecyclePolicy"]
    if policy["defaultActionOnFailure"] != "DO_NOTHING":
        changed = {**policy, "defaultActionOnFailure": "DO_NOTHING"}
        body = {"instanceLifecyclePolicy": changed}
        call(world.request, world.store, "PATCH", group, body)


_RESTS: Final = "groups at rest"
# Seconds of cloud time.
_FIRST_REST: Final = 300.0
_LONGEST_REST: Final = 1800.0
_REMEMBERED: Final = 10_800.0


def let_rest(world: World, group: str) -> None:
    """Let a group rest after a failure; one at rest goes on as it was."""
    if rests(world, group):
        return
    collection = world.cluster.collection(_RESTS)
    before = world.store.get(collection, group)
    seconds = _FIRST_REST
    if before is not None and before["failed"] + _REMEMBERED * world.request.rate > world.now:
        seconds = min(before["seconds"] * 2, _LONGEST_REST)
    until = world.request.after(seconds)
    kept = {"failed": world.now, "seconds": seconds, "until": until}
    world.store.put(collection, group, kept)
    world.wake(until)


def rests(world: World, group: str) -> bool:
    """Whether a group is at rest."""
    found = world.store.get(world.cluster.collection(_RESTS), group)
    return found is not None and bool(found["until"] > world.now)


def forget_cluster(request: Request, store: Store, record: Record) -> None:
    """Forget what a cluster keeps, but its endpoint until it is gone; cancel what it asked for."""
    prefix = f"kubernetes/{kinds.key_of(record)}/"
    for _, asked in list(store.list(prefix + ASKED)):
        cancel(request, store, **asked)
    for collection in store.collections():
        if collection.startswith(prefix):
            for name, _ in list(store.list(collection)):
                store.delete(collection, name)
