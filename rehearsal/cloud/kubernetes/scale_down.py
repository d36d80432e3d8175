"""GKE's autoscaler on nodes that run nothing: they go, down to what the pool keeps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rehearsal.cloud.kubernetes import capacity, nodes, pods, pools

if TYPE_CHECKING:
    from rehearsal.cloud.kubernetes.objects import Object, World
    from rehearsal.cloud.kubernetes.pools import Pool

_IDLE: Final = 600.0
"""Seconds of cloud time without a pod after which a node goes (rule Q12)."""
_AFTER_ADD: Final = 600.0
"""Seconds of cloud time after any new node in which none goes (the autoscaler's default)."""


def look(world: World) -> None:
    """Delete the nodes that have been idle for long."""
    kind = world.kind("v1", "nodes")
    if kind is None:
        return
    active = [it for it in pods.every(world) if not pods.is_over(it)]
    busy = {it["spec"].get("nodeName") for it in active}
    waiting = [
        it["spec"] for it in active if "nodeName" not in it["spec"] and not pods.consumed(it)
    ]
    newest = max((it.get("_joined", 0.0) for it in world.each(kind)), default=0.0)
    for pool in pools.every(world):
        if not pool.most:
            continue
        spare = pools.size(world, pool) - pool.least
        wanted = any(pool.takes(spec) for spec in waiting)
        over: dict[str, list[str]] = {}
        for node in nodes.of(world, pool.name):
            name = node["metadata"]["name"]
            wanted_now = wanted or name in busy or not node["_ready"]
            since = None if wanted_now else node.get("_idle") or world.now
            if since is not None and spare > 0 and _is_over(world, node, since, newest):
                over.setdefault(_group(pool, node), []).append(name)
                world.remove(kind, node)
                spare -= 1
            else:
                world.put(kind, {**node, "_idle": since})
        for group, names in over.items():
            capacity.delete_nodes(world, group, names)


def _is_over(world: World, node: Object, since: float, newest: float) -> bool:
    """Whether an idle node goes; where nothing takes time, those go that were of use before."""
    if not world.request.rate:
        return bool(node.get("_used"))
    pace = world.request.rate
    moment = max(since + _IDLE * pace, newest + _AFTER_ADD * pace)
    world.wake(moment)
    return moment <= world.now


def _group(pool: Pool, node: Object) -> str:
    zone = node["metadata"]["labels"]["topology.kubernetes.io/zone"]
    return next(group for group in pool.groups if f"/zones/{zone}/" in group)
