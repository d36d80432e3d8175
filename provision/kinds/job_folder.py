"""What stands of jobs in the state folder, whatever runs them.

    jobs/NAME.json               a job, written once
    jobs/files/SHA256.tar.gz     a folder, written once
    LOGS/NAME/logs/ATTEMPT/RANK/ what it said, in pieces named by where they begin

Machines can read what they run and not write it (ADR 54); what is in LOGS any program on them may
have written.
"""

from __future__ import annotations

import json
import re
from dataclasses import asdict, replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from provision.codes import Code
from provision.cost import estimate
from provision.documents import json_object
from provision.documents.events import stamp
from provision.documents.job import Job, JobFailure, JobState, JobTasks
from provision.errors import ClusterError, SettingsError, StateError
from provision.kinds.status import seconds_of
from provision.spec import job, packages
from provision.state import objects
from provision.state.objects import Stored, Writer
from provision.terraform import lock as locks

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from provision.catalogue.prices import Prices
    from provision.files.archive import Archive
    from provision.spec.job import JobSpec
    from provision.spec.pools import Pool
    from provision.state.folder import StateFolder
    from provision.time.clock import Clock

FILES: Final = "jobs/files/"
TO_A_MOUNT: Final = "write what is to stay to a mount: GCS_MOUNT_LIST=my-bucket:/mnt/results"
"""The fix where what a job wrote is gone."""
_SHA256: Final = re.compile(r"[0-9a-f]{64}")
_MONEY: Final = re.compile(r"[0-9]{1,9}(\.[0-9]{1,9})?")
ORDER: Final = "index"
"""The one object beside the jobs that is none: the order in which VMs take them."""
ASKED: Final = Stored("jobs/{}.json", Writer.PROGRAM, objects.said, most=objects.MANY)
_PIECE: Final = Stored(
    "{}/jobs/{}/logs/{}/{}/{}", Writer.MACHINES, bytes, largest=2**23, most=objects.MANY
)
_PAGE: Final = 1000
"""Objects that Cloud Storage lists in an answer."""


def name_of(sha256: str) -> str:
    """The object with a folder, by what it is called in the state folder."""
    return f"{FILES}{sha256}.tar.gz"


