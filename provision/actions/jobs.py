"""Jobs, Logs and Cancel: look at jobs, follow what they wait for and say, end them."""

from __future__ import annotations

import codecs
import functools
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from provision.codes import Code
from provision.context import connect
from provision.deployment.kind import Stranded
from provision.documents.events import Milestone
from provision.documents.job import Job, JobState
from provision.documents.timeline import OnInterrupt, StageName
from provision.errors import (
    ClusterError,
    Interrupted,
    Problem,
    SettingsError,
    StateError,
    StillWaiting,
)
from provision.kinds import job_folder, registry
from provision.lifecycle import consent, ownership, phases
from provision.lifecycle.consent import Stake
from provision.screens import jobs as screen
from provision.settings.choices import Action
from provision.spec import job as naming
from provision.words import counted, duration

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from provision.console import Console
    from provision.context import Context
    from provision.deployment.kind import Jobs
    from provision.state.record import Record
    from provision.time.deadline import Deadline

_NEVER_BEGAN: Final = (
    "correct --image, or let the machines' account read it, and run it again; this job"
    " is cancelled, and its machines are free"
)
_MORE_RESTARTS: Final = "run it again, with --restarts for as many losses as it is to survive"
PATIENCE: Final = 600.0
"""Seconds of cloud time that are waited for machines where they were lost.

A move takes about as long: machines elsewhere, and their start-up.
"""
_MAKE: Final = "run Create first, or Run --create"
_POLL: Final = 3.0  # seconds of cloud time between two looks
_BAR: Final = 100  # characters of a progress bar that are shown
_LONG: Final = 3600.0  # seconds of silence after which a job that runs is worth a look
_ENDING: Final = 300.0  # seconds of cloud time within which a job that is cancelled ends


def act(context: Context, action: Action) -> None:
    """Do one of these actions."""
    if context.role:
        show_role(context)
        return
    wanted = context.job or context.settings.job_name or ""
    if action is Action.CANCEL and context.every and context.job:
        raise SettingsError(
            "Cancel has --all and the name of a job",
            code=Code.INVALID_COMMAND_LINE,
            fix="remove one of them",
        )
    if action is Action.CANCEL and not wanted and not context.every:
        raise SettingsError(
            "Cancel has no job",
            code=Code.INVALID_COMMAND_LINE,
            fix="write names behind it, as Cancel train-1 train-2, or --all; Jobs lists them",
        )
    jobs = opened(context)
    if action is Action.CANCEL:
        names = (wanted, *context.others)
        asked = (
            _agreed(context, jobs)
            if context.every
            else [meant(context, jobs, name) for name in names]
        )
        # Two words may mean one job.
        cancel(context, jobs, *{it.name: it for it in asked}.values())
        return
    if action is Action.JOBS and not context.job:
        found = filter(None, map(jobs.find, jobs.names()))
        context.report.jobs = [jobs.heard(it) for it in found]
        context.note(_worth_a_look(jobs, context.report.jobs))
        context.console.show(screen.lines(context.report.jobs), as_result=True)
        return
    job = meant(context, jobs, wanted)
    if action is Action.JOBS:
        job = jobs.whole(job)
        context.report.jobs = [job]
        context.note(_worth_a_look(jobs, [job]))
        context.console.show(screen.whole(job), as_result=True)
    elif context.follow:
        follow(context, jobs, job.name)
    else:
        readers = _readers(context, jobs, job)
        _read(jobs, job, readers)
        for reader in readers:
            reader.end()
        if not any(it.has_shown for it in readers):
            context.console.progress(f"{job.name} has said nothing so far: {screen.words(job)}")


def show_role(context: Context) -> None:
    """Print what an account needs that is to run jobs and to change no cluster."""
    from provision.preflight import permissions  # noqa: PLC0415 - only needed here

    spec = registry.of(context.settings).spec(context.settings)
    context.report.role = permissions.of_submitter(spec)
    context.console.result(permissions.submitters_role(spec, context.location))


