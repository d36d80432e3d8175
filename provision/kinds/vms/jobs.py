"""Jobs on the VMs of a group, through the state folder.

Beside what every job has there (`kinds.job_folder`):

    jobs/index.json                  the jobs that are not over, in their order
    vms/job.json                     how far the job is that is under way
    vms/jobs/NAME/course.json        how far one came that is over; by Slurm, how far each is
    vms/jobs/NAME/nodes/task-N.json  by Slurm, how far a task is, and where
    ray/jobs.json                    what others run on Ray, and is not over
    vms/slurm/jobs.json              what others have Slurm run, and is not over
"""

from __future__ import annotations

import contextlib
import functools
import json
import math
import re
import shlex
import time
from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from provision import words
from provision.codes import Code
from provision.deployment.kind import Jobs, Needs, Stranded, WayIn, shell
from provision.documents import json_object
from provision.documents.job import Job, JobState, JobTasks
from provision.errors import CheckError, ClusterError, SettingsError
from provision.kinds import connection, job_folder
from provision.kinds.job_folder import JobFolder
from provision.kinds.status import seconds_of
from provision.kinds.vms import agent, contents, instances, out_of_date, trouble
from provision.screens import amounts
from provision.screens import jobs as screen
from provision.settings.choices import KIND
from provision.spec import job as job_spec
from provision.state import objects
from provision.state.objects import Stored, Writer
from provision.words import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from provision.context import Cloud
    from provision.files.archive import Archive
    from provision.state.folder import StateFolder
    from provision.time.clock import Clock

_HOME: Final = "/var/lib/aiinfra-job"
"""Where each VM has the folders of jobs (aiinfra_vm/job.py of modules/startup)."""
_CONTAINER: Final = "aiinfra-job"
"""That of the job that runs, if it has an image (containers.py there)."""
MAY_ASK: Final = {
    "image": "--image",
    "restart_on": "--restart-on",
    "secrets": "--secret",
    "mounts": "--mount",
    "gpus": "--gpus",
    "array": "--array",
}
"""What a job has only if it is asked for, and by which option."""
_EVERY: Final = 60.0
"""Seconds of cloud time between two looks at the VMs while a job is waited for."""
_STATES: Final = {"PENDING": JobState.WAITING, "RUNNING": JobState.RUNNING}
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,127}")
"""Any program on a VM may write what others run: no other name is shown."""
_SENT: Final = "others run it, by Ray's own means; `ray job logs` on a VM has what it says"
_QUEUED: Final = "{} sent it to Slurm; `scontrol show job {}` on a VM says all of it"
_LONGEST: Final = 1e9
"""Seconds; no task runs for longer, whatever a program on its VM says."""
_MOMENT: Final = 2.0
"""Seconds of cloud time for which what was read is good enough for a list."""
_OVER: Final = tuple(it for it in JobState if it.is_over)  # what a VM wrote may have no hash
_UNHEARD: Final = (
    "the VMs have not taken note of it yet; those that have powered themselves off (IDLE_TIMEOUT)"
    " are started by Create"
)


def _order(content: bytes) -> list[dict[str, Any]]:
    known = json_object.objects(objects.said(content).get("jobs"))
    return [it | {"name": json_object.text(it.get("name"))} for it in known]


def _others(content: bytes) -> dict[str, Job]:
    """What others run, by name; who sent it, and what it waits for, only Slurm's head says."""
    found: dict[str, Job] = {}
    for it in json_object.objects(objects.said(content).get("jobs")):
        name, since = json_object.text(it.get("name")), it.get("since")
        state = _STATES.get(json_object.text(it.get("state")))
        if not state or not _NAME.fullmatch(name):
            continue
        at = job_folder.moment(seconds_of(since) if isinstance(since, str) else since)
        user, why = json_object.text(it.get("user")), json_object.text(it.get("why"))
        told = _QUEUED.format(user, name) if user else _SENT
        waits = why if state is JobState.WAITING else ""
        nodes, gpus = json_object.whole(it.get("nodes")), json_object.whole(it.get("gpus")) or 0
        found[name] = Job(
            name=name,
            state=state,
            why="; ".join(filter(None, [waits, told])),
            submitted=at or "",
            began=at if state is JobState.RUNNING else None,
            nodes=nodes,
            gpus=gpus // max(nodes or 1, 1),
            command=tuple(filter(None, [json_object.text(it.get("title"))])),
            by=user,
        )
    return found


