"""What a cluster has for its pods, and all objects that Create applies in it, in order.

Networks of additional interfaces, as objects of GKE's multi-networking; the identity of pods
towards Google Cloud (Workload Identity Federation for GKE); buckets and Filestore shares as
persistent volumes, which pods claim by name; and who may reach Ray. Each stage has to be ready
before the next one. What is installed on GPU nodes is waited for on those that exist already; nodes
that come later get it when they come, and pods wait for it there (`nccl.gate`).
"""

from __future__ import annotations

import functools
import hashlib
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from provision.catalogue import gcsfuse
from provision.codes import Code
from provision.documents.timeline import StageName
from provision.errors import ClusterError, Problem, StateError
from provision.kinds.gke.kubernetes import kueue, manifests, nccl
from provision.kinds.gke.kubernetes.client import Cluster, KubernetesError
from provision.kinds.gke.kubernetes.kueue import NAMESPACE
from provision.kinds.gke.kubernetes.manifests import Manifest
from provision.kinds.gke.kubernetes.objects import (
    Object,
    build,
    conditions,
    containers,
    holds,
    mount,
    name_of,
    title,
)
from provision.screens.layout import counted
from provision.time.deadline import Deadline, TransientError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from provision.kinds.gke.kubernetes.facts import ClusterFacts, GpuPool
    from provision.time.stages import Progress

_NOTHING: Final = Manifest(definitions=[], rest=[])
_NONE_READ: Final[Mapping[str, Manifest]] = {}


def stages(facts: ClusterFacts, environ: Mapping[str, str]) -> tuple[list[Stage], list[Problem]]:
    """The stages, and notes on manifests that are not the pinned ones."""
    add_ons = manifests.wanted(queue=facts.has_queue)
    read = {add_on.name: manifests.read(add_on, environ) for add_on in add_ons}
    return own(facts, read), [it.note for it in read.values() if it.note]


