"""Clusters: their making, reading and deletion."""

import hashlib
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from rehearsal.cloud import keys
from rehearsal.cloud.container import (
    cluster_networks,
    node_pools,
    operations,
    records,
    rules,
    versions,
)
from rehearsal.cloud.container.records import CLUSTERS, POOLS, ROOT, Record
from rehearsal.cloud.kubernetes import google, kinds
from rehearsal.cloud.store import Store
from rehearsal.cloud.wire import GoogleError, Reply, Request, rfc3339

_NAME: Final = re.compile(r"[a-z](?:[-a-z0-9]{0,38}[a-z0-9])?")


def create(request: Request, store: Store, project: str, location: str) -> Reply:
    """Make a cluster with its first pools."""
    body = dict(request.json().get("cluster") or {})
    where = records.place(store, project, location)
    if not _NAME.fullmatch(str(body.get("name", ""))):
        raise GoogleError(400, f'Invalid value for field "cluster.name": "{body.get("name")}".')
    name = f"{where}/clusters/{body['name']}"
    if records.find(request, store, CLUSTERS, name) is not None:
        raise GoogleError(409, f"Already exists: {name}.", status=None)
    rules.check_cluster(body)
    pools = _first_pools(body)
    busy = operations.name(request, store)
    record = {
        **cluster_networks.attached(request, store, where, _completed(body, location)),
        **_identity(request, name),
        "_ready": operations.end(request, "CREATE_CLUSTER"),
        "_busy": busy,
    }
    record = records.keep(store, CLUSTERS, name, record)
    errors = [node_pools.make(request, store, name, pool, record["_ready"]) for pool in pools]
    kinds.make_cluster(request, store, name, record)
    error = next((it for it in errors if it is not None), None)
    return operations.start(request, store, "CREATE_CLUSTER", name, named=busy, error=error)


def _first_pools(body: Record) -> list[Record]:
    if body.get("nodePools"):
        return [dict(pool) for pool in body.pop("nodePools")]
    count = body.get("initialNodeCount", 0)
    if count < 1:
        raise GoogleError(400, "Cluster.initial_node_count must be greater than zero.", status=None)
    config = dict(body.get("nodeConfig") or {})
    return [{"name": "default-pool", "initialNodeCount": count, "config": config}]


def _completed(body: Record, location: str) -> Record:
    """A cluster as Google completes it, apart from its networks."""
    result = records.completed(body, CLUSTER)
    result["addonsConfig"] = records.completed(result.get("addonsConfig") or {}, ADDONS)
    channel = (result.get("releaseChannel") or {}).get("channel", "UNSPECIFIED")
    version = versions.resolve(body.get("initialClusterVersion", ""), channel)
    policy = {"resourceVersion": records.digest(result.get("maintenancePolicy"))[:8]}
    return {
        **result,
        "autoscaling": records.completed(
            result.get("autoscaling") or {}, {"autoscalingProfile": "BALANCED"}
        ),
        "initialClusterVersion": version,
        "currentMasterVersion": version,
        "currentNodeVersion": version,
        "location": location,
        "zone": location,
        "locations": body.get("locations") or records.zones_of(location),
        "labelFingerprint": records.digest(result.get("resourceLabels"))[:8],
        "maintenancePolicy": {**(result.get("maintenancePolicy") or {}), **policy},
    }


def _identity(request: Request, name: str) -> Record:
    return {
        "id": hashlib.sha256(f"{name} {request.now}".encode()).hexdigest(),
        "createTime": rfc3339(request.now),
        "selfLink": ROOT + name,
    }


def view(request: Request, store: Store, name: str, record: Record) -> Record:
    """A cluster as it is answered, with its pools."""
    pools = [
        node_pools.view(request, store, pool)
        for _, pool in records.each(request, store, POOLS, f"{name}/nodePools/")
    ]
    of_pools: dict[str, Any] = {
        "nodePools": pools,
        "instanceGroupUrls": [url for pool in pools for url in pool["instanceGroupUrls"]],
        "currentNodeCount": node_pools.nodes(store, pools),
    }
    return {
        **records.show(record),
        "status": records.status(record, request.now),
        **{key: value for key, value in of_pools.items() if value},
    }


def get(request: Request, store: Store, project: str, location: str, cluster: str) -> Reply:
    """One cluster."""
    name = f"{records.place(store, project, location)}/clusters/{cluster}"
    return Reply(body=view(request, store, name, records.require(request, store, CLUSTERS, name)))