def _worth_a_look(jobs: Jobs, found: Sequence[Job]) -> list[Problem]:
    """What to do about jobs that wait for lost machines, or have not said anything for long."""
    waiting = [(it, jobs.stranded(it)) for it in found if it.state.may_lack_machines]
    lost = [_who_brings(it, told) for it, told in waiting if told]
    return lost[:1] + [
        Problem(
            code=Code.NOTE,
            what=f"Rank 0 of {it.name} has said nothing for {duration(it.silent)}",
            why="it may wait for another rank, or for data; or it prints little",
            fix=f"aiinfra Logs {it.name} --rank all --tail 5 for the others; {jobs.inside(it)}",
        )
        for it in found
        if it.silent is not None and it.silent >= _LONG
    ]


def opened(context: Context, judge: Callable[[Record], None] = lambda _: None) -> Jobs:
    """The jobs of the cluster; `judge` looks at its record before them."""
    cloud = connect(context)
    record = ownership.existing(context, cloud, registry.ALL, "to run jobs on", _MAKE)
    judge(record)
    return registry.named(record.kind).jobs(context, cloud, record)


def meant(context: Context, jobs: Jobs, wanted: str) -> Job:
    """The job of this name, the newest with it before its number, or of all."""
    known = jobs.names()
    name = naming.newest(wanted, known) if wanted else next(iter(known[::-1]), None)
    return find(context, jobs, name or wanted or "yet")


def cancel(context: Context, jobs: Jobs, *asked: Job) -> None:
    """End jobs, and wait until they have ended; one that is over is no error."""
    for job in asked:
        if job.state.is_over:
            context.console.result(f"{job.name} is over: {screen.state(job)}")
        else:
            jobs.cancel(job)
    left = [job for job in asked if not job.state.is_over]
    if not left:
        context.report.jobs = list(asked)
        return
    with context.progress.stage(StageName.JOB, OnInterrupt.KEEPS) as stage:
        deadline = stage.deadline(_ENDING, _POLL)
        while left:
            found = {it.name: find(context, jobs, it.name) for it in left}
            asked = tuple(found.get(it.name, it) for it in asked)
            for it in found.values():
                stage.news(f"{it.name}: {screen.words(it)}")
                if it.state.is_over:
                    context.console.result(f"{it.name} is over: {screen.state(it)}")
            left = [it for it in found.values() if not it.state.is_over]
            context.report.jobs = list(asked)
            if left and deadline.is_over:
                names = ", ".join(it.name for it in left)
                raise ClusterError(
                    f"{names} is to end, and has not ended yet: {left[0].state}",
                    code=Code.NOT_IN_TIME,
                    why="its machines do not answer, or wait for one that comes before it",
                    fix="aiinfra Jobs shows when it is over; Status shows its machines",
                )
            if left:
                deadline.pause()
        stage.counts(", ".join(f"{it.name}: {it.state}" for it in asked))


def _agreed(context: Context, jobs: Jobs) -> list[Job]:
    """All jobs of Run that are not over, if somebody agrees to the end of them."""
    names = jobs.unfinished(every=True)
    if not names:
        context.console.result("No job of Run is under way")
    else:
        does = f"end {counted(len(names), 'job')}: {', '.join(names)}"
        consent.require(context, Stake.EVERY_JOB, does, "End them?", "no job was cancelled")
    return [find(context, jobs, name) for name in names]


@dataclass
class _Said:
    """How much of an attempt was shown."""

    after: int = 0
    line: str = ""
    decoder: codecs.IncrementalDecoder = field(
        default_factory=lambda: codecs.getincrementaldecoder("utf-8")("replace")
    )