def own(facts: ClusterFacts, read: Mapping[str, Manifest] = _NONE_READ) -> list[Stage]:
    """The stages; of what comes from manifests, what is read."""
    job_set = read.get(manifests.JOBSET.name, _NOTHING)
    found = [
        Stage("networks of the pods", [*network_objects(facts), *claims(facts)]),
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
        nodes = sum(it.max_nodes for it in facts.pools)
        made = kueue.configured(queue.rest, nodes, claims=any(it.claimed for it in facts.pools))
        found += [
            Stage("kinds of Kueue", queue.definitions),
            Stage("Kueue", made),
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


_RDMA_CLASS: Final = "mrdma.google.com"
"""The class of devices that GKE's DRANET has for interfaces with RDMA (its page, 2026-04-10)."""


def claims(facts: ClusterFacts) -> list[Object]:
    """What pods claim all interfaces for RDMA of a node by, for each number of them.

    By number, as Kueue takes no claim of all (0.19, pkg/dra/claims.go), and Google's test does so.
    """
    found = {}
    for pool in facts.pools:
        if pool.claimed:
            exactly = {
                "deviceClassName": _RDMA_CLASS,
                "allocationMode": "ExactCount",
                "count": pool.claimed,
            }
            requests = [{"name": "rdma", "exactly": exactly}]
            found[claim(pool)["resourceClaimTemplateName"]] = {"devices": {"requests": requests}}
    return [
        build("resource.k8s.io/v1", "ResourceClaimTemplate", name, NAMESPACE, spec={"spec": wanted})
        for name, wanted in found.items()
    ]


def claim(pool: GpuPool) -> Object:
    """What the pod that has a node for itself claims."""
    template = f"aiinfra-rdma-{pool.claimed}"
    return {"name": "rdma", "resourceClaimTemplateName": template}


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


_SOURCES: Final = "aiinfra/sources"


def account_name(facts: ClusterFacts) -> str:
    """The Kubernetes account of pods: named as the account that they act as.

    All clusters of a project share its identity pool, and a name that two of them have would be one
    identity (Google, "Identity sameness"); accounts have a name in the project that is their own.
    """
    return facts.workload_account.partition("@")[0]


def account(facts: ClusterFacts) -> Object:
    """The Kubernetes service account that may impersonate the cluster's workload account."""
    made = build("v1", "ServiceAccount", account_name(facts), NAMESPACE)
    made["metadata"]["annotations"] = {
        "iam.gke.io/gcp-service-account": facts.workload_account,
        **_sources(facts),
    }
    return made


def _sources(facts: ClusterFacts) -> dict[str, str]:
    """What tells of the registries and secrets of pods in the cluster itself; {} for none.

    A digest: who may look at accounts need not know the names of secrets.
    """
    found = json.dumps([facts.image_mirrors, [it.model_dump() for it in facts.secrets]])
    known = facts.image_mirrors or facts.secrets
    return {_SOURCES: hashlib.sha256(found.encode()).hexdigest()} if known else {}


def require_sources(cluster: Cluster, facts: ClusterFacts) -> None:
    """See that pods get images and secrets from where Create has told the cluster.

    The record lies in the bucket: whoever may write there could run an image of theirs as the
    pods' account, with all secrets of a job.
    """
    found = cluster.find("v1", "ServiceAccount", account_name(facts), NAMESPACE) or {}
    annotations = (found.get("metadata") or {}).get("annotations") or {}
    if annotations.get(_SOURCES) != _sources(facts).get(_SOURCES):
        raise StateError(
            "deployment.json names other registries or secrets than the cluster was made with",
            code=Code.STATE_FOREIGN,
            why="pods would run what these registries have, and get these secrets: IMAGE_MIRROR is"
            f" {', '.join(facts.image_mirrors) or 'empty'} there, and SECRETS has"
            f" {', '.join(it.name for it in facts.secrets) or 'nothing'}",
            fix="if that is what you want, run Create again; else find out who may write to the"
            " bucket of the state",
        )


# ------------------------------------------------------------------------------ storage

_DRIVER: Final = "gcsfuse.csi.storage.gke.io"
_STORAGE_CLASS: Final = "aiinfra-mounts"
_UNLIMITED: Final = ("cpu", "memory", "ephemeral-storage")
# A bucket has no size, but a volume must have one; the claims request the same.
_BUCKET_SIZE: Final = "1Ti"


def storage(facts: ClusterFacts) -> list[Object]:
    """A volume and its claim for each mount, and a storage class that only binds these."""
    options = list(gcsfuse.in_pods(facts.bucket_options, facts.bucket_cache_gib))
    found = []
    for bucket in facts.buckets:
        csi = {"driver": _DRIVER, "volumeHandle": bucket.bucket}
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
    options = ",".join(gcsfuse.in_pods((), None))
    for own in facts.own_mounts:
        about = {"bucketName": own.bucket, "mountOptions": options}
        csi = {"driver": _DRIVER, "readOnly": own.read_only, "volumeAttributes": about}
        volumes.append({"name": name_of(own.path), "csi": csi})
        mounts.append(mount(name_of(own.path), own.path))
    # Else the driver's container has 250m of CPU, 256 MiB, and 5 GiB of disk: a larger file, which
    # it stages there, has the pod evicted (gcs-fuse-csi-driver 5fcdc04, cmd/webhook/main.go).
    limits = {f"gke-gcsfuse/{what}-limit": "0" for what in _UNLIMITED}
    has_buckets = facts.buckets or facts.own_mounts
    annotations = {"gke-gcsfuse/volumes": "true", **limits} if has_buckets else {}
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


# ------------------------------------------------------------------------------ into the cluster

TIMEOUT: Final = 600.0
"""Seconds of cloud time for a stage, and for NCCL: Kueue takes a minute or two to start, and a node
pulls an image of some gigabytes."""

_PAUSE: Final = 2.0
_NOT_FOUND: Final = 404
_CONDITIONS: Final = {"CustomResourceDefinition": "Established", "Deployment": "Available"}
"""Kind -> the condition that must hold before the next stage."""


@dataclass(frozen=True)
class Stage:
    """Objects that are applied in order, and then waited for."""

    name: str  # what the stage installs, for progress messages
    objects: list[Object] = field(default_factory=list)


def apply(
    cluster: Cluster,
    stages: Iterable[Stage],
    *,
    progress: Progress,
    timeout: float = TIMEOUT,
) -> int:
    """Apply all stages in order; objects that are up to date do not change."""
    total = done = 0
    wanted = [stage for stage in stages if stage.objects]
    everything = sum(len(stage.objects) for stage in wanted)
    with progress.stage(StageName.OBJECTS) as shown:
        for stage in wanted:
            deadline = shown.deadline(timeout, _PAUSE)
            changed = 0
            for thing in stage.objects:
                shown.counts(f"{done} of {everything} objects; {stage.name}: {title(thing)}")
                changed += deadline.retry(
                    functools.partial(_apply, cluster, thing),
                    f"apply {title(thing)}",
                )
                done += 1
            for thing in stage.objects:
                shown.counts(f"{done} of {everything} objects; {stage.name}: {title(thing)}")
                _await(cluster, thing, deadline)
            total += changed
            if changed:
                shown.news(
                    f"Kubernetes: {stage.name} ({changed} of {len(stage.objects)} objects changed)"
                )
        of = f", {total} of them changed" if total < everything else ""
        shown.counts(f"{counted(everything, 'object')}{of}" if total else "")
    return total


def _apply(cluster: Cluster, thing: Object) -> bool:
    """Apply an object; returns whether that changed its resourceVersion."""
    try:
        before = _find(cluster, thing)
        after = cluster.apply(thing)
    except KubernetesError as error:
        # GKE's own kinds exist only some time after the cluster does, and a namespace is usable
        # only some time after its object exists.
        if error.code == _NOT_FOUND:
            raise TransientError(error.message) from error
        raise
    version = "resourceVersion"
    return before is None or before["metadata"].get(version) != after["metadata"].get(version)


def _await(cluster: Cluster, thing: Object, deadline: Deadline) -> None:
    """Wait until an object is ready, if it is of a kind that takes time."""
    condition = _CONDITIONS.get(thing["kind"])
    if condition is None:
        return

    def look() -> None:
        found = _find(cluster, thing) or {}
        if not holds(found, condition):
            told = conditions(found).get(condition, {}).get("message")
            raise TransientError(str(told or "it reports no status yet"))

    deadline.retry(look, f"see {title(thing)} become {condition}")


def _find(cluster: Cluster, thing: Object) -> Object | None:
    metadata = thing["metadata"]
    return cluster.find(
        thing["apiVersion"], thing["kind"], metadata["name"], metadata.get("namespace", "")
    )


# ------------------------------------------------------------------------------ NCCL

_POLL: Final = 5.0
# In these a container waits that goes wrong; in others it is only slow.
_WRONG: Final = frozenset(
    {
        "CrashLoopBackOff",
        "CreateContainerConfigError",
        "CreateContainerError",
        "ErrImagePull",
        "ImagePullBackOff",
        "InvalidImageName",
        "RunContainerError",
    }
)


def wait(
    cluster: Cluster, facts: ClusterFacts, *, progress: Progress, timeout: float = TIMEOUT
) -> list[Problem]:
    """Wait until NCCL is on all GPU nodes that there are; notes on what is slow or gets none."""
    names = [it["metadata"]["name"] for it in nccl.objects(facts)]

    def one(name: str) -> Unfinished | None:
        there = cluster.find("apps/v1", "DaemonSet", name, nccl.NAMESPACE) or {}
        return unfinished(cluster, name, there)

    def look(deadline: Deadline) -> dict[str, Unfinished]:
        doing = "look at what is installed on the GPU nodes"
        found = deadline.retry(lambda: {it: one(it) for it in names}, doing)
        return {name: it for name, it in found.items() if it is not None}

    left = look(progress.deadline(timeout, _POLL)) if names else {}
    notes = [_without(pool) for pool in facts.pools if pool.gpu_network and pool.is_arm]
    if not left:
        return notes
    with progress.stage(StageName.OBJECTS) as stage:
        deadline = stage.deadline(timeout, _POLL)
        while left and not deadline.is_over:
            stage.counts("; ".join(words for words, _ in left.values()))
            deadline.pause()
            left = look(deadline)
        if not left:
            stage.counts("NCCL is installed on the GPU nodes")
    told = [(wrong, _told(name, words, wrong)) for name, (words, wrong) in left.items()]
    failed = [problem for wrong, problem in told if wrong]
    if failed:
        raise ClusterError.of(failed)
    return [*notes, *(problem for _, problem in told)]


Unfinished = tuple[str, tuple[str, ...]]
"""How far a DaemonSet is that is not ready on all of its nodes, and what goes wrong in its pods;
nothing where they are only slow."""


def unfinished(cluster: Cluster, name: str, found: Object) -> Unfinished | None:
    """What a DaemonSet, as Kubernetes has it, lacks; None where it is ready on all its nodes."""
    status = found.get("status") or {}
    if status.get("observedGeneration", 0) < found.get("metadata", {}).get("generation", 1):
        return f"{name} is not scheduled yet", ()
    nodes = status.get("desiredNumberScheduled", 0)
    # Pods of the version before are ready too.
    ready = min(status.get("numberReady", 0), status.get("updatedNumberScheduled", 0))
    if ready >= nodes:
        return None
    pods = cluster.all("v1", "Pod", nccl.NAMESPACE, f"k8s-app={name}")
    wrong = tuple(dict.fromkeys(line for pod in pods for line in _wrong(pod)))
    return f"{name} is ready on {ready} of {nodes} GPU nodes", wrong


def _wrong(pod: Object) -> Iterator[str]:
    """What goes wrong in the containers of a pod."""
    node = (pod.get("spec") or {}).get("nodeName", "")
    for container in containers(pod):
        waiting = (container.get("state") or {}).get("waiting") or {}
        if waiting.get("reason") in _WRONG:
            last = (container.get("lastState") or {}).get("terminated") or {}
            said = last.get("message") or waiting.get("message") or ""
            yield f"{container['name']} on {node}: {waiting['reason']}: {said}".rstrip(": ")


def _told(name: str, words: str, wrong: tuple[str, ...]) -> Problem:
    """An error about a DaemonSet whose pods go wrong, or a note on one that is slow."""
    pods = f"kubectl --namespace {nccl.NAMESPACE} describe pods --selector k8s-app={name}"
    if wrong:
        return Problem(
            code=Code.KUBERNETES_FAILED,
            what=f"NCCL can't be installed: the DaemonSet {words}",
            why="\n".join(wrong),
            fix=f"see why by {pods}; then run Create again: jobs on these nodes would fail",
        )
    return Problem(
        code=Code.STILL_RUNNING,
        what=f"NCCL is still being installed: the DaemonSet {words}",
        why="a node takes some minutes to pull the image, and one with jobs gets another version"
        " when none of them uses NCCL",
        fix=f"nothing now: jobs wait for it, {nccl.GATE_SECONDS // 60} minutes long; if they fail,"
        f" see why by {pods}",
    )


def _without(pool: GpuPool) -> Problem:
    return Problem(
        code=Code.NOTE,
        what=f"Nothing of NCCL is installed on the nodes of {pool.name} ({pool.machine_type})",
        why="gIB for Arm and the IMEX channels of these machines are not set up: NCCL uses NVLink"
        " within a domain, and plain sockets between domains",
        fix="nothing, for jobs within one domain",
    )
