"""Jobs on a GKE cluster: each is a JobSet, a RayJob or a Job of tasks, which says how far it is.

Its pods keep what it said.

Beside what every job has in the state folder (`kinds.job_folder`):

    jobs/cancelled/NAME                    somebody cancelled it
    pods/jobs/NAME/began.json              when its program first began, and why nothing runs
    pods/jobs/NAME/ends/ATTEMPT/RANK.json  how a program ended
    pods/jobs/NAME/attempts/ATTEMPT        on Ray, that there was one

What others submit, with kubectl, is listed until it is over.
"""

from __future__ import annotations

import contextlib
import functools
import re
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, TypeVar

from provision import words
from provision.catalogue import names
from provision.deployment.kind import Jobs, Needs, Stranded, WayIn
from provision.documents import json_object
from provision.documents.gke_status import JobState as Queued
from provision.documents.job import Job, JobFailure, JobState
from provision.errors import CheckError, SettingsError
from provision.kinds import job_folder
from provision.kinds.gke import control_plane, preview
from provision.kinds.gke.kubernetes import (
    fabric_pods,
    job_pods,
    jobs,
    kueue,
    pods,
    reasons,
    run_jobs,
    stages,
    status,
)
from provision.kinds.gke.kubernetes.client import KubernetesError
from provision.kinds.gke.kubernetes.objects import OURS, conditions, labels
from provision.kinds.job_folder import JobFolder
from provision.lifecycle import pricing
from provision.settings.choices import RestartOn
from provision.spec import job as job_spec
from provision.state import objects
from provision.state.objects import Stored, Writer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from provision.context import Cloud, Context
    from provision.documents.gke_status import Workload
    from provision.files.archive import Archive
    from provision.kinds.gke.kubernetes.client import Cluster
    from provision.kinds.gke.kubernetes.objects import Object
    from provision.kinds.gke.kubernetes.run_jobs import Shape
    from provision.spec.job import JobSpec
    from provision.spec.pools import Pool
    from provision.state.record import Record

T = TypeVar("T")

_PODS: Final = "pods"
_CANCELLED: Final = Stored("jobs/cancelled/{}", Writer.PROGRAM, objects.text)
_BEGAN: Final = Stored("pods/jobs/{}/began.json", Writer.MACHINES, objects.said)
_ATTEMPT: Final = Stored("pods/jobs/{}/attempts/{}", Writer.MACHINES, bytes)
_END: Final = Stored("pods/jobs/{}/ends/{}/{}.json", Writer.MACHINES, objects.said)
_ANSWER: Final = 60.0
"""Seconds of cloud time for which a control plane may not answer."""
_PAUSE: Final = 2.0
_EVERY: Final = 60.0
"""Seconds of cloud time between two looks at the nodes of a job that waits."""
_TAKEN: Final = 409
_GONE: Final = "is gone: somebody has deleted it, or the run that submitted it was killed"
_SHAPES: Final = {it.kind: it for it in (run_jobs.JOB_SET, run_jobs.RAY_JOB, run_jobs.JOB)}
_ENDED: Final = "it was cancelled"
_NO_ROOM: Final = "couldn't assign flavors"
_SOCKETS: Final = "NCCL goes by sockets, not by the network of the GPUs"
_SLOW: Final = (
    f"{_SOCKETS}, at a fraction of the bandwidth: the program has replaced NCCL's variables, or"
    " LD_LIBRARY_PATH: docs/how-to/gpu-network.md"
)
_POD: Final = re.compile(r"\S*-(\d+)-[a-z0-9]{5}(?= |$)")
"""A pod's name, with its rank, in the words of Kubernetes."""
_STATES: Final[Mapping[Queued, JobState]] = {
    Queued.PENDING: JobState.WAITING,
    Queued.WAITING_FOR_NODES: JobState.WAITING,
    Queued.STARTING: JobState.PREPARING,
    Queued.RUNNING: JobState.RUNNING,
    # Its object is about to say how it ended, or has since it was looked at.
    **dict.fromkeys((Queued.ENDING, Queued.FINISHED), JobState.RUNNING),
    Queued.GIVEN_UP: JobState.FAILED,
}


