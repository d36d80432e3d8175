"""Clusters, and the kinds that they serve: Kubernetes', GKE's, and those of definitions."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from rehearsal.cloud.facts import gke_versions
from rehearsal.cloud.store import Store
from rehearsal.cloud.wire import Request

DEFINITION: Final = "CustomResourceDefinition"
_DEFINED: Final = "kinds"
"""Where each kind is kept that a definition adds, without its schema, which is large."""


_ENDPOINTS: Final = "kubernetes/endpoints"
_CLUSTERS: Final = "container/clusters"


@dataclass(frozen=True)
class Cluster:
    """A cluster whose control plane answers."""

    name: str  # "projects/p/locations/l/clusters/c"
    # what the names of all that it keeps begin with; one of the same name that is made later has
    # another
    key: str
    record: dict[str, Any]  # what Kubernetes Engine keeps of it

    def collection(self, what: str) -> str:
        """The store's collection of something that this cluster alone has."""
        return f"kubernetes/{self.key}/{what}"


def make_cluster(request: Request, store: Store, name: str, record: dict[str, Any]) -> None:
    """Let the endpoint of a new cluster lead to it."""
    del request
    endpoint = record["controlPlaneEndpointsConfig"]["dnsEndpointConfig"]["endpoint"]
    store.put(_ENDPOINTS, endpoint, {"cluster": name, "key": key_of(record)})


def key_of(record: dict[str, Any]) -> str:
    """What tells a cluster from a later one of the same name."""
    return str(record["id"][:16])


def find_cluster(request: Request, store: Store, endpoint: str) -> Cluster | None:
    """The cluster of an endpoint; None where no control plane answers (yet, or any more)."""
    known = store.get(_ENDPOINTS, endpoint)
    record = None if known is None else store.get(_CLUSTERS, known["cluster"])
    if known is None or record is None or record.get("_gone", request.now + 1) <= request.now:
        return None
    making = record.get("_doing") is None and record["_ready"] > request.now
    return None if making else Cluster(known["cluster"], known["key"], record)


@dataclass(frozen=True, kw_only=True)
class Kind:
    """A kind of object."""

    version: str  # group and version ("batch/v1", "v1")
    plural: str
    name: str
    namespaced: bool = True  # whether its objects are in namespaces
    has_schema: bool = False  # whether somebody says what fields its objects have

    @property
    def group(self) -> str:
        """The group; "" for the first of all."""
        return self.version.rpartition("/")[0]

    @property
    def stored(self) -> str:
        """What the store's collection of such objects ends with; versions share it."""
        return f"{self.group or 'core'}/{self.plural}"

    @property
    def resource(self) -> str:
        """What messages call such objects."""
        return f"{self.plural}.{self.group}" if self.group else self.plural


# Version -> kind -> plural; a plural with a slash at its end is of no namespace.
BUILT_IN: Final[Mapping[str, Mapping[str, str]]] = {
    "v1": {
        "ConfigMap": "configmaps",
        "Event": "events",
        "Namespace": "namespaces/",
        "Node": "nodes/",
        "PersistentVolume": "persistentvolumes/",
        "PersistentVolumeClaim": "persistentvolumeclaims",
        "Pod": "pods",
        "PodTemplate": "podtemplates",
        "Secret": "secrets",
        "Service": "services",
        "ServiceAccount": "serviceaccounts",
    },
    "admissionregistration.k8s.io/v1": {
        "MutatingWebhookConfiguration": "mutatingwebhookconfigurations/",
        "ValidatingWebhookConfiguration": "validatingwebhookconfigurations/",
    },
    "apiextensions.k8s.io/v1": {"CustomResourceDefinition": "customresourcedefinitions/"},
    "apiregistration.k8s.io/v1": {"APIService": "apiservices/"},
    "apps/v1": {
        "DaemonSet": "daemonsets",
        "Deployment": "deployments",
        "ReplicaSet": "replicasets",
        "StatefulSet": "statefulsets",
    },
    "autoscaling.x-k8s.io/v1": {"ProvisioningRequest": "provisioningrequests"},
    "batch/v1": {"Job": "jobs", "CronJob": "cronjobs"},
    "flowcontrol.apiserver.k8s.io/v1": {
        "FlowSchema": "flowschemas/",
        "PriorityLevelConfiguration": "prioritylevelconfigurations/",
    },
    "networking.k8s.io/v1": {"NetworkPolicy": "networkpolicies", "Ingress": "ingresses"},
    "policy/v1": {"PodDisruptionBudget": "poddisruptionbudgets"},
    "rbac.authorization.k8s.io/v1": {
        "ClusterRole": "clusterroles/",
        "ClusterRoleBinding": "clusterrolebindings/",
        "Role": "roles",
        "RoleBinding": "rolebindings",
    },
    "scheduling.k8s.io/v1": {"PriorityClass": "priorityclasses/"},
    "storage.k8s.io/v1": {"StorageClass": "storageclasses/", "CSIDriver": "csidrivers/"},
}
_NETWORKS: Final = {"GKENetworkParamSet": "gkenetworkparamsets/", "Network": "networks/"}
_CLAIMS: Final = {
    "DeviceClass": "deviceclasses/",
    "ResourceClaim": "resourceclaims",
    "ResourceClaimTemplate": "resourceclaimtemplates",
    "ResourceSlice": "resourceslices/",
}
_WITH_CLAIMS: Final = (1, 34)  # the first minor version of Kubernetes that serves them as v1
_RAY: Final = {"RayCluster": "rayclusters", "RayJob": "rayjobs", "RayService": "rayservices"}


