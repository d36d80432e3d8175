"""The pods of jobs: how many run, what keeps the others, and which jobs no queue knows.

What keeps a pod is said in the words of Kubernetes' scheduler and kubelet (1.34), of the
autoscaler's published source (2026-08-21), and of the events that GKE's autoscaler writes for pods
that get no node.
"""

from __future__ import annotations

import collections
import dataclasses
import re
import shlex
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from provision.documents.gke_status import JobState, PodCounts, Workload
from provision.kinds.gke.kubernetes import kueue, reasons
from provision.kinds.gke.kubernetes.objects import Object, conditions, containers, holds

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from provision.kinds.gke.kubernetes.client import Cluster

_JOBS: Final = (
    ("batch/v1", "Job"),
    ("jobset.x-k8s.io/v1alpha2", "JobSet"),
    ("ray.io/v1", "RayJob"),
    ("ray.io/v1", "RayCluster"),
)
"""The kinds that are jobs whether or not their pods have GPUs."""
_OF_NODES: Final = frozenset({"DaemonSet", "Node"})
"""The owners of pods that belong to a node rather than to a job."""
_SYSTEM: Final = (
    "gke-managed-cim",
    "gke-managed-system",
    "gmp-public",
    "gmp-system",
    "jobset-system",
    "kube-system",
    "kueue-system",
)
"""The namespaces of GKE's own pods, and of what Create brings into the cluster."""
ALIVE: Final = ",".join(
    [*(f"metadata.namespace!={name}" for name in _SYSTEM), "status.phase!=Succeeded"]
)
OVER: Final = frozenset({"Succeeded", "Failed"})
"""The phases of pods that have ended."""
RAY_OVER: Final = frozenset({"Complete", "Failed", "ValidationFailed"})
"""The states in which a RayJob's deployment has ended."""


@dataclass(frozen=True, kw_only=True)
class Pods:
    """The pods of one job, without those that have succeeded."""

    counts: PodCounts  # how many there are in each state
    why: tuple[str, ...] = ()  # what keeps those that wait or start, the most frequent first
    pools: tuple[str, ...] = ()  # the pools on whose nodes they are
    # when the first of their nodes ends, in RFC 3339 format; "" for never, or not known
    ends: str = ""
    # how often the job's own failures, and what else, have begun it again
    attempts: tuple[int, int] = (0, 0)

    @property
    def state(self) -> JobState:
        """What the pods say of a job that may run."""
        if self.counts.waiting:
            return JobState.PENDING
        if self.counts.starting or not self.counts.ready:
            return JobState.STARTING
        return JobState.RUNNING

    @property
    def words(self) -> str:
        """What keeps them; "" if nothing is told."""
        return "; ".join(self.why)

    @property
    def advice(self) -> str:
        """What to do about what keeps them; "" for nothing but to wait."""
        return "\n".join(advice(self.why))


NOTHING: Final = Pods(counts=PodCounts())


def read(
    cluster: Cluster,
    works: Iterable[Object],
    nodes: Iterable[Object],
    events: Iterable[Object],
) -> tuple[Mapping[str, Pods], tuple[Workload, ...]]:
    """UID of what has a Workload -> its pods; the jobs without one that have not ended."""
    tops = [job for version, kind in _JOBS for job in cluster.all(version, kind)]
    pods = cluster.all("v1", "Pod", fields=ALIVE)
    queued = {uid for work in works for uid in owners(work)}
    known = {str(job["metadata"].get("uid")): job for job in tops}
    node_of = {node["metadata"]["name"]: node["metadata"] for node in nodes}
    said = of_events(events)
    groups: dict[str, list[Object]] = collections.defaultdict(list)
    names: dict[str, tuple[str, str]] = {}
    for pod in pods:
        line = list(_line(pod, known))
        uid, kind, name = next((it for it in line if it[0] in queued), line[-1])
        groups[uid].append(pod)
        names[uid] = kind, name

    def told(uid: str) -> Pods:
        found = _told(groups.get(uid, ()), said, node_of)
        status = known.get(uid, {}).get("status") or {}
        own = int(status.get("restartsCountTowardsMax") or 0)
        return dataclasses.replace(found, attempts=(own, int(status.get("restarts") or 0) - own))

    outside = [
        _outside(job["kind"], job, told(uid))
        for uid, job in known.items()
        if uid not in queued
        and not _is_over(job)
        # One that belongs to another job, as those of a JobSet do, is none of its own.
        and known.keys().isdisjoint(owners(job))
        and job["metadata"].get("namespace") not in _SYSTEM
    ]
    others = [
        _outside(kind, {"metadata": {**_oldest(groups[uid]), "name": name}}, told(uid))
        for uid, (kind, name) in names.items()
        if uid not in queued
        and uid not in known
        # Pods of an owner that is none of the known kinds are a job if they have GPUs.
        and kind not in _OF_NODES
        and any(map(_gpus, groups[uid]))
    ]
    of_queue = {uid: told(uid) for uid in queued & (groups.keys() | known.keys())}
    return of_queue, (*outside, *others)


