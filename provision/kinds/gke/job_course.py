"""How far a job on a GKE cluster is: by its object, the queue, and its pods.

    jobs/cancelled/NAME              somebody cancelled it
    pods/jobs/NAME/began.json        when its program first began, and why nothing runs
    pods/jobs/NAME/attempts/ATTEMPT  on Ray, that there was one

How its programs ended is read by `kubernetes.job_pods`. What others submit, with kubectl, is listed
until it is over.
"""

from __future__ import annotations

import contextlib
import functools
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, TypeVar

from provision.deployment.kind import Jobs, Stranded
from provision.documents import json_object
from provision.documents.gke_status import JobState as Queued
from provision.documents.gke_status import Workload
from provision.documents.job import Job, JobFailure, JobState
from provision.errors import CheckError
from provision.kinds import job_folder
from provision.kinds.gke import control_plane
from provision.kinds.gke.kubernetes import (
    fabric_pods,
    job_pods,
    kueue,
    pods,
    reasons,
    run_jobs,
    status,
)
from provision.kinds.gke.kubernetes.objects import OURS, Object, conditions, labels
from provision.kinds.job_folder import JobFolder
from provision.kinds.status import seconds_of
from provision.settings.choices import RestartOn
from provision.spec import job as job_spec
from provision.state import objects
from provision.state.objects import Stored, Writer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from provision.context import Cloud, Context
    from provision.kinds.gke.kubernetes.client import Cluster
    from provision.kinds.gke.kubernetes.run_jobs import Shape
    from provision.state.record import Record

T = TypeVar("T")

PODS: Final = "pods"
"""The part of the state folder into which pods write."""
CANCELLED: Final = Stored("jobs/cancelled/{}", Writer.PROGRAM, objects.text)
_BEGAN: Final = Stored("pods/jobs/{}/began.json", Writer.MACHINES, objects.said)
_ATTEMPT: Final = Stored("pods/jobs/{}/attempts/{}", Writer.MACHINES, bytes)
_ANSWER: Final = 60.0
"""Seconds of cloud time for which a control plane may not answer."""
_PAUSE: Final = 2.0
_EVERY: Final = 60.0
"""Seconds of cloud time between two looks at the nodes of a job that waits."""
_GONE: Final = "is gone: somebody has deleted it, or the run that submitted it was killed"
_ENDED: Final = "it was cancelled"
_NO_ROOM: Final = "couldn't assign flavors"
_SOCKETS: Final = "NCCL goes by sockets, not by the network of the GPUs"
_SLOW: Final = (
    f"{_SOCKETS}, at a fraction of the bandwidth: the program has replaced NCCL's variables, or"
    " LD_LIBRARY_PATH: docs/how-to/gpu-network.md"
)
_STATES: Final[Mapping[Queued, JobState]] = {
    Queued.PENDING: JobState.WAITING,
    Queued.WAITING_FOR_NODES: JobState.WAITING,
    Queued.STARTING: JobState.PREPARING,
    Queued.RUNNING: JobState.RUNNING,
    # Its object is about to say how it ended, or has since it was looked at.
    **dict.fromkeys((Queued.ENDING, Queued.FINISHED), JobState.RUNNING),
    Queued.GIVEN_UP: JobState.FAILED,
}


