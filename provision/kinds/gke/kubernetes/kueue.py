"""The queue of the pools with queued provisioning: Kueue's objects, with their usual names.

This API version only has `admissionChecksStrategy`. A client-side apply silently drops the older
field `admissionChecks`, and jobs then start without a ProvisioningRequest. Server-side apply
refuses it, which is why this tool uses that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from provision.catalogue.limits import LONGEST_RUN
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
"""The flavor of pods without GPUs, such as a Ray head; they run on nodes without GPUs."""

QUEUE_LABEL: Final = "kueue.x-k8s.io/queue-name"
RUN_SECONDS: Final = "provreq.kueue.x-k8s.io/maxRunDurationSeconds"
"""The annotation of a job that sets how many seconds its nodes run."""

GPU: Final = "nvidia.com/gpu"
QUEUED_TAINT: Final = "cloud.google.com/gke-queued"
POOL_LABEL: Final = "cloud.google.com/gke-nodepool"

_CLASS: Final = "queued-provisioning.gke.io"
_CONTROLLER: Final = "kueue.x-k8s.io/provisioning-request"
_PRIORITIES: Final = {"very-low": 100, "low": 250, "medium": 500, "high": 750, "very-high": 1000}
# The autoscaler and the pools' sizes limit these. Every resource that a pod requests must be
# covered, otherwise its workload is never admitted.
_UNLIMITED: Final = {"cpu": "1G", "memory": "1000Pi", "ephemeral-storage": "1000Pi"}

GPU_TOLERATION: Final = {"key": GPU, "operator": "Exists", "effect": "NoSchedule"}
_QUEUED_TOLERATION: Final = {"key": QUEUED_TAINT, "operator": "Exists", "effect": "NoSchedule"}


def objects(facts: ClusterFacts) -> list[Object]:
    """All objects of the queue, ordered by their references; [] without queued pools."""
    if not facts.queued_pools:
        return []
    return [
        build(API, "ResourceFlavor", DEFAULT_FLAVOR, spec={}),
        *(_flavor(pool) for pool in facts.queued_pools),
        _config(facts),
        _check(),
        _cluster_queue(facts),
        build(API, "LocalQueue", LOCAL_QUEUE, NAMESPACE, spec={"clusterQueue": CLUSTER_QUEUE}),
        *_workload_priorities(),
    ]


def priority_classes() -> list[Object]:
    """Kubernetes' own priority classes, for pods; Kueue uses them too."""
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
    """Divide a quota in proportion to what each flavor could use; the first ones get the rest.

    Kueue has one quota per flavor, the settings have one for the whole queue.
    """
    total = sum(wanted)
    parts = [quota * part // total for part in wanted]
    left = quota - sum(parts)
    return [part + (number < left) for number, part in enumerate(parts)]


def quantity(number: int) -> str:
    """A number in Kubernetes' canonical form, such as "8k" for 8000.

    Kueue's webhook rewrites quotas to this form; with another form, each apply would be a change.
    """
    for power, suffix in ((9, "G"), (6, "M"), (3, "k")):
        if number and number % 10**power == 0:
            return f"{number // 10**power}{suffix}"
    return str(number)


def _workload_priorities() -> list[Object]:
    """The same priorities for the queue only: with them, no pod preempts another one."""
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
    """The flavor for the nodes of one pool.

    Jobs need no toleration for the taint that GKE adds to queued nodes: pods that are admitted to
    the flavor get it, together with the node selector for the pool's label.
    """
    spec = {
        "nodeLabels": {POOL_LABEL: pool.name},
        "tolerations": [dict(GPU_TOLERATION), dict(_QUEUED_TOLERATION)],
    }
    return build(API, "ResourceFlavor", pool.name, spec=spec)


def _config(facts: ClusterFacts) -> Object:
    # A job that does not say how long its nodes run gets what MAX_RUN_DURATION allows. The
    # autoscaler never asks the pool: without this, it would be 7 days.
    longest = max(pool.max_run_seconds or LONGEST_RUN for pool in facts.queued_pools)
    spec = {
        "provisioningClassName": _CLASS,
        "managedResources": [GPU],
        "parameters": {RUN_SECONDS.rpartition("/")[2]: str(longest)},
        # Google documents one pod set for a request (rule Q10); equal pod sets of a job are merged.
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
    # The flavor without GPUs comes first: pods without GPUs never wait for a GPU node.
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