class _Reader:
    """Shows what a rank says, each byte once, in whole lines, as a terminal would leave them.

    A bar, which carriage returns draw over itself, is a line once it has ended; until then its
    last state is in `bar`, for signs of life: programs draw nothing else for hours.
    """

    def __init__(
        self, jobs: Jobs, console: Console, rank: int = 0, prefix: str = "", tail: int | None = None
    ) -> None:
        self._jobs = jobs
        self._console = console
        self._rank = rank
        self._prefix = prefix
        # The last lines of what there is at the first look; None to show all.
        self._kept: deque[str] | None = None if tail is None else deque(maxlen=tail)
        self._said: dict[int, _Said] = {}
        self.has_shown = False

    def read(self, job: Job, newest: Mapping[tuple[int, int], int] | None = None) -> None:
        """Show what is new, of each attempt until now; `newest`: where what each said last begins.

        Other tasks may be in a later attempt than this one, which has no part in it.
        """
        last = job.attempt if self._kept is not None else max(self._said, default=1)
        for attempt in range(1 if job.tasks else last, job.attempt + 1):
            said = self._said.setdefault(attempt, _Said())
            if attempt > last and not job.tasks:
                self.end()
            if newest is not None and newest.get((attempt, self._rank), -1) < said.after:
                continue
            for begins, piece in self._jobs.log(job, attempt, self._rank, said.after):
                self._end(it for it in self._said if it < attempt)
                if begins > said.after:
                    lost = begins - said.after
                    self._console.progress(f"{lost:,} bytes of the log are too old, and are gone")
                said.after = begins + len(piece)
                self._say(said, said.decoder.decode(piece))
        if self._kept is not None:
            kept, self._kept = self._kept, None
            self._out(list(kept))

    def _say(self, said: _Said, text: str) -> None:
        whole, newline, rest = (said.line + text).replace("\r\n", "\n").rpartition("\n")
        # The last state may be half written: the one before it stays, and no more of them.
        said.line = "\r".join(rest.split("\r")[-2:])
        if newline:
            self._out([_last(it) for it in whole.split("\n")])

    def _out(self, lines: list[str]) -> None:
        if self._kept is not None:
            self._kept.extend(lines)
        elif lines:
            self.has_shown = True
            self._console.output("".join(f"{self._prefix}{it}\n" for it in lines))

    @property
    def bar(self) -> str:
        """The last whole state of a line that is drawn over itself; "" for none."""
        line = self._said[max(self._said)].line if self._said else ""
        drawn, again, _ = line.rpartition("\r")
        return drawn.strip()[:_BAR] if again else ""

    def end(self) -> None:
        """Show the rest, which may be no whole line."""
        self._end(self._said)

    def _end(self, attempts: Iterable[int]) -> None:
        for said in map(self._said.__getitem__, attempts):
            rest = _last(said.line + said.decoder.decode(b"", final=True))
            said.line = ""
            if rest:
                self._out([rest])


def _read(jobs: Jobs, job: Job, readers: Sequence[_Reader]) -> None:
    """Show what is new of these ranks; of many tasks, most say nothing between two looks."""
    newest = jobs.newest(job) if job.tasks and len(readers) > 1 else None
    for reader in readers:
        reader.read(job, newest)


def _last(line: str) -> str:
    """What a line that is drawn over itself ends as."""
    return next((it for it in reversed(line.split("\r")) if it.strip()), "")


def _readers(context: Context, jobs: Jobs, job: Job) -> list[_Reader]:
    tail, there = context.settings.log_tail, job.ranks
    if context.settings.log_rank is None:
        return [_Reader(jobs, context.console, it, f"[{it}] ", tail) for it in there]
    rank = rank_of(context, job, "log_rank")
    if rank not in there:
        raise job_folder.no_rank(job, rank, there, f"--rank {there[-1]}, or --rank all")
    return [_Reader(jobs, context.console, rank, "", tail)]


def rank_of(context: Context, job: Job, setting: str) -> int:
    """The rank that --rank says, or else the job's first: that of tasks is no 0 but by chance."""
    said: int = getattr(context.settings, setting)
    return said if setting in context.settings.model_fields_set else job.ranks[0]


GoesOn = Callable[[Job, Stranded], bool]
"""Has the machines of a job that were lost come elsewhere; whether that was tried in full."""


def follow(
    context: Context,
    jobs: Jobs,
    name: str,
    goes_on: GoesOn | None = None,
    *,
    patience: float = PATIENCE,
) -> Job:
    """Show what a job waits for and what it says, until it is over.

    `goes_on`: what is done about machines that were lost and do not come again within `patience`.
    """
    loss, heard = _Loss(context, jobs, patience), _Heard()
    while True:
        try:
            found = _await(context, jobs, name, loss) or _hear(context, jobs, name, loss, heard)
        except ClusterError as error:
            first = error.problems[0]
            context.reached(Milestone.JOB_FAILED, first.what, first.fix)
            raise
        except Interrupted as interrupted:
            raise Interrupted(
                interrupted.signum,
                f"{name} is no longer followed, and goes on",
                fix=f"aiinfra Logs {name} --follow to come back to it;"
                f" aiinfra Cancel {name} to end it",
            ) from interrupted
        if isinstance(found, Job):
            ended = found
            break
        goes_on = goes_on or functools.partial(_tell, context)
        loss.acted(done=goes_on(find(context, jobs, name), found))
    told = "; it ".join(filter(None, [screen.end(ended), screen.spent(ended)]))
    fix = "" if context.destroy_after else "aiinfra Destroy, if nothing else is to run"
    context.reached(Milestone.JOB_ENDED, told, fix)
    return ended


