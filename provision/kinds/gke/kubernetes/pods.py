"""The pods of jobs: how many run, what keeps the others, and which jobs no queue knows."""

from __future__ import annotations

import collections
import dataclasses
import shlex
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from provision.documents.gke_status import JobState, PodCounts, Workload
from provision.kinds.gke.kubernetes import kueue, pod_reasons
from provision.kinds.gke.kubernetes.objects import holds

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from provision.kinds.gke.kubernetes.client import Cluster
    from provision.kinds.gke.kubernetes.objects import Object

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
_ALIVE: Final = ",".join(
    [*(f"metadata.namespace!={name}" for name in _SYSTEM), "status.phase!=Succeeded"]
)
OVER: Final = frozenset({"Succeeded", "Failed"})
"""The phases of pods that have ended."""
_ENDED: Final = frozenset({"Complete", "Failed", "ValidationFailed"})
"""The states in which a RayJob's deployment has ended."""

_LOGS_BY: Final[Mapping[str, str]] = MappingProxyType(
    {
        "JobSet": 'labels."k8s-pod/jobset_sigs_k8s_io/jobset-name"="{name}"',
        "Job": 'labels."k8s-pod/batch_kubernetes_io/job-name"="{name}"',
        "RayCluster": 'labels."k8s-pod/ray_io/cluster"="{name}"',
    }
)
"""Kind of a job -> what its pods have; of others the names of the pods begin with the job's."""
_LOGS_OF_OTHERS: Final = 'resource.labels.pod_name:"{name}-"'


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


NOTHING: Final = Pods(counts=PodCounts())


@dataclass(frozen=True, kw_only=True)
class Jobs:
    """The jobs of a cluster, in a queue or not."""

    of_queue: Mapping[str, Pods]  # UID of what has a Workload -> its pods
    outside: tuple[Workload, ...]  # the jobs without one that have not ended


def read(
    cluster: Cluster,
    works: Iterable[Object],
    nodes: Iterable[Object],
    events: Iterable[Object],
) -> Jobs:
    """The jobs of a cluster by their pods.

    Raises:
        KubernetesError: These credentials may not read it.
        TransientError: The cluster does not answer now.
    """
    tops = [job for version, kind in _JOBS for job in cluster.all(version, kind)]
    pods = cluster.all("v1", "Pod", fields=_ALIVE)
    queued = {uid for work in works for uid in owners(work)}
    known = {job["metadata"].get("uid"): job for job in tops}
    node_of = {node["metadata"]["name"]: node["metadata"] for node in nodes}
    said = pod_reasons.said(events)
    groups: dict[str, list[Object]] = collections.defaultdict(list)
    names: dict[str, tuple[str, str, str]] = {}
    for pod in pods:
        line = list(_line(pod, known))
        uid, kind, name = next((it for it in line if it[0] in queued), line[-1])
        groups[uid].append(pod)
        names[uid] = kind, name, str(pod["metadata"].get("namespace", ""))

    def told(uid: str) -> Pods:
        found = _told(groups.get(uid, ()), said, node_of)
        return dataclasses.replace(found, attempts=_attempts(known.get(uid, {})))

    outside = [
        _outside(job, told(str(uid)))
        for uid, job in known.items()
        if uid not in queued and not _is_over(job) and not _is_part(job, known) and _is_users(job)
    ]
    others = [
        _loose(*names[uid], members, told(uid))
        for uid, members in groups.items()
        if uid not in queued and uid not in known and _is_job(names[uid][0], members)
    ]
    return Jobs(
        of_queue={uid: told(uid) for uid in queued & (groups.keys() | known.keys())},
        outside=(*outside, *others),
    )


def owners(thing: Object) -> Iterator[str]:
    """The UIDs of what owns an object."""
    for owner in thing["metadata"].get("ownerReferences") or []:
        if owner.get("uid"):
            yield str(owner["uid"])


def _line(pod: Object, known: Mapping[Any, Object]) -> Iterator[tuple[str, str, str]]:
    """A pod and what owns it, one after the other: UID, kind, name."""
    metadata = pod["metadata"]
    yield str(metadata.get("uid")), "Pod", metadata["name"]
    owners = metadata.get("ownerReferences") or []
    while owners:
        first = owners[0]
        yield str(first.get("uid")), first["kind"], first["name"]
        owner = known.get(first.get("uid"))
        owners = owner["metadata"].get("ownerReferences") or [] if owner else []


