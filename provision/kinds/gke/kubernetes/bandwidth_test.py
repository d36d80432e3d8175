"""Running the bandwidth test: submit it, wait for nodes and result, read the logs, clean up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from provision.codes import Code
from provision.documents.timeline import OnInterrupt, StageName
from provision.errors import ClusterError
from provision.kinds.gke.kubernetes import all_gather, jobs, trial
from provision.kinds.gke.kubernetes.kueue import NAMESPACE
from provision.kinds.gke.kubernetes.objects import holds
from provision.kinds.gke.kubernetes.trial import Trial

if TYPE_CHECKING:
    from provision.kinds.gke.kubernetes.client import Cluster
    from provision.kinds.gke.kubernetes.facts import ClusterFacts, GpuPool
    from provision.kinds.gke.kubernetes.objects import Object
    from provision.time.deadline import Deadline
    from provision.time.progress import Progress

NAME: Final = "aiinfra-bandwidth-test"
_API: Final = "jobset.x-k8s.io/v1alpha2"
_KIND: Final = "JobSet"
_SELECTOR: Final = f"jobset.sigs.k8s.io/jobset-name={NAME}"
_INDEX: Final = "batch.kubernetes.io/job-completion-index"
_FIRST: Final = f"{_SELECTOR},{_INDEX}=0"


@dataclass(frozen=True, kw_only=True)
class Ran:
    """A test that has run, by the numbers of its pods."""

    nodes: tuple[str, ...]  # the node of each pod
    logs: tuple[str, ...]  # what each pod has written; "" for one that has not started
    waited: float  # seconds of cloud time until there were nodes


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

    `timeout`: the longest wait for nodes, in seconds of cloud time.

    Raises:
        StillWaiting: No nodes came in time.
        CapacityError: The requests for nodes failed, one after the other.
        ClusterError: The test failed.
    """
    wanted = facts.mirrored(jobs.test(facts, pool, nodes))
    wanted["metadata"] = {**wanted["metadata"], "name": NAME}
    del wanted["metadata"]["generateName"]
    ours = Trial(
        cluster=cluster,
        wanted=wanted,
        words="the bandwidth test",
        pods=lambda: cluster.all("v1", "Pod", NAMESPACE, _SELECTOR),
        has_started=lambda: _has_started(cluster),
    )
    asked = f"{nodes} nodes of {pool.name}" if nodes > 1 else f"a node of {pool.name}"
    with ours.there(progress):
        waited = ours.await_nodes(asked, timeout, progress)
        with progress.stage(StageName.TEST, OnInterrupt.ENDS_TEST) as stage:
            stage.news(f"The bandwidth test is running on {asked}")
            deadline = stage.deadline(all_gather.SECONDS, trial.POLL)
            return _result(ours, deadline, waited)


def _result(ours: Trial, deadline: Deadline, waited: float) -> Ran:
    """Wait for the end of the test.

    Raises:
        ClusterError: It did not end in time; the error has the last lines of the log.
    """
    cluster = ours.cluster
    ended = ours.await_end(lambda: _has_ended(cluster), deadline)
    nodes, logs = deadline.retry(lambda: _logs(cluster), "read the logs of the bandwidth test")
    if ended:
        return Ran(nodes=nodes, logs=logs, waited=waited)
    raise ClusterError(
        "The bandwidth test did not finish in time",
        code=Code.NOT_IN_TIME,
        why="\n".join("".join(logs[:1]).splitlines()[-20:]),
        fix="run Test again; if it hangs again, check the logs of the NCCL installers",
    )


def _has_started(cluster: Cluster) -> bool:
    pods = cluster.all("v1", "Pod", NAMESPACE, _FIRST)
    phases = {(pod.get("status") or {}).get("phase") for pod in pods}
    return bool(phases & {"Running", "Succeeded", "Failed"})


def _has_ended(cluster: Cluster) -> bool:
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