def _built_in(cluster: Cluster) -> Mapping[str, Mapping[str, str]]:
    """Version -> kind -> plural of what the cluster serves without a definition."""
    served = dict(BUILT_IN)
    if (cluster.record.get("networkConfig") or {}).get("enableMultiNetworking"):
        served["networking.gke.io/v1"] = _NETWORKS
    if gke_versions.numbers(str(cluster.record["currentMasterVersion"])) >= _WITH_CLAIMS:
        served["resource.k8s.io/v1"] = _CLAIMS
    addons = cluster.record.get("addonsConfig") or {}
    if (addons.get("rayOperatorConfig") or {}).get("enabled"):
        served["ray.io/v1"] = _RAY
    return served


def _made(version: str, name: str, plural: str) -> Kind:
    namespaced = not plural.endswith("/")
    return Kind(version=version, plural=plural.rstrip("/"), name=name, namespaced=namespaced)


def all_of(store: Store, cluster: Cluster) -> list[Kind]:
    """Every kind that the cluster serves."""
    result = [
        _made(version, name, plural)
        for version, names in _built_in(cluster).items()
        for name, plural in names.items()
    ]
    known = {(kind.version, kind.plural) for kind in result}
    defined = (Kind(**it) for _, it in store.list(cluster.collection(_DEFINED)))
    return [*result, *(it for it in defined if (it.version, it.plural) not in known)]


def find(store: Store, cluster: Cluster, version: str, plural: str) -> Kind | None:
    """The kind that a path names."""
    found = store.get(cluster.collection(_DEFINED), f"{plural}.{version}")
    if found is not None:
        return Kind(**found)
    for name, known in _built_in(cluster).get(version, {}).items():
        if known.rstrip("/") == plural:
            return _made(version, name, known)
    return None


def define(store: Store, cluster: Cluster, definition: Mapping[str, Any]) -> None:
    """Serve what a definition says, and no more what an older one of its name said."""
    forget(store, cluster, definition)
    spec = definition["spec"]
    for version in spec.get("versions") or []:
        if not version.get("served"):
            continue
        full, plural = f"{spec['group']}/{version['name']}", spec["names"]["plural"]
        kind: dict[str, Any] = {
            "version": full,
            "plural": plural,
            "name": spec["names"]["kind"],
            "namespaced": spec.get("scope") == "Namespaced",
            "has_schema": bool(_schema(version).get("properties")),
        }
        store.put(cluster.collection(_DEFINED), f"{plural}.{full}", kind)


def forget(store: Store, cluster: Cluster, definition: Mapping[str, Any]) -> None:
    """Serve nothing any more of what a definition says."""
    collection = cluster.collection(_DEFINED)
    prefix = f"{definition['metadata']['name']}/"
    for name, _ in list(store.list(collection, prefix)):
        store.delete(collection, name)


def schema(store: Store, cluster: Cluster, kind: Kind) -> Mapping[str, Any]:
    """The OpenAPI schema of a kind that has one."""
    name = f"/{kind.plural}.{kind.group}"
    found = store.get(cluster.collection(_DEFINITIONS), name) or {}
    short = kind.version.rpartition("/")[2]
    versions = (found.get("spec") or {}).get("versions") or []
    return next((_schema(it) for it in versions if it["name"] == short), {})


_DEFINITIONS: Final = "apiextensions.k8s.io/customresourcedefinitions"


def _schema(version: Mapping[str, Any]) -> Mapping[str, Any]:
    return (version.get("schema") or {}).get("openAPIV3Schema") or {}


_VERBS: Final = ("create", "delete", "get", "list", "patch")


def resources(version: str, kinds: Iterable[Kind]) -> dict[str, Any] | None:
    """The kinds of a version; None when there is no such version."""
    found = [kind for kind in kinds if kind.version == version]
    if not found:
        return None
    entries = [
        {"name": it.plural, "namespaced": it.namespaced, "kind": it.name, "verbs": list(_VERBS)}
        for it in found
    ]
    return {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": version,
        "resources": entries,
    }
