"""When a run did what: its stages, with their begin and end."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Annotated


class StageName(enum.StrEnum):
    """The stages of all actions."""

    CONNECT = "connect"
    CHECKS = "checks"
    EARLIER_RUN = "earlier_run"
    INIT = "init"
    PLAN = "plan"
    NETWORKS = "networks"
    CLUSTER = "cluster"
    POOLS = "pools"
    TERRAFORM = "terraform"
    REQUESTS = "requests"
    MACHINES = "machines"
    REFRESH = "refresh"
    REPLACEMENT = "replacement"
    STARTUP = "startup"
    URLS = "urls"
    OBJECTS = "objects"
    TEST_NODES = "test_nodes"
    TEST = "test"
    TEST_CLEANING = "test_cleaning"
    JOB = "job"
    IMAGE = "image"
    RELEASE = "release"
    SWEEP = "sweep"


class StageState(enum.StrEnum):
    """How far a stage is, or how it ended."""

    RUNNING = "running"
    DONE = "done"
    WAITING = "waiting"
    """It ended because its time is over; what it waits for may still come."""
    FAILED = "failed"
    INTERRUPTED = "interrupted"


class OnInterrupt(enum.StrEnum):
    """What an interrupt in a stage leaves behind."""

    NOTHING = "nothing"
    """Nothing was made or changed."""
    KEEPS = "keeps"
    """Everything is kept; the same action goes on from there."""
    SAVES = "saves"
    """Terraform finishes what it has begun and saves the state."""
    STAYS_QUEUED = "stays_queued"
    """Everything is kept, and a request for machines stays in Google's queue."""
    ENDS_TEST = "ends_test"
    """The test ends, and its job is deleted."""
    JOB_GOES_ON = "job_goes_on"
    """The job goes on, and is no longer followed."""
    DESTROYS = "destroys"
    """The job ends, and Destroy removes what was made."""
    LEAVES_REST = "leaves_rest"
    """What is not removed yet is kept, and billed; Destroy goes on from there."""


@dataclass(frozen=True, kw_only=True)
class Stage:
    """One stage of a run; stages can run side by side."""

    name: Annotated[StageName, "which one it is; one name can come several times"]
    state: Annotated[StageState, "how far it is"]
    began: Annotated[str, "when, as ISO 8601 in UTC"]
    ended: Annotated[str | None, "when, likewise; None as long as it runs"] = None
    seconds: Annotated[
        float,
        "how long it has taken, in seconds of Google's clock, which is faster than ours in a "
        "rehearsal",
    ] = 0.0
    words: Annotated[str | None, 'what it has come to, such as "6 of 6"; None for nothing'] = None
