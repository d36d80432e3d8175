"""Jobs as lines for people."""

from __future__ import annotations

import shlex
import textwrap
from typing import TYPE_CHECKING, Final

from provision.documents.job import JobState
from provision.screens import amounts, layout
from provision.screens.layout import Line, Look
from provision.words import counted, duration

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from provision.documents.job import Job, JobTasks

_LOOKS: Final[Mapping[JobState, Look]] = {
    JobState.WAITING: Look.WARN,
    JobState.PREPARING: Look.PLAIN,
    JobState.RUNNING: Look.PLAIN,
    JobState.STOPPING: Look.WARN,
    JobState.SUCCEEDED: Look.GOOD,
    JobState.FAILED: Look.BAD,
    JobState.CANCELLED: Look.FAINT,
}

_SHORT: Final = 32  # characters of a command in the list of all jobs
_MEASURED: Final = 600  # seconds of which VMs tell how busy GPUs were


def lines(jobs: Sequence[Job]) -> list[Line]:
    """A line for each job, the newest first."""
    if not jobs:
        return [Line("There are no jobs; Run -- PROGRAM makes one")]
    newest_first = list(reversed(jobs))
    table = [
        (it.name, state(it), _moment(it), _ran(it), _command(it, _SHORT), words(it))
        for it in newest_first
    ]
    head, *rest = layout.columns([("job", "state", "began", "ran", "command", ""), *table])
    rows = [Line(row, _look(it)) for row, it in zip(rest, newest_first, strict=True)]
    return [Line(head, Look.TITLE), *rows]


def whole(job: Job) -> list[Line]:
    """All about one job."""
    rows = [Line(f"{job.name}  {state(job)}", _look(job))]
    time = "its last ten minutes" if (job.ran or 0) >= _MEASURED else "its time so far"
    facts = {
        "": words(job),
        "command": _command(job),
        "image": job.image,
        "folder": " of commit ".join(filter(None, [job.folder, job.commit])),
        "variables": ", ".join(job.env),
        "by": job.by,
        "submitted": job.submitted,
        "began": job.began,
        "ended": job.ended,
        "ends by": None if job.ended else job.ends,
        "on": ", ".join(job.machines),
        "tasks": _tasks(job),
        "spent": spent(job),
        "GPUs": "" if job.gpu_use is None else f"had work for {job.gpu_use}% of {time}",
        "fetch": job.fetch,
    }
    rows += [Line(f"  {name.ljust(layout.LABEL)}{text}") for name, text in facts.items() if text]
    return [*rows, *(Line(f"  {event}", Look.FAINT) for event in job.events)]


def end(job: Job) -> str:
    """How a job has ended that did not fail; machines that run no program say so."""
    return f"{job.name} {job.why or job.state}"


def spent(job: Job) -> str:
    """For how long it ran on what, and what that cost; "" before it has begun."""
    if job.ran is None:
        return ""
    number, type_ = job.nodes or len(job.machines), job.machine_type
    cost = f", about {amounts.usd(job.cost)}" if job.cost is not None else ""
    if job.tasks:
        gpus = f"{counted(number * job.gpus, 'GPU')} of " if job.gpus else ""
        where = f"{gpus}{'one' if number == 1 else f'{number} x'} {type_}"
        each = f", {'each ' * (len(job.ranks) > 1)}on {where}" if number and type_ else ""
        took = f"{'took' if job.state.is_over else 'runs for'} {duration(job.ran)}"
        all_of = f"{cost} in all" if cost else ""
        return f"{took}; {counted(len(job.ranks), 'task')}{each}{all_of}"
    gpus = f" ({counted(number * job.gpus, 'GPU')})" if job.gpus else ""
    on = f" on {number} x {type_}{gpus}" if number and type_ else ""
    return f"{'ran' if job.state.is_over else 'runs for'} {duration(job.ran)}{on}{cost}"


def state(job: Job) -> str:
    """What something has to be said of is no plain success."""
    return "ended" if _is_doubtful(job) else str(job.state)


def _look(job: Job) -> Look:
    return Look.PLAIN if _is_doubtful(job) else _LOOKS[job.state]


def _is_doubtful(job: Job) -> bool:
    return job.state is JobState.SUCCEEDED and bool(job.why)


def _moment(job: Job) -> str:
    return f"{job.began[:16]}Z" if job.began else ""


def _ran(job: Job) -> str:
    return "" if job.ran is None else duration(job.ran)


def _command(job: Job, most: int | None = None) -> str:
    line = shlex.join(job.command)
    return textwrap.shorten(line, most, placeholder="...") if most else line


def _tasks(job: Job) -> str:
    if not (its := job.tasks):
        return ""
    most = f", {its.most} at a time" if its.most else ""
    # Each run of numbers by its ends.
    runs: list[list[int]] = []
    for it in its.which_failed:
        if runs and it == runs[-1][-1] + 1:
            runs[-1] = [runs[-1][0], it]
        else:
            runs.append([it])
    failed = ", ".join("-".join(map(str, it)) for it in runs)
    return f"{its.first} to {its.last}{most}" + (f"; failed: {failed}" if failed else "")


def _counted(job: Job, its: JobTasks) -> str:
    number = len(job.ranks)
    if job.state is JobState.FAILED and its.failed and job.failure:
        first = f", first {job.failure.rank} on {job.failure.machine}" * bool(job.failure.machine)
        return f"{its.failed} of {counted(number, 'task')} failed: {job.failure.what}{first}"
    parts = {
        "run": its.running,
        "wait": its.waiting,
        "failed": its.failed,
        "cancelled": its.cancelled,
    }
    told = (f"{parts[it]} {it}" for it in parts if parts[it])
    again = f"attempt {job.attempt} of {1 + job.restarts}" if job.attempt > 1 else ""
    counts = ", ".join(filter(None, [f"{its.succeeded} of {number} done", *told, again]))
    return "; ".join(filter(None, [counts, job.why]))


def words(job: Job) -> str:
    """How far a job is, in a few words."""
    return _counted(job, job.tasks) if job.tasks and job.attempt else _words(job)


def _words(job: Job) -> str:
    machines = counted(len(job.machines), "machine")
    again = f", attempt {job.attempt} of {1 + job.restarts}" if job.attempt > 1 else ""
    match job.state:
        case JobState.WAITING:
            return job.why or "it waits"
        case JobState.PREPARING:
            get = "gets" if len(job.machines) == 1 else "get"
            ready = f"{machines} {get} ready{again}" if job.machines else ""
            return "; ".join(filter(None, [ready, job.why])) or "it gets ready"
        case JobState.RUNNING:
            # Of what others run it is not known where.
            where = f"runs on {machines}{again}" if job.machines else "" if job.why else "runs"
            silent = "" if job.silent is None else f", silent for {duration(job.silent)}"
            return "; ".join(filter(None, [where + silent, job.why]))
        case JobState.STOPPING:
            ending = job.why or "a machine of it failed"
            return f"{ending}; its programs have two minutes to end"
        case JobState.FAILED:
            return job.failure.words if job.failure else job.why or "failed"
        case JobState.SUCCEEDED | JobState.CANCELLED:
            where = f"on {machines}{again}" if job.machines else ""
            return "; ".join(filter(None, [where, job.why]))