class Courses(JobFolder, Jobs):
    """The jobs of a cluster, as they are."""

    def __init__(self, context: Context, cloud: Cloud, record: Record) -> None:
        super().__init__(cloud.folder, PODS, context.clock)
        self._context, self._cloud, self._record = context, cloud, record
        self._facts = control_plane.finished(cloud.folder, record)
        self._failures: dict[tuple[str, int], JobFailure | None] = {}
        # What nodes of a machine type are lost, and until when that is good enough.
        self._lost: dict[str, tuple[float, Stranded | None]] = {}

    def find(self, name: str) -> Job | None:
        """How far a job is, by its object, the queue, and what its pods have kept."""
        asked = self.asked(name)
        if asked is None:
            return next((_of_others(it) for it in self._others() if it.name == name), None)
        shape = shape_of(asked)
        job = self.record(name, asked)
        job = replace(job, state=JobState.FAILED, why=f"its {shape.kind} {_GONE}")
        thing = self._thing(name, shape)
        cancelled = self._folder.read(CANCELLED, name)
        if cancelled is not None and thing is None:
            ended, _, why = cancelled.partition(" ")
            if job.tasks:
                counts, _, why = why.partition(" ")
                done, _, failed = counts.partition("/")
                job = _counted(job, int(done or 0), int(failed or 0), is_over=True)
            told = self._folder.read(_BEGAN, name) or {}
            job = replace(job, state=JobState.CANCELLED, why=why or _ENDED, ended=ended)
            job = replace(job, began=job_folder.moment(told.get("began")))
            return self.spent(job, asked)
        if thing is None:
            return replace(job, ended=job.submitted)
        job = self.spent(self._of_thing(job, thing, shape, asked), asked)
        if cancelled is not None and not job.state.is_over:
            return replace(job, state=JobState.STOPPING, why=_ENDED)
        lost = self.stranded(job) if job.state.may_lack_machines else None
        return replace(job, why=lost.what) if lost else job

    def whole(self, job: Job) -> Job:
        """Of tasks, with what they cost, by how long the program of each pod ran."""
        job = super().whole(job)
        asked = self.asked(job.name)
        if not job.tasks or asked is None:
            return job
        spans = [
            (json_object.number(it.get("began")), json_object.number(it.get("ended")))
            for attempt in range(1, job.attempt + 1)
            for it in self._ends(job.name, attempt)
        ]
        clock = self._context.clock
        for pod in self._pods(job.name, run_jobs.JOB):
            status = pod.get("status") or {}
            if status.get("phase") == "Running" and not job_pods.is_placeholder(pod):
                spans.append((seconds_of(status.get("startTime")), clock.now()))
        ran = sum(clock.cloud(max(0.0, end - began)) for began, end in spans if began and end)
        return self.spent(job, asked, ran)

    def stranded(self, job: Job) -> Stranded | None:
        """By the groups of pools of a fixed size: other nodes come for each job."""
        until, found = self._lost.get(job.machine_type, (0.0, None))
        if time.monotonic() >= until:
            # Who may see jobs need not be allowed to see VMs.
            with contextlib.suppress(CheckError):
                self._folder.look_again()
                # It may have gone to another zone meanwhile.
                record = self._folder.record() or self._record
                found = control_plane.stranded(
                    self._cloud.api, record, self._facts, job.machine_type
                )
            until = time.monotonic() + self._context.clock.wall(_EVERY)
            self._lost[job.machine_type] = until, found
        return None if found and job.nodes and found.own >= job.nodes else found

    # ------------------------------------------------------------------ how far one is

    def _of_thing(self, job: Job, thing: Object, shape: Shape, asked: Mapping[str, Any]) -> Job:
        # Each task has as long.
        seconds = None if job.tasks else json_object.whole(asked.get("seconds"))
        name, end = job.name, shape.end(thing)
        own = [it for it in self._pods(name, shape) if not job_pods.is_placeholder(it)]
        restarts = shape.restarts(thing)
        if restarts is None and job.tasks:
            restarts = job_pods.begun_again(self._folder, job, own)
        elif restarts is None:
            restarts = max(0, len(self._folder.names(_ATTEMPT, name)) - 1)
        # First the queue: what is said of pods is then not older than what is said of it.
        if end is not None and end.succeeded:
            job = replace(job, state=JobState.SUCCEEDED, why="", ended=end.ended)
        elif end is not None:
            failure = None if job.tasks else self._failure(job, restarts + 1, shape)
            job = replace(job, why=end.why, ended=end.ended, failure=failure)
        elif "deletionTimestamp" in thing["metadata"]:
            job = replace(job, state=JobState.STOPPING, why=f"its {shape.kind} is being deleted")
        else:
            job = self._of_queue(job, thing, own)
            stuck = next(filter(None, map(job_pods.stuck, own)), None)
            job = replace(job, failure=stuck or job.failure)
        told = self._folder.read(_BEGAN, name) or {}
        started = json_object.number(told.get("began"))
        if job.state is JobState.SUCCEEDED:
            job = replace(job, why=json_object.text(told.get("why")))
        sockets = json_object.whole(told.get("sockets"))
        if job.state is JobState.RUNNING:
            slow = _SOCKETS if sockets and sockets <= restarts + 1 else ""
            job = replace(job, why=slow) if started else replace(job, state=JobState.PREPARING)
        if job.tasks:
            return self._of_tasks(job, thing, own, started, restarts)
        nodes = [it["spec"].get("nodeName") for it in own]
        if job.state.is_over and not own:
            nodes = [json_object.text(it.get("vm")) for it in self._ends(name, restarts + 1)]
        # What made each attempt fail after which there was another one.
        failures = {
            it: why.words if (why := self._failure(job, it, shape)) else job_pods.LOST
            for it in range(1, restarts + 1)
        }
        return replace(
            job,
            machines=tuple(it for it in nodes if it),
            attempt=restarts + 1 if started else 0,
            began=job_folder.moment(started),
            ends=job_folder.moment(started + seconds) if started and seconds else None,
            events=(
                *_events(failures, job.restarts, sockets),
                *_why_not(job, restarts, asked),
            ),
        )

    def _of_tasks(
        self, job: Job, thing: Object, own: Sequence[Object], started: float | None, restarts: int
    ) -> Job:
        """A job of tasks with how far these are."""
        done, failed = run_jobs.ended(thing)
        over = {*done, *failed}
        alive = (it for it in own if (it.get("status") or {}).get("phase") == "Running")
        running = len({job_pods.rank(it) for it in alive} - over)
        if job.state is JobState.PREPARING and started:  # the others may still wait for nodes
            job = replace(job, state=JobState.RUNNING)
        job = _counted(job, len(done), len(failed), running, is_over=job.state.is_over)
        if failed and started:
            if self._failures.get((job.name, 0)) is None:
                first = job_pods.first_task(self._folder, job, failed, own)
                self._failures[job.name, 0] = first
            job = replace(job, failure=self._failures[job.name, 0])
        at_once = json_object.whole(thing["spec"].get("parallelism")) or 0
        why = job.failure
        return replace(
            job,
            attempt=restarts + 1 if started else 0,
            began=job_folder.moment(started),
            tasks=job.tasks and replace(job.tasks, most=at_once, which_failed=tuple(failed)),
            events=(f"task {why.rank} failed: {why.what}; the others go on",)
            if failed and why
            else (),
        )

    def _of_queue(self, job: Job, thing: Object, own: Sequence[Object]) -> Job:
        """How far a job is that has not ended, by the queue and its pods."""
        found = self._ask(lambda: status.read(self._cluster), "look at the queue")
        title = f"{thing['kind']} {job.name}"
        mine = next((it for it in (*found.workloads, *found.outside) if it.name == title), None)
        if mine is None:
            return replace(job, state=JobState.WAITING, why="Kueue has not taken note of it yet")
        why = "; ".join(filter(None, [mine.message, *mine.advice.splitlines()]))
        if mine.state is Queued.GIVEN_UP:
            return self._given_up(job, thing, own, why)
        refused = status.failure(mine.message) if mine.state is Queued.PENDING else ""
        if reasons.is_for_ever(refused):
            failure = JobFailure(
                machine="",
                rank=0,
                cause=f"Google refuses its nodes: {refused}",
                tail=reasons.advice("", refused) or "change what Google names",
            )
            return replace(job, state=JobState.WAITING, why=why, failure=failure)
        before = self._before(thing) if mine.state is Queued.PENDING else []
        if before:
            # Kueue's own words for that name flavors, of which users have heard nothing.
            why = "" if why.startswith(_NO_ROOM) else why
            why = "; ".join(filter(None, [status.in_the_way(before), why]))
        state = _STATES[mine.state]
        why = "" if state is JobState.RUNNING else why
        return replace(job, state=state, why=why, place=len(before))

    def _given_up(self, job: Job, thing: Object, own: Sequence[Object], why: str) -> Job:
        """A job to which Kueue gives nothing more: it has run long enough, or got no nodes."""
        evicted = conditions(self._works(thing)[0] or {}).get("Evicted", {})
        if evicted.get("reason") == status.STOPPED:
            why = "--time is over, or the time of its nodes"
        phases = {(it.get("status") or {}).get("phase") for it in own}
        if phases - pods.OVER:
            return replace(job, state=JobState.STOPPING, why=why)
        since = json_object.text(evicted.get("lastTransitionTime"))
        return replace(job, why=why, ended=since or job.submitted)

    def _works(self, thing: Object) -> tuple[Object | None, list[Object]]:
        """The Workload of a job, and those of all jobs."""
        every = self._all("look at the queue", kueue.API, "Workload")
        uid = thing["metadata"]["uid"]
        return next((it for it in every if uid in set(pods.owners(it))), None), every

    def _before(self, thing: Object) -> list[Object]:
        """The jobs of its queue that Kueue has let in, then those that it lets in before it."""
        mine, every = self._works(thing)
        if mine is None:
            return []
        queue, over = mine["spec"].get("queueName"), {Queued.FINISHED, Queued.GIVEN_UP}
        same = (it for it in every if it["spec"].get("queueName") == queue)
        alive = sorted((it for it in same if status.state(it) not in over), key=status.turn)
        return alive[: alive.index(mine)] if mine in alive else []

    def _failure(self, job: Job, attempt: int, shape: Shape) -> JobFailure | None:
        """What failed first in an attempt that has ended; None if nothing is known of it."""
        name, known = job.name, (job.name, attempt)
        if known not in self._failures:
            own, ends = self._pods(name, shape, attempt), self._ends(name, attempt)
            of_set = "batch/v1", "Job", kueue.NAMESPACE, f"{fabric_pods.SET_LABEL}={name}"
            self._failures[known] = job_pods.first_failure(
                own, ends, lambda: self._all(f"look at {name}", *of_set)
            )
        return self._failures[known]

    def _ends(self, name: str, attempt: int) -> list[dict[str, Any]]:
        """How the programs of an attempt have ended, as their pods have kept it."""
        return list(self._folder.all(job_pods.END, name, str(attempt)).values())

    # ------------------------------------------------------------------ what the cluster has

    @functools.cached_property
    def _document(self) -> Mapping[str, Any] | None:
        return control_plane.find(self._cloud.api, self._record)

    @functools.cached_property
    def _cluster(self) -> Cluster:
        return control_plane.reach(self._document, self._cloud.api, self._context.environ)

    def _thing(self, name: str, shape: Shape) -> Object | None:
        found = self._ask(
            lambda: self._cluster.find(shape.api, shape.kind, name, kueue.NAMESPACE),
            f"look at {name}",
        )
        is_ours = found is not None and OURS.items() <= labels(found).items()
        return found if is_ours else None

    def _pods(self, name: str, shape: Shape, attempt: int | None = None) -> list[Object]:
        """The pods of a job, by their ranks; of one attempt alone if it is given."""
        selector = shape.selector(name, attempt)
        # A thousand tasks leave as many pods, of which those that went well say nothing more.
        fields = pods.ALIVE if shape is run_jobs.JOB else ""
        found = self._all(f"look at {name}", "v1", "Pod", kueue.NAMESPACE, selector, fields)
        return sorted(
            found, key=lambda it: (job_pods.rank(it), labels(it).get("ray.io/node-type") != "head")
        )

    def _others(self) -> list[Workload]:
        """What others have submitted, and is not over."""
        found = self._ask(lambda: status.read(self._cluster), "list the jobs")
        ours = {f"{kind} {it}" for it in self.ours() for kind in run_jobs.SHAPES}
        return [
            it
            for it in (*found.workloads, *found.outside)
            if it.name not in ours and it.state is not Queued.FINISHED
        ]

    def _all(self, doing: str, api: str, kind: str, *where: str) -> list[Object]:
        return self._ask(lambda: self._cluster.all(api, kind, *where), doing)

    def _ask(self, attempt: Callable[[], T], doing: str) -> T:
        deadline = self._context.progress.deadline(_ANSWER, _PAUSE)
        return deadline.retry(attempt, doing)


