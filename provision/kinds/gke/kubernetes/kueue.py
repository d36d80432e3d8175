"""The queue of a cluster's GPUs: Kueue's objects, with their usual names.

All GPU pools are flavors of it, so that jobs wait for room instead of taking part of it, start
whole, and go by priority. Pools with queued provisioning have a check as well: their nodes come
when a ProvisioningRequest is granted. Kueue takes the first flavor that has quota left, in
`_ORDER`; it does not go on to the next one when a check fails (kueue#2560).

This API version only has `admissionChecksStrategy`. A client-side apply silently drops the older
field `admissionChecks`, and jobs then start without a ProvisioningRequest. Server-side apply
refuses it, which is why this tool uses that.

Of Kueue's own manifest, its settings and its size are changed. Upstream leaves `waitForPodsReady`
off, so that a job whose node is lost stays admitted for ever, and its other nodes are billed; and
it gives the manager 512 MiB, which some hundred nodes fill.
"""

from __future__ import annotations

import copy
import hashlib
from typing import TYPE_CHECKING, Any, Final

import yaml

from provision.catalogue import limits
from provision.kinds.gke.kubernetes.objects import Object, build, title
from provision.settings import gke
from provision.settings.choices import Priority
from provision.spec.capacity import Mode

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from provision.kinds.gke.kubernetes.facts import ClusterFacts, GpuPool

API: Final = "kueue.x-k8s.io/v1beta2"
NAMESPACE: Final = "default"
LOCAL_QUEUE: Final = gke.LOCAL_QUEUE
CLUSTER_QUEUE: Final = gke.CLUSTER_QUEUE
CHECK: Final = "dws-prov"
CONFIG: Final = "dws-config"
DEFAULT_FLAVOR: Final = "default-flavor"
"""The flavor of pods without GPUs, such as a Ray head; they run on nodes without GPUs."""

QUEUE_LABEL: Final = "kueue.x-k8s.io/queue-name"
RUN_SECONDS: Final = "provreq.kueue.x-k8s.io/maxRunDurationSeconds"
"""The annotation of a job that sets how many seconds its nodes run."""
MOST_SECONDS: Final = "kueue.x-k8s.io/max-exec-time-seconds"
"""The label of a job that says after how many seconds Kueue stops it, all its attempts together."""
_MAX_WAIT: Final = "provreq.kueue.x-k8s.io/ValidUntilSeconds"
_LONGEST_WAIT: Final = 12 * 3600
"""Seconds that a job waits in Google's queue for its nodes; then it gives up its place and its GPUs
of the quota, and asks again after the others (ADR 59)."""

TOPOLOGY: Final = "gke-default"
"""Where nodes stand, from the whole to the part, as Cluster Toolkit's blueprints write it."""
_LEVELS: Final = (
    "cloud.google.com/gce-topology-block",
    "cloud.google.com/gce-topology-subblock",
    "cloud.google.com/gce-topology-host",
    "kubernetes.io/hostname",
)
_OF_PLACED: Final = "-placed"
PLACED: Final = {"kueue.x-k8s.io/podset-preferred-topology": _LEVELS[-1]}
"""The annotation of pods that Kueue puts as close to each other as there is room."""

GPU: Final = "nvidia.com/gpu"
QUEUED_TAINT: Final = "cloud.google.com/gke-queued"
POOL_LABEL: Final = "cloud.google.com/gke-nodepool"
NODE_ENDS: Final = "node.gke.io/machine-termination-datetime"
"""The annotation of nodes with the end of their run, in RFC 3339 format."""

ACCELERATOR_LABEL: Final = "cloud.google.com/gke-accelerator"

_COHORT: Final = "aiinfra"
_CLASS: Final = "queued-provisioning.gke.io"
_CONTROLLER: Final = "kueue.x-k8s.io/provisioning-request"
_PRIORITIES: Final = dict(zip(map(str, Priority), (100, 250, 500, 750, 1000), strict=True))
# The autoscaler and the pools' sizes limit these. Every resource that a pod requests must be
# covered, otherwise its workload is never admitted.
_UNLIMITED: Final = {"cpu": "1G", "memory": "1000Pi", "ephemeral-storage": "1000Pi"}

