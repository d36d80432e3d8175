"""Nodes: one for each VM of the cluster's pools."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rehearsal.cloud.instants import rfc3339
from rehearsal.cloud.kubernetes import capacity, pools, quantities
from rehearsal.cloud.kubernetes.pools import GPU, Pool

if TYPE_CHECKING:
    from rehearsal.cloud.kubernetes.objects import Object, World

_JOIN_SECONDS: Final = 30.0
"""From a VM's start to its node's first readiness, in cloud time; drivers are installed by then."""

_INSTANCES: Final = "compute/instances"


def let_vms_live(world: World) -> None:
    """Let happen to VMs what Compute Engine has in store: they come and go with time too."""
    for pool in pools.every(world)[:1]:
        capacity.catch_up(world, pool.groups[0])


def look(world: World) -> None:
    """Let nodes come, become ready, and go with their VMs."""
    kind = world.kind("v1", "nodes")
    if kind is None:
        return
    known = {it["metadata"]["name"]: it for it in world.each(kind)}
    wanted = {}
    for pool in pools.every(world):
        for vm in vms(world, pool):
            before = known.get(vm["name"])
            if before is not None and before.get("_vm") != vm["id"]:
                # A VM that was recreated by its name is another node.
                world.remove(kind, known.pop(vm["name"]))
            wanted[vm["name"]] = _node(world, pool, vm, known.get(vm["name"]))
    for name, node in wanted.items():
        if node != known.get(name):
            world.put(kind, node)
    for name in known.keys() - wanted.keys():
        world.remove(kind, known[name])


def vms(world: World, pool: Pool) -> list[Object]:
    """The VMs of a pool."""
    found = []
    for group in pool.groups:
        base = group.rpartition("/")[2].removesuffix("-grp")
        prefix = f"{group.partition('/instanceGroupManagers/')[0]}/instances/{base}-"
        found += [
            vm
            for _, vm in world.store.list(_INSTANCES, prefix)
            if vm.get("_group") == group and "_gone" not in vm
        ]
    return found


def _node(world: World, pool: Pool, vm: Object, before: Object | None) -> Object:
    moment, status = vm["_timeline"][-1]
    joined = moment + _JOIN_SECONDS * world.request.rate
    ready = status == "RUNNING" and joined <= world.now
    world.wake(joined)
    if before is not None and (before["_ready"], before["_boot"]) == (ready, moment):
        return before
    zone = vm["selfLink"].split("/zones/")[1].split("/")[0]
    _, count = pool.gpu
    capacity = {"pods": "110", **({GPU: str(count)} if count else {})}
    allocatable = {
        name: quantities.shown(amount.to_integral_value()) if name != "cpu" else str(amount)
        for name, amount in pool.allocatable.items()
        if amount
    }
    known = (before or {}).get("metadata", {})
    metadata = {
        **known,
        "name": vm["name"],
        "labels": {
            **pool.labels,
            "kubernetes.io/hostname": vm["name"],
            "topology.kubernetes.io/zone": zone,
            "topology.kubernetes.io/region": zone.rpartition("-")[0],
            **({pools.REQUEST: vm["_request"]} if pool.queued and "_request" in vm else {}),
        },
    }
    if "_ends" in vm:
        # Google says on the node when it will be deleted.
        ends = {pools.TERMINATION: rfc3339(vm["_ends"])[:19] + "Z"}
        metadata["annotations"] = {**(known.get("annotations") or {}), **ends}
    condition = {
        "type": "Ready",
        "lastTransitionTime": world.stamp,
        **_readiness(before, ready=ready),
    }
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": metadata,
        "spec": {
            "providerID": f"gce://{vm['selfLink'].partition('/projects/')[2].split('/')[0]}"
            f"/{zone}/{vm['name']}",
            "taints": pool.taints,
            # A cordon stays as long as the node.
            **({"unschedulable": True} if _is_cordoned(before) else {}),
        },
        "status": {"capacity": capacity, "allocatable": allocatable, "conditions": [condition]},
        "_ready": ready,
        "_boot": moment,
        "_vm": vm["id"],
        "_ready_since": world.now if ready else None,
        "_joined": (before or {}).get("_joined", world.now),
    }


def _is_cordoned(node: Object | None) -> bool:
    return node is not None and bool(node["spec"].get("unschedulable"))


def _readiness(before: Object | None, *, ready: bool) -> Object:
    """What a node's condition says; of one that was ready before, what the node's controller does.

    Source: Kubernetes' node lifecycle controller, by which such a node's status is unknown.
    """
    if ready:
        return {
            "status": "True",
            "reason": "KubeletReady",
            "message": "kubelet is posting ready status",
        }
    if before is not None and before.get("_ready"):
        return {
            "status": "Unknown",
            "reason": "NodeStatusUnknown",
            "message": "Kubelet stopped posting node status.",
        }
    return {"status": "False", "reason": "KubeletNotReady", "message": "the node is starting"}


def of(world: World, pool: str) -> list[Object]:
    """The nodes of a pool."""
    kind = world.kind("v1", "nodes")
    found = world.each(kind) if kind else []
    return [it for it in found if it["metadata"]["labels"][pools.POOL] == pool]


def ready(world: World, pool: str) -> list[str]:
    """The names of the ready nodes of a pool."""
    return [it["metadata"]["name"] for it in of(world, pool) if it["_ready"]]