def every(request: Request, store: Store, project: str, location: str) -> Reply:
    """The clusters of a location, or of all for "-"."""
    prefix = records.within(store, project, location)
    found = [
        view(request, store, name, record)
        for name, record in records.each(request, store, CLUSTERS, prefix)
    ]
    return Reply(body={"clusters": found} if found else {})


def delete(request: Request, store: Store, project: str, location: str, cluster: str) -> Reply:
    """Delete a cluster with all its nodes."""
    name = f"{records.place(store, project, location)}/clusters/{cluster}"
    record = records.require_idle(request, store, CLUSTERS, name)
    pools = list(records.each(request, store, POOLS, f"{name}/nodePools/"))
    for _, pool in pools:
        records.check_idle(request, CLUSTERS, pool)
    gone = operations.end(request, "DELETE_CLUSTER")
    busy = operations.name(request, store)
    for pool_name, pool in pools:
        node_pools.remove(request, store, pool_name, pool, gone, busy)
    records.keep(store, CLUSTERS, name, {**record, "_gone": gone, "_busy": busy})
    google.forget_cluster(request, store, record)
    return operations.start(request, store, "DELETE_CLUSTER", name, named=busy)


_DESIRED: Final = "desired"
_NETWORK: Final = "networkConfig"

# Field of an update -> where its value goes; others go to the field of that name.
_PLACES: Final[Mapping[str, tuple[str, ...]]] = {
    "desiredAutoIpamConfig": ("ipAllocationPolicy", "autoIpamConfig"),
    "desiredClusterAutoscaling": ("autoscaling",),
    "desiredContainerdConfig": ("nodePoolDefaults", "nodeConfigDefaults", "containerdConfig"),
    "desiredDatapathProvider": (_NETWORK, "datapathProvider"),
    "desiredDefaultEnablePrivateNodes": (_NETWORK, "defaultEnablePrivateNodes"),
    "desiredDefaultSnatStatus": (_NETWORK, "defaultSnatStatus"),
    "desiredDisableL4LbFirewallReconciliation": (_NETWORK, "disableL4LbFirewallReconciliation"),
    "desiredDnsConfig": (_NETWORK, "dnsConfig"),
    "desiredEnableCiliumClusterwideNetworkPolicy": (
        _NETWORK,
        "enableCiliumClusterwideNetworkPolicy",
    ),
    "desiredEnableFqdnNetworkPolicy": (_NETWORK, "enableFqdnNetworkPolicy"),
    "desiredEnableMultiNetworking": (_NETWORK, "enableMultiNetworking"),
    "desiredEnterpriseConfig": ("enterpriseConfig",),
    "desiredGatewayApiConfig": (_NETWORK, "gatewayApiConfig"),
    "desiredGcfsConfig": ("nodePoolDefaults", "nodeConfigDefaults", "gcfsConfig"),
    "desiredInTransitEncryptionConfig": (_NETWORK, "inTransitEncryptionConfig"),
    "desiredIntraNodeVisibilityConfig": (_NETWORK, "enableIntraNodeVisibility"),
    "desiredK8sBetaApis": ("enableK8sBetaApis",),
    "desiredL4ilbSubsettingConfig": (_NETWORK, "enableL4ilbSubsetting"),
    "desiredMasterVersion": ("currentMasterVersion",),
    "desiredNetworkPerformanceConfig": (_NETWORK, "networkPerformanceConfig"),
    "desiredNodeKubeletConfig": ("nodePoolDefaults", "nodeConfigDefaults", "nodeKubeletConfig"),
    "desiredNodePoolAutoConfigKubeletConfig": ("nodePoolAutoConfig", "nodeKubeletConfig"),
    "desiredNodePoolAutoConfigLinuxNodeConfig": ("nodePoolAutoConfig", "linuxNodeConfig"),
    "desiredNodePoolAutoConfigNetworkTags": ("nodePoolAutoConfig", "networkTags"),
    "desiredNodePoolAutoConfigResourceManagerTags": ("nodePoolAutoConfig", "resourceManagerTags"),
    "desiredNodePoolLoggingConfig": ("nodePoolDefaults", "nodeConfigDefaults", "loggingConfig"),
    "desiredPrivateIpv6GoogleAccess": (_NETWORK, "privateIpv6GoogleAccess"),
    "desiredServiceExternalIpsConfig": (_NETWORK, "serviceExternalIpsConfig"),
    "desiredStackType": ("ipAllocationPolicy", "stackType"),
}
# Values that are wrapped in an object where a cluster has them plain.
_UNWRAPPED: Final = frozenset({"desiredIntraNodeVisibilityConfig", "desiredL4ilbSubsettingConfig"})
# Updates of which the blocks that are not named stay as they are.
_BLOCKWISE: Final = frozenset({"desiredAddonsConfig", "desiredControlPlaneEndpointsConfig"})
_POOL: Final = "desiredNodePoolId"
# Field of an update that is about a pool -> where its value goes in that.
_PLACES_IN_POOL: Final[Mapping[str, tuple[str, ...]]] = {
    "desiredImageType": ("config", "imageType"),
    "desiredNodePoolAutoscaling": ("autoscaling",),
    "desiredNodeVersion": ("version",),
}