_REQUEST_LABEL: Final = "autoscaling.gke.io/provisioning-request"
"""The label of nodes that a ProvisioningRequest brought, with the name of its resize request."""

_ORDER: Final = (
    Mode.RESERVATION,
    Mode.RESERVATION_BOUND,
    Mode.STANDARD,
    Mode.FLEX_START_QUEUED,
    Mode.QUEUED,
    Mode.FLEX_START,
    Mode.SPOT,
)
"""First what is paid for in any case, last what can be taken away."""

GPU_TOLERATION: Final = {"key": GPU, "operator": "Exists", "effect": "NoSchedule"}
_QUEUED_TOLERATION: Final = {"key": QUEUED_TAINT, "operator": "Exists", "effect": "NoSchedule"}


def objects(facts: ClusterFacts) -> list[Object]:
    """All objects of the queue, ordered by their references; [] for a cluster without a queue."""
    if not facts.has_queue:
        return []
    return [
        build(API, "ResourceFlavor", DEFAULT_FLAVOR, spec={}),
        *([_topology()] if any(pool.placed for pool in facts.pools) else []),
        *(_flavor(pool) for pool in facts.pools),
        *(_check() if any(pool.queued for pool in facts.pools) else []),
        *_queues(facts),
        # The same priorities for the queue only: with them, no pod preempts another one.
        *_priorities(API, "WorkloadPriorityClass", "in the queue"),
    ]


def priority_classes() -> list[Object]:
    """Kubernetes' own priority classes, for pods; Kueue uses them too."""
    return _priorities("scheduling.k8s.io/v1", "PriorityClass", "of a job")


def _priorities(api: str, kind: str, of: str) -> list[Object]:
    return [
        build(api, kind, name, value=value, description=f"{name} priority {of}")
        for name, value in _PRIORITIES.items()
    ]


def job_metadata(facts: ClusterFacts, pool: GpuPool, prefix: str, seconds: int) -> Object:
    """The metadata of a job on a pool: in the queue where there is one.

    `seconds`: how long it runs at most; nodes of a queued pool are asked for as long.
    """
    metadata: Object = {"generateName": prefix, "namespace": NAMESPACE}
    if facts.has_queue:
        metadata["labels"] = {QUEUE_LABEL: LOCAL_QUEUE}
    if pool.queued:
        metadata["annotations"] = {
            RUN_SECONDS: str(run_seconds(pool, seconds)),
            # Not in the configuration of all: a change of that has Kueue replace each request, also
            # those of jobs that run (provReqSyncedWithConfig).
            _MAX_WAIT: str(_LONGEST_WAIT),
        }
    return metadata


def run_seconds(pool: GpuPool, seconds: int) -> int:
    """For how long a job of so many seconds has its nodes: as long as pool and Google allow."""
    return min(seconds, pool.max_run_seconds or limits.LONGEST_RUN)


def shares(quota: int, wanted: Sequence[int]) -> list[int]:
    """Divide a quota in proportion to what each flavor could use; the first ones get the rest.

    Kueue has one quota per flavor, the settings have one for the whole queue.
    """
    total = sum(wanted) or 1  # facts that somebody has changed may have none
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


def _topology() -> Object:
    return build(API, "Topology", TOPOLOGY, spec={"levels": [{"nodeLabel": it} for it in _LEVELS]})


def placement(facts: ClusterFacts, pool: GpuPool) -> dict[str, str]:
    """The annotations of pods in the queue, by the pool that they are to run on."""
    return dict(PLACED) if pool.placed and facts.has_queue else {}


def flavor_name(pool: GpuPool) -> str:
    """The name of a pool's flavor.

    Of one with a topology Kueue lets nobody change anything, so that it has a name of its own.
    """
    return pool.name + _OF_PLACED if pool.placed else pool.name


