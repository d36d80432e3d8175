"""GKE's autoscaler on pods that find no node: more nodes in pools that may grow.

Pools with queued provisioning grow by ProvisioningRequests alone. Those of flex start grow by one
resize request for each VM, which is given up when it waits too long (published source, 2026-08-21).

GKE's autoscaler on nodes that run little or nothing: they go, down to what the pool keeps.

A node that runs little goes if its pods can go elsewhere; they are begun again there. Sources:
cluster-autoscaler 9910004, core/scaledown/eligibility (GPU requests alone count, at most half by
default; what GKE's profile OPTIMIZE_UTILIZATION makes of it is not published) and
simulator/drainability (a pod that a controller makes again may be moved unless it says otherwise).

What GKE's autoscaler says of pods that it ignores: they consume a ProvisioningRequest.

Such pods are ignored also where another pool would take them (published source, 2026-08-21).
"""

import hashlib
import uuid
from collections.abc import Mapping
from typing import Final

from rehearsal.cloud.kubernetes import (
    checks,
    google,
    nodes,
    objects,
    pods,
    pools,
    provisioning,
    training,
)
from rehearsal.cloud.kubernetes.objects import Object, World
from rehearsal.cloud.kubernetes.pools import Pool

_PATIENCE: Final = 900.0  # seconds of cloud time that a resize request of flex start may wait
_LOST: Final = 120.0
_MOST_A_LOOP: Final = 50
_ONE: Final = "one VM, "


def grow(world: World) -> None:
    """Let pools grow for the pods that wait."""
    every = pods.every(world)
    waiting = [it for it in every if not pods.is_over(it) and "nodeName" not in it["spec"]]
    _tell_ignored(world, [it for it in waiting if pods.consumed(it)])
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
    own = {
        it["metadata"]["name"]
        for it in (world.each(world.own("v1", "nodes")))
        if it["metadata"]["labels"][pools.POOL] == pool.name
    }
    used = {it["spec"].get("nodeName") for it in every if not pods.is_over(it)}
    return len(own & used)


def _grow(world: World, pool: Pool, count: int, waiting: list[Object]) -> None:
    """Bring a pool to so many nodes, where it has room and does not rest."""
    before = pools.size(world, pool)
    group = next((it for it in pool.groups if not google.rests(world, it)), None)
    if count <= before or group is None:
        return
    if pool.flex:
        _ask(world, pool, group, min(count - before, provisioning.room_in(world, pool, group)))
        return
    error = pools.resize(world, pool, group, count)
    if error is not None:
        pools.resize(world, pool, group, before)
        google.let_rest(world, group)
        _note(world, group, waiting, error["message"])


# ------------------------------------------------------------------ flex start


def _ask(world: World, pool: Pool, group: str, count: int) -> None:
    """Ask for VMs of flex start, each by its own request; they run as long as the pool says."""
    ""
    collection = world.cluster.collection(google.ASKED)
    number = world.store.count(collection)
    digest = hashlib.sha256(f"{pool.name} {number}".encode()).hexdigest()
    shared = uuid.UUID(digest[:32])
    for index in range(min(count, _MOST_A_LOOP)):
        kept = {"group": group, "name": f"flex-{shared}-{index}"}
        answer = google.ask_for_nodes(world, **kept, count=1, seconds=None)
        if answer.state == "FAILED":
            return
        since = {"since": world.now}
        world.store.put(collection, f"{_ONE}{kept['name']}", {**kept, **since})
        world.wake(world.request.after(_PATIENCE))


def _attend(world: World, waiting: list[Object]) -> None:
    """Give up the requests of flex start that waited too long, and those that came to nothing."""
    collection = world.cluster.collection(google.ASKED)
    asked = list(world.store.list(collection, _ONE))
    google.release(world, [it for _, it in asked])
    for key, kept in asked:
        where = {"group": kept["group"], "name": kept["name"]}
        answer = google.request_for_nodes(world.request, world.store, **where)
        late = kept["since"] + _PATIENCE * world.request.rate <= world.now
        if answer.is_open and not (late and world.request.rate):
            continue
        if answer.state != "SUCCEEDED":
            errors = answer.errors
            words = errors[0].message if errors else "Resize Request was cancelled."
            google.let_rest(world, kept["group"])
            _note(world, kept["group"], waiting, words)
        if google.withdraw(world.request, world.store, **where):
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


_IDLE: Final = 600.0  # seconds of cloud time without a pod after which a node goes (rule Q12)
_AFTER_ADD: Final = 600.0
"""Seconds of cloud time after any new node in which none goes (the autoscaler's default)."""


def shrink(world: World) -> None:
    """Delete the nodes that have been idle for long."""
    kind = world.own("v1", "nodes")
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
            google.delete_nodes(world, group, names)


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


_LATE: Final = 600.0
"""Seconds of cloud time after which a pod should have found its request's nodes."""
_NEVER: Final = "arrived too late and will never schedule"


def _tell_ignored(world: World, waiting: list[Object]) -> None:
    """Note events of pods that wait, and consume a request."""
    for pod in waiting:
        name, namespace = pods.consumed(pod), pod["metadata"]["namespace"]
        request = world.get(world.own(*checks.REQUESTS), namespace, name)
        weight, reason, words = _said(world, request)
        objects.note(
            world,
            pod,
            weight,
            reason,
            "Unschedulable pod ignored in scale-up loop, because it's consuming ProvisioningRequest"
            f" {namespace}/{name} that {words}",
        )


def _said(world: World, request: Object | None) -> tuple[str, str, str]:
    """Weight, reason, and what a sentence about the request ends with; the ends are believed."""
    if request is None:
        return "Warning", "MissingProvisioningRequest", "doesn't exist."
    failed = objects.condition(request, "Failed")
    if failed.get("status") == "True":
        said = f'failed: [{failed["reason"]}] "{failed["message"]}"'
        return "Warning", "FailedProvisioningRequest", said
    if objects.holds(request, "CapacityRevoked"):
        return "Warning", "IgnoredInScaleUp", f"had its capacity revoked: the pod {_NEVER}."
    if objects.holds(request, "BookingExpired"):
        return "Warning", "IgnoredInScaleUp", f"has an expired booking: the pod {_NEVER}."
    if objects.holds(request, "Provisioned"):
        over = request.get("_provisioned", world.now) + _LATE * world.request.rate
        weight = "Warning" if world.request.rate and over <= world.now else "Normal"
        return weight, "IgnoredInScaleUp", "was provisioned."
    accepted = objects.holds(request, "Accepted")
    return "Normal", "IgnoredInScaleUp", "was accepted." if accepted else "wasn't accepted yet."