def _is_part(job: Object, known: Mapping[Any, Object]) -> bool:
    """Whether a job belongs to another one, as those of a JobSet do."""
    return any(uid in known for uid in owners(job))


def _is_users(job: Object) -> bool:
    return job["metadata"].get("namespace") not in _SYSTEM


def _is_over(job: Object) -> bool:
    status = job.get("status") or {}
    ended = any(holds(job, name) for name in ("Complete", "Completed", "Failed"))
    return ended or status.get("jobDeploymentStatus") in _ENDED


def _is_job(kind: str, members: Iterable[Object]) -> bool:
    """Whether pods of an owner that is none of the known kinds are a job: those with GPUs are."""
    return kind not in _OF_NODES and any(map(_has_gpus, members))


def busy(things: Iterable[Object]) -> set[str]:
    """The nodes of which pods have GPUs, or are about to."""
    alive = (it for it in things if (it.get("status") or {}).get("phase") not in OVER)
    return {it["spec"].get("nodeName", "") for it in alive if _has_gpus(it)}


def _has_gpus(pod: Object) -> bool:
    for container in (pod.get("spec") or {}).get("containers") or []:
        asked = container.get("resources") or {}
        if (asked.get("limits") or {}).get(kueue.GPU) or (asked.get("requests") or {}).get(
            kueue.GPU
        ):
            return True
    return False


def _outside(job: Object, pods: Pods) -> Workload:
    """A job of a known kind that no queue knows."""
    metadata = job["metadata"]
    state, message, advice = pods.state, *_words(pods)
    if (job.get("spec") or {}).get("suspend"):
        state, message = JobState.PENDING, "it is suspended, and in no queue that would let it go"
        advice = (
            f"give it the label {kueue.QUEUE_LABEL}: {kueue.LOCAL_QUEUE}, or set its spec.suspend"
            " to false"
        )
    return Workload(
        name=_title(job["kind"], metadata["name"], metadata.get("namespace", "")),
        state=state,
        message=message,
        advice=advice,
        created=metadata.get("creationTimestamp"),
        pods=pods.counts,
        pools=pods.pools,
    )


def _loose(kind: str, name: str, namespace: str, members: Sequence[Object], pods: Pods) -> Workload:
    """Pods with GPUs that no queue knows, by what owns them."""
    created = [str(pod["metadata"].get("creationTimestamp") or "") for pod in members]
    message, advice = _words(pods)
    return Workload(
        name=_title(kind, name, namespace),
        state=pods.state,
        message=message,
        advice=advice,
        created=min(filter(None, created), default=None),
        pods=pods.counts,
        pools=pods.pools,
    )


def _title(kind: str, name: str, namespace: str) -> str:
    return f"{kind} {name}" + (f" in {namespace}" if namespace not in {"", kueue.NAMESPACE} else "")


def _words(pods: Pods) -> tuple[str, str]:
    """What keeps the pods of a job, and what to do about it."""
    if pods.state is JobState.RUNNING:
        return "", ""
    return words(pods), advice(pods)


def words(pods: Pods) -> str:
    """What keeps the pods of a job; "" if nothing is told."""
    return "; ".join(pods.why)


def advice(pods: Pods) -> str:
    """What to do about what keeps the pods of a job; "" for nothing but to wait."""
    return "\n".join(pod_reasons.advice(pods.why))


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
            why.update(pod_reasons.ended(pod))
        elif state != "ready":
            why.update(pod_reasons.of(pod, said.get(str(pod["metadata"].get("uid")), ())))
    return Pods(
        counts=PodCounts(**counts),
        why=tuple(reason for reason, _ in why.most_common()),
        pools=tuple(sorted(pools)),
        ends=min(filter(None, ends), default=""),
    )


def _attempts(job: Object) -> tuple[int, int]:
    """How often a JobSet was begun again: for its own failures, and for others."""
    status = job.get("status") or {}
    own = int(status.get("restartsCountTowardsMax") or 0)
    return own, int(status.get("restarts") or 0) - own


def _state(pod: Object) -> str:
    """How a pod that has not succeeded stands: a field of PodCounts."""
    if (pod.get("status") or {}).get("phase") == "Failed":
        return "failed"
    if not (pod.get("spec") or {}).get("nodeName"):
        return "waiting"
    return "ready" if holds(pod, "Ready") else "starting"


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
