"""Running the bandwidth test: submit it, wait for nodes and result, read the log, clean up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from provision.codes import Code
from provision.documents.timeline import OnInterrupt, StageName
from provision.errors import CapacityError, ClusterError, StillWaiting
from provision.google import refusals
from provision.kinds.gke.kubernetes import all_gather, jobs, reasons, status, workloads
from provision.kinds.gke.kubernetes.kueue import NAMESPACE
from provision.kinds.gke.kubernetes.objects import holds
from provision.time.retries import TransientError

if TYPE_CHECKING:
    from provision.documents.gke_status import Workload
    from provision.kinds.gke.kubernetes.client import Cluster
    from provision.kinds.gke.kubernetes.facts import ClusterFacts, GpuPool
    from provision.kinds.gke.kubernetes.objects import Object
    from provision.time.deadline import Deadline
    from provision.time.progress import Progress
    from provision.time.stages import OpenStage

NAME: Final = "aiinfra-bandwidth-test"
_API: Final = "jobset.x-k8s.io/v1alpha2"
_KIND: Final = "JobSet"
_SELECTOR: Final = f"jobset.sigs.k8s.io/jobset-name={NAME}"
_INDEX: Final = "batch.kubernetes.io/job-completion-index"
_FIRST: Final = f"{_SELECTOR},{_INDEX}=0"
_POLL: Final = 10.0
_NO_SCALE_UP: Final = "FailedScaleUp"
"""The reason of the autoscaler's event for a pod that got no node."""
_LATER: Final = "run Test again later, or raise CAPACITY_TIMEOUT"
_MOST_RETRIES: Final = 3
"""Requests that fail before the test gives up: a job waits on, but here somebody looks on."""
_CLEANING: Final = 120.0  # seconds of cloud time
_CLEANING_POLL: Final = 2.0


@dataclass(frozen=True, kw_only=True)
class Ran:
    """A test that has run, by the numbers of its pods.

    Attributes:
        nodes: The node of each pod.
        logs: What each pod has written; "" for one that has not started.
        waited: Seconds of cloud time until there were nodes.
    """

    nodes: tuple[str, ...]
    logs: tuple[str, ...]
    waited: float


def run(  # noqa: PLR0913 - what a test is about
    cluster: Cluster,
    facts: ClusterFacts,
    pool: GpuPool,
    nodes: int,
    *,
    timeout: float,
    progress: Progress,
) -> Ran:
    """Run the test on nodes of a pool; its objects are always deleted at the end.

    Args:
        cluster: The cluster's API.
        facts: The facts of the cluster.
        pool: The pool.
        nodes: On how many of its nodes.
        timeout: The longest wait for nodes, in seconds of cloud time.
        progress: The run's clock and progress output.

    Raises:
        StillWaiting: No nodes came in time.
        CapacityError: The requests for nodes failed, one after the other.
        ClusterError: The test failed.
    """
    wanted = jobs.test(facts, pool, nodes)
    wanted["metadata"] = {**wanted["metadata"], "name": NAME}
    del wanted["metadata"]["generateName"]
    _clean(cluster, progress)
    try:
        deadline = progress.deadline(_CLEANING, _CLEANING_POLL)
        deadline.retry(lambda: cluster.apply(wanted), "submit the bandwidth test")
        with progress.stage(StageName.TEST_NODES, OnInterrupt.ENDS_TEST) as stage:
            asked = f"{nodes} nodes of {pool.name}" if nodes > 1 else f"a node of {pool.name}"
            waited = _await_start(cluster, asked, timeout, stage)
            stage.counts(asked)
        with progress.stage(StageName.TEST, OnInterrupt.ENDS_TEST) as stage:
            stage.news(f"The bandwidth test is running on {asked}")
            return _await_end(cluster, stage.deadline(all_gather.SECONDS, _POLL), waited)
    finally:
        _clean(cluster, progress)


def _clean(cluster: Cluster, progress: Progress) -> None:
    """Delete the objects of a test, and wait until its pods are gone too."""

    def left() -> list[Object]:
        cluster.delete(_API, _KIND, NAME, NAMESPACE)
        return cluster.all("v1", "Pod", NAMESPACE, _SELECTOR)

    with progress.stage(StageName.TEST_CLEANING) as stage:
        deadline = stage.deadline(_CLEANING, _CLEANING_POLL)
        while pods := deadline.retry(left, "delete the bandwidth test"):
            if deadline.is_over:
                return
            stage.counts(f"{len(pods)} pods of a bandwidth test are being deleted")
            deadline.pause()