def owners(thing: Object) -> Iterator[str]:
    """The UIDs of what owns an object."""
    for owner in thing["metadata"].get("ownerReferences") or []:
        if owner.get("uid"):
            yield str(owner["uid"])


def used(things: Iterable[Object]) -> collections.Counter[str]:
    """How many GPUs of each node pods have, or are about to."""
    found: collections.Counter[str] = collections.Counter()
    for it in things:
        if (it.get("status") or {}).get("phase") not in OVER:
            found[it["spec"].get("nodeName", "")] += _gpus(it)
    return found


def _line(pod: Object, known: Mapping[str, Object]) -> Iterator[tuple[str, str, str]]:
    """A pod and what owns it, one after the other: UID, kind, name."""
    metadata = pod["metadata"]
    yield str(metadata.get("uid")), "Pod", metadata["name"]
    owners = metadata.get("ownerReferences") or []
    while owners:
        first = owners[0]
        yield str(first.get("uid")), first["kind"], first["name"]
        owner = known.get(str(first.get("uid")))
        owners = owner["metadata"].get("ownerReferences") or [] if owner else []


def _is_over(job: Object) -> bool:
    status = job.get("status") or {}
    ended = any(holds(job, name) for name in ("Complete", "Completed", "Failed"))
    return ended or status.get("jobDeploymentStatus") in RAY_OVER


def _gpus(pod: Object) -> int:
    asked = [it.get("resources") or {} for it in (pod.get("spec") or {}).get("containers") or []]
    told = ({**(it.get("requests") or {}), **(it.get("limits") or {})} for it in asked)
    return sum(int(text) for it in told if (text := str(it.get(kueue.GPU))).isdecimal())


def _oldest(members: Sequence[Object]) -> Object:
    """The metadata of the first pod that was there, of such as have a time."""
    every: list[Object] = [pod["metadata"] for pod in members]
    timed = [it for it in every if it.get("creationTimestamp")]
    return min(timed or every, key=lambda it: str(it.get("creationTimestamp")))


def _outside(kind: str, job: Object, pods: Pods) -> Workload:
    """A job that no queue knows, or pods with GPUs, by what owns them."""
    metadata, state = job["metadata"], pods.state
    namespace = metadata.get("namespace", "")
    elsewhere = f" in {namespace}" if namespace not in {"", kueue.NAMESPACE} else ""
    runs = state is JobState.RUNNING
    message, advised = ("", "") if runs else (pods.words, pods.advice)
    if (job.get("spec") or {}).get("suspend"):
        state, message = JobState.PENDING, "it is suspended, and in no queue that would let it go"
        label = f"{kueue.QUEUE_LABEL}: {kueue.LOCAL_QUEUE}"
        advised = f"give it the label {label}, or set its spec.suspend to false"
    return Workload(
        name=f"{kind} {metadata['name']}{elsewhere}",
        state=state,
        message=message,
        advice=advised,
        created=metadata.get("creationTimestamp") or None,
        pods=pods.counts,
        pools=pods.pools,
    )


def _told(
    members: Iterable[Object],
    said: Mapping[str, Sequence[str]],
    node_of: Mapping[str, Object],
) -> Pods:
    counts = collections.Counter[str]()
    why = collections.Counter[str]()
    pools, ends = set[str](), set[str]()
    for pod in members:
        state = _state(pod)
        counts[state] += 1
        node = str((pod.get("spec") or {}).get("nodeName", ""))
        if node in node_of:
            pools.add(node_of[node]["labels"][kueue.POOL_LABEL])
            ends.add((node_of[node].get("annotations") or {}).get(kueue.NODE_ENDS, ""))
        if state == "failed":
            why.update(_failures(pod))
        elif state != "ready":
            why.update(hindrances(pod, said.get(str(pod["metadata"].get("uid")), ())))
    return Pods(
        counts=PodCounts(**counts),
        why=tuple(reason for reason, _ in why.most_common()),
        pools=tuple(sorted(pools)),
        ends=min(filter(None, ends), default=""),
    )


