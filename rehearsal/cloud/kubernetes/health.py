"""What GKE puts on nodes about their GPUs and hosts: XIDs that fail one, coming maintenance.

GKE's device plugin marks a node whose GPU has failed, and its maintenance handler one whose host is
to be maintained. Neither fixes anything: somebody has to have the VM replaced.
"""

from __future__ import annotations

import copy
import hashlib
import json
from typing import TYPE_CHECKING, Final

from rehearsal.cloud.facts.node_health import FAILS_AFTER, FAILURES
from rehearsal.cloud.instants import rfc3339
from rehearsal.cloud.kubernetes import nodes, objects, pools
from rehearsal.cloud.scenarios import STRUCK

if TYPE_CHECKING:
    from rehearsal.cloud.facts.node_health import Failure
    from rehearsal.cloud.kubernetes.objects import Object, World
    from rehearsal.cloud.kubernetes.pools import Pool

_SCHEDULED: Final = "cloud.google.com/scheduled-maintenance-time"
_ACTIVE: Final = "cloud.google.com/active-node-maintenance"
_UPCOMING: Final = "node.gke.io/upcoming-maintenance"
_STARTED: Final = "cloud.google.com/maintenance-window-started"
_XID: Final = "XidCriticalError"


def look(world: World) -> None:
    """Put on the nodes with GPUs what is to be known of them."""
    kind = world.kind("v1", "nodes")
    if kind is None:
        return
    for pool in pools.every(world):
        if not pool.gpu[1]:
            continue
        vms = {vm["name"]: vm for vm in nodes.vms(world, pool)}
        for node in nodes.of(world, pool.name):
            marked = _maintained(world, node, vms.get(node["metadata"]["name"], {}))
            if marked != node:
                world.put(kind, marked)
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
    ready = [it for it in nodes.of(world, pool.name) if it["_ready"]]
    if not ready:
        return
    node = min(ready, key=lambda it: str(it["metadata"]["name"]))
    moment = node["_joined"] + FAILS_AFTER * world.request.rate
    world.wake(moment)
    if moment <= world.now:
        world.store.put(STRUCK, key, {})
        _fail(world, node, FAILURES[scenario])


def _fail(world: World, node: Object, failure: Failure) -> None:
    kind = world.kind("v1", "nodes")
    if kind is None:
        return
    made = copy.deepcopy(node)
    objects.warn(world, made, "XIDError", f"Caught XID error, XID={failure.xid}")
    boot = hashlib.sha256(f"{made['metadata']['uid']} {made['_joined']}".encode()).hexdigest()
    # The message is the boot that it happened in: another boot takes the condition away.
    reason = json.dumps({str(failure.xid): True}, separators=(",", ":"))
    objects.tell(world, made, _XID, True, reason, boot[:32])
    if failure.takes_the_gpu_away:
        there = made["status"]["allocatable"]
        there[pools.GPU] = str(int(there[pools.GPU]) - 1)
    world.put(kind, made)