def update(request: Request, store: Store, project: str, location: str, cluster: str) -> Reply:
    """Change one thing of a cluster, or of one of its pools."""
    name, record = _idle(request, store, project, location, cluster)
    asked = request.json().get("update") or {}
    if not asked:
        raise GoogleError(400, "Must specify a field to update.", status=None)
    _check_multi_networking(record, asked)
    if "desiredDatabaseEncryption" in asked:
        of_secrets = asked["desiredDatabaseEncryption"].get("keyName")
        keys.require(store, of_secrets, project, keys.GKE, location)
    changed = record
    for key in sorted(asked.keys() - {_POOL, *_PLACES_IN_POOL}):
        changed = _with(changed, key, asked[key])
    if "desiredControlPlaneEndpointsConfig" in asked:
        where = name.partition("/clusters/")[0]
        changed = {**changed, **cluster_networks.endpoints(where, changed)}
    if not _PLACES_IN_POOL.keys().isdisjoint(asked):
        _update_pool(request, store, name, record, asked)
    kind = "UPGRADE_MASTER" if "desiredMasterVersion" in asked else "UPDATE_CLUSTER"
    return _changed(request, store, name, changed, kind)


def _check_multi_networking(record: Record, asked: Record) -> None:
    """Multi-networking is turned on when a cluster is made, and neither on nor off later.

    Source: NVIDIA's AI Cluster Runtime, docs/integrator/gke-tcpxo-networking.md.
    """
    has = bool((record.get(_NETWORK) or {}).get("enableMultiNetworking"))
    if bool(asked.get("desiredEnableMultiNetworking", has)) != has:
        raise GoogleError(400, "Multi-networking can be enabled at cluster creation only.")


def _with(record: Record, key: str, value: Any) -> Record:
    bare = key.removeprefix(_DESIRED)
    path = _PLACES.get(key, (bare[:1].lower() + bare[1:],))
    if key in _UNWRAPPED:
        value = (value or {}).get("enabled", False)
    if key == "desiredMasterVersion":
        channel = (record.get("releaseChannel") or {}).get("channel", "UNSPECIFIED")
        value = versions.resolve(value, channel)
    if key in _BLOCKWISE:
        value = {**(record.get(path[0]) or {}), **value}
    return _placed(record, path, value)


def _placed(record: Record, path: tuple[str, ...], value: Any) -> Record:
    """A record with a value in place of what it has there."""
    head, *rest = path
    inner = _placed(record.get(head) or {}, tuple(rest), value) if rest else value
    return {**record, head: inner}


def _update_pool(request: Request, store: Store, name: str, cluster: Record, asked: Record) -> None:
    pool_name = f"{name}/nodePools/{asked.get(_POOL, '')}"
    pool = records.require_idle(request, store, POOLS, pool_name)
    for key, path in _PLACES_IN_POOL.items():
        if key in asked:
            pool = _placed(pool, path, asked[key])
    rules.check_pool(cluster, pool, request.scenarios)
    records.keep(store, POOLS, pool_name, pool)