def _state(pod: Object) -> str:
    """How a pod that has not succeeded stands: a field of PodCounts."""
    if (pod.get("status") or {}).get("phase") == "Failed":
        return "failed"
    if not (pod.get("spec") or {}).get("nodeName"):
        return "waiting"
    return "ready" if holds(pod, "Ready") else "starting"


# ------------------------------------------------------------------------------ what keeps one

_TELLING: Final = frozenset(
    {
        "FailedScaleUp",
        "NotTriggerScaleUp",
        "TriggeredScaleUp",
        "MissingProvisioningRequest",
        "IgnoredInScaleUp",
        "FailedProvisioningRequest",
    }
)
"""The reasons of the autoscaler's events about a pod without a node."""
_UNDER_WAY: Final = re.compile(
    r"consuming ProvisioningRequest (?P<name>\S+) that"
    r" (?P<state>was provisioned|was accepted|wasn't accepted yet)"
)
"""What a usual event says of the request of a pod whose nodes are still to come.

The autoscaler's published source, 2026-08-21, with a warning from ten minutes after the grant on;
the ends of its sentences are believed.
"""
_COMING: Final = "its nodes are on their way"
_ASKED: Final = "it waits for its nodes"
_ON_NODE: Final = frozenset(
    {"FailedMount", "FailedAttachVolume", "FailedCreatePodSandBox", "NetworkNotReady"}
)
"""The reasons of the kubelet's events about a pod that can't start."""
_USUAL: Final = frozenset({"ContainerCreating", "PodInitializing"})

# A registry that does not answer, or is busy, is asked again, and so is one that has the image and
# lost a part of it on the way. The words are containerd's, as transcripts of 2026 show them for a
# name that is not there; those of a refusal are believed (2026-11-24).
_NEVER_PULLED: Final = re.compile(
    r"InvalidImageName|ErrImageNeverPull|(?:ErrImagePull|ImagePullBackOff): .*"
    r"(?:failed to resolve reference .*: not found|40[13] (?:Unauthorized|Forbidden))",
    re.DOTALL,
)

# What is said of a pod -> what fixes it; the first that fits counts.
_ADVICE: Final = {
    r"cloud\.google\.com/gke-queued": (
        "nodes of queued pools are for jobs of the queue: give the job the label"
        f" {kueue.QUEUE_LABEL}: {kueue.LOCAL_QUEUE}"
    ),
    r"consuming ProvisioningRequest \S+ that was provisioned": (
        "its nodes were granted ten minutes ago, and it runs on none: compare node selector,"
        " tolerations and GPUs with the pool's, or delete the job and submit it again"
    ),
    r"consuming ProvisioningRequest": (
        "the request for its nodes is over or never came to be: delete the job and submit it again"
    ),
    r"ErrImagePull|ImagePullBackOff|InvalidImageName|ErrImageNeverPull": (
        "its image can't be pulled: correct the name, or let the nodes' service account read it"
    ),
    r"CreateContainerConfigError": (
        "it names a Secret or ConfigMap that its namespace does not have"
    ),
    r"CrashLoopBackOff|RunContainerError|CreateContainerError": (
        "its program does not stay up: see kubectl logs --previous"
    ),
    r"FailedMount|FailedAttachVolume": (
        "a volume can't be mounted: see that its claim and bucket or share exist, and that the"
        " pod's service account may use them"
    ),
    r"Insufficient nvidia\.com/gpu": (
        "no node has so many GPUs free: wait until other jobs end, ask for fewer in one pod, or"
        " raise GKE_MAX_NODE_COUNT (max_node_count in GKE_NODE_POOLS)"
    ),
    r"Insufficient (?:cpu|memory|ephemeral-storage)": (
        "it asks for more CPUs, memory or storage than nodes have free: ask for less"
    ),
    # Kubernetes' scheduler (1.34.2, tried) does not always name the taint.
    r"affinity/selector|untolerated taint": (
        "no node has the labels that it selects by and lets it on: compare its node selector"
        " and tolerations with the pool's; queued pools take jobs of the queue alone, with the"
        f" label {kueue.QUEUE_LABEL}: {kueue.LOCAL_QUEUE}"
    ),
}


