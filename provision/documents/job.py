"""A job: a program that runs on the machines of a cluster."""

from __future__ import annotations

import enum
from dataclasses import dataclass


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


@dataclass(frozen=True, kw_only=True)
class JobFailure:
    """What made the last attempt at a job fail.

    Attributes:
        machine: The machine that failed first; "" where Google refuses them all, for ever.
        rank: Its rank in the job.
        exit_code: That of the program there, as a shell has it; None if it was ended from outside.
        cause: What is known of the reason; "" for nothing.
        tail: The last lines that it said; without a machine, what fixes that.
    """

    machine: str
    rank: int
    exit_code: int | None = None
    cause: str
    tail: str

    @property
    def words(self) -> str:
        """What happened, in a few words."""
        code = "" if self.exit_code is None else f"exit code {self.exit_code}"
        what = ": ".join(filter(None, [code, self.cause])) or "it did not begin"
        return f"{what}, first on {self.machine} (rank {self.rank})" if self.machine else what


@dataclass(frozen=True, kw_only=True)
class Job:
    """A job.

    Attributes:
        name: Its name, which no other job of the cluster has.
        state: How far it is.
        why: What it waits for, or why it ended; "" for nothing.
        place: How many jobs are before it; 0 for none.
        nodes: How many machines it wants; None for all.
        machines: Those of the last attempt, by rank.
        attempt: The number of the last attempt; 0 before the first.
        restarts: How often it may be begun again.
        submitted: When, as ISO 8601 in UTC.
        began: When its program first began, likewise; None if it has not.
        ended: When it was over, likewise; None if it is not.
        ends: When its time is over, likewise; None for never.
        failure: What made the last attempt fail; None for nothing.
        events: What has happened to it, a line each.
    """

    name: str
    state: JobState
    why: str = ""
    place: int = 0
    nodes: int | None = None
    machines: tuple[str, ...] = ()
    attempt: int = 0
    restarts: int = 0
    submitted: str
    began: str | None = None
    ended: str | None = None
    ends: str | None = None
    failure: JobFailure | None = None
    events: tuple[str, ...] = ()