def _await_start(cluster: Cluster, wanted: str, timeout: float, stage: OpenStage) -> float:
    deadline = stage.deadline(timeout, _POLL)
    while not deadline.retry(lambda: _has_started(cluster), "look at the bandwidth test"):
        work = deadline.retry(lambda: _workload(cluster), "look at the queue")
        if work and (work.state == "given up" or work.retries >= _MOST_RETRIES):
            raise _refused(work)
        # One that the queue has let in may still wait for nodes.
        waits = work if work and work.state not in {"starting", "running"} else None
        state = waits.state if waits else "no nodes yet"
        why = waits.message if waits else deadline.retry(lambda: _warning(cluster), "look at it")
        stage.news("; ".join(filter(None, [f"{wanted}: {state}", refusals.in_short(why)])))
        if deadline.is_over:
            raise StillWaiting(
                f"No nodes came for the bandwidth test in time: {state}",
                why=why,
                fix="\n".join(filter(None, [_advice(cluster) or reasons.advice("", why), _LATER])),
                setting="CAPACITY_TIMEOUT",
            )
        deadline.pause()
    return deadline.passed


def _await_end(cluster: Cluster, deadline: Deadline, waited: float) -> Ran:
    """Wait for the end of the test.

    Raises:
        ClusterError: It did not end in time; the error has the last lines of the log.
    """
    while True:
        ended = deadline.retry(lambda: _ended(cluster), "look at the bandwidth test")
        if ended or deadline.is_over:
            nodes, logs = deadline.retry(lambda: _logs(cluster), "read the logs of the test")
            if ended:
                return Ran(nodes=nodes, logs=logs, waited=waited)
            raise ClusterError(
                "The bandwidth test did not finish in time",
                code=Code.NOT_IN_TIME,
                why="\n".join("".join(logs[:1]).splitlines()[-20:]),
                fix="run Test again; if it hangs again, check the logs of the NCCL installers",
            )
        deadline.pause()


def _has_started(cluster: Cluster) -> bool:
    pods = cluster.all("v1", "Pod", NAMESPACE, _FIRST)
    phases = {(pod.get("status") or {}).get("phase") for pod in pods}
    return bool(phases & {"Running", "Succeeded", "Failed"})


def _ended(cluster: Cluster) -> bool:
    found = cluster.find(_API, _KIND, NAME, NAMESPACE) or {}
    return holds(found, "Completed") or holds(found, "Failed")


def _logs(cluster: Cluster) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The node and the log of each pod, in the order of their numbers."""
    numbered: dict[int, Object] = {}
    for pod in cluster.all("v1", "Pod", NAMESPACE, _SELECTOR):
        numbered[int((pod["metadata"].get("labels") or {}).get(_INDEX, "0"))] = pod
    pods = [numbered[number] for number in sorted(numbered)]
    nodes = (str(pod["spec"].get("nodeName") or pod["metadata"]["name"]) for pod in pods)
    return tuple(nodes), tuple(_log(cluster, pod) for pod in pods)


def _log(cluster: Cluster, pod: Object) -> str:
    if (pod.get("status") or {}).get("phase") == "Pending":
        return ""
    return cluster.log(NAMESPACE, pod["metadata"]["name"], all_gather.CONTAINER)


def _workload(cluster: Cluster) -> Workload | None:
    found = status.read(cluster).workloads
    return next((work for work in found if work.name == f"{_KIND} {NAME}"), None)


def _advice(cluster: Cluster) -> str:
    """What Status advises about the test's request for nodes; "" for nothing."""
    try:
        found = status.read(cluster)
    except (ClusterError, TransientError):
        return ""
    advice = [work.advice for work in found.workloads if work.name == f"{_KIND} {NAME}"]
    advice += [request.advice for request in found.requests if NAME in request.name]
    return next(filter(None, advice), "")


def _refused(work: Workload) -> CapacityError:
    """The error if Kueue makes no more attempts; the test is deleted, so it is not told to."""
    advice = [line for line in work.advice.splitlines() if line != workloads.GIVEN_UP]
    return CapacityError(
        "No nodes came for the bandwidth test",
        code=refusals.code_in(work.message, Code.CAPACITY_REFUSED),
        why=work.message,
        fix="\n".join(advice),
    )


def _warning(cluster: Cluster) -> str:
    """The autoscaler's last message about pods that got no node; "" if there is none."""
    pods = cluster.all("v1", "Pod", NAMESPACE, _SELECTOR)
    own = {pod["metadata"]["uid"] for pod in pods}
    said = [
        event
        for event in cluster.all("v1", "Event", NAMESPACE)
        if event.get("reason") == _NO_SCALE_UP and event["involvedObject"].get("uid") in own
    ]
    said.sort(key=lambda event: str(event.get("lastTimestamp") or ""))
    return str(said[-1]["message"]) if said else ""
