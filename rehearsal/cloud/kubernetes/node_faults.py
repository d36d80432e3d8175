"""Nodes with a fault, as a scenario has it: one of each pool, the same as long as it is there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rehearsal.cloud.kubernetes import nodes, pods, pools

if TYPE_CHECKING:
    from rehearsal.cloud.kubernetes.objects import Object, World

BAD_GPU: Final = "bad-gpu"
SLOW: Final = "slow-vm"
NO_INTERFACE: Final = "missing-interface"

_VICTIMS: Final = "scenarios/victims"


def strikes(world: World, scenario: str, pod: Object) -> bool:
    """Whether a scenario is about a pod's node: the first by name of its pool that has such pods.

    Once that node is gone, it is about another one of the pool.
    """
    if scenario not in world.request.scenarios:
        return False
    pool = pool_of(pod)
    key = f"{scenario} {world.cluster.key} {pool}"
    there = {it["metadata"]["name"] for it in nodes.of(world, pool)}
    # What a pod has written is read after its node is gone too.
    used = {it["spec"].get("nodeName", "") for it in pods.every(world) if pool_of(it) == pool}
    struck = world.store.get(_VICTIMS, key)
    if struck is None or struck["node"] not in there | used:
        struck = {"node": min(used - {""})}
        world.store.put(_VICTIMS, key, struck)
    return bool(struck["node"] == pod["spec"]["nodeName"])


def pool_of(pod: Object) -> str:
    """The pool whose nodes a pod asks for; "" for any."""
    return str((pod["spec"].get("nodeSelector") or {}).get(pools.POOL, ""))