INDEX: Final = Stored(f"jobs/{job_folder.ORDER}.json", Writer.PROGRAM, _order)
_NOW: Final = Stored("vms/job.json", Writer.MACHINES, objects.said)
_COURSE: Final = Stored("vms/jobs/{}/course.json", Writer.MACHINES, objects.said)
_TASK: Final = Stored("vms/jobs/{}/nodes/task-{}.json", Writer.MACHINES, objects.said)
_ON_RAY: Final = Stored("ray/jobs.json", Writer.MACHINES, _others)
_BY_SLURM: Final = Stored("vms/slurm/jobs.json", Writer.MACHINES, _others)


class Watch:
    """Looks now and then at the VMs of jobs: whether they are there, and hear of any at all."""

    def __init__(self, cloud: Cloud, clock: Clock) -> None:
        self._cloud = cloud
        self._pause = clock.wall(_EVERY)
        self._next = 0.0
        self._deaf = ""
        self._stranded: Stranded | None = None

    def look(self) -> tuple[str, Stranded | None]:
        """Why VMs hear of nothing, with what fixes it, "" for nothing that is known; what is lost.

        The latter are VMs that do not come again.
        """
        record = None
        if time.monotonic() >= self._next:
            self._cloud.folder.look_again()
            record = self._cloud.folder.record()
        if record is not None:
            self._deaf, self._stranded = "", None
            # Who may see jobs need not be allowed to see VMs.
            with contextlib.suppress(CheckError):
                seen = instances.see(self._cloud.api, record)
                self._stranded = trouble.stranded(self._cloud, record, seen)
                lost = out_of_date.without_account(self._cloud, record, seen.documents)
                said = (f"{it.problem.what}; {it.problem.fix}" for it in lost)
                self._deaf = "; ".join(said).replace("\n", " ")
            self._next = time.monotonic() + self._pause
        return self._deaf, self._stranded


