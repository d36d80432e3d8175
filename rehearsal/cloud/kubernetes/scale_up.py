"""GKE's autoscaler on pods that find no node: more nodes in pools that may grow.

Pools with queued provisioning grow by ProvisioningRequests alone. Those of flex start grow by one
resize request for each VM, which is given up when it waits too long (published source, 2026-08-21).
"""

from __future__ import annotations

import hashlib
import uuid
from typing import TYPE_CHECKING, Final

from rehearsal.cloud.kubernetes import backoff, capacity, ignored, objects, placement, pods, pools

if TYPE_CHECKING:
    from rehearsal.cloud.kubernetes.objects import Object, World
    from rehearsal.cloud.kubernetes.pools import Pool

_PATIENCE: Final = 900.0
"""Seconds of cloud time that a resize request of flex start may wait."""
_LOST: Final = 120.0
_MOST_A_LOOP: Final = 50
_ONE: Final = "one VM, "


def look(world: World) -> None:
    """Let pools grow for the pods that wait."""
    every = pods.every(world)
    waiting = [it for it in every if not pods.is_over(it) and "nodeName" not in it["spec"]]
    ignored.tell(world, [it for it in waiting if pods.consumed(it)])
    waiting = [it for it in waiting if not pods.consumed(it)]
    _attend(world, waiting)
    for pool in pools.every(world) if waiting else []:
        if pool.queued or not pool.most:
            continue
        mine = [it for it in waiting if pool.takes(it["spec"])]
        waiting = [it for it in waiting if it not in mine]
        wanted = sum(pool.nodes_for(it["spec"], 1) for it in mine if pools.gpus_of(it["spec"]))
        plain = [it for it in mine if not pools.gpus_of(it["spec"])]
        wanted += pool.nodes_for({}, len(plain)) if plain else 0
        if wanted:
            _grow(world, pool, min(pool.most, wanted + _busy(every, pool, world)), mine)


def _busy(every: list[Object], pool: Pool, world: World) -> int:
    """How many nodes of a pool run pods."""
    kind = world.kind("v1", "nodes")
    own = {
        it["metadata"]["name"]
        for it in (world.each(kind) if kind else ())
        if it["metadata"]["labels"][pools.POOL] == pool.name
    }
    used = {it["spec"].get("nodeName") for it in every if not pods.is_over(it)}
    return len(own & used)


def _grow(world: World, pool: Pool, count: int, waiting: list[Object]) -> None:
    """Bring a pool to so many nodes, where it has room and does not rest."""
    before = pools.size(world, pool)
    group = next((it for it in pool.groups if not backoff.holds(world, it)), None)
    if count <= before or group is None:
        return
    if pool.flex:
        _ask(world, pool, group, min(count - before, placement.room_in(world, pool, group)))
        return
    error = pools.resize(world, pool, group, count)
    if error is not None:
        pools.resize(world, pool, group, before)
        backoff.note(world, group)
        _note(world, group, waiting, error["message"])


# ------------------------------------------------------------------ flex start


def _ask(world: World, pool: Pool, group: str, count: int) -> None:
    """Ask for VMs of flex start, each by its own request; they run as long as the pool says."""
    ""
    collection = world.cluster.collection(capacity.ASKED)
    number = world.store.count(collection)
    digest = hashlib.sha256(f"{pool.name} {number}".encode()).hexdigest()
    shared = uuid.UUID(digest[:32])
    for index in range(min(count, _MOST_A_LOOP)):
        kept = {"group": group, "name": f"flex-{shared}-{index}"}
        answer = capacity.ask(world, **kept, count=1, seconds=None)
        if answer.state == "FAILED":
            return
        since = {"since": world.now}
        world.store.put(collection, f"{_ONE}{kept['name']}", {**kept, **since})
        world.wake(world.request.after(_PATIENCE))


def _attend(world: World, waiting: list[Object]) -> None:
    """Give up the requests of flex start that waited too long, and those that came to nothing."""
    collection = world.cluster.collection(capacity.ASKED)
    asked = list(world.store.list(collection, _ONE))
    capacity.release(world, [it for _, it in asked])
    for key, kept in asked:
        where = {"group": kept["group"], "name": kept["name"]}
        answer = capacity.find(world.request, world.store, **where)
        late = kept["since"] + _PATIENCE * world.request.rate <= world.now
        if answer.is_open and not (late and world.request.rate):
            continue
        if answer.state != "SUCCEEDED":
            errors = answer.errors
            words = errors[0].message if errors else "Resize Request was cancelled."
            backoff.note(world, kept["group"])
            _note(world, kept["group"], waiting, words)
        if capacity.delete(world.request, world.store, **where):
            world.store.delete(collection, key)
        else:
            world.wake(world.request.after(_LOST))


def _note(world: World, group: str, waiting: list[Object], message: str) -> None:
    """Say to the pods that no nodes came, as GKE does: in which zone, and why in a word or two."""
    zone = group.partition("/zones/")[2].partition("/")[0]
    cause = "GCE quota exceeded" if "quota" in message.lower() else "GCE out of resources"
    for pod in waiting:
        objects.warn(
            world,
            pod,
            "FailedScaleUp",
            f"Node scale up in zones {zone} associated with this pod failed: {cause}. Pod is at"
            f" risk of not being scheduled.",
        )
