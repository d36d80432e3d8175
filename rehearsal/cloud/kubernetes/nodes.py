"""Nodes: one for each VM of the cluster's pools.

What GKE puts on nodes about their GPUs and hosts: XIDs that fail one, coming maintenance.

GKE's device plugin marks a node whose GPU has failed, and its maintenance handler one whose host is
to be maintained. Neither fixes anything: somebody has to have the VM replaced.
"""

import copy
import hashlib
import json
from typing import Final

from rehearsal.cloud.facts.node_health import FAILS_AFTER, FAILURES, Failure
from rehearsal.cloud.kubernetes import google, objects, pods, pools, quantities
from rehearsal.cloud.kubernetes.objects import Object, World
from rehearsal.cloud.kubernetes.pools import GPU, Pool
from rehearsal.cloud.scenarios import STRUCK, VICTIMS
from rehearsal.cloud.wire import rfc3339

_JOIN_SECONDS: Final = 30.0
"""From a VM's start to its node's first readiness, in cloud time; drivers are installed by then."""

_INSTANCES: Final = "compute/instances"


def let_vms_live(world: World) -> None:
    """Let happen to VMs what Compute Engine has in store: they come and go with time too."""
    for pool in pools.every(world)[:1]:
        google.catch_up(world, pool.groups[0])


def look(world: World) -> None:
    """Let nodes come, become ready, and go with their VMs."""
    kind = world.own("v1", "nodes")
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
    found = world.each(world.own("v1", "nodes"))
    return [it for it in found if it["metadata"]["labels"][pools.POOL] == pool]


def ready(world: World, pool: str) -> list[str]:
    """The names of the ready nodes of a pool."""
    return [it["metadata"]["name"] for it in of(world, pool) if it["_ready"]]


_SCHEDULED: Final = "cloud.google.com/scheduled-maintenance-time"
_ACTIVE: Final = "cloud.google.com/active-node-maintenance"
_UPCOMING: Final = "node.gke.io/upcoming-maintenance"
_STARTED: Final = "cloud.google.com/maintenance-window-started"
_XID: Final = "XidCriticalError"


def look_at_health(world: World) -> None:
    """Put on the nodes with GPUs what is to be known of them."""
    for pool in pools.every(world):
        if not pool.gpu[1]:
            continue
        own = {vm["name"]: vm for vm in vms(world, pool)}
        for node in of(world, pool.name):
            marked = _maintained(world, node, own.get(node["metadata"]["name"], {}))
            if marked != node:
                world.put(world.own("v1", "nodes"), marked)
        for scenario in sorted(FAILURES.keys() & world.request.scenarios):
            _strike(world, pool, scenario)


# ------------------------------------------------------------------ maintenance


def _maintained(world: World, node: Object, vm: Object) -> Object:
    """A node with what is told of the maintenance of its VM's host."""
    made = copy.deepcopy(node)
    labels, annotations = made["metadata"]["labels"], made["metadata"].get("annotations") or {}
    for told in (labels, annotations):
        for key in (_SCHEDULED, _ACTIVE, _UPCOMING):
            told.pop(key, None)
    taints = [it for it in made["spec"].get("taints") or [] if it["key"] != _STARTED]
    known = vm.get("_maintenance")
    if known is not None and known["ends"] > world.now:
        world.wake(known["begins"])
        world.wake(known["ends"])
        labels[_SCHEDULED] = str(int(known["begins"]))
        annotations[_UPCOMING] = _upcoming(known, world.now)
        if known["begins"] <= world.now:
            labels[_ACTIVE] = "ONGOING"
            taints.append({"key": _STARTED, "value": "true", "effect": "NoSchedule"})
    if annotations or "annotations" in made["metadata"]:
        made["metadata"]["annotations"] = annotations
    made["spec"]["taints"] = taints
    return made


def _upcoming(known: Object, now: float) -> str:
    """The annotation, as a user has seen it."""
    told = {
        "maintenance_reason": known["reasons"],
        "maintenance_status": "ONGOING" if known["begins"] <= now else "PENDING",
        "type": "UNSCHEDULED",
        "can_reschedule": "false",
        "window_start_time": rfc3339(known["begins"]),
        "window_end_time": rfc3339(known["ends"]),
    }
    return json.dumps(told)


# ------------------------------------------------------------------ GPUs


def _strike(world: World, pool: Pool, scenario: str) -> None:
    """Let a GPU of the first node fail that has been ready for a while, once for each pool."""
    key = f"{scenario} {world.cluster.name} {pool.name}"
    if world.store.get(STRUCK, key) is not None:
        return
    ready = [it for it in of(world, pool.name) if it["_ready"]]
    if not ready:
        return
    node = min(ready, key=lambda it: str(it["metadata"]["name"]))
    moment = node["_joined"] + FAILS_AFTER * world.request.rate
    world.wake(moment)
    if moment <= world.now:
        world.store.put(STRUCK, key, {})
        _fail_gpu(world, node, FAILURES[scenario])


def _fail_gpu(world: World, node: Object, failure: Failure) -> None:
    made = copy.deepcopy(node)
    objects.warn(world, made, "XIDError", f"Caught XID error, XID={failure.xid}")
    boot = hashlib.sha256(f"{made['metadata']['uid']} {made['_joined']}".encode()).hexdigest()
    # The message is the boot that it happened in: another boot takes the condition away.
    reason = json.dumps({str(failure.xid): True}, separators=(",", ":"))
    objects.tell(world, made, _XID, True, reason, boot[:32])
    if failure.takes_the_gpu_away:
        there = made["status"]["allocatable"]
        there[pools.GPU] = str(int(there[pools.GPU]) - 1)
    world.put(world.own("v1", "nodes"), made)


BAD_GPU: Final = "bad-gpu"
SLOW: Final = "slow-vm"
NO_INTERFACE: Final = "missing-interface"


def strikes(world: World, scenario: str, pod: Object) -> bool:
    """Whether a scenario is about a pod's node: the first one by name of its pool that is there."""
    if scenario not in world.request.scenarios:
        return False
    pool = pool_of(pod)
    key = f"{scenario} {world.cluster.key} {pool}"
    there = {it["metadata"]["name"] for it in of(world, pool)}
    # What a pod has written is read after its node is gone too.
    used = {it["spec"].get("nodeName", "") for it in pods.every(world) if pool_of(it) == pool}
    struck = world.store.get(VICTIMS, key)
    if struck is None or struck["node"] not in there | used:
        struck = {"node": min(used - {""})}
        world.store.put(VICTIMS, key, struck)
    return bool(struck["node"] == pod["spec"]["nodeName"])


def pool_of(pod: Object) -> str:
    """The pool whose nodes a pod asks for; "" for any."""
    return str((pod["spec"].get("nodeSelector") or {}).get(pools.POOL, ""))