def lacks_place(pool: str, message: str) -> str:
    """What a job for a pool lacks whose nodes the queue chooses; "" if Kueue says no such thing.

    Its message names all such flavors for which the job does not ask, also those of other pools.
    """
    if f'"{pool}{_OF_PLACED}" supports only TopologyAwareScheduling' not in message:
        return ""
    asked = ": ".join(next(iter(PLACED.items())))
    return (
        f"add the annotation {asked} to the template of its pods, as the examples have it, and"
        f" submit it again: the nodes of {pool} are chosen by where they stand"
    )


def _flavor(pool: GpuPool) -> Object:
    """The flavor for the nodes of one pool.

    Jobs need no toleration for the taint that GKE adds to queued nodes: pods that are admitted to
    the flavor get it, together with the node selector for the pool's labels. Kueue matches what a
    job selects by against these labels alone, so the kind of GPU is one of them.
    """
    gpu = {ACCELERATOR_LABEL: pool.accelerator} if pool.accelerator else {}
    queued = [dict(_QUEUED_TOLERATION)] if pool.queued else []
    tolerations = [dict(GPU_TOLERATION), *queued]
    spec: Object = {"nodeLabels": {POOL_LABEL: pool.name, **gpu}, "tolerations": tolerations}
    if pool.placed:
        spec["topologyName"] = TOPOLOGY
    return build(API, "ResourceFlavor", flavor_name(pool), spec=spec)


def _check() -> list[Object]:
    """The check of queued pools, and its configuration."""
    # No `parameters`: Kueue deletes each request that says otherwise than these, and makes it
    # again, so they are no default for jobs without the annotation RUN_SECONDS (ADR 17).
    spec = {
        "provisioningClassName": _CLASS,
        "managedResources": [GPU],
        # Else a job of seven days may get nodes of one of ten minutes, and ends with them. No
        # podSetMergePolicy beside it: of merged pod sets only the first is told (kueue#14408).
        "podSetUpdates": {
            "nodeSelector": [
                {"key": _REQUEST_LABEL, "valueFromProvisioningClassDetail": "ResizeRequestName"}
            ]
        },
        # A full pool fails a request after two minutes, and the last job's idle nodes fill it for
        # some ten more; a pool rests for up to half an hour after a refusal. So for a week.
        "retryStrategy": {
            "backoffLimitCount": 336,
            "backoffBaseSeconds": 60,
            "backoffMaxSeconds": 1800,
        },
    }
    kind = "ProvisioningRequestConfig"
    parameters = {"apiGroup": "kueue.x-k8s.io", "kind": kind, "name": CONFIG}
    check = {"controllerName": _CONTROLLER, "parameters": parameters}
    return [
        build(API, kind, CONFIG, spec=spec),
        build(API, "AdmissionCheck", CHECK, spec=check),
    ]


def _queues(facts: ClusterFacts) -> Iterator[Object]:
    """The queues: one for each team that has a share of the GPUs, and one of all with the rest.

    What one leaves idle the others borrow; it gets it back when it needs it.
    """
    rest = facts.gpu_quota - sum(share.gpus for share in facts.queues)
    for name, local, gpus in (
        (CLUSTER_QUEUE, LOCAL_QUEUE, rest),
        *((share.name, share.name, share.gpus) for share in facts.queues),
    ):
        yield _cluster_queue(facts, name, gpus)
        yield build(API, "LocalQueue", local, NAMESPACE, spec={"clusterQueue": name})


def _cluster_queue(facts: ClusterFacts, name: str, quota: int) -> Object:
    pools = sorted(facts.pools, key=lambda pool: _ORDER.index(pool.mode))
    gpus = shares(quota, [pool.gpus * pool.max_nodes for pool in pools])
    # The flavor without GPUs comes first: pods without GPUs never wait for a GPU node.
    quotas = {DEFAULT_FLAVOR: 0, **dict(zip(map(flavor_name, pools), gpus, strict=True))}
    flavors = [
        {
            "name": flavor,
            "resources": [
                {"name": resource, "nominalQuota": most}
                for resource, most in {**_UNLIMITED, GPU: quantity(share)}.items()
            ],
        }
        for flavor, share in quotas.items()
    ]
    queued = [pool.name for pool in pools if pool.queued]
    # One of less priority gives way, or waits its turn if it has none.
    preemption = {"withinClusterQueue": "LowerPriority"}
    spec: Object = {
        "namespaceSelector": {},
        "resourceGroups": [{"coveredResources": [*_UNLIMITED, GPU], "flavors": flavors}],
        "preemption": preemption,
    }
    if queued:
        checks = [{"name": CHECK, "onFlavors": queued}]
        spec["admissionChecksStrategy"] = {"admissionChecks": checks}
    if facts.queues:
        spec["cohortName"] = _COHORT
        preemption["reclaimWithinCohort"] = "Any"
    return build(API, "ClusterQueue", name, spec=spec)


