"""Jobs on the VMs of a group, through the state folder.

Beside what every job has there (`kinds.job_folder`):

    jobs/index.json             the jobs that are not over, in their order
    vms/job.json                how far the job is that is under way
    vms/jobs/NAME/course.json   how far one came that is over
    ray/jobs.json               what others run on Ray, and is not over
"""

from __future__ import annotations

import contextlib
import functools
import json
import re
import shlex
import time
from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from provision.codes import Code
from provision.deployment.kind import Jobs, Needs, Stranded, WayIn, shell
from provision.documents import json_object
from provision.documents.job import Job, JobState
from provision.errors import CheckError, ClusterError, SettingsError
from provision.kinds import connection, job_folder
from provision.kinds.job_folder import JobFolder
from provision.kinds.vms import agent, instances, out_of_date, trouble
from provision.screens import amounts, layout
from provision.state import objects
from provision.state.objects import Stored, Writer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from provision.context import Cloud
    from provision.files.archive import Archive
    from provision.spec.job import JobSpec
    from provision.state.folder import StateFolder
    from provision.time.clock import Clock

_HOME: Final = "/var/lib/aiinfra-job"
"""Where each VM has the folders of jobs (aiinfra_vm/job.py of modules/startup)."""
_CONTAINER: Final = "aiinfra-job"
"""That of the job that runs, if it has an image (containers.py there)."""
_EVERY: Final = 60.0
"""Seconds of cloud time between two looks at the VMs while a job is waited for."""
_STATES: Final = {"PENDING": JobState.WAITING, "RUNNING": JobState.RUNNING}
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,127}")
"""Any program on a VM may write what others run: no other name is shown."""
_SENT: Final = "others run it, by Ray's own means; `ray job logs` on a VM has what it says"
_UNHEARD: Final = (
    "the VMs have not taken note of it yet; those that have powered themselves off (IDLE_TIMEOUT)"
    " are started by Create"
)


def _order(content: bytes) -> list[dict[str, Any]]:
    known = json_object.objects(objects.said(content).get("jobs"))
    return [it | {"name": json_object.text(it.get("name"))} for it in known]


def _others(content: bytes) -> dict[str, Job]:
    found: dict[str, Job] = {}
    for it in json_object.objects(objects.said(content).get("jobs")):
        name, since = json_object.text(it.get("name")), job_folder.moment(it.get("since"))
        state = _STATES.get(json_object.text(it.get("state")))
        if state and _NAME.fullmatch(name):
            began = since if state is JobState.RUNNING else None
            found[name] = Job(name=name, state=state, why=_SENT, submitted=since or "", began=began)
    return found


INDEX: Final = Stored(f"jobs/{job_folder.ORDER}.json", Writer.PROGRAM, _order)
_NOW: Final = Stored("vms/job.json", Writer.MACHINES, objects.said)
_COURSE: Final = Stored("vms/jobs/{}/course.json", Writer.MACHINES, objects.said)
_OTHERS: Final = Stored("ray/jobs.json", Writer.MACHINES, _others)


class Watch:
    """Looks now and then at the VMs of jobs: whether they are there, and hear of any at all."""

    def __init__(self, cloud: Cloud, clock: Clock) -> None:
        self._cloud = cloud
        self._pause = clock.wall(_EVERY)
        self._next = 0.0
        self._deaf = ""
        self._stranded: Stranded | None = None

    def deaf(self) -> str:
        """Why VMs hear of nothing, with what fixes it; "" for no reason that is known here."""
        self._look()
        return self._deaf

    def stranded(self) -> Stranded | None:
        """What VMs are lost that do not come again; None for none."""
        self._look()
        return self._stranded

    def _look(self) -> None:
        if time.monotonic() < self._next:
            return
        self._cloud.folder.look_again()
        record = self._cloud.folder.record()
        if record is None:
            return
        self._deaf, self._stranded = "", None
        # Who may see jobs need not be allowed to see VMs.
        with contextlib.suppress(CheckError):
            seen = instances.see(self._cloud.api, record)
            self._stranded = trouble.stranded(self._cloud, record, seen)
            lost = out_of_date.without_account(self._cloud, record, seen.documents)
            said = (f"{it.problem.what}; {it.problem.fix}" for it in lost)
            self._deaf = "; ".join(said).replace("\n", " ")
        self._next = time.monotonic() + self._pause


