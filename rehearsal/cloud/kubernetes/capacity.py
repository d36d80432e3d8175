"""Nodes that come all at once: the resize requests by which the autoscaler asks for them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rehearsal.cloud.kubernetes import google
from rehearsal.cloud.wire import GoogleError

if TYPE_CHECKING:
    from rehearsal.cloud.kubernetes.objects import Object, World
    from rehearsal.cloud.store import Store
    from rehearsal.cloud.wire import Request

ASKED: Final = "requests for nodes"
"""A cluster's collection of what it has asked for: documents with `group` and `name`."""

_OPEN: Final = frozenset({"CREATING", "ACCEPTED"})


@dataclass(frozen=True)
class Answer:
    """What Compute Engine says of a request for nodes.

    Attributes:
        state: CREATING, ACCEPTED, SUCCEEDED, FAILED or CANCELLED.
        code: Of the error, or of that of its last attempt; "" for none.
        message: The error's words.
    """

    state: str
    code: str = ""
    message: str = ""

    @property
    def is_open(self) -> bool:
        """Whether it waits."""
        return self.state in _OPEN


def ask(world: World, group: str, name: str, count: int, seconds: int | None) -> Answer:
    """Ask for so many nodes more in a group.

    Args:
        world: The cluster.
        group: The path of a pool's group, as `Pool.groups` has it.
        name: What the request is called.
        count: How many.
        seconds: How long they will run at most; None for what the pool says.

    Returns:
        What it is at first; FAILED when Compute Engine refuses to take it.
    """
    body: Object = {"name": name, "resizeBy": count}
    if seconds is not None:
        body["requestedRunDuration"] = {"seconds": str(seconds)}
    try:
        _prepare(world, group)
        google.call(world.request, world.store, "POST", f"{group}/resizeRequests", body)
    except GoogleError as error:
        return Answer("FAILED", "", error.message)
    return find(world.request, world.store, group, name)


def find(request: Request, store: Store, group: str, name: str) -> Answer:
    """What has become of a request for nodes; CANCELLED when there is none (any more)."""
    try:
        found = google.call(request, store, "GET", f"{group}/resizeRequests/{name}")
    except GoogleError:
        return Answer("CANCELLED")
    status = found.get("status") or {}
    said = status.get("error") or (status.get("lastAttempt") or {}).get("error") or {}
    error: Object = next(iter(said.get("errors") or []), {})
    words = " ".join(str(error.get("message", "")).split())
    return Answer(found["state"], error.get("code", ""), words)


def cancel(request: Request, store: Store, group: str, name: str) -> None:
    """Give up a request for nodes that waits; one that is over stays as it is."""
    if find(request, store, group, name).is_open:
        google.call(request, store, "POST", f"{group}/resizeRequests/{name}/cancel")


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
