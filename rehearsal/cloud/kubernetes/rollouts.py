"""Deployments and DaemonSets: how many of their pods run.

Their pods are not made one by one; they take no GPUs, and nobody looks at them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rehearsal.cloud.kubernetes import installed, objects, pools, selection

if TYPE_CHECKING:
    from rehearsal.cloud.kubernetes.objects import Object, World

_START: Final = 20.0
"""Seconds of cloud time from the object to its pods' readiness: images are fetched meanwhile."""


def look(world: World) -> None:
    """Bring what Deployments and DaemonSets say up to what the nodes are."""
    of_nodes = world.kind("v1", "nodes")
    there = world.each(of_nodes) if of_nodes else []
    for plural, tell in (("deployments", _deployment), ("daemonsets", _daemon_set)):
        kind = world.kind("apps/v1", plural)
        for thing in world.each(kind) if kind else ():
            thing.setdefault("_since", world.now)
            late = thing["_since"] + _START * world.request.rate > world.now
            tell(world, thing, [] if late else [it for it in there if it["_ready"]], there)
            if kind is not None:
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
    wanted = sum(selection.wants(pod, node) for node in there)
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
