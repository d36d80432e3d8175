"""What happens in a cluster automatically: all controllers, one look each, in order.

Nothing runs between requests. A request first lets each controller look at every moment since the
last one at which one of them had something to do, and then at its own. At each of them the looks
are repeated until they change nothing, as one controller's work is another's cause.

Deployments and DaemonSets: how many of their pods run.

Their pods are not made one by one; they take no GPUs, and nobody looks at them.
"""

import contextlib
from collections.abc import Callable
from typing import Final

from rehearsal.cloud.kubernetes import (
    batch,
    claims,
    installed,
    kueue,
    nodes,
    objects,
    pools,
    provisioning,
    ray,
    scaling,
    scheduler,
    services,
    volumes,
)
from rehearsal.cloud.kubernetes.objects import Object, World
from rehearsal.cloud.wire import GoogleError

_AGENDA: Final = "compute/agenda"
"""Where Compute Engine has what will happen automatically, by moment."""

_ROUNDS: Final = 40  # more than any chain of causes takes where everything happens at once
_MOMENTS: Final = 400
"""More moments than lie between two requests; what is left then happens at the request's own."""


def let_pass(world: World) -> None:
    """Let happen, each at its moment, what was due before the moment of a request."""
    for _ in range(_MOMENTS):
        moment = _next(world)
        if moment is None:
            return
        catch_up(world.at(moment))


def _next(world: World) -> float | None:
    """The first moment before that of a request at which something is due; it is taken off."""
    own = world.cluster.collection(objects.DUE)
    found = [world.store.first(own), world.store.first(_AGENDA) if pools.every(world) else None]
    moments = [float(it[0].partition(" ")[0]) for it in found if it is not None]
    moment = min(moments, default=world.now)
    if moment >= world.now:
        return None
    if found[0] is not None and float(found[0][0]) == moment:
        world.store.delete(own, found[0][0])
    return moment


def catch_up(world: World) -> None:
    """Let happen what is due at the moment of a request."""
    nodes.let_vms_live(world)
    for _ in range(_ROUNDS):
        before = world.version()
        for look in _LOOKS:
            # What Compute Engine refuses now is tried again with the next request.
            with contextlib.suppress(GoogleError):
                look(world)
        if world.version() == before:
            return


_NAMESPACES: Final = ("default", "gke-managed-system", "kube-public", "kube-system")


def make_givens(world: World) -> None:
    """Make what is missing."""
    spaces, accounts = world.own("v1", "namespaces"), world.own("v1", "serviceaccounts")
    if world.get(spaces, "", "default") is not None:
        return
    for name in _NAMESPACES:
        labels = {"kubernetes.io/metadata.name": name}
        thing = {"apiVersion": "v1", "kind": "Namespace"}
        status = {"phase": "Active"}
        world.put(spaces, {**thing, "metadata": {"name": name, "labels": labels}, "status": status})
        metadata = {"name": "default", "namespace": name}
        world.put(accounts, {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata})


_START: Final = 20.0
"""Seconds of cloud time from the object to its pods' readiness: images are fetched meanwhile."""


def _roll_out(world: World) -> None:
    """Bring what Deployments and DaemonSets say up to what the nodes are."""
    there = world.each(world.own("v1", "nodes"))
    for plural, tell in (("deployments", _deployment), ("daemonsets", _daemon_set)):
        kind = world.own("apps/v1", plural)
        for thing in world.each(kind):
            thing.setdefault("_since", world.now)
            late = thing["_since"] + _START * world.request.rate > world.now
            tell(world, thing, [] if late else [it for it in there if it["_ready"]], there)
            world.put(kind, thing)


def _deployment(world: World, thing: Object, ready: list[Object], there: list[Object]) -> None:
    """Available once there is a node for pods without GPUs."""
    del there
    wanted = int(thing["spec"].get("replicas", 1))
    room = any(not pools.gpus_on(node) for node in ready)
    count = wanted if room else 0
    thing.setdefault("status", {}).update(
        observedGeneration=thing["metadata"]["generation"],
        replicas=wanted,
        updatedReplicas=wanted,
        readyReplicas=count,
        availableReplicas=count,
    )
    if room:
        words = "Deployment has minimum availability."
        objects.tell(world, thing, "Available", True, "MinimumReplicasAvailable", words)
    else:
        words = "Deployment does not have minimum availability."
        objects.tell(world, thing, "Available", False, "MinimumReplicasUnavailable", words)


def _daemon_set(world: World, thing: Object, ready: list[Object], there: list[Object]) -> None:
    """One pod on each node that it wants; ready where it had the time, and has its images."""
    pod = (thing["spec"].get("template") or {}).get("spec") or {}
    count = sum(installed.is_done(world, thing, node) for node in ready)
    wanted = sum(installed.wants(pod, node) for node in there)
    thing.setdefault("status", {}).update(
        observedGeneration=thing["metadata"]["generation"],
        desiredNumberScheduled=wanted,
        currentNumberScheduled=wanted,
        updatedNumberScheduled=wanted,
        numberReady=count,
        numberAvailable=count,
        numberUnavailable=wanted - count,
        numberMisscheduled=0,
    )


_LOOKS: Final[tuple[Callable[[World], None], ...]] = (
    volumes.look,
    services.look,
    nodes.look,
    nodes.look_at_health,
    kueue.look,
    provisioning.look,
    ray.look,
    batch.look_at_sets,
    batch.look,
    claims.look,
    scheduler.look,
    scaling.grow,
    scaling.shrink,
    _roll_out,
)
