"""What is deleted in a cluster before the cluster itself is.

ProvisioningRequests, which else would bring nodes meanwhile; and what GKE makes things in Google
Cloud for, while its controllers run to unmake them.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from provision.kinds.gke.kubernetes import kueue, status
from provision.kinds.gke.kubernetes.objects import holds

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from provision.kinds.gke.kubernetes.client import Cluster
    from provision.kinds.gke.kubernetes.facts import ClusterFacts
    from provision.kinds.gke.kubernetes.objects import Object

_CLAIM: Final = "PersistentVolumeClaim"
_VOLUME: Final = "PersistentVolume"
_DELETE: Final = "Delete"
_RETAIN: Final = "Retain"
_MADE_BY: Final = "pv.kubernetes.io/provisioned-by"
_FORM: Final = re.compile(r"projects/[a-z0-9.:-]+(/[a-z0-9-]+){4}")
"""Of the path of a disk or an instance."""


def cancel_requests(cluster: Cluster, facts: ClusterFacts) -> int:
    """Cancel the open ProvisioningRequests by deleting them (rule Q14).

    The queue is stopped first, because it would create each request again. If there is another
    Create, that starts the queue again. Returns the number of requests; if there are none, nothing
    in the cluster is changed.

    Raises:
        KubernetesError: These credentials may not do that.
        TransientError: The cluster does not answer now.
    """
    requests = cluster.all(status.REQUEST_API, status.REQUEST)
    waiting = [one for one in requests if not (holds(one, "Provisioned") or holds(one, "Failed"))]
    if not waiting:
        return 0
    for thing in kueue.objects(facts):
        if thing["kind"] == "ClusterQueue":
            cluster.apply({**thing, "spec": {**thing["spec"], "stopPolicy": "HoldAndDrain"}})
    for one in waiting:
        name, namespace = one["metadata"]["name"], one["metadata"].get("namespace", "")
        cluster.delete(status.REQUEST_API, status.REQUEST, name, namespace)
    return len(waiting)


def step(cluster: Cluster) -> list[str]:
    """Delete what is there still; returns what was there, such as "Service default/web".

    To be repeated until nothing is left: a Service or a claim is there until GKE has unmade its
    load balancer or its disk, and what runs in the cluster may make new ones.

    Raises:
        KubernetesError: These credentials may not do that.
        TransientError: The cluster does not answer now.
    """
    volumes = {it["metadata"]["name"]: it for it in cluster.all("v1", _VOLUME)}
    claims = [it for it in cluster.all("v1", _CLAIM) if _goes(it, volumes)]
    found = [*balanced(cluster), *claims]
    if claims:
        found += _users(cluster, claims)
    for thing in found:
        metadata = thing["metadata"]
        if "deletionTimestamp" not in metadata:
            cluster.delete(
                thing["apiVersion"], thing["kind"], metadata["name"], metadata["namespace"]
            )
    # The volume is there until its disk is gone.
    return [*map(_words, found), *map(_words, _made(volumes.values()))]


def balanced(cluster: Cluster) -> list[Object]:
    """The Services, Ingresses and Gateways for which there are load balancers.

    A Gateway leaves its backend services and health checks (GoogleCloudPlatform/gke-gateway-api#41,
    2025-12-08), which are looked for when the cluster is gone.
    """
    services = cluster.all("v1", "Service")
    return [
        *(it for it in services if (it.get("spec") or {}).get("type") == "LoadBalancer"),
        *cluster.all("networking.k8s.io/v1", "Ingress"),
        *cluster.all("gateway.networking.k8s.io/v1", "Gateway"),
    ]


def going(cluster: Cluster) -> list[str]:
    """The volumes that go with their claims, in words."""
    found = []
    for spec in (it["spec"] for it in _made(cluster.all("v1", _VOLUME))):
        claim = spec.get("claimRef") or {}
        name = f"{claim.get('namespace', '')}/{claim.get('name', '')}"
        size = spec["capacity"]["storage"]
        found.append(f"Volume of the claim {name}, {size}, with all its files")
    return found


def storage(cluster: Cluster, project: str) -> dict[str, str]:
    """The disks and Filestore instances of the cluster's volumes: path -> reclaim policy.

    What somebody has brought along is kept by Kubernetes, whatever its volume's policy is.
    """
    return {
        path: _policy(it) if _is_made(it) else _RETAIN
        for it in cluster.all("v1", _VOLUME)
        # Whoever makes a volume by hand may write anything into it.
        if _FORM.fullmatch(path := _path(it["spec"].get("csi") or {}, project))
    }


def _path(csi: Mapping[str, Any], project: str) -> str:
    """The path of what a driver of GKE's has for a volume; "" for a share of a larger instance."""
    driver, handle = csi.get("driver"), str(csi.get("volumeHandle", ""))
    match driver, handle.split("/"):
        case "pd.csi.storage.gke.io", _:
            return handle
        case "filestore.csi.storage.gke.io", ["modeInstance", location, name, _]:
            return f"projects/{project}/locations/{location}/instances/{name}"
        case _:
            return ""


def _goes(claim: Object, volumes: Mapping[str, Object]) -> bool:
    """Whether a claim's volume goes with it; one without a volume may get one at any moment."""
    name = (claim.get("spec") or {}).get("volumeName")
    return not name or (name in volumes and _policy(volumes[name]) == _DELETE)


def _policy(volume: Object) -> str:
    return str(volume["spec"].get("persistentVolumeReclaimPolicy", ""))


def _is_made(volume: Object) -> bool:
    """Whether the cluster made a volume, and so unmakes it."""
    return _MADE_BY in (volume["metadata"].get("annotations") or {})


def _made(volumes: Iterable[Object]) -> list[Object]:
    """The volumes that go with their claims, and their disks with them."""
    return [it for it in volumes if _is_made(it) and _policy(it) == _DELETE]


def _users(cluster: Cluster, claims: list[Object]) -> Iterator[Object]:
    """What keeps claims from going: their pods, and what would claim new volumes for new pods."""
    own = {(it["metadata"]["namespace"], it["metadata"]["name"]) for it in claims}
    for one in cluster.all("apps/v1", "StatefulSet"):
        if (one.get("spec") or {}).get("volumeClaimTemplates"):
            yield one
    for pod in cluster.all("v1", "Pod"):
        volumes = (pod.get("spec") or {}).get("volumes") or []
        claimed = (it.get("persistentVolumeClaim") or {} for it in volumes)
        if any((pod["metadata"]["namespace"], it.get("claimName")) in own for it in claimed):
            yield pod


def _words(thing: Object) -> str:
    metadata = thing["metadata"]
    name = "/".join(filter(None, [metadata.get("namespace"), metadata["name"]]))
    return f"{thing['kind']} {name}"