def of_events(events: Iterable[Object]) -> dict[str, list[str]]:
    """The UID of a pod -> what the last event of each telling reason says of it."""
    last: dict[tuple[str, str], tuple[str, str]] = {}
    for event in events:
        reason = str(event.get("reason"))
        if reason in _TELLING | _ON_NODE:
            about = str(event["involvedObject"].get("uid")), reason
            text = f"{reason}: {event.get('message')}"
            request = _UNDER_WAY.search(text) if event.get("type") == "Normal" else None
            if request is not None:
                so_far = _COMING if request["state"] == "was provisioned" else _ASKED
                text = f"{so_far}: the request {request['name']} {request['state']}"
            last[about] = max(last.get(about, ("", "")), (moment(event), text))
    found: dict[str, list[str]] = {}
    for (uid, _), (_, text) in last.items():
        found.setdefault(uid, []).append(text)
    return found


def moment(event: Object) -> str:
    """When an event was, in RFC 3339 format; "" if it does not say."""
    times = ("eventTime", "lastTimestamp", "firstTimestamp")
    found = next((event[name] for name in times if event.get(name)), None)
    return str(found or event["metadata"].get("creationTimestamp", ""))


def hindrances(pod: Object, events: Sequence[str] = ()) -> Iterator[str]:
    """What keeps a pod from running."""
    if not (pod.get("spec") or {}).get("nodeName"):
        message = conditions(pod).get("PodScheduled", {}).get("message")
        # That no node of now takes it says nothing where its own are still to come.
        if message and not any(one.startswith((_COMING, _ASKED)) for one in events):
            yield str(message)
        yield from events
        return
    for container in containers(pod):
        waits = (container.get("state") or {}).get("waiting") or {}
        if waits.get("reason") and waits["reason"] not in _USUAL:
            yield ": ".join(filter(None, [waits["reason"], waits.get("message")]))
    yield from (one for one in events if one.partition(":")[0] in _ON_NODE)


def unpullable(pod: Object) -> str:
    """Why a pod's image can't ever be pulled, in the kubelet's words; "" if it may be."""
    return next((one for one in hindrances(pod) if _NEVER_PULLED.match(one)), "")


def _failures(pod: Object) -> Iterator[str]:
    """With what a pod has failed: the kubelet's words, or a code and the end of a log."""
    status = pod.get("status") or {}
    if status.get("message"):
        yield f"{status.get('reason', 'Failed')}: {str(status['message']).strip()}"
        return
    for container in containers(pod):
        found = (container.get("state") or {}).get("terminated") or {}
        if found.get("exitCode"):
            last = str(found.get("message") or "").strip().rpartition("\n")[2]
            code = f"{container.get('name', '')} ended with exit code {found['exitCode']}"
            yield ": ".join(filter(None, [code, last]))


def advice(why: Iterable[str]) -> list[str]:
    """What to do about what keeps pods; [] for nothing but to wait.

    What Google refuses goes before what the scheduler says of the nodes that are there.
    """
    told = list(why)
    refused = dict.fromkeys(filter(None, (reasons.advice("", one) for one in told)))
    fits = ([text for it, text in _ADVICE.items() if re.search(it, one)][:1] for one in told)
    return list(refused or dict.fromkeys(text for one in fits for text in one))


# ------------------------------------------------------------------------------ logs

_LOGS_BY: Final[Mapping[str, str]] = MappingProxyType(
    {
        "JobSet": 'labels."k8s-pod/jobset_sigs_k8s_io/jobset-name"="{name}"',
        "Job": 'labels."k8s-pod/batch_kubernetes_io/job-name"="{name}"',
        "RayCluster": 'labels."k8s-pod/ray_io/cluster"="{name}"',
    }
)
"""Kind of a job -> what its pods have; of others the names of the pods begin with the job's."""
_LOGS_OF_OTHERS: Final = 'resource.labels.pod_name:"{name}-"'


def log_command(project: str, cluster: str, location: str, kind: str, name: str) -> str:
    """The command that prints all that the pods of a job have written, the oldest first.

    It asks Cloud Logging. Kubernetes deletes an ended pod with its node, and JobSet the pods of
    each attempt that failed; the log that a node keeps goes with them. Cloud Logging has it for 30
    days, by the labels of the pods. `kind`: the job's kind, such as "JobSet".
    """
    terms = [
        'resource.type="k8s_container"',
        f'resource.labels.cluster_name="{cluster}"',
        f'resource.labels.location="{location}"',
        _LOGS_BY.get(kind, _LOGS_OF_OTHERS).format(name=name),
    ]
    return (
        f"gcloud logging read {shlex.quote(' '.join(terms))} --project {project}"
        " --order asc --freshness 30d --format 'value(textPayload,jsonPayload.message)'"
    )
