"""GKE's autoscaler on nodes that run little or nothing: they go, down to what the pool keeps.

A node that runs little goes if its pods can go elsewhere; they are begun again there. Sources:
cluster-autoscaler 9910004, core/scaledown/eligibility (GPU requests alone count, at most half by
default; what GKE's profile OPTIMIZE_UTILIZATION makes of it is not published) and
simulator/drainability (a pod that a controller makes again may be moved unless it says otherwise).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rehearsal.cloud.kubernetes import capacity, nodes, pods, pools, training

if TYPE_CHECKING:
    from collections.abc import Mapping

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
    there = {it["metadata"]["name"]: it for it in world.each(kind)}
    spared = _spared(active, there) if world.request.rate else {}
    busy = {it["spec"].get("nodeName") for it in active} - spared.keys()
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
                for pod in spared.get(name, ()):
                    training.stop(world, pod)
                    pods.lose(world, pod, "EvictionByEvictionAPI", "Eviction API: evicting")
                world.remove(kind, node)
                spare -= 1
            else:
                world.put(kind, {**node, "_idle": since})
        for group, names in over.items():
            capacity.delete_nodes(world, group, names)


def _spared(active: list[Object], there: Mapping[str, Object]) -> dict[str, list[Object]]:
    """The first node by name that runs little which others can take -> its pods."""
    on: dict[str, list[Object]] = {name: [] for name in there}
    for pod in active:
        on.setdefault(pod["spec"].get("nodeName", ""), []).append(pod)
    free = {
        name: pools.gpus_on(node) - sum(pools.gpus_of(it["spec"]) for it in on[name])
        for name, node in there.items()
        if node["_ready"] and not node["spec"].get("unschedulable") and pools.gpus_on(node)
    }
    for name in sorted(free):
        used = pools.gpus_on(there[name]) - free[name]
        label = there[name]["metadata"]["labels"][pools.POOL]
        others = [
            room
            for it, room in free.items()
            if it != name and on[it] and there[it]["metadata"]["labels"][pools.POOL] == label
        ]
        movable = on[name] and all(_may_move(it) for it in on[name])
        if movable and used <= pools.gpus_on(there[name]) / 2 and used <= max(others, default=0):
            return {name: on[name]}
    return {}


def _may_move(pod: Object) -> bool:
    annotations = pod["metadata"].get("annotations") or {}
    return annotations.get("cluster-autoscaler.kubernetes.io/safe-to-evict") != "false"


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
