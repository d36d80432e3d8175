"""A job that Test runs: submit it, wait for its nodes, and delete it whatever happens."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from provision.codes import Code
from provision.documents.timeline import OnInterrupt, StageName
from provision.errors import CapacityError, ClusterError, StillWaiting
from provision.google import refusals
from provision.kinds.gke.kubernetes import reasons, status, workloads
from provision.kinds.gke.kubernetes.kueue import NAMESPACE
from provision.time.retries import TransientError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from provision.documents.gke_status import Workload
    from provision.kinds.gke.kubernetes.client import Cluster
    from provision.kinds.gke.kubernetes.objects import Object
    from provision.time.deadline import Deadline
    from provision.time.progress import Progress
    from provision.time.stages import OpenStage

POLL: Final = 10.0
"""Seconds of cloud time between two looks at a job."""

_NO_SCALE_UP: Final = "FailedScaleUp"
"""The reason of the autoscaler's event for a pod that got no node."""
_LATER: Final = "run Test again later, or raise CAPACITY_TIMEOUT"
_MOST_RETRIES: Final = 3
"""Requests that fail before the test gives up: a job waits on, but here somebody looks on."""
_CLEANING: Final = 120.0  # seconds of cloud time
_CLEANING_POLL: Final = 2.0


@dataclass(frozen=True, kw_only=True)
class Trial:
    """One job of Test's."""

    cluster: Cluster  # the cluster's API
    wanted: Object  # the job, with the name that every such job has: there is one at a time
    words: str  # what it is called, such as "the bandwidth test"
    # its pods, and all else that has to be gone before the next one begins
    pods: Callable[[], list[Object]]
    has_started: Callable[[], bool]  # whether its pods have nodes, and run

    @property
    def _name(self) -> str:
        return str(self.wanted["metadata"]["name"])

    @property
    def _kind(self) -> str:
        return str(self.wanted["kind"])

    @contextlib.contextmanager
    def there(self, progress: Progress) -> Iterator[None]:
        """Have the job in the cluster for as long as a block lasts."""
        self._clean(progress)
        try:
            deadline = progress.deadline(_CLEANING, _CLEANING_POLL)
            deadline.retry(lambda: self.cluster.apply(self.wanted), f"submit {self.words}")
            yield
        finally:
            self._clean(progress)

    def await_nodes(self, asked: str, timeout: float, progress: Progress) -> float:
        """Wait until the job runs; returns the seconds of cloud time that it took.

        Raises:
            StillWaiting: No nodes came in time.
            CapacityError: The requests for nodes failed, one after the other.
        """
        with progress.stage(StageName.TEST_NODES, OnInterrupt.ENDS_TEST) as stage:
            waited = self._await(asked, timeout, stage)
            stage.counts(asked)
        return waited

    def await_end(self, has_ended: Callable[[], bool], deadline: Deadline) -> bool:
        """Wait for the end of the job; whether it came in time."""
        while not deadline.retry(has_ended, f"look at {self.words}"):
            if deadline.is_over:
                return False
            deadline.pause()
        return True

    def _clean(self, progress: Progress) -> None:
        """Delete the job, and wait until what it has made is gone too."""

        def left() -> list[Object]:
            api_version = self.wanted["apiVersion"]
            self.cluster.delete(api_version, self._kind, self._name, NAMESPACE)
            return self.pods()

        with progress.stage(StageName.TEST_CLEANING) as stage:
            deadline = stage.deadline(_CLEANING, _CLEANING_POLL)
            while found := deadline.retry(left, f"delete {self.words}"):
                if deadline.is_over:
                    return
                stage.counts(f"{len(found)} pods of a test are being deleted")
                deadline.pause()

    def _await(self, wanted: str, timeout: float, stage: OpenStage) -> float:
        deadline = stage.deadline(timeout, POLL)
        while not deadline.retry(self.has_started, f"look at {self.words}"):
            work = deadline.retry(self._workload, "look at the queue")
            if work and (work.state == "given up" or work.retries >= _MOST_RETRIES):
                raise self._refused(work)
            # One that the queue has let in may still wait for nodes.
            waits = work if work and work.state not in {"starting", "running"} else None
            state = waits.state if waits else "no nodes yet"
            why = waits.message if waits else deadline.retry(self._warning, "look at it")
            stage.news("; ".join(filter(None, [f"{wanted}: {state}", refusals.in_short(why)])))
            if deadline.is_over:
                advice = self._advice() or reasons.advice("", why)
                raise StillWaiting(
                    f"No nodes came for {self.words} in time: {state}",
                    why=why,
                    fix="\n".join(filter(None, [advice, _LATER])),
                    setting="CAPACITY_TIMEOUT",
                )
            deadline.pause()
        return deadline.passed

    def _workload(self) -> Workload | None:
        found = status.read(self.cluster).workloads
        return next((work for work in found if work.name == f"{self._kind} {self._name}"), None)

    def _advice(self) -> str:
        """What Status advises about the job's request for nodes; "" for nothing."""
        try:
            found = status.read(self.cluster)
        except (ClusterError, TransientError):
            return ""
        name = f"{self._kind} {self._name}"
        advice = [work.advice for work in found.workloads if work.name == name]
        advice += [request.advice for request in found.requests if self._name in request.name]
        return next(filter(None, advice), "")

    def _refused(self, work: Workload) -> CapacityError:
        """The error if Kueue makes no more attempts; the job is deleted, so it is not told to."""
        advice = [line for line in work.advice.splitlines() if line != workloads.GIVEN_UP]
        return CapacityError(
            f"No nodes came for {self.words}",
            code=refusals.code_in(work.message, Code.CAPACITY_REFUSED),
            why=work.message,
            fix="\n".join(advice),
        )

    def _warning(self) -> str:
        """The autoscaler's last message about pods that got no node; "" if there is none."""
        own = {pod["metadata"]["uid"] for pod in self.pods()}
        said = [
            event
            for event in self.cluster.all("v1", "Event", NAMESPACE)
            if event.get("reason") == _NO_SCALE_UP and event["involvedObject"].get("uid") in own
        ]
        said.sort(key=lambda event: str(event.get("lastTimestamp") or ""))
        return str(said[-1]["message"]) if said else ""
