"""The queue of the pools with queued provisioning: Kueue's objects, under their usual names.

The API version has `admissionChecksStrategy` alone. Its predecessor `admissionChecks` is dropped
by a client-side apply without a word, and jobs then start with no ProvisioningRequest: hence
server-side apply, which refuses it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from provision.kinds.gke.kubernetes.objects import Object, build

if TYPE_CHECKING:
    from collections.abc import Sequence

    from provision.kinds.gke.kubernetes.facts import ClusterFacts, GpuPool

API: Final = "kueue.x-k8s.io/v1beta2"
NAMESPACE: Final = "default"
LOCAL_QUEUE: Final = "dws-local-queue"
CLUSTER_QUEUE: Final = "dws-cluster-queue"
CHECK: Final = "dws-prov"
CONFIG: Final = "dws-config"
DEFAULT_FLAVOR: Final = "default-flavor"
"""The flavor of pods without GPUs, such as a Ray head: nodes that GPU pods do not need."""

QUEUE_LABEL: Final = "kueue.x-k8s.io/queue-name"
RUN_SECONDS: Final = "provreq.kueue.x-k8s.io/maxRunDurationSeconds"
"""The annotation of a job that says for how many seconds it wants its nodes."""

GPU: Final = "nvidia.com/gpu"
QUEUED_TAINT: Final = "cloud.google.com/gke-queued"
POOL_LABEL: Final = "cloud.google.com/gke-nodepool"

_CLASS: Final = "queued-provisioning.gke.io"
_CONTROLLER: Final = "kueue.x-k8s.io/provisioning-request"
_PRIORITIES: Final = {"very-low": 100, "low": 250, "medium": 500, "high": 750, "very-high": 1000}
# The autoscaler and the pools' sizes limit these; every resource that a pod asks for has to be
# covered, or its workload is never admitted.
_UNLIMITED: Final = {"cpu": "1G", "memory": "1000Pi", "ephemeral-storage": "1000Pi"}

GPU_TOLERATION: Final = {"key": GPU, "operator": "Exists", "effect": "NoSchedule"}
_QUEUED_TOLERATION: Final = {"key": QUEUED_TAINT, "operator": "Exists", "effect": "NoSchedule"}


def objects(facts: ClusterFacts) -> list[Object]:
    """All objects of the queue, those first that others refer to; [] without queued pools."""
    if not facts.queued_pools:
        return []
    return [
        build(API, "ResourceFlavor", DEFAULT_FLAVOR, spec={}),
        *(_flavor(pool) for pool in facts.queued_pools),
        _config(),
        _check(),
        _cluster_queue(facts),
        build(API, "LocalQueue", LOCAL_QUEUE, NAMESPACE, spec={"clusterQueue": CLUSTER_QUEUE}),
        *_workload_priorities(),
    ]


def priority_classes() -> list[Object]:
    """Kubernetes' own priority classes, for pods; Kueue goes by them too."""
    return [
        build(
            "scheduling.k8s.io/v1",
            "PriorityClass",
            name,
            value=value,
            description=f"{name} priority of a job",
        )
        for name, value in _PRIORITIES.items()
    ]


def shares(quota: int, wanted: Sequence[int]) -> list[int]:
    """Divide a quota in proportion to what each could use; what is left goes to the first ones.

    Kueue has a quota per flavor, the settings one for the whole queue.
    """
    total = sum(wanted)
    parts = [quota * part // total for part in wanted]
    left = quota - sum(parts)
    return [part + (number < left) for number, part in enumerate(parts)]


def quantity(number: int) -> str:
    """A number in the form that Kubernetes gives it: "8k" for 8000.

    Kueue's webhook rewrites quotas so. In another form each apply would change the queue.
    """
    for power, suffix in ((9, "G"), (6, "M"), (3, "k")):
        if number and number % 10**power == 0:
            return f"{number // 10**power}{suffix}"
    return str(number)


def _workload_priorities() -> list[Object]:
    """The same priorities for the queue alone: they let no pod push out another one."""
    return [
        build(
            API,
            "WorkloadPriorityClass",
            name,
            value=value,
            description=f"{name} priority in the queue",
        )
        for name, value in _PRIORITIES.items()
    ]


def _flavor(pool: GpuPool) -> Object:
    """The nodes of one pool.

    Jobs need not know of the taint that GKE gives to queued nodes: whatever is admitted to the
    flavor tolerates it, and the pool's label binds it to these nodes.
    """
    spec = {
        "nodeLabels": {POOL_LABEL: pool.name},
        "tolerations": [dict(GPU_TOLERATION), dict(_QUEUED_TOLERATION)],
    }
    return build(API, "ResourceFlavor", pool.name, spec=spec)


def _config() -> Object:
    spec = {
        "provisioningClassName": _CLASS,
        "managedResources": [GPU],
        # A request takes one set of pods (rule Q10); equal ones of a job are made one.
        "podSetMergePolicy": "IdenticalWorkloadSchedulingRequirements",
        "retryStrategy": {
            "backoffLimitCount": 3,
            "backoffBaseSeconds": 60,
            "backoffMaxSeconds": 1800,
        },
    }
    return build(API, "ProvisioningRequestConfig", CONFIG, spec=spec)


def _check() -> Object:
    parameters = {
        "apiGroup": "kueue.x-k8s.io",
        "kind": "ProvisioningRequestConfig",
        "name": CONFIG,
    }
    spec = {"controllerName": _CONTROLLER, "parameters": parameters}
    return build(API, "AdmissionCheck", CHECK, spec=spec)


def _cluster_queue(facts: ClusterFacts) -> Object:
    pools = facts.queued_pools
    gpus = shares(facts.gpu_quota, [pool.gpus * pool.max_nodes for pool in pools])
    # The flavor without GPUs is first: pods that ask for none never wait for a GPU node.
    flavors = [_quota(DEFAULT_FLAVOR, 0)]
    flavors += [_quota(pool.name, share) for pool, share in zip(pools, gpus, strict=True)]
    spec = {
        "namespaceSelector": {},
        "resourceGroups": [{"coveredResources": [*_UNLIMITED, GPU], "flavors": flavors}],
        "admissionChecksStrategy": {"admissionChecks": [{"name": CHECK}]},
    }
    return build(API, "ClusterQueue", CLUSTER_QUEUE, spec=spec)


def _quota(flavor: str, gpus: int) -> Object:
    quotas = {**_UNLIMITED, GPU: quantity(gpus)}
    resources = [{"name": name, "nominalQuota": quota} for name, quota in quotas.items()]
    return {"name": flavor, "resources": resources}
