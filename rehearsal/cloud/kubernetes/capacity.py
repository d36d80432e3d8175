"""Nodes that come all at once: the resize requests by which the autoscaler asks for them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rehearsal.cloud.kubernetes import google, pools
from rehearsal.cloud.kubernetes.reasons import Error
from rehearsal.cloud.wire import GoogleError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rehearsal.cloud.kubernetes.objects import Object, World
    from rehearsal.cloud.store import Store
    from rehearsal.cloud.wire import Request

ASKED: Final = "requests for nodes"
"""A cluster's collection of what it has asked for: documents with `group` and `name`."""

MISSING: Final = "MISSING"
"""The state of a request that is not there (any more)."""
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


def ask(world: World, group: str, name: str, count: int, seconds: int | None) -> Answer:
    """Ask for so many nodes more in a group.

    `seconds`: how long they will run at most; None for what the pool says. Returns what it is at
    first; FAILED when Compute Engine refuses to take it.
    """
    body: Object = {"name": name, "resizeBy": count}
    if seconds is not None:
        body["requestedRunDuration"] = {"seconds": str(seconds)}
    try:
        _prepare(world, group)
        google.call(world.request, world.store, "POST", f"{group}/resizeRequests", body)
    except GoogleError as error:
        # What is wrong with the request itself, Compute Engine says in the insert's operation;
        # here it is the answer, which has no such code.
        code = "INVALID_ARGUMENT" if error.reason == "invalid" else ""
        return Answer("FAILED", (Error(code, error.message, {}),))
    return find(world.request, world.store, group, name)


def find(request: Request, store: Store, group: str, name: str) -> Answer:
    """What has become of a request for nodes."""
    try:
        found = google.call(request, store, "GET", f"{group}/resizeRequests/{name}")
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


def delete(request: Request, store: Store, group: str, name: str) -> bool:
    """Delete a request for nodes; one that waits is cancelled first, and deleted the next time."""
    answer = find(request, store, group, name)
    if answer.state == MISSING:
        return True
    if answer.is_open:
        cancel(request, store, group, name)
        return False
    google.call(request, store, "DELETE", f"{group}/resizeRequests/{name}")
    return True


def cancel(request: Request, store: Store, group: str, name: str) -> None:
    """Give up a request for nodes that waits; one that is over stays as it is."""
    if find(request, store, group, name).is_open:
        google.call(request, store, "POST", f"{group}/resizeRequests/{name}/cancel")


def release(world: World, asked: Iterable[Object]) -> None:
    """Cancel what was asked of groups whose pool is being deleted: they wait for that."""
    groups = {group for pool in pools.every(world) for group in pool.groups}
    for it in asked:
        if it["group"] not in groups:
            cancel(world.request, world.store, it["group"], it["name"])


def catch_up(world: World, group: str) -> None:
    """Let happen what is due in Compute Engine: any request to it does."""
    google.call(world.request, world.store, "GET", group)


def delete_nodes(world: World, group: str, names: list[str]) -> None:
    """Delete nodes of a group, which is smaller then."""
    zone = group.partition("/instanceGroupManagers/")[0]
    links = [f"{zone}/instances/{name}" for name in names]
    body = {"instances": links}
    google.call(world.request, world.store, "POST", f"{group}/deleteInstances", body)


def _prepare(world: World, group: str) -> None:
    """Let a group take requests: it must not repair what does not come (rule M4)."""
    policy = google.call(world.request, world.store, "GET", group)["instanceLifecyclePolicy"]
    if policy["defaultActionOnFailure"] != "DO_NOTHING":
        changed = {**policy, "defaultActionOnFailure": "DO_NOTHING"}
        body = {"instanceLifecyclePolicy": changed}
        google.call(world.request, world.store, "PATCH", group, body)