class VmJobs(Jobs):
    """The jobs of a group of VMs; `machine` says what each of them is."""

    def __init__(
        self,
        folder: StateFolder,
        clock: Clock,
        watch: Watch,
        machine: Callable[[], Mapping[str, Any]] = dict,
    ) -> None:
        self._folder, self._watch = folder, watch
        self._machine = functools.cache(machine)
        self._jobs = JobFolder(folder, "vms", clock)

    def needs(self, spec: JobSpec) -> Needs | None:
        """Its VMs, which are there, and what of the cluster's cost is this job's."""
        most, machine = agent.size(self._folder), self._machine()
        if most is None or not machine:
            return None
        nodes, gpus, hourly = spec.nodes or most, machine["gpus"], machine["hourly"]
        each = Decimal(hourly) * nodes if hourly else None
        record = self._folder.record()
        ends = spec.seconds or (record and record.settings.get("MAX_RUN_DURATION"))
        daily = f": {amounts.usd(each * 24)} a day, which --time limits" if each else ""
        facts = [
            f"{nodes} of {layout.counted(most, 'VM')}",
            layout.counted(nodes * gpus, "GPU") if gpus else "",
            "there already" + (f" at {amounts.usd(each)}/h" if each else ""),
            f"until --time ({amounts.span(spec.seconds)}) is over" if spec.seconds else "",
            "" if spec.seconds else "until it ends" + ("" if ends else daily),
        ]
        return Needs(words=f"The job takes {', '.join(filter(None, facts))}", more=Decimal(0))

    def submit(self, spec: JobSpec, archive: Archive | None) -> str:
        """Write the folder, the job and its place in the order."""
        most = agent.size(self._folder)
        if most is not None and (spec.nodes or 0) > most:
            raise SettingsError(
                f"The job wants {spec.nodes} VMs, and the group has {most}",
                why="all VMs of a job begin together, so it would wait for ever",
                fix=f"--nodes {most}, or a greater INSTANCE_COUNT and Create",
                setting="--nodes",
            )
        name = self._jobs.put(spec, archive, self._machine())
        self._change_index(lambda known: [*known, {"name": name, "cancelled": False}])
        return name

    def names(self) -> Sequence[str]:
        """The names of all jobs, the newest last; first those that others run on Ray."""
        ours = self._jobs.names()
        return [*(name for name in self._others() if name not in ours), *ours]

    def find(self, name: str) -> Job | None:
        """How far a job is, by what the VMs say of it."""
        asked = self._jobs.asked(name)
        if asked is None:
            return self._others().get(name)
        course = self._folder.read(_COURSE, name) or self._folder.read(_NOW) or {}
        course = course if course.get("name") == name else {}
        is_known = course and course.get("state") != JobState.WAITING
        if not is_known and (deaf := self._watch.deaf()):
            return self._job(name, asked, {"why": deaf})
        if course:
            return self._with_loss(self._job(name, asked, course))
        names = self._order()
        earlier = names[: names.index(name)] if name in names else []
        before = [it for it in earlier if not self._is_over(it)]
        why = f"{before[0]} is before it" if before else _UNHEARD
        return self._with_loss(self._job(name, asked, {"why": why}, place=len(before)))

    def _with_loss(self, job: Job) -> Job:
        """A job with what it has lost: where no VM is left, none says that it does not run."""
        found = None if job.state.is_over else self._watch.stranded()
        if found is None or (found.left and job.state is not JobState.WAITING):
            return job
        why = "" if job.why == _UNHEARD or not found.left else job.why
        why = "; ".join(filter(None, [why, found.what]))
        return replace(job, state=JobState.WAITING, why=why)

    def stranded(self, job: Job) -> Stranded | None:
        """By their group; with no VM left, what comes next of an attempt is its failure."""
        found = self._watch.stranded()
        course = self._folder.read(_NOW) or {}
        if found is None or found.left or course.get("name") != job.name:
            return found
        has_begun = course.get("state") in (JobState.RUNNING, JobState.STOPPING)
        failures = json_object.whole(course.get("failures")) or 0
        return replace(found, final=has_begun and failures >= job.restarts)

    def asked(self, name: str, *, again: bool = False) -> Mapping[str, Any] | None:
        """A job as it was submitted."""
        return self._jobs.again(name) if again else self._jobs.asked(name)

    def unfinished(self, *, every: bool = False) -> Sequence[str]:
        """The names of those that are not over, in their order."""
        return [
            it
            for it in self._order()
            if not self._is_over(it) and (every or not self._jobs.ends_cluster(it))
        ]

    def log(self, job: Job, attempt: int, rank: int, after: int) -> Iterator[tuple[int, bytes]]:
        """The pieces, in their order."""
        return self._jobs.log(job, attempt, rank, after)

    def heard(self, job: Job) -> Job:
        """By the newest piece of its log."""
        return self._jobs.heard(job)

    def inside(self, job: Job) -> str:
        """By ssh."""
        return f"aiinfra Ssh {next(iter(job.machines), '0')}, and there nvidia-smi"

    def way_in(self, job: Job, rank: int) -> WayIn:
        """By gcloud; into the container if the job has an image."""
        if self._jobs.asked(job.name) is None:
            raise job_folder.of_others(job.name, "Ssh, and there `ray job list`")
        job_folder.require_rank(job, rank)
        name, record = job.machines[rank], self._folder.record()
        vm = connection.vms(self._folder).get(name)
        if record is None or vm is None:
            raise ClusterError(
                f"{name}, the VM of rank {rank} of {job.name}, is gone",
                code=Code.MACHINES_GONE,
                why="what the job wrote to its folder went with that VM's disk",
                fix=job_folder.TO_A_MOUNT,
            )
        is_public = bool(vm.get("external_ip"))
        command = tuple(shlex.split(connection.ssh(name, record, is_public=is_public)))
        folder = f"{_HOME}/{job.name}"
        line = f"sudo docker exec -it {_CONTAINER} {shlex.join(shell(folder))}" if job.image else ""
        line = line or f'cd {folder} && exec "$SHELL" -l'
        on_ray = record.settings.get("ORCHESTRATOR_TYPE") == "ray"
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
        if self._jobs.asked(job.name) is None:
            raise job_folder.of_others(job.name, f"ray job stop {job.name}, on a VM")

        def marked(known: list[dict[str, Any]]) -> list[dict[str, Any]]:
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
        job = replace(
            self._jobs.record(name, asked),
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
        )
        return self._jobs.spent(job, asked)

    def _change_index(self, change: Callable[[list[dict[str, Any]]], list[dict[str, Any]]]) -> None:
        """Change the order of jobs, and take those out that are over."""

        def changed(known: list[dict[str, Any]] | None) -> str:
            left = [it for it in known or () if not self._is_over(it["name"])]
            return json.dumps({"jobs": change(left)})

        self._folder.change(INDEX, changed, "application/json")

    def _is_over(self, name: str) -> bool:
        return self._folder.read(_COURSE, name) is not None

    def _order(self) -> list[str]:
        return [it["name"] for it in self._folder.read(INDEX) or ()]

    def _others(self) -> dict[str, Job]:
        """What others run on Ray, by name, as its head said last."""
        return self._folder.read(_OTHERS) or {}
