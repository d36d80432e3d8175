"""Kueue's API of what waits in its queues: who comes before whom.

Source: Kueue v0.18.3, pkg/visibility: Workloads without quota, in the order in which their
ClusterQueue takes them; those that wait for nodes are in none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rehearsal.cloud.kubernetes import objects, queues
from rehearsal.cloud.kubernetes.answers import no_such_path

if TYPE_CHECKING:
    from rehearsal.cloud.kubernetes.objects import Object, World

GROUP: Final = "visibility.kueue.x-k8s.io"


def pending(world: World, namespace: str, queue: str) -> Object:
    """What waits in a LocalQueue, with its place among all of its ClusterQueue."""
    kind = world.kind(queues.API, "workloads")
    if kind is None:
        raise no_such_path()
    local = queues.find(world, "localqueues", queue, namespace)
    cluster_queue = local["spec"]["clusterQueue"] if local else ""
    waiting = [it for it in world.each(kind) if _waits(world, it, cluster_queue)]
    waiting.sort(key=lambda it: (-it["spec"]["priority"], it["_number"]))
    own = [
        {
            "metadata": {"name": it["metadata"]["name"], "namespace": namespace},
            "priority": it["spec"]["priority"],
            "localQueueName": queue,
            "positionInClusterQueue": place,
        }
        for place, it in enumerate(waiting)
        if (it["metadata"]["namespace"], it["spec"]["queueName"]) == (namespace, queue)
    ]
    items = [{**it, "positionInLocalQueue": place} for place, it in enumerate(own)]
    return {"kind": "PendingWorkloadsSummary", "apiVersion": f"{GROUP}/v1beta2", "items": items}


def _waits(world: World, workload: Object, cluster_queue: str) -> bool:
    spec, namespace = workload["spec"], workload["metadata"]["namespace"]
    local = queues.find(world, "localqueues", spec["queueName"], namespace)
    own = local is not None and local["spec"]["clusterQueue"] == cluster_queue
    is_over = objects.holds(workload, "Finished") or spec.get("active") is False
    return own and not is_over and not objects.holds(workload, "QuotaReserved")
