"""A job: a program that runs on the machines of a cluster."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated


class JobState(enum.StrEnum):
    """How far a job is."""

    WAITING = "waiting"
    PREPARING = "preparing"
    """Its machines get its folder; none begins before all are ready."""
    RUNNING = "running"
    STOPPING = "stopping"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def is_over(self) -> bool:
        """Whether nothing follows."""
        return self in {JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELLED}

    @property
    def may_lack_machines(self) -> bool:
        """Whether machines may keep it from going on: Kueue lets one in that has none to begin on.

        So such a job is in both states by turns.
        """
        return self in {JobState.WAITING, JobState.PREPARING}


@dataclass(frozen=True, kw_only=True)
class JobFailure:
    """What made the last attempt at a job fail."""

    machine: Annotated[
        str, 'the machine that failed first; "" where Google refuses them all, for ever'
    ]
    rank: Annotated[int, "its rank in the job; of a job of tasks, the number of the task there"]
    exit_code: Annotated[
        int | None,
        "that of the program there, as a shell has it; None if it was ended from outside",
    ] = None
    cause: Annotated[str, 'what is known of the reason; "" for nothing']
    tail: Annotated[str, "the last lines that it said; without a machine, what fixes that"]

    @property
    def words(self) -> str:
        """What happened, in a few words."""
        where = f", first on {self.machine} (rank {self.rank})" if self.machine else ""
        return f"{self.what}{where}"

    @property
    def what(self) -> str:
        """The same, but for where."""
        code = "" if self.exit_code is None else f"exit code {self.exit_code}"
        return ": ".join(filter(None, [code, self.cause])) or "it did not begin"


@dataclass(frozen=True, kw_only=True)
class JobTasks:
    """The tasks of a job of `--array`, each of which runs its program once."""

    first: Annotated[int, "the number of the first, which it has in JOB_INDEX"]
    last: Annotated[int, "that of the last"]
    most: Annotated[int | None, "how many run at a time; None for all that have room"] = None
    waiting: Annotated[int, "how many wait for room, for others, or to begin again"] = 0
    running: Annotated[int, "how many run"] = 0
    succeeded: Annotated[int, "how many have succeeded"] = 0
    failed: Annotated[int, "how many have failed, and do not begin again"] = 0
    cancelled: Annotated[int, "how many were cancelled"] = 0
    which_failed: Annotated[
        tuple[int, ...], "the numbers of those that failed, where Jobs was asked for this job"
    ] = ()


@dataclass(frozen=True, kw_only=True)
class Job:
    """A job."""

    name: Annotated[str, "its name, which no other job of the cluster has"]
    state: Annotated[JobState, "how far it is"]
    why: Annotated[
        str,
        'what it waits for, what looks wrong while it runs, or why it ended; "" for nothing',
    ] = ""
    place: Annotated[int, "how many jobs are before it; 0 for none"] = 0
    nodes: Annotated[int | None, "how many machines it wants; None for all"] = None
    machines: Annotated[tuple[str, ...], "those of the last attempt, by rank"] = ()
    tasks: Annotated[
        JobTasks | None,
        "its tasks, which are on machines of their own or parts of them; None for one program on "
        "all at once",
    ] = None
    attempt: Annotated[int, "the number of the last attempt; 0 before the first"] = 0
    restarts: Annotated[int, "how often it may be begun again"] = 0
    submitted: Annotated[str, "when, as ISO 8601 in UTC"]
    began: Annotated[str | None, "when its program first began, likewise; None if it has not"] = (
        None
    )
    ended: Annotated[str | None, "when it was over, likewise; None if it is not"] = None
    ends: Annotated[str | None, "when its time is over, likewise; None for never"] = None
    failure: Annotated[JobFailure | None, "what made the last attempt fail; None for nothing"] = (
        None
    )
    events: Annotated[tuple[str, ...], "what has happened to it, a line each"] = ()
    command: Annotated[tuple[str, ...], "the program and its arguments; none if not known"] = ()
    image: Annotated[str, 'its container image; "" for the usual one, or none'] = ""
    folder: Annotated[str, 'the SHA-256 of its folder as it travelled; "" for none'] = ""
    commit: Annotated[
        str, 'the commit of git that its folder was, "-dirty" if changed; "" if not known'
    ] = ""
    env: Annotated[tuple[str, ...], "the names of the variables that were set for it"] = ()
    by: Annotated[str, 'who submitted it: an address, or user@host; "" if not known'] = ""
    machine_type: Annotated[str, 'what each of its machines is; "" if not known'] = ""
    gpus: Annotated[int, "how many GPUs of each of them it has; 0 for none, or if not known"] = 0
    ran: Annotated[
        float | None,
        "for how many seconds, from when its program first began until it was over, or until now; "
        "None before",
    ] = None
    gpu_use: Annotated[
        int | None,
        "for how much of the last ten minutes of its attempt its GPUs had work, in percent; None "
        "if not known, as on GKE and on Ray",
    ] = None
    fetch: Annotated[
        str,
        'the command that copies its folder of rank 0 here; "" where that is not there, or Jobs '
        "was not asked for this job",
    ] = ""
    shell: Annotated[
        str,
        'the command that opens a shell where it runs, in its container if it has one; "" where '
        "Ssh was not asked for it",
    ] = ""
    silent: Annotated[
        float | None,
        "for how many seconds rank 0 has said nothing, since it began if nothing at all; None if "
        "it does not run, or Jobs was not asked",
    ] = None
    cost: Annotated[
        Decimal | None,
        "what its machines cost for that time, or its parts of them, in USD, by the prices of when "
        "it was submitted: an estimate; None if not known, and of tasks where Jobs was not asked "
        "for this job",
    ] = None

    @property
    def ranks(self) -> range:
        """Those of its machines, or the numbers of its tasks."""
        if self.tasks:
            return range(self.tasks.first, self.tasks.last + 1)
        return range(len(self.machines) or self.nodes or 1)


@dataclass(frozen=True, kw_only=True)
class Fetched:
    """What of a job was copied to this machine."""

    job: Annotated[str, "its name"]
    rank: Annotated[int, "the rank whose folder it was"]
    machine: Annotated[str, "the VM or pod that sent it"]
    destination: Annotated[str, "the folder here in which all paths are as they are in the job's"]
    files: Annotated[int, "how many files and links were written"]
    size: Annotated[int, "the bytes of all that came"]
    same: Annotated[int, "how many were here already, and are the same"]
    overwritten: Annotated[tuple[str, ...], "those that were here, and were others"]
    left_out: Annotated[
        tuple[str, ...], "what was not copied: links that lead out of the folder, pipes, devices"
    ]
