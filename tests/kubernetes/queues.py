"""Queues of a real Kueue under test: setting them up, looking at their jobs, taking them away."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from provision.kinds.gke.kubernetes import kueue, stages
from provision.kinds.gke.kubernetes.facts import ClusterFacts
from provision.kinds.gke.kubernetes.objects import Object, holds
from provision.kinds.gke.kubernetes.stages import Stage
from provision.time.deadline import TransientError
from tests.kubernetes.world import PROGRESS

if TYPE_CHECKING:
    from tests.kubernetes.world import World

REQUEST = "autoscaling.gke.io/provisioning-request"
"""The label of nodes that came for a request."""

_JOBS = (
    ("ray.io/v1", "RayJob"),
    ("ray.io/v1", "RayCluster"),
    ("jobset.x-k8s.io/v1alpha2", "JobSet"),
    ("batch/v1", "Job"),
)


def clear(world: World) -> None:
    """Delete the jobs, then what they waited in, and the nodes."""
    for version, kind in _JOBS:
        for thing in _all(world, version, kind, "default"):
            world.cluster.delete(version, kind, thing["metadata"]["name"], "default")
    world.until(lambda: not _all(world, kueue.API, "Workload", "default"))
    for kind in ("LocalQueue", "ClusterQueue"):
        for thing in _all(world, kueue.API, kind):
            metadata = thing["metadata"]
            world.cluster.delete(kueue.API, kind, metadata["name"], metadata.get("namespace", ""))
    world.until(lambda: not _all(world, kueue.API, "ClusterQueue"))
    for node in world.cluster.all("v1", "Node"):
        world.cluster.delete("v1", "Node", node["metadata"]["name"])


def _all(world: World, version: str, kind: str, namespace: str = "") -> list[Object]:
    """All objects of a kind, whose definition may be as young as the cluster."""
    found: list[list[Object]] = []

    def look() -> bool:
        with contextlib.suppress(TransientError):
            found.append(world.cluster.all(version, kind, namespace))
        return bool(found)

    world.until(look)
    return found[0]


def set_up(world: World, facts: ClusterFacts) -> None:
    """The queues of a cluster, whose failed requests are tried again at once."""
    things = kueue.objects(facts)
    for thing in things:
        if thing["kind"] == "ProvisioningRequestConfig":
            thing["spec"]["retryStrategy"] |= {"backoffBaseSeconds": 1, "backoffMaxSeconds": 1}
    wanted = [Stage("identity", [stages.account(facts)]), Stage("the queue", things)]
    stages.apply(world.cluster, wanted, progress=PROGRESS)
    queues = [thing for thing in things if thing["kind"] == "ClusterQueue"]
    world.until(lambda: all(_holds(world, kueue.API, queue, "Active") for queue in queues))


def _holds(world: World, version: str, thing: Object, condition: str) -> bool:
    found = world.cluster.find(
        version, thing["kind"], thing["metadata"]["name"], thing["metadata"].get("namespace", "")
    )
    return holds(found or {}, condition)


def now(world: World, thing: Object) -> Object:
    """An object as it is now."""
    found = world.cluster.find(
        thing["apiVersion"], thing["kind"], thing["metadata"]["name"], "default"
    )
    assert found is not None
    return found


def workload(world: World, thing: Object) -> Object:
    """The workload of a job, as soon as there is one."""

    def look() -> Object | None:
        for found in world.cluster.all(kueue.API, "Workload", "default"):
            if found["metadata"]["ownerReferences"][0]["name"] == thing["metadata"]["name"]:
                return found
        return None

    return world.until(look)


def evicted(world: World, thing: Object) -> str:
    """Why it was evicted, now or before."""
    said = workload(world, thing).get("status", {}).get("conditions") or []
    return next((it["reason"] for it in said if it["type"] == "Evicted"), "")
