"""What a cluster has for its pods, and all objects that Create applies in it, in order.

Networks of additional interfaces, as objects of GKE's multi-networking; the identity of pods
towards Google Cloud (Workload Identity Federation for GKE); buckets and Filestore shares as
persistent volumes, which pods claim by name; and who may reach Ray.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from provision.catalogue import gcsfuse
from provision.kinds.gke.kubernetes import kueue, manifests, nccl
from provision.kinds.gke.kubernetes.kueue import NAMESPACE
from provision.kinds.gke.kubernetes.manifests import Manifest
from provision.kinds.gke.kubernetes.objects import Object, build, mount, name_of
from provision.kinds.gke.kubernetes.rollout import Stage

if TYPE_CHECKING:
    from collections.abc import Mapping

    from provision.errors import Problem
    from provision.kinds.gke.kubernetes.client import Cluster
    from provision.kinds.gke.kubernetes.facts import ClusterFacts, GpuPool

_NOTHING: Final = Manifest(definitions=[], rest=[])


def stages(facts: ClusterFacts, environ: Mapping[str, str]) -> tuple[list[Stage], list[Problem]]:
    """The stages, and notes on manifests that are not the pinned ones."""
    add_ons = manifests.wanted(queue=facts.has_queue)
    read = {add_on.name: manifests.read(add_on, environ) for add_on in add_ons}
    return _with(facts, read), [it.note for it in read.values() if it.note]


def own(facts: ClusterFacts) -> list[Stage]:
    """The stages without what comes from manifests."""
    return _with(facts, {})


def _with(facts: ClusterFacts, read: Mapping[str, Manifest]) -> list[Stage]:
    job_set = read.get(manifests.JOBSET.name, _NOTHING)
    found = [
        Stage("networks of the pods", network_objects(facts)),
        Stage("NCCL on the nodes", nccl.objects(facts)),
        Stage(
            "identity, priorities and storage",
            [account(facts), *kueue.priority_classes(), *storage(facts)],
        ),
        Stage("kinds of JobSet", job_set.definitions),
        Stage("JobSet", job_set.rest),
    ]
    if facts.has_queue:
        queue = read.get(manifests.KUEUE.name, _NOTHING)
        found += [
            Stage("kinds of Kueue", queue.definitions),
            Stage("Kueue", kueue.configured(queue.rest, facts.most_nodes)),
            Stage("the queue", kueue.objects(facts)),
        ]
    return [Stage(it.name, facts.mirrored(it.objects)) for it in found]


# ------------------------------------------------------------------------------ networks

_NETWORKING: Final = "networking.gke.io"


def network_objects(facts: ClusterFacts) -> list[Object]:
    """A GKENetworkParamSet and a Network for each network; both are cluster-scoped."""
    api, kind = f"{_NETWORKING}/v1", "GKENetworkParamSet"
    found = []
    for network in facts.networks:
        name = network.kubernetes_name
        parameters = {
            "vpc": network.network,
            "vpcSubnet": network.subnetwork,
            "deviceMode": network.device_mode,
        }
        reference = {"group": _NETWORKING, "kind": kind, "name": name}
        found += [
            build(api, kind, name, spec=parameters),
            build(api, "Network", name, spec={"type": "Device", "parametersRef": reference}),
        ]
    return found


def network_annotations(pool: GpuPool) -> dict[str, str]:
    """The annotations that give a pod all interfaces of its node; {} if there is only one."""
    networks = pool.networks
    if not networks:
        return {}
    names = ["default", *networks]
    interfaces = [
        {"interfaceName": f"eth{number}", "network": name} for number, name in enumerate(names)
    ]
    lines = ",\n".join(f"  {json.dumps(each)}" for each in interfaces)
    return {
        f"{_NETWORKING}/default-interface": "eth0",
        f"{_NETWORKING}/interfaces": f"[\n{lines}\n]\n",
    }


# ------------------------------------------------------------------------------ identity


def account_name(facts: ClusterFacts) -> str:
    """The Kubernetes account of pods: named as the account that they act as.

    All clusters of a project share its identity pool, and a name that two of them have would be one
    identity (Google, "Identity sameness"); accounts have a name in the project that is their own.
    """
    return facts.workload_account.partition("@")[0]


def account(facts: ClusterFacts) -> Object:
    """The Kubernetes service account that may impersonate the cluster's workload account."""
    made = build("v1", "ServiceAccount", account_name(facts), NAMESPACE)
    made["metadata"]["annotations"] = {"iam.gke.io/gcp-service-account": facts.workload_account}
    return made


# ------------------------------------------------------------------------------ storage

_STORAGE_CLASS: Final = "aiinfra-mounts"
_UNLIMITED: Final = ("cpu", "memory", "ephemeral-storage")
# A bucket has no size, but a volume must have one; the claims request the same.
_BUCKET_SIZE: Final = "1Ti"


