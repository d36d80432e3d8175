"""What happens in a run, as it happens: the lines of `--output ndjson`.

The last line of a run is its whole document, with the event "result" and its time.
"""

from __future__ import annotations

import datetime as dt
import enum
from dataclasses import dataclass
from typing import Annotated, Final, Literal, TypeAlias

from provision.documents.problem import Problem
from provision.documents.timeline import OnInterrupt, Stage, StageName


class Output(enum.StrEnum):
    """What is written to standard output (`--output`)."""

    TEXT = "text"
    JSON = "json"
    """One document at the end."""
    NDJSON = "ndjson"
    """One event a line, and the document as the last one."""


class EventKind(enum.StrEnum):
    """What an event is about."""

    STAGE = "stage"
    WAITING = "waiting"
    MESSAGE = "message"
    NOTE = "note"
    PROBLEM = "problem"
    MILESTONE = "milestone"
    RESULT = "result"


@dataclass(frozen=True, kw_only=True)
class StageEvent:
    """A stage has begun or ended."""

    event: Annotated[Literal[EventKind.STAGE], "its kind"] = EventKind.STAGE
    time: Annotated[str, "when, as ISO 8601 in UTC"]
    stage: Annotated[Stage, "the stage"]


@dataclass(frozen=True, kw_only=True)
class WaitingEvent:
    """A stage that goes on: news, or a sign of life after a minute without any."""

    event: Annotated[Literal[EventKind.WAITING], "its kind"] = EventKind.WAITING
    time: Annotated[str, "when, as ISO 8601 in UTC"]
    stage: Annotated[StageName | None, "the stage; None between stages"]
    words: Annotated[
        str | None,
        'how far it is, such as "0 of 2 VMs run; us-central1-b has none"; None if unknown',
    ] = None
    passed: Annotated[float, "for how long it has gone on, in seconds of Google's clock"]
    most: Annotated[
        float | None,
        "after how many of these seconds it is given up; None where Google or Terraform decide",
    ] = None
    on_interrupt: Annotated[OnInterrupt, "what an interrupt would leave"]
    is_news: Annotated[bool, "whether the words are new"]


@dataclass(frozen=True, kw_only=True)
class MessageEvent:
    """One sentence of what the run does."""

    event: Annotated[Literal[EventKind.MESSAGE], "its kind"] = EventKind.MESSAGE
    time: Annotated[str, "when, as ISO 8601 in UTC"]
    words: Annotated[str, "the sentence"]


@dataclass(frozen=True, kw_only=True)
class NoteEvent:
    """Something worth knowing, which the document at the end has among its `notes`."""

    event: Annotated[Literal[EventKind.NOTE], "its kind"] = EventKind.NOTE
    time: Annotated[str, "when, as ISO 8601 in UTC"]
    note: Annotated[Problem, "the note"]


@dataclass(frozen=True, kw_only=True)
class ProblemEvent:
    """A problem that makes the run fail, which the document at the end has too."""

    event: Annotated[Literal[EventKind.PROBLEM], "its kind"] = EventKind.PROBLEM
    time: Annotated[str, "when, as ISO 8601 in UTC"]
    problem: Annotated[Problem, "the problem"]


class Milestone(enum.StrEnum):
    """What somebody who does not look at the terminal wants to hear of."""

    MACHINES = "machines"
    """All machines that were asked for run."""
    READY = "ready"
    """The cluster can be used."""
    JOB_BEGAN = "job-began"
    JOB_ENDED = "job-ended"
    """The job has succeeded."""
    JOB_FAILED = "job-failed"
    """The job failed, or was cancelled."""
    WAITING = "waiting"
    """A wait goes on for long, or was given up with everything kept."""
    ENDS_SOON = "ends-soon"
    """Machines, a reservation or the time of a job end within half an hour."""
    AMOUNT = "amount"
    """A job has cost a round amount."""
    FAILED = "failed"
    """The run failed, or was stopped."""
    DESTROYED = "destroyed"


@dataclass(frozen=True, kw_only=True)
class MilestoneEvent:
    """What a run has come to: what NOTIFY is told, as one JSON document."""

    event: Annotated[Literal[EventKind.MILESTONE], "its kind"] = EventKind.MILESTONE
    time: Annotated[str, "when, as ISO 8601 in UTC"]
    milestone: Annotated[Milestone, "which one"]
    text: Annotated[str, "all of it for people, in a line or two"]
    words: Annotated[str, 'what it is, such as "2 of 2 VMs run"']
    fix: Annotated[str, 'what to do next, with the command; "" for nothing'] = ""
    action: Annotated[str, "the action of the run"]
    cluster: Annotated[str, "NAME_PREFIX"]
    project: Annotated[str, "PROJECT_ID"]
    zone: Annotated[str, "ZONE, as it is set"]
    rehearsal: Annotated[bool, "whether Google Cloud was simulated"] = False


Event: TypeAlias = (
    StageEvent | WaitingEvent | MessageEvent | NoteEvent | ProblemEvent | MilestoneEvent
)

_MILLISECONDS: Final = "milliseconds"


def stamp(moment: float) -> str:
    """A Unix timestamp as ISO 8601 in UTC, such as "2026-11-22T23:40:01.250Z"."""
    text = dt.datetime.fromtimestamp(moment, dt.UTC).isoformat(timespec=_MILLISECONDS)
    return text.removesuffix("+00:00") + "Z"
