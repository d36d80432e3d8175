"""Who may reach Ray in a cluster: by a token, or by a network policy where the operator has none.

Whoever reaches a head's dashboard runs programs there, and a worker takes them from any address.
GKE enforces network policies with Dataplane V2, which the clusters have.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from provision.kinds.gke.kubernetes.kueue import NAMESPACE
from provision.kinds.gke.kubernetes.objects import build

if TYPE_CHECKING:
    from provision.kinds.gke.kubernetes.client import Cluster
    from provision.kinds.gke.kubernetes.objects import Object

POLICY: Final = "ray-from-its-namespace"
_NODE_TYPE: Final = "ray.io/node-type"
_NAME: Final = "kubernetes.io/metadata.name"
_OPERATOR: Final = "app.kubernetes.io/name=kuberay-operator"
_OF_GKE: Final = ("gke-", "gmp-", "kube-")
"""How the namespaces of GKE's own programs begin. Where GKE runs its Ray operator is not published:
in one of them, or outside of the nodes, from where it comes by the agents in kube-system."""
_FOR_ALL: Final = (8000, 8080)
"""Ray Serve, for its users, and metrics, for those who collect them."""


def tokens(cluster: Cluster) -> bool:
    """Whether the Ray operator can have Ray ask for a token, as KubeRay does from 1.5.1 on.

    Which KubeRay an add-on of GKE has is not published: its kind says what it knows. Ray knows
    tokens from 2.52.0 on, which the examples have.
    """
    kind = "CustomResourceDefinition"
    found = cluster.find("apiextensions.k8s.io/v1", kind, "rayclusters.ray.io") or {}
    served = (it for it in found.get("spec", {}).get("versions", []) if it["name"] == "v1")
    version: Object = next(served, {})
    schema = version.get("schema", {}).get("openAPIV3Schema", {})
    known = schema.get("properties", {}).get("spec", {}).get("properties", {})
    return "authOptions" in known


def policy(cluster: Cluster) -> Object:
    """The network policy of the pods of Ray, where there is no token.

    Pods of their own namespace may reach them, which has their heads, workers and what submits
    jobs; GKE's programs may, and the operator's namespace. `kubectl port-forward` goes on: it comes
    from the node.
    """
    names = [it["metadata"]["name"] for it in cluster.all("v1", "Namespace")]
    trusted = {name for name in names if name.startswith(_OF_GKE)}
    trusted |= {it["metadata"]["namespace"] for it in cluster.all("v1", "Pod", "", _OPERATOR)}
    among = {"key": _NAME, "operator": "In", "values": sorted(trusted)}
    peers = [{"podSelector": {}}, {"namespaceSelector": {"matchExpressions": [among]}}]
    spec = {
        "podSelector": {"matchExpressions": [{"key": _NODE_TYPE, "operator": "Exists"}]},
        "policyTypes": ["Ingress"],
        "ingress": [
            {"from": peers},
            {"ports": [{"protocol": "TCP", "port": port} for port in _FOR_ALL]},
        ],
    }
    return build("networking.k8s.io/v1", "NetworkPolicy", POLICY, NAMESPACE, spec=spec)
