"""GKE's autoscaler on pods that find no node: more nodes in pools that may grow.

Pools with queued provisioning grow by ProvisioningRequests alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rehearsal.cloud.kubernetes import capacity, objects, pods, pools

if TYPE_CHECKING:
    from rehearsal.cloud.kubernetes.objects import Object, World
    from rehearsal.cloud.kubernetes.pools import Pool

_PAUSE: Final = 300.0
"""Seconds of cloud time before a pool that got no nodes is tried again."""
_TRIES: Final = "scale-ups"


def look(world: World) -> None:
    """Let pools grow for the pods that wait."""
    every = pods.every(world)
    waiting = [it for it in every if not pods.is_over(it) and "nodeName" not in it["spec"]]
    if not waiting:
        return
    for pool in pools.every(world):
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
    asked, tries = (world.cluster.collection(it) for it in (capacity.ASKED, _TRIES))
    open_one = world.store.get(asked, pool.name)
    if open_one is not None:
        answer = capacity.find(world.request, world.store, **open_one)
        if answer.is_open:
            return
        world.store.delete(asked, pool.name)
        if answer.state == "FAILED":
            _note(world, pool, waiting, answer.message)
            return
    before = pools.size(world, pool)
    kept = world.store.get(tries, pool.name) or {}
    if count <= before or kept.get("not_before", 0.0) > world.now:
        return
    if pool.flex:
        name = f"gke-{world.cluster.key[:8]}-scale-up-{world.store.count(asked)}"
        world.store.put(asked, pool.name, {"group": pool.groups[0], "name": name})
        capacity.ask(world, pool.groups[0], name, count - before, None)
        return
    error = pools.resize(world, pool, count)
    if error is not None:
        pools.resize(world, pool, before)
        _note(world, pool, waiting, error["message"])


def _note(world: World, pool: Pool, waiting: list[Object], message: str) -> None:
    """No nodes came: leave the pool alone for a while, and say so to the pods."""
    collection = world.cluster.collection(_TRIES)
    again = world.request.after(_PAUSE)
    world.store.put(collection, pool.name, {"not_before": again})
    for pod in waiting:
        objects.warn(world, pod, "FailedScaleUp", f"Node scale up of {pool.name} failed: {message}")