def storage(facts: ClusterFacts) -> list[Object]:
    """A volume and its claim for each mount, and a storage class that only binds these."""
    options = list(gcsfuse.in_pods(facts.bucket_options, facts.bucket_cache_gib))
    found = []
    for bucket in facts.buckets:
        csi = {"driver": "gcsfuse.csi.storage.gke.io", "volumeHandle": bucket.bucket}
        found += _claimed(bucket.path, _BUCKET_SIZE, {"mountOptions": options, "csi": csi})
    for share in facts.shares:
        nfs = {"server": share.server, "path": share.remote_path}
        found += _claimed(share.path, f"{share.size_gb}Gi", {"nfs": nfs})
    if not found:
        return []
    binding = build(
        "storage.k8s.io/v1",
        "StorageClass",
        _STORAGE_CLASS,
        provisioner="kubernetes.io/no-provisioner",
        reclaimPolicy="Retain",
        volumeBindingMode="Immediate",
    )
    return [binding, *found]


def _claimed(path: str, size: str, source: dict[str, Any]) -> list[Object]:
    name = name_of(path)
    common = {"accessModes": ["ReadWriteMany"], "storageClassName": _STORAGE_CLASS}
    volume = {
        **common,
        "capacity": {"storage": size},
        # Deleting the cluster or a claim never deletes the data.
        "persistentVolumeReclaimPolicy": "Retain",
        "claimRef": {"namespace": NAMESPACE, "name": name},
        **source,
    }
    claim = {**common, "volumeName": name, "resources": {"requests": {"storage": size}}}
    return [
        build("v1", "PersistentVolume", name, spec=volume),
        build("v1", "PersistentVolumeClaim", name, NAMESPACE, spec=claim),
    ]


def pod_volumes(facts: ClusterFacts) -> tuple[list[Object], list[Object], dict[str, str]]:
    """What a pod needs for all mounts: its volumes, a container's mounts, and annotations."""
    paths = [*(it.path for it in facts.buckets), *(it.path for it in facts.shares)]
    names = {path: name_of(path) for path in paths}
    volumes = [{"name": it, "persistentVolumeClaim": {"claimName": it}} for it in names.values()]
    mounts = [mount(name, path) for path, name in names.items()]
    # Else the driver's container has 250m of CPU, 256 MiB, and 5 GiB of disk: a larger file, which
    # it stages there, has the pod evicted (gcs-fuse-csi-driver 5fcdc04, cmd/webhook/main.go).
    limits = {f"gke-gcsfuse/{what}-limit": "0" for what in _UNLIMITED}
    annotations = {"gke-gcsfuse/volumes": "true", **limits} if facts.buckets else {}
    return volumes, mounts, annotations


# ------------------------------------------------------------------------------ Ray

RAY_POLICY: Final = "ray-from-its-namespace"
_OPERATOR: Final = "app.kubernetes.io/name=kuberay-operator"
_OF_GKE: Final = ("gke-", "gmp-", "kube-")
"""How the namespaces of GKE's own programs begin. Where GKE runs its Ray operator is not published:
in one of them, or outside of the nodes, from where it comes by the agents in kube-system."""
_PORTS_FOR_ALL: Final = (8000, 8080)
"""Ray Serve, for its users, and metrics, for those who collect them."""


def ray_tokens(cluster: Cluster) -> bool:
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


def ray_policy(cluster: Cluster) -> Object:
    """The network policy of the pods of Ray, where there is no token.

    Pods of their own namespace may reach them, which has their heads, workers and what submits
    jobs; GKE's programs may, and the operator's namespace. `kubectl port-forward` goes on: it comes
    from the node. Whoever reaches a head's dashboard runs programs there, and a worker takes them
    from any address. GKE enforces network policies with Dataplane V2, which the clusters have.
    """
    names = [it["metadata"]["name"] for it in cluster.all("v1", "Namespace")]
    trusted = {name for name in names if name.startswith(_OF_GKE)}
    trusted |= {it["metadata"]["namespace"] for it in cluster.all("v1", "Pod", "", _OPERATOR)}
    among = {"key": "kubernetes.io/metadata.name", "operator": "In", "values": sorted(trusted)}
    peers = [{"podSelector": {}}, {"namespaceSelector": {"matchExpressions": [among]}}]
    spec = {
        "podSelector": {"matchExpressions": [{"key": "ray.io/node-type", "operator": "Exists"}]},
        "policyTypes": ["Ingress"],
        "ingress": [
            {"from": peers},
            {"ports": [{"protocol": "TCP", "port": port} for port in _PORTS_FOR_ALL]},
        ],
    }
    return build("networking.k8s.io/v1", "NetworkPolicy", RAY_POLICY, NAMESPACE, spec=spec)