def _tell(context: Context, job: Job, found: Stranded) -> bool:
    context.note([_who_brings(job, found)])
    return False


def _who_brings(job: Job, found: Stranded) -> Problem:
    """Who can bring machines that were lost."""
    return Problem(
        code=Code.NOTE,
        what=f"{job.name} waits for machines that were lost: {found.what}",
        why="nothing asks Google for them, and this action does not"
        if found.here
        else "Google may have some here again, and then it goes on; this action makes none",
        fix=f"aiinfra Run --again {job.name} --create has them come"
        + (
            ", here first"
            if found.here
            else " in another zone of ZONE, or in another way of CAPACITY"
        ),
    )


class _Loss:
    """For how long machines of a job are lost that do not come again."""

    def __init__(self, context: Context, jobs: Jobs, patience: float) -> None:
        self._context, self._jobs, self._patience = context, jobs, patience
        self._deadline: Deadline | None = None

    def look(self, job: Job) -> Stranded | None:
        """What is lost, once nobody waits for it any longer."""
        found = self._jobs.stranded(job) if job.state.may_lack_machines else None
        if found is None:
            self._deadline = None
            return None
        if self._deadline is None:
            self._deadline = self._context.progress.deadline(self._patience, 0)
        return found if self._deadline.is_over or not self._patience else None

    def acted(self, *, done: bool) -> None:
        """Begin to wait again; where nothing came of it, longer each time."""
        self._deadline = None
        self._patience = PATIENCE if done else 2 * max(self._patience, PATIENCE)


@dataclass
class _Heard:
    """What of a job was shown already."""

    readers: list[_Reader] = field(default_factory=list)
    events: int = 0


def _await(context: Context, jobs: Jobs, name: str, loss: _Loss) -> Stranded | None:
    """Wait until the first attempt begins: for the jobs before it, and then for machines.

    Returns what it has lost, if it does not begin for that.
    """
    is_behind, limit, deadline = None, "", None
    is_new = context.report.action == Action.RUN
    with context.progress.stage(StageName.JOB, OnInterrupt.JOB_GOES_ON) as stage:
        while True:
            job = find(context, jobs, name)
            has_failed = bool(job.attempt) and job.state is JobState.FAILED
            was_refused = has_failed and job.began is None
            first = "it could not begin" if was_refused else "it has begun"
            # How it ended is told once what it said is; what it still lacks is no end of the wait.
            runs = replace(job, why="") if job.state is JobState.RUNNING else job
            # Of what is over no news says that it goes on.
            tell = stage.counts if job.state.is_over else stage.news
            tell(f"{name}: {first if has_failed else screen.words(runs)}")
            if job.attempt and is_new and not was_refused:
                on = "" if job.tasks else f" on {counted(len(job.machines), 'machine')}"
                fix = f"aiinfra Logs {name} --follow"
                context.reached(Milestone.JOB_BEGAN, f"{name} has begun{on}", fix)
            if job.attempt or job.state.is_over:
                return None
            is_new = True
            if found := loss.look(job):
                return found
            if job.failure is not None:
                # It can't ever begin, and may hold machines that are paid for.
                jobs.cancel(job)
                remedy = f"{job.failure.tail}; this job is cancelled"
                fix = _NEVER_BEGAN if job.failure.machine else remedy
                context.report.jobs = [job := replace(job, state=JobState.FAILED)]
                _judge(job, fix)
            if is_behind is not bool(job.place):
                is_behind = bool(job.place)
                limit, seconds = _limit(context, is_behind=is_behind)
                deadline = stage.deadline(seconds, _POLL) if seconds else None
            if deadline and deadline.is_over:
                raise StillWaiting(
                    f"{name} has not begun: {screen.words(job)}",
                    why=f"{limit} is over; the job stays, and begins when it can",
                    fix=f"aiinfra Logs {name} --follow to wait on; aiinfra Cancel {name} to give it"
                    " up",
                )
            context.clock.pause(_POLL)