class JobFolder:
    """The jobs of a deployment as they were asked for, and what "vms" or "pods" say (`told`)."""

    def __init__(self, folder: StateFolder, told: str, clock: Clock) -> None:
        self._folder = folder
        self._told = told
        self._clock = clock

    def put(
        self,
        spec: JobSpec,
        archive: Archive | None,
        machine: Mapping[str, Any],
        taken: Collection[str] = (),
    ) -> str:
        """Write the folder, unless it is there, and the job; its name.

        `machine`: what `machine` makes of one; {} if that is not known.
        """
        if archive is not None:
            name = name_of(archive.sha256)
            self._folder.write_once(name, archive.path, "application/gzip")
        while True:
            named = job.numbered(spec.name, [*self.ours(), *taken])
            # A job as machines read it.
            document = {
                "name": named,
                "command": list(spec.command),
                "nodes": spec.nodes,
                "gpus": spec.gpus,
                "array": spec.array and asdict(spec.array),
                "restarts": spec.restarts,
                "restart_on": spec.restart_on or "",
                "seconds": spec.seconds,
                "env": dict(spec.env),
                "secrets": {it.name: it.resource for it in spec.secrets},
                "mounts": [it.model_dump() for it in spec.mounts],
                "image": spec.image or "",
                "files": archive.sha256 if archive else spec.files,
                "ends_cluster": spec.ends_cluster,
                "ray": spec.ray,
                "wants": spec.machine or "",
                "queue": spec.queue or "",
                "priority": spec.priority or "",
                "submitted": self.now(),
                # What machines have no use for.
                "commit": spec.commit,
                "by": self._folder.caller or locks.holder(),
                "machine": machine,
            }
            text = json.dumps(document)
            if self._folder.write_once(ASKED.at(named), text, "application/json"):
                return named

    def ours(self) -> Sequence[str]:
        """The names of all jobs of Run, the newest last."""
        found = self._folder.created(ASKED)
        return [it for it in sorted(found, key=lambda name: found[name]) if it != ORDER]

    def asked(self, name: str, *, again: bool = False) -> dict[str, Any] | None:
        """A job as it was asked for; see `Jobs`."""
        asked = self._folder.read(ASKED, name)
        sent = json_object.text((asked or {}).get("files")) if again else ""
        if sent and not (_SHA256.fullmatch(sent) and self._folder.has(name_of(sent))):
            raise StateError(
                f"The folder of {name} is not there any more",
                code=Code.NO_JOB,
                why=f"somebody has deleted {self._folder.location.url}/{name_of(sent)}",
                fix="run it from its folder: Run -- COMMAND"
                + (f"; its commit was {commit}" if (commit := (asked or {}).get("commit")) else ""),
            )
        return asked

    def ends_cluster(self, name: str) -> bool:
        """Whether the cluster is destroyed after a job, to which its Run has agreed."""
        return bool((self.asked(name) or {}).get("ends_cluster"))

    def log(self, job: Job, attempt: int, rank: int, after: int) -> Iterator[tuple[int, bytes]]:
        """The pieces of what a rank said, in their order."""
        of = (self._told, job.name, str(attempt), str(rank))
        for begins in self._folder.names(_PIECE, *of, first=f"{after:015d}"):
            piece = self._folder.read(_PIECE, *of, begins) if begins.isdigit() else None
            if piece is not None:  # what is too old goes
                yield int(begins), piece

    def newest(self, job: Job) -> dict[tuple[int, int], int] | None:
        """Where the last piece begins of each attempt and rank that has said something.

        None where there are so many pieces that a list of each rank costs less than one of all.
        """
        most = _PAGE * len(job.ranks)
        name = f"{self._told}/jobs/{job.name}/logs/{{}}"
        pieces = replace(_PIECE, name=name, part="[0-9]+/[0-9]+/[0-9]+", most=most)
        found = self._folder.names(pieces)
        if len(found) == most:
            return None
        last: dict[tuple[int, int], int] = {}
        for piece in found:
            attempt, rank, begins = map(int, piece.split("/"))
            last[attempt, rank] = max(begins, last.get((attempt, rank), 0))
        return last

    def heard(self, job: Job) -> Job:
        """A job of Run that runs, with for how long rank 0 has said nothing."""
        # Of many tasks the first alone tells nothing.
        if job.state is not JobState.RUNNING or not job.attempt or job.tasks:
            return job
        of = (self._told, job.name)
        # One that has just begun again may have said nothing yet.
        found = (self._folder.created(_PIECE, *of, str(job.attempt - it), "0") for it in (0, 1))
        last = max(next(filter(None, found), {}).values(), default=seconds_of(job.began))
        if last is None:
            return job
        return replace(job, silent=self._clock.cloud(max(0.0, self._clock.now() - last)))

    def now(self) -> str:
        """This moment, as ISO 8601 in UTC."""
        return stamp(self._clock.now())

    def record(self, name: str, asked: Mapping[str, Any]) -> Job:
        """A job that waits, with what was written of it when it was submitted."""
        machine, array = json_object.inner(asked.get("machine")), job.array_of(asked)
        part = json_object.whole(asked.get("gpus"))
        return Job(
            name=name,
            state=JobState.WAITING,
            nodes=json_object.whole(asked.get("nodes")),
            restarts=json_object.whole(asked.get("restarts")) or 0,
            submitted=json_object.text(asked.get("submitted")),
            command=packages.bare(json_object.texts(asked.get("command"))),
            image=json_object.text(asked.get("image")),
            folder=json_object.text(asked.get("files")),
            commit=json_object.text(asked.get("commit")),
            env=tuple(sorted(json_object.inner(asked.get("env")))),
            by=json_object.text(asked.get("by")),
            machine_type=json_object.text(machine.get("type")),
            gpus=part or json_object.whole(machine.get("gpus")) or 0,
            tasks=JobTasks(first=array.first, last=array.last, most=array.most, waiting=array.tasks)
            if array
            else None,
        )

    def spent(self, job: Job, asked: Mapping[str, Any], seconds: float | None = None) -> Job:
        """A job with how long it ran, and what its machines, or parts, cost for that time.

        `seconds`: of cloud time, for how long all of its tasks ran together.
        """
        began, ended = seconds_of(job.began), seconds_of(job.ended)
        if began is None:
            return job
        until = self._clock.now() if ended is None else ended
        ran = self._clock.cloud(max(0.0, until - began))
        job = replace(job, ran=ran)
        each = hourly(json_object.inner(asked.get("machine")), json_object.whole(asked.get("gpus")))
        number = job.nodes or len(job.machines)
        own = seconds if job.tasks else ran * number if number else None
        if each is None or own is None:
            return job
        return replace(job, cost=(each * Decimal(own) / 3600).quantize(Decimal("0.01")))

    def forget(self, name: str) -> None:
        """Remove a job that nothing will run."""
        self._folder.remove(ASKED.at(name))