class GkeJobs(Jobs):
    """The jobs of a cluster."""

    def __init__(self, context: Context, cloud: Cloud, record: Record) -> None:
        self._context, self._cloud, self._record = context, cloud, record
        self._folder = cloud.folder
        self._facts = control_plane.finished(cloud.folder, record)
        self._jobs = JobFolder(cloud.folder, _PODS, context.clock)
        self._failures: dict[tuple[str, int], JobFailure | None] = {}
        # What nodes of a machine type are lost, and until when that is good enough.
        self._lost: dict[str, tuple[float, Stranded | None]] = {}

    def needs(self, spec: JobSpec) -> Needs:
        """Its nodes, and the price of those that come for it."""
        room = self._room(spec)
        made = self._made.get(room.pool.name)
        listed = pricing.known(self._context, self._cloud)
        coming = self._coming(room, made)
        return preview.needs(replace(spec, nodes=room.nodes), room, made, coming, listed)

    def submit(self, spec: JobSpec, archive: Archive | None) -> str:
        """Write the folder and the job, and make its JobSet, RayJob or Job."""
        control_plane.require_settings(self._folder, self._record)
        control_plane.require_accounts(self._cloud, self._record)
        self._ask(lambda: stages.require_sources(self._cluster, self._facts), "look at its account")
        room = self._room(spec)
        pool = room.pool
        spec, shape = replace(spec, nodes=room.nodes), _shape(ray=spec.ray, array=spec.array)
        listed, made = pricing.known(self._context, self._cloud), self._made.get(pool.name)
        machine = job_folder.machine(made, listed) if made else {}
        taken = [it["metadata"]["name"] for it in self._things()]
        name = self._jobs.put(spec, archive, machine, taken)
        where = self._folder.location
        sent = archive.sha256 if archive else spec.files
        folder = f"{where.folder}/{job_folder.name_of(sent)}" if sent else ""
        wanted = run_jobs.Wanted(
            name=name,
            spec=spec,
            pool=pool,
            nodes=room.nodes,
            slots=room.slots,
            bucket=where.bucket,
            folder=folder,
            told=f"{where.folder}/{_PODS}/jobs/{name}/",
        )
        try:
            facts = self._facts.also_having(spec.secrets, spec.mounts)
            thing = shape.build(facts, wanted)
            thing = self._facts.mirrored(thing, but=spec.image)
            self._ask(lambda: self._cluster.create(thing), f"submit {name}")
        except KubernetesError as error:
            # A request whose answer was lost is repeated, and finds what it made.
            if error.code != _TAKEN or self._thing(name, shape) is None:
                self._jobs.forget(name)
                raise
        return name

    def names(self) -> Sequence[str]:
        """The names of all jobs, the newest last; first those that others have submitted."""
        return [*(it.name for it in self._others()), *self._jobs.names()]

    def asked(self, name: str, *, again: bool = False) -> Mapping[str, Any] | None:
        """A job as it was submitted."""
        return self._jobs.again(name) if again else self._jobs.asked(name)

    def unfinished(self, *, every: bool = False) -> Sequence[str]:
        """The names of those of Run that are not over."""
        known = self._jobs.names()
        if not known:
            return ()
        going = (it for it in self._things() if _SHAPES[it["kind"]].end(it) is None)
        alive = {it["metadata"]["name"] for it in going}
        mine = [it for it in known if it in alive]
        return [it for it in mine if every or not self._jobs.ends_cluster(it)]

    def find(self, name: str) -> Job | None:
        """How far a job is, by its object, the queue, and what its pods have kept."""
        asked = self._jobs.asked(name)
        if asked is None:
            return next((_of_others(it) for it in self._others() if it.name == name), None)
        shape = _shape(**_kept(asked))
        job = self._jobs.record(name, asked)
        job = replace(job, state=JobState.FAILED, why=f"its {shape.kind} {_GONE}")
        thing = self._thing(name, shape)
        cancelled = self._folder.read(_CANCELLED, name)
        if cancelled is not None and thing is None:
            ended, _, why = cancelled.partition(" ")
            if job.tasks:
                counts, _, why = why.partition(" ")
                done, _, failed = counts.partition("/")
                job = _counted(job, int(done or 0), int(failed or 0), is_over=True)
            told = self._folder.read(_BEGAN, name) or {}
            job = replace(job, state=JobState.CANCELLED, why=why or _ENDED, ended=ended)
            job = replace(job, began=job_folder.moment(told.get("began")))
            return self._jobs.spent(job, asked)
        if thing is None:
            return replace(job, ended=job.submitted)
        job = self._jobs.spent(self._of_thing(job, thing, shape, asked), asked)
        if cancelled is not None and not job.state.is_over:
            return replace(job, state=JobState.STOPPING, why=_ENDED)
        lost = self.stranded(job) if job.state is JobState.WAITING else None
        return replace(job, why=lost.what) if lost else job

    def log(self, job: Job, attempt: int, rank: int, after: int) -> Iterator[tuple[int, bytes]]:
        """The pieces, in their order."""
        return self._jobs.log(job, attempt, rank, after)

    def newest(self, job: Job) -> Mapping[tuple[int, int], int] | None:
        """By the names of its pieces."""
        return self._jobs.newest(job)

    def heard(self, job: Job) -> Job:
        """By the newest piece of its log."""
        return self._jobs.heard(job)

    def whole(self, job: Job) -> Job:
        """Of tasks, with what they cost, by how long the program of each pod ran."""
        job = super().whole(job)
        asked = self._jobs.asked(job.name)
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
                spans.append((job_folder.seconds_of(status.get("startTime")), clock.now()))
        ran = sum(clock.cloud(max(0.0, end - began)) for began, end in spans if began and end)
        return self._jobs.spent(job, asked, ran)

    def inside(self, job: Job) -> str:
        """In each of its pods."""
        shape = _shape(**_kept(self._jobs.asked(job.name) or {}))
        selector = shape.selector(job.name, None)
        return f"kubectl get pods -l {selector}, then kubectl exec <POD> -- nvidia-smi"

    def way_in(self, job: Job, rank: int) -> WayIn:
        """By kubectl, with a configuration for this cluster alone."""
        asked = self._jobs.asked(job.name)
        if asked is None:
            raise job_folder.of_others(job.name, f"kubectl exec, in a pod of {job.name}")
        job_folder.require_rank(job, rank)
        of = self._record
        cluster = names.CLUSTER.of(of.name_prefix)
        before = control_plane.get_credentials(cluster, of.region, of.project_id)
        found = self._pods(job.name, _shape(**_kept(asked)))
        return job_pods.way_in(found, job, rank, before, self._cluster.for_kubectl)

    def cancel(self, job: Job) -> None:
        """Delete its object, with which its pods, its place in the queue and its requests go."""
        asked = self._jobs.asked(job.name)
        if asked is None:
            raise job_folder.of_others(job.name, f"kubectl delete {job.name.lower()}")
        why = job.failure.words if job.failure else ""
        shape = _shape(**_kept(asked))
        if job.tasks:  # nothing else says it when its Job is gone
            done, failed = run_jobs.ended(self._thing(job.name, shape) or {})
            why = f"{len(done)}/{len(failed)} {why}"
        note = f"{self._jobs.now()} {why}".strip()
        self._folder.write_once(_CANCELLED.at(job.name), note, "text/plain")
        self._ask(
            lambda: self._cluster.delete(shape.api, shape.kind, job.name, kueue.NAMESPACE),
            f"cancel {job.name}",
        )

    def stranded(self, job: Job) -> Stranded | None:
        """By the groups of pools of a fixed size: other nodes come for each job."""
        until, found = self._lost.get(job.machine_type, (0.0, None))
        if time.monotonic() >= until:
            # Who may see jobs need not be allowed to see VMs.
            with contextlib.suppress(CheckError):
                found = control_plane.stranded(
                    self._cloud.api, self._record, self._facts, job.machine_type
                )
            until = time.monotonic() + self._context.clock.wall(_EVERY)
            self._lost[job.machine_type] = until, found
        return found

    # ------------------------------------------------------------------ what it can have

    def _room(self, spec: JobSpec) -> preview.Room:
        """Where a job runs, on how many nodes, and how many of its tasks at a time."""
        facts, wanted = self._facts, spec.nodes or 1
        queues = (kueue.LOCAL_QUEUE, *(it.name for it in facts.queues)) if facts.has_queue else ()
        job_spec.require_offered(spec, queues=queues, ray=facts.ray_operator)
        if not facts.pools:
            raise SettingsError("The cluster has no GPU nodes", fix="GKE_NODE_POOLS and Create")
        offered = [(it, it.machine_type, it.accelerator) for it in facts.pools]
        meant = job_spec.chosen(spec.machine, offered)
        largest = max(meant, key=lambda it: it.gpus)
        job_spec.require_gpus(spec, largest.machine_type, largest.gpus)
        meant = [it for it in meant if it.gpus >= (spec.gpus or 0)]
        main = jobs.main_pool(meant)
        fitting = (it for it in (main, *meant) if it.max_nodes >= wanted)
        pool = next(fitting, max(meant, key=lambda it: it.max_nodes))
        job_spec.require_network(spec, pool.machine_type, pool.gpus)
        room = preview.Room(pool, wanted, 1, spec.gpus or pool.gpus)
        most = at_a_time = pool.max_nodes
        at_a_time *= room.parts
        if facts.has_queue:
            own = facts.gpu_quota // max(room.gpus, 1)
            most, at_a_time = min(most, own), min(at_a_time, own)
        if wanted > most:
            of = f" of {spec.machine}" if spec.machine else ""
            raise SettingsError(
                f"The job wants {words.counted(wanted, 'node')}, and can have {most}",
                why=f"the largest pool{of}, {pool.name}, has at most {pool.max_nodes}"
                + (
                    f", and the queue has {words.counted(facts.gpu_quota, 'GPU')}"
                    if facts.has_queue
                    else ""
                )
                + "; all begin together, so it would wait for ever",
                fix=f"--nodes {most}" if most else "KUEUE_GPU_QUOTA, and Create",
                setting="--nodes",
            )
        if spec.array:
            asked = min(spec.array.tasks, spec.array.most or spec.array.tasks)
            return replace(room, slots=min(asked, at_a_time))
        return replace(
            room, nodes=spec.nodes or preview.by_default(self._made.get(pool.name), most)
        )

    @functools.cached_property
    def _made(self) -> Mapping[str, Pool]:
        return control_plane.made(self._document, self._facts)

    def _coming(self, room: preview.Room, made: Pool | None) -> int:
        """How many nodes come for a job: a queued pool's never wait for another one."""
        pool = room.pool
        if made is None or pool.queued:
            return room.machines
        if made.size.count is not None:
            return 0
        label = f"{kueue.POOL_LABEL}={pool.name}"
        there = self._all("count nodes", "v1", "Node", "", label)
        used = pods.used(self._all("count nodes", "v1", "Pod"))
        usable = (it["metadata"]["name"] for it in there if not it["spec"].get("unschedulable"))
        free = sum((pool.gpus - used[it]) // room.gpus if room.gpus else 1 for it in usable)
        return max(0, -((free - room.pods) // room.parts))

    # ------------------------------------------------------------------ how far it is

    def _of_thing(self, job: Job, thing: Object, shape: Shape, asked: Mapping[str, Any]) -> Job:
        # Each task has as long.
        seconds = None if job.tasks else json_object.whole(asked.get("seconds"))
        name, end = job.name, shape.end(thing)
        own = [it for it in self._pods(name, shape) if not job_pods.is_placeholder(it)]
        restarts = shape.restarts(thing)
        if restarts is None and job.tasks:
            restarts = job_pods.begun_again(self._folder, _END, job, own)
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
                first = job_pods.first_task(self._folder, _END, job, failed, own)
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
        if (job.name, attempt) not in self._failures:
            self._failures[job.name, attempt] = self._first(job.name, attempt, shape)
        return self._failures[job.name, attempt]

    def _first(self, name: str, attempt: int, shape: Shape) -> JobFailure | None:
        own = {job_pods.rank(it): it for it in self._pods(name, shape, attempt)[::-1]}
        failed = [
            it
            for it in self._ends(name, attempt)
            if it.get("code") != 0 and it.get("told") is not True
        ]
        if failed:
            end = min(failed, key=lambda it: json_object.number(it.get("ended")) or 0.0)
            cause = job_pods.cause(end, own.get(json_object.whole(end.get("rank")) or 0))
            return job_folder.failure({**end, "cause": cause})
        if unbegun := next(filter(None, map(job_pods.unbegun, own.values())), None):
            return unbegun
        # The Job of the last attempt says which pod ended it.
        selector = f"{fabric_pods.SET_LABEL}={name}"
        for child in self._all(f"look at {name}", "batch/v1", "Job", kueue.NAMESPACE, selector):
            message = str(conditions(child).get("Failed", {}).get("message", ""))
            if pod := _POD.search(message):
                node = (own.get(int(pod[1])) or {}).get("spec", {}).get("nodeName", "") or pod[0]
                cause = job_pods.LOST if "DisruptionTarget" in message else message
                return JobFailure(machine=node, rank=int(pod[1]), cause=cause, tail="")
        return None

    def _ends(self, name: str, attempt: int) -> list[dict[str, Any]]:
        """How the programs of an attempt have ended, as their pods have kept it."""
        return list(self._folder.all(_END, name, str(attempt)).values())

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

    def _things(self) -> list[Object]:
        return self._ask(
            lambda: [
                thing
                for it in _SHAPES.values()
                for thing in self._cluster.all(it.api, it.kind, kueue.NAMESPACE)
            ],
            "list the jobs",
        )

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
        ours = {f"{kind} {it}" for it in self._jobs.names() for kind in _SHAPES}
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


def _shape(*, ray: object, array: object) -> Shape:
    return run_jobs.RAY_JOB if ray else run_jobs.JOB if array else run_jobs.JOB_SET


def _kept(asked: Mapping[str, Any]) -> dict[str, Any]:
    """What tells of the shape of a job that was asked for."""
    return {"ray": asked.get("ray"), "array": job_spec.array_of(asked)}


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