def _limit(context: Context, *, is_behind: bool) -> tuple[str, int | None]:
    """The setting that limits a wait, and its seconds: for jobs before this one, or for machines.

    A queue of one's own is not Google's capacity: who sits at a terminal ends that wait.
    """
    settings = context.settings
    if not is_behind or not (settings.job_wait or context.console.is_terminal):
        return "CAPACITY_TIMEOUT", settings.capacity_timeout
    return "--wait", settings.job_wait


def _hear(context: Context, jobs: Jobs, name: str, loss: _Loss, heard: _Heard) -> Job | Stranded:
    """Show what it says, and what happens to it, until it is over, or has lost its machines."""
    if not heard.readers:
        job = find(context, jobs, name)
        heard.readers = _readers(context, jobs, job)
        if job.tasks and len(job.ranks) > len(heard.readers):
            others = f"aiinfra Logs {name} --rank {job.ranks[-1]}, or all, for the others"
            first = rank_of(context, job, "log_rank")
            context.console.progress(f"What task {first} says follows; {others}")
    readers, said = heard.readers, ""
    if context.settings.notify:
        _learn_ends(context)
    with context.progress.stage(StageName.JOB, OnInterrupt.JOB_GOES_ON) as stage:
        while True:
            job = find(context, jobs, name)
            for event in job.events[heard.events :]:
                context.console.progress(f"{name}: {event}")
            heard.events = len(job.events)
            # What looks wrong while it runs is an event.
            is_told = job.state is JobState.RUNNING and job.machines
            words = screen.words(replace(job, why="") if is_told else job)
            # Of a thousand tasks the end of each is none.
            news = f"{job.state} {job.tasks.failed}" if job.tasks else words
            if news != said and not job.state.is_over:
                said = news
                stage.news(f"{name}: {words}")
            _read(jobs, job, readers)
            # Its bar is drawn in place on a terminal, and is no news in a log.
            stage.counts(f"{name}: {words if job.tasks else readers[0].bar or words}")
            if job.state.is_over:
                return _ended(context, jobs, job, readers)
            if found := loss.look(job):
                return found
            context.clock.pause(_POLL)


def _ended(context: Context, jobs: Jobs, job: Job, readers: Sequence[_Reader]) -> Job:
    """A job that is over, with all that is known of it; it is told what that was."""
    for reader in readers:
        reader.end()
    if job.tasks:
        context.report.jobs = [job := jobs.whole(job)]
    if spent := screen.spent(job):
        context.console.progress(f"{job.name} {spent}")
    lost = jobs.stranded(job) if job.state is JobState.FAILED else None
    _judge(job, _MORE_RESTARTS if lost and lost.final else "")
    return job


def _learn_ends(context: Context) -> None:
    """Ask when the job's machines end, to tell of it in time."""
    with phases.aside(context):
        cloud = connect(context)
        if (record := ownership.deployed(context, cloud)) is not None:
            kind = registry.named(record.kind)
            ends = kind.status(context, cloud.looking(), record, None).ends
            context.lookout.learn(ends, context.clock)
            context.look()


def find(context: Context, jobs: Jobs, name: str) -> Job:
    """A job, which goes into the report."""
    job = jobs.find(name)
    if job is None:
        raise StateError(
            f"There is no job {name}",
            code=Code.NO_JOB,
            why="the cluster was destroyed meanwhile, or nobody has submitted it",
            fix="aiinfra Jobs lists those that there are",
        )
    context.report.jobs = [job]
    return job


def _judge(job: Job, fix: str = "") -> None:
    """Raise what the end of a job means; `fix`: what to do if it failed, "" for the usual."""
    if job.state is JobState.SUCCEEDED:
        return
    if job.state is JobState.CANCELLED:
        raise ClusterError(f"{job.name} was cancelled", code=Code.JOB_FAILED, why=job.why)
    raise ClusterError(
        f"{job.name} failed: {screen.words(job)}",
        code=Code.JOB_FAILED,
        why=job.failure.tail if job.failure and job.failure.machine else "",
        fix=fix
        or f"aiinfra Jobs {job.name} tells of each attempt, aiinfra Logs {job.name}"
        f"{f' --rank {job.failure.rank}' if job.tasks and job.failure else ''} what it said;"
        " then run it again",
    )