def machine(pool: Pool, listed: Prices | None) -> dict[str, Any]:
    """What is written down of a machine of this pool."""
    parts = estimate.of_machines(pool, 1, listed) if listed else ()
    known = [part.most for part in parts if part.most is not None]
    hourly = str(sum(known, Decimal(0))) if known and len(known) == len(parts) else ""
    return {"type": pool.machine_type, "gpus": pool.gpus, "hourly": hourly}


def hourly(machine: Mapping[str, Any], part: int | None) -> Decimal | None:
    """What a machine costs in an hour, or so many of its GPUs: their share; None if not known."""
    text, has = json_object.text(machine.get("hourly")), json_object.whole(machine.get("gpus")) or 0
    if not _MONEY.fullmatch(text):
        return None
    return Decimal(text) * part / has if part and 0 < part < has else Decimal(text)


def require_rank(job: Job, rank: int) -> None:
    """See that a job has begun somewhere, and has this rank, or task.

    Raises:
        SettingsError: It has not.
        ClusterError: It is over, and nobody knows of its machines.
    """
    if job.state.is_over and not (job.attempt and (job.machines or job.tasks)):
        raise ClusterError(
            f"{job.name} is on no machine any more: it is {job.state}",
            code=Code.MACHINES_GONE,
            why="what a job writes to its folder goes with its machines",
            fix=TO_A_MOUNT,
        )
    if not job.attempt:
        raise SettingsError(
            f"{job.name} has not begun anywhere: it is {job.state}",
            code=Code.INVALID_COMMAND_LINE,
            why=job.why or "its machines get it once its turn has come",
            fix=f"aiinfra Jobs {job.name} says how far it is",
        )
    there = job.ranks if job.tasks else range(len(job.machines))
    if rank not in there:
        last = f"--rank {there[-1]}" if there else f"aiinfra Jobs {job.name} says where it is"
        raise no_rank(job, rank, there, last)


def no_rank(job: Job, rank: int, there: range, fix: str) -> SettingsError:
    """That a job has not this rank, or task."""
    return SettingsError(
        f"{job.name} has no task {rank}: it has {there[0]} to {there[-1]}"
        if job.tasks
        else f"{job.name} has no rank {rank}: it has {len(there)} of them, from 0 on",
        code=Code.INVALID_COMMAND_LINE,
        fix=fix,
        setting="--rank",
    )


def of_others(name: str, fix: str) -> SettingsError:
    """Why a job that Run has not submitted is left alone, and what its owner does."""
    return SettingsError(
        f"{name} is no job of Run",
        code=Code.WITHOUT_EFFECT,
        why="somebody submitted it with other means, and knows where it is",
        fix=fix,
    )


def failure(found: Mapping[str, Any]) -> JobFailure | None:
    """A failure as machines write it; None for an empty document."""
    if not found:
        return None
    return JobFailure(
        machine=json_object.text(found.get("vm")),
        rank=json_object.whole(found.get("rank")) or 0,
        exit_code=json_object.whole(found.get("code")),
        cause=json_object.text(found.get("cause")),
        tail=json_object.text(found.get("tail")),
    )


def moment(value: object) -> str | None:
    """A moment as ISO 8601, from seconds since 1970; None for what is none."""
    seconds = json_object.number(value)
    try:
        return stamp(seconds) if seconds else None
    except (OverflowError, ValueError, OSError):  # a year that no calendar has
        return None
