"""Cancelling a cluster's ProvisioningRequests before the cluster is deleted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from provision.kinds.gke.kubernetes import kueue, node_requests
from provision.kinds.gke.kubernetes.objects import holds

if TYPE_CHECKING:
    from provision.kinds.gke.kubernetes.client import Cluster
    from provision.kinds.gke.kubernetes.facts import ClusterFacts

_QUEUE: Final = "ClusterQueue"


def open_requests(cluster: Cluster, facts: ClusterFacts) -> int:
    """Cancel the open ProvisioningRequests by deleting them (rule Q14).

    The queue is stopped first, because it would create each request again. If there is another
    Create, that starts the queue again. Returns the number of requests; if there are none, nothing
    in the cluster is changed.

    Raises:
        KubernetesError: These credentials may not do that.
        TransientError: The cluster does not answer now.
    """
    requests = cluster.all(node_requests.API, node_requests.KIND)
    waiting = [one for one in requests if not (holds(one, "Provisioned") or holds(one, "Failed"))]
    if not waiting:
        return 0
    for thing in kueue.objects(facts):
        if thing["kind"] == _QUEUE:
            cluster.apply({**thing, "spec": {**thing["spec"], "stopPolicy": "HoldAndDrain"}})
    for one in waiting:
        where = one["metadata"]
        cluster.delete(
            node_requests.API, node_requests.KIND, where["name"], where.get("namespace", "")
        )
    return len(waiting)
