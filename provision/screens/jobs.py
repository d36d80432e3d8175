"""Jobs as lines for people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from provision.documents.job import JobState
from provision.screens import layout
from provision.screens.layout import Line, Look

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from provision.documents.job import Job

_LOOKS: Final[Mapping[JobState, Look]] = {
    JobState.WAITING: Look.WARN,
    JobState.PREPARING: Look.PLAIN,
    JobState.RUNNING: Look.PLAIN,
    JobState.STOPPING: Look.WARN,
    JobState.SUCCEEDED: Look.GOOD,
    JobState.FAILED: Look.BAD,
    JobState.CANCELLED: Look.FAINT,
}


def lines(jobs: Sequence[Job]) -> list[Line]:
    """A line for each job, the newest first."""
    if not jobs:
        return [Line("There are no jobs; Run -- PROGRAM makes one")]
    newest_first = list(reversed(jobs))
    table = [(it.name, str(it.state), it.submitted[:19] + "Z", words(it)) for it in newest_first]
    head, *rest = layout.columns([("job", "state", "submitted", ""), *table])
    rows = [Line(row, _LOOKS[it.state]) for row, it in zip(rest, newest_first, strict=True)]
    return [Line(head, Look.TITLE), *rows]


def whole(job: Job) -> list[Line]:
    """All about one job."""
    rows = [Line(f"{job.name}  {job.state}", _LOOKS[job.state])]
    facts = {
        "": words(job),
        "submitted": job.submitted,
        "began": job.began,
        "ended": job.ended,
        "ends by": None if job.ended else job.ends,
        "on": ", ".join(job.machines),
    }
    rows += [Line(f"  {name.ljust(layout.LABEL)}{text}") for name, text in facts.items() if text]
    return [*rows, *(Line(f"  {event}", Look.FAINT) for event in job.events)]


def end(job: Job) -> str:
    """How a job has ended that did not fail; machines that run no program say so."""
    return f"{job.name} {job.why or job.state}"


def words(job: Job) -> str:
    """How far a job is, in a few words."""
    machines = layout.counted(len(job.machines), "machine")
    again = f", attempt {job.attempt} of {1 + job.restarts}" if job.attempt > 1 else ""
    match job.state:
        case JobState.WAITING:
            return job.why or "it waits"
        case JobState.PREPARING:
            ready = f"{machines} get ready{again}" if job.machines else ""
            return "; ".join(filter(None, [ready, job.why])) or "it gets ready"
        case JobState.RUNNING:
            # Of what others run it is not known where.
            return f"runs on {machines}{again}" if job.machines else job.why or "runs"
        case JobState.STOPPING:
            ending = job.why or "a machine of it failed"
            return f"{ending}; its programs have two minutes to end"
        case JobState.FAILED:
            return job.failure.words if job.failure else job.why or "failed"
        case JobState.SUCCEEDED | JobState.CANCELLED:
            where = f"on {machines}{again}" if job.machines else ""
            return "; ".join(filter(None, [where, job.why]))