# ------------------------------------------------------------------------------ its manager

WAIT_FOR_PODS_READY: Final = {
    # As long as Kueue 0.19 waits by default: the images of a training are large.
    "timeout": "30m",
    # A lost pod comes back on another node of the job, or never.
    "recoveryTimeout": "10m",
    "blockAdmission": False,
    # A zone that has but some of a gang's nodes gives these each time, and they are billed.
    "requeuingStrategy": {
        "timestamp": "Eviction",
        "backoffLimitCount": 20,
        "backoffBaseSeconds": 60,
        "backoffMaxSeconds": 3600,
    },
}
"""How long admitted jobs may have pods that are not ready, before they give their nodes back."""

CONFIG_MAP: Final = "kueue-manager-config"
CONFIG_KEY: Final = "controller_manager_config.yaml"
MANAGER: Final = "kueue-controller-manager"
_CHECKSUM: Final = "aiinfra/configuration"
"""The annotation of the manager's pods that makes other settings start another one."""

# xpk gives the manager so much for each node, and at least so much (its source, 2026-06-25).
_MIB_PER_NODE: Final = 32
_LEAST_MIB: Final = 4096
_MILLI_CPUS_PER_NODE: Final = 4
_LEAST_MILLI_CPUS: Final = 2000


# With these Kueue counts no claims: a class that it is not told of is refused, and one that it is
# told of has no place in its topologies (keps/2941-DRA, 0.19). All GPUs of a node go with all of
# its interfaces, so that the quota of GPUs says it all. Each depends on the first but the second.
NO_CLAIMS: Final = dict.fromkeys(
    (
        "KueueDRAIntegration",
        "KueueDRARejectWorkloadsWhenDRADisabled",
        "KueueDRAIntegrationExtendedResource",
        "KueueDRAIntegrationPartitionableDevices",
    ),
    False,
)


def configured(manifest: Iterable[Object], nodes: int, *, claims: bool = False) -> list[Object]:
    """Kueue's manifest with this tool's settings, and a manager of the size for so many nodes.

    `claims`: whether pods claim interfaces.
    """
    things = [copy.deepcopy(thing) for thing in manifest]
    titles = {title(thing): thing for thing in things}
    settings = titles.get(f"ConfigMap {CONFIG_MAP}")
    if settings is None:
        return things
    document: dict[str, Any] = yaml.safe_load(settings["data"][CONFIG_KEY])
    changed = document | {"waitForPodsReady": WAIT_FOR_PODS_READY}
    if claims:
        changed["featureGates"] = {**document.get("featureGates", {}), **NO_CLAIMS}
    text = settings["data"][CONFIG_KEY] = yaml.safe_dump(changed, sort_keys=False)
    manager = titles.get(f"Deployment {MANAGER}")
    if manager is not None:
        template = manager["spec"]["template"]
        checksum = hashlib.sha256(text.encode()).hexdigest()
        template.setdefault("metadata", {}).setdefault("annotations", {})[_CHECKSUM] = checksum
        cpus = max(_LEAST_MILLI_CPUS, _MILLI_CPUS_PER_NODE * nodes)
        memory = max(_LEAST_MIB, _MIB_PER_NODE * nodes)
        for container in template["spec"]["containers"]:
            if container["name"] == "manager":
                container["resources"] = {
                    "requests": {"cpu": "500m", "memory": "512Mi"},
                    "limits": {"cpu": f"{cpus}m", "memory": f"{memory}Mi"},
                }
    return things