def _events(failures: Mapping[int, str], most: int, sockets: int | None) -> Iterator[str]:
    """What has happened, in the order in which it did: whoever follows knows how much is told.

    `sockets`: the attempt in which NCCL first went by them.
    """
    for it in range(1, len(failures) + 2):
        if it == sockets:
            yield _SLOW
        if it in failures:
            yield f"attempt {it} failed: {failures[it]}; restart {it} of {most}"


def _why_not(job: Job, restarts: int, asked: Mapping[str, Any]) -> Iterator[str]:
    """Why a job has failed of which restarts are left."""
    failure = job.failure
    if job.state is JobState.FAILED and restarts < job.restarts and failure and failure.exit_code:
        same = "another attempt would do the same"
        why = "--restart-on is lost" if asked.get("restart_on") == RestartOn.LOST else same
        yield (
            f"attempt {restarts + 1} failed: {failure.words}; no restart: all of its nodes were"
            f" there, and {why}; --restart-on any begins it again all the same"
        )


def shape_of(asked: Mapping[str, Any]) -> Shape:
    """The shape of a job that was asked for."""
    return run_jobs.shape(asked.get("ray"), job_spec.array_of(asked))


def _counted(job: Job, done: int, failed: int, running: int = 0, *, is_over: bool) -> Job:
    """A job with how far its tasks are."""
    assert job.tasks is not None  # noqa: S101 - the caller has seen it
    left = len(job.ranks) - done - failed - running
    waiting, cancelled = (0, left + running) if is_over else (left, 0)
    tasks = replace(job.tasks, succeeded=done, failed=failed, waiting=waiting, cancelled=cancelled)
    return replace(job, tasks=replace(tasks, running=0 if is_over else running))


def _of_others(work: Workload) -> Job:
    return Job(
        name=work.name,
        state=_STATES[work.state],
        why="; ".join(filter(None, [work.message, *work.advice.splitlines()])),
        submitted=work.created or "",
    )