def set_labels(request: Request, store: Store, project: str, location: str, cluster: str) -> Reply:
    """Replace the labels of a cluster."""
    name, record = _idle(request, store, project, location, cluster)
    body = request.json()
    if body.get("labelFingerprint") != record["labelFingerprint"]:
        raise GoogleError(
            400,
            "Labels could not be set due to fingerprint mismatch.",
            reason="failedPrecondition",
            status="FAILED_PRECONDITION",
        )
    labels = body.get("resourceLabels") or {}
    changed = {
        **record,
        "resourceLabels": labels,
        "labelFingerprint": records.digest([labels, request.now])[:8],
    }
    return _changed(request, store, name, changed, "SET_LABELS")


def set_maintenance(
    request: Request, store: Store, project: str, location: str, cluster: str
) -> Reply:
    """Replace when a cluster may be changed by Google."""
    name, record = _idle(request, store, project, location, cluster)
    policy = request.json().get("maintenancePolicy") or {}
    version = {"resourceVersion": records.digest([policy, request.now])[:8]}
    changed = {**record, "maintenancePolicy": {**policy, **version}}
    return _changed(request, store, name, changed, "SET_MAINTENANCE_POLICY")


def set_field(field: str) -> Callable[..., Reply]:
    """A method that replaces one field of a cluster by the body's of the same name."""

    def change(request: Request, store: Store, project: str, location: str, cluster: str) -> Reply:
        name, record = _idle(request, store, project, location, cluster)
        body = request.json()
        value = body.get(field, {"enabled": body.get("enabled", False)})
        return _changed(request, store, name, {**record, field: value}, "UPDATE_CLUSTER")

    return change


def _idle(request: Request, store: Store, *path: str) -> tuple[str, Record]:
    project, location, cluster = path
    name = f"{records.place(store, project, location)}/clusters/{cluster}"
    return name, records.require_idle(request, store, CLUSTERS, name)


def _changed(request: Request, store: Store, name: str, record: Record, kind: str) -> Reply:
    busy = operations.name(request, store)
    under_way = {"_ready": operations.end(request, kind), "_busy": busy, "_doing": "RECONCILING"}
    records.keep(store, CLUSTERS, name, {**record, **under_way})
    return operations.start(request, store, kind, name, named=busy)


ADDONS: Final[Mapping[str, Any]] = {
    "httpLoadBalancing": {},
    "horizontalPodAutoscaling": {},
    "kubernetesDashboard": {"disabled": True},
    "networkPolicyConfig": {"disabled": True},
    "dnsCacheConfig": {"enabled": True},
    "gcePersistentDiskCsiDriverConfig": {"enabled": True},
}

CLUSTER: Final[Mapping[str, Any]] = {
    "loggingService": "logging.googleapis.com/kubernetes",
    "monitoringService": "monitoring.googleapis.com/kubernetes",
    "loggingConfig": {"componentConfig": {"enableComponents": ["SYSTEM_COMPONENTS", "WORKLOADS"]}},
    "monitoringConfig": {
        "componentConfig": {"enableComponents": ["SYSTEM_COMPONENTS"]},
        "managedPrometheusConfig": {"enabled": True},
    },
    "masterAuth": {
        "clusterCaCertificate": "UkVIRUFSU0FM",
        "clientCertificateConfig": {},
    },
    "defaultMaxPodsConstraint": {"maxPodsPerNode": "110"},
    "authenticatorGroupsConfig": {},
    "databaseEncryption": {"state": "DECRYPTED", "currentState": "CURRENT_STATE_DECRYPTED"},
    "nodePoolDefaults": {
        "nodeConfigDefaults": {"loggingConfig": {"variantConfig": {"variant": "DEFAULT"}}}
    },
    "nodePoolAutoConfig": {"nodeKubeletConfig": {"insecureKubeletReadonlyPortEnabled": False}},
    "securityPostureConfig": {
        "mode": "BASIC",
        "vulnerabilityMode": "VULNERABILITY_MODE_UNSPECIFIED",
    },
    "shieldedNodes": {"enabled": True},
    "releaseChannel": {"channel": "REGULAR"},
    "rbacBindingConfig": {
        "enableInsecureBindingSystemUnauthenticated": True,
        "enableInsecureBindingSystemAuthenticated": True,
    },
    "enterpriseConfig": {"clusterTier": "STANDARD"},
    "podAutoscaling": {"hpaProfile": "HPA_PROFILE_UNSPECIFIED"},
    "anonymousAuthenticationConfig": {"mode": "ENABLED"},
    "secretManagerConfig": {"enabled": False},
    "nodeIpv4CidrSize": 24,
}