class VmJobs(JobFolder, Jobs):
    """The jobs of a group of VMs; `machine` says what each of them is, `watch` looks at them."""

    def __init__(
        self,
        folder: StateFolder,
        clock: Clock,
        watch: Watch | None = None,
        machine: Callable[[], Mapping[str, Any]] = dict,
    ) -> None:
        super().__init__(folder, "vms", clock)
        self._watch, self._machine = watch, functools.cache(machine)
        # What was read when.
        self._ends: dict[str, tuple[float, bool]] = {}
        self._heard_last: tuple[float, dict[str, Job]] = (0.0, {})

    def needs(self, spec: job_spec.JobSpec) -> Needs | None:
        """Its VMs or parts of them, which are there, and what of the cluster's cost is its own."""
        most, machine = self._folder.read(agent.SIZE), self._machine()
        self._require_room(spec)
        if most is None or not machine:
            return None
        nodes, hourly = spec.nodes or most, job_folder.hourly(machine, spec.gpus)
        each = hourly * nodes if hourly is not None else None
        record = self._folder.record()
        ends = spec.seconds or (record and record.settings.get("MAX_RUN_DURATION"))
        daily = f": {amounts.usd(each * 24)} a day, which --time limits" if each else ""
        where, gpus = f"{nodes} of {counted(most, 'VM')}", nodes * machine["gpus"]
        who, price = "The job takes", f"{amounts.usd(each)}/h" if each else ""
        there = "there already" + (f" at {price}" if price else "")
        if spec.array:
            who = counted(spec.array.tasks, "task")
            who += f", {spec.array.most} at a time" if spec.array.most else ""
            who += ", each on" if spec.array.tasks > 1 else ", on"
            where = f"one of {counted(most, 'VM')}" if nodes == 1 else where
            each_of = " each" * (spec.array.tasks > 1)
            there = "paid for already" + (f" ({price}{each_of})" if price else "")
        if spec.gpus:
            where = f"{counted(spec.gpus, 'GPU')} of {'each of ' * (nodes > 1)}{where}"
            gpus = 0
        facts = [
            where,
            counted(gpus, "GPU") if gpus else "",
            there,
            f"until --time ({amounts.span(spec.seconds)}) is over" if spec.seconds else "",
            "" if spec.seconds else "until it ends" + ("" if ends or spec.array else daily),
        ]
        return Needs(words=f"{who} {', '.join(filter(None, facts))}", more=Decimal(0))

    def submit(self, spec: job_spec.JobSpec, archive: Archive | None) -> str:
        """Write the folder, the job and its place in the order."""
        self._require_room(spec)
        self._require_known(spec)
        name = self.put(spec, archive, self._machine())
        self._change_index(lambda known: [*known, {"name": name, "cancelled": False}])
        return name

    def _require_room(self, spec: job_spec.JobSpec) -> None:
        """See that the group, and each of its VMs, is as large as a job wants it."""
        most, machine = self._folder.read(agent.SIZE), self._machine()
        if most is not None and (spec.nodes or 0) > most:
            raise SettingsError(
                f"The job wants {spec.nodes} VMs, and the group has {most}",
                why="all VMs of a job begin together, so it would wait for ever",
                fix=f"--nodes {most}, or a greater INSTANCE_COUNT and Create",
                setting="--nodes",
            )
        if machine:
            job_spec.require_gpus(spec, machine["type"], machine["gpus"])

    def _require_known(self, spec: job_spec.JobSpec) -> None:
        """See that the VMs know all that the job asks for: an older one would leave it out."""
        wanted = [name for name in MAY_ASK if getattr(spec, name)]
        unknown = agent.without(self._folder, self._clock, wanted) if wanted else {}
        if unknown:
            every, is_one = set().union(*unknown.values()), len(unknown) == 1
            options = ", ".join(MAY_ASK[it] for it in wanted if it in every)
            record = self._folder.record()
            is_flex = bool(record and record.settings.get("ENABLE_FLEX_START"))
            raise SettingsError(
                f"{words.listed(unknown)} {'is' if is_one else 'are'} of an older version, which"
                f" may not know {options}",
                code=Code.WITHOUT_EFFECT,
                why="the job would begin there all the same, and may go without",
                fix=f"{contents.replacing(flex_start=is_flex)}, with this version; or Run without"
                f" {options}",
                setting=options,
            )

    def names(self) -> Sequence[str]:
        """The names of all jobs, the newest last; first those that others run."""
        ours = self.ours()
        return [*(name for name in self._others() if name not in ours), *ours]

    def find(self, name: str) -> Job | None:
        """How far a job is, by what the VMs say of it."""
        asked = self.asked(name)
        if asked is None:
            return self._others().get(name)
        course = self._folder.read(_COURSE, name) or self._folder.read(_NOW) or {}
        course = course if course.get("name") == name else {}
        is_known = course and course.get("state") != JobState.WAITING
        if not is_known and self._watch and (deaf := self._watch.look()[0]):
            return self._job(name, asked, {"why": deaf})
        names = [] if is_known else self._order()
        earlier = names[: names.index(name)] if name in names else []
        # In a list, each job asks that of all before it.
        before = [it for it in earlier if not self._is_over(it, _MOMENT)]
        # Slurm's jobs run side by side: what one waits for stands in its course.
        first = f"{before[0]} is before it" if before and not self._is("slurm") else _UNHEARD
        job = self._job(name, asked, course or {"why": first}, place=len(before))
        found = None if job.state.is_over else self.stranded(job)
        if found and found.final:
            why = f"its machines were lost, and no restart is left: {found.what}"
            return replace(job, state=JobState.FAILED, why=why, failure=None)
        if found is None or (found.left and job.state is not JobState.WAITING):
            return job
        # Where no VM is left, none says that it does not run any more.
        why = "" if job.why == _UNHEARD or not found.left else job.why
        why = "; ".join(filter(None, [why, found.what]))
        return replace(job, state=JobState.WAITING, why=why)

    def stranded(self, job: Job) -> Stranded | None:
        """By their group; with no VM left, what comes next of an attempt is its failure."""
        found = self._watch.look()[1] if self._watch else None
        if found is None or found.left >= (job.nodes or math.inf):
            return None
        course = self._folder.read(_COURSE, job.name) or self._folder.read(_NOW) or {}
        if found.left or course.get("name") != job.name:
            return found
        has_begun = course.get("state") in (JobState.RUNNING, JobState.STOPPING)
        failures = json_object.whole(course.get("failures")) or 0
        # Slurm's queue goes with its head, which is no failure: new VMs begin it again.
        is_final = has_begun and failures >= job.restarts and not self._is("slurm")
        return replace(found, final=is_final)

    def unfinished(self, *, every: bool = False) -> Sequence[str]:
        """The names of those that are not over, in their order."""
        return [
            it
            for it in self._order()
            if not self._is_over(it) and (every or not self.ends_cluster(it))
        ]

    def others(self) -> Sequence[Job]:
        """Those on Ray, or by Slurm."""
        return list(self._others().values())

    def whole(self, job: Job) -> Job:
        """Of tasks, by what each VM has said of its own."""
        job = super().whole(job)
        asked = self.asked(job.name)
        if not job.tasks or asked is None:
            return job
        said = {
            int(it): told for it, told in self._folder.all(_TASK, job.name).items() if it.isdigit()
        }
        failed = sorted(it for it, told in said.items() if _has_failed(told))
        ran = sum(self._ran(told) for told in said.values())
        job = replace(job, tasks=replace(job.tasks, which_failed=tuple(failed)))
        return self.spent(job, asked, ran)

    def _ran(self, told: Mapping[str, Any]) -> float:
        """For how many seconds of cloud time a task has run in its last attempt."""
        ran, at = json_object.number(told.get("ran")), json_object.number(told.get("at"))
        if told.get("phase") == "running" and at is not None:
            ran = self._clock.cloud(self._clock.now() - at)
        return min(max(0.0, ran or 0.0), _LONGEST)

    def inside(self, job: Job) -> str:
        """By ssh."""
        return f"aiinfra Ssh {next(iter(job.machines), '0')}, and there nvidia-smi"

    def way_in(self, job: Job, rank: int) -> WayIn:
        """By gcloud; into the container if the job has an image."""
        if self.asked(job.name) is None:
            there = "scontrol show job" if self._is("slurm") else "ray job list"
            raise job_folder.of_others(job.name, f"Ssh, and there `{there}`")
        job_folder.require_rank(job, rank)
        name = self._of_task(job, rank) if job.tasks else job.machines[rank]
        record, vm = self._folder.record(), connection.vms(self._folder).get(name)
        if record is None or vm is None:
            whose = f"he VM of {'task' if job.tasks else 'rank'} {rank} of {job.name}"
            raise ClusterError(
                f"{f'{name}, t{whose},' if name else f'T{whose}'} is gone",
                code=Code.MACHINES_GONE,
                why="what the job wrote to its folder went with that VM's disk",
                fix=job_folder.TO_A_MOUNT,
            )
        is_public = bool(vm.get("external_ip"))
        command = tuple(shlex.split(connection.ssh(name, record, is_public=is_public)))
        folder = f"{_HOME}/{job.name}"
        line = f"sudo docker exec -it {_CONTAINER} {shlex.join(shell(folder))}" if job.image else ""
        # By Slurm, each job runs as a user of its own, who alone may enter its folder.
        line = line or (f"sudo {shlex.join(shell(folder))}" if self._is("slurm") else "")
        line = line or f'cd {folder} && exec "$SHELL" -l'
        on_ray = self._is("ray")
        return WayIn(
            where=name,
            folder=folder,
            tells=(*command, "--quiet", "--command"),
            opens=command if on_ray else (*command, "--ssh-flag=-t", "--command", line),
            lost="Ray runs it in a folder of its own, which goes with the program"
            if on_ray
            else "",
        )

    def cancel(self, job: Job) -> None:
        """Mark it in the order of jobs."""
        if self.asked(job.name) is None:
            ends = "scancel" if self._is("slurm") else "ray job stop"
            raise job_folder.of_others(job.name, f"{ends} {job.name}, on a VM")

        def marked(known: list[dict[str, Any]]) -> list[dict[str, Any]]:
            if all(it["name"] != job.name for it in known):
                # A run that was killed as it submitted it has left it without a place.
                known = [*known, {"name": job.name}]
            return [
                it | {"cancelled": bool(it.get("cancelled")) or it["name"] == job.name}
                for it in known
            ]

        self._change_index(marked)

    def _job(
        self, name: str, asked: Mapping[str, Any], course: Mapping[str, Any], place: int = 0
    ) -> Job:
        states = {str(state): state for state in JobState}
        state = states.get(json_object.text(course.get("state")), JobState.WAITING)
        nodes = json_object.objects(course.get("nodes"))
        job = self.record(name, asked)
        job = replace(
            job,
            tasks=_counted(job.tasks, json_object.inner(course.get("tasks"))),
            state=state,
            why=json_object.text(course.get("why")),
            place=place,
            machines=tuple(json_object.text(it.get("name")) for it in nodes),
            attempt=json_object.whole(course.get("attempt")) or 0,
            began=job_folder.moment(course.get("began")),
            ended=job_folder.moment(course.get("since")) if state.is_over else None,
            ends=job_folder.moment(course.get("ends")),
            failure=job_folder.failure(json_object.inner(course.get("failure"))),
            events=tuple(json_object.texts(course.get("events"))),
            gpu_use=json_object.whole(course.get("gpu_use")),
        )
        return self.spent(job, asked)

    def _change_index(self, change: Callable[[list[dict[str, Any]]], list[dict[str, Any]]]) -> None:
        """Change the order of jobs, and take those out that are over."""

        def changed(known: list[dict[str, Any]] | None) -> str:
            left = [it for it in known or () if not self._is_over(it["name"])]
            return json.dumps({"jobs": change(left)})

        self._folder.change(INDEX, changed, "application/json")

    def _is_over(self, name: str, age: float = 0.0) -> bool:
        """Whether nothing follows, by what was read of it so many seconds ago at most."""
        read, is_over = self._ends.get(name, (0.0, False))
        if not is_over and self._clock.since(read) >= age:
            course = self._folder.read(_COURSE, name)
            is_over = course is not None and course.get("state") in _OVER
            self._ends[name] = self._clock.now(), is_over
        return is_over

    def _order(self) -> list[str]:
        return [it["name"] for it in self._folder.read(INDEX) or ()]

    def _is(self, kind: str) -> bool:
        """Whether this is what runs the jobs of the group."""
        record = self._folder.record()
        return record is not None and record.settings.get(KIND) == kind

    def _of_task(self, job: Job, number: int) -> str:
        """The VM on which a task of a job runs, or ran last."""
        told = self._folder.read(_TASK, job.name, str(number))
        if told is None:
            raise SettingsError(
                f"Task {number} of {job.name} has not begun anywhere",
                code=Code.INVALID_COMMAND_LINE,
                why=screen.words(job),
                fix=f"aiinfra Jobs {job.name} says how far it is",
                setting="--rank",
            )
        return agent.named(self._folder, json_object.text(told.get("instance_id")))

    def _others(self) -> dict[str, Job]:
        """What others run on Ray, or by Slurm, by name, as its head said last."""
        read, found = self._heard_last
        if self._clock.since(read) >= _MOMENT:
            found = self._folder.read(_BY_SLURM if self._is("slurm") else _ON_RAY) or {}
            self._heard_last = self._clock.now(), found
        return found


def _counted(tasks: JobTasks | None, told: Mapping[str, Any]) -> JobTasks | None:
    """A job's tasks, with how many are how far."""
    if tasks is None or not told:
        return tasks
    states = ("waiting", "running", "succeeded", "failed", "cancelled")
    counts: dict[str, Any] = {it: json_object.whole(told.get(it)) or 0 for it in states}
    return replace(tasks, **counts)


def _has_failed(told: Mapping[str, Any]) -> bool:
    """Whether a task has failed, as its VM reports it (aiinfra_vm/jobs.py)."""
    phase, code = told.get("phase"), json_object.whole(told.get("code"))
    return phase == "refused" or (phase == "ended" and code != 0 and told.get("told") is not True)
