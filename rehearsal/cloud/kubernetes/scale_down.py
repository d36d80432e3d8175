"""GKE's autoscaler on nodes that run nothing: they go, down to what the pool keeps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rehearsal.cloud.kubernetes import capacity, nodes, pods, pools

if TYPE_CHECKING:
    from rehearsal.cloud.kubernetes.objects import Object, World
    from rehearsal.cloud.kubernetes.pools import Pool

_IDLE: Final = 600.0
"""Seconds of cloud time without a pod after which a node goes (rule Q12)."""


def look(world: World) -> None:
    """Delete the nodes that have been idle for long."""
    kind = world.kind("v1", "nodes")
    if kind is None:
        return
    active = [it for it in pods.every(world) if not pods.is_over(it)]
    busy = {it["spec"].get("nodeName") for it in active}
    waiting = [it["spec"] for it in active if "nodeName" not in it["spec"]]
    for pool in pools.every(world):
        if not pool.most:
            continue
        spare = pools.size(world, pool) - pool.least
        wanted = any(pool.takes(spec) for spec in waiting)
        over: dict[str, list[str]] = {}
        for node in nodes.of(world, pool.name):
            name = node["metadata"]["name"]
            since = None if wanted or name in busy else node.get("_idle") or world.now
            if since is not None and spare > 0 and _is_over(world, node, since):
                over.setdefault(_group(pool, node), []).append(name)
                world.remove(kind, node)
                spare -= 1
            else:
                world.put(kind, {**node, "_idle": since})
        for group, names in over.items():
            capacity.delete_nodes(world, group, names)


def _is_over(world: World, node: Object, since: float) -> bool:
    """Whether an idle node goes; where nothing takes time, those go that were of use before."""
    if not world.request.rate:
        return bool(node.get("_used"))
    return since + _IDLE * world.request.rate <= world.now


def _group(pool: Pool, node: Object) -> str:
    zone = node["metadata"]["labels"]["topology.kubernetes.io/zone"]
    return next(group for group in pool.groups if f"/zones/{zone}/" in group)
