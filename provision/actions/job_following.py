"""Following a job: what it waits for, what it says, and how it ends."""

from __future__ import annotations

import codecs
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from provision.codes import Code
from provision.documents.job import Job, JobState
from provision.documents.timeline import OnInterrupt, StageName
from provision.errors import ClusterError, Interrupted, StateError, StillWaiting
from provision.screens import jobs as screen

if TYPE_CHECKING:
    from provision.console import Console
    from provision.context import Context
    from provision.deployment.jobs import Jobs

_NEVER_BEGAN: Final = (
    "correct --image, or let the machines' account read it, and run it again; this job"
    " is cancelled, and its machines are free"
)
_POLL: Final = 3.0
"""Seconds of cloud time between two looks."""


class _Reader:
    """Shows what rank 0 says, each byte once, in whole lines."""

    def __init__(self, jobs: Jobs, console: Console) -> None:
        self._jobs = jobs
        self._console = console
        self._attempt = 0
        self._after = 0
        self._line = ""
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def read(self, job: Job) -> None:
        """Show what is new, of each attempt until now."""
        while self._attempt <= job.attempt:
            for begins, piece in self._jobs.log(job, self._attempt, self._after):
                if begins > self._after:
                    lost = begins - self._after
                    self._console.progress(f"{lost:,} bytes of the log are too old, and are gone")
                self._after = begins + len(piece)
                self._say(self._decoder.decode(piece))
            if self._attempt == job.attempt:
                break
            self.end()
            self._attempt, self._after = self._attempt + 1, 0

    def _say(self, text: str) -> None:
        whole, newline, self._line = (self._line + text).rpartition("\n")
        if newline:
            self._console.output(whole + newline)

    def end(self) -> None:
        """Show the rest, which may be no whole line."""
        rest = self._line + self._decoder.decode(b"", final=True)
        self._line = ""
        if rest:
            self._console.output(f"{rest}\n")


def show(context: Context, jobs: Jobs, job: Job) -> None:
    """Show what a job has said so far."""
    reader = _Reader(jobs, context.console)
    reader.read(job)
    reader.end()


def follow(context: Context, jobs: Jobs, name: str) -> Job:
    """Show what a job waits for and what it says, until it is over.

    Raises:
        ClusterError: It failed, or somebody cancelled it.
        StillWaiting: It has not begun within CAPACITY_TIMEOUT; it goes on to wait.
    """
    try:
        _await(context, jobs, name)
        return _hear(context, jobs, name)
    except Interrupted as interrupted:
        raise Interrupted(
            interrupted.signum,
            f"{name} is no longer followed, and goes on",
            fix=f"aiinfra Logs {name} --follow to come back to it; aiinfra Cancel {name} to end it",
        ) from interrupted


def _await(context: Context, jobs: Jobs, name: str) -> None:
    """Wait until the first attempt begins."""
    with context.progress.stage(StageName.JOB, OnInterrupt.JOB_GOES_ON) as stage:
        deadline = stage.deadline(context.settings.capacity_timeout, _POLL)
        while True:
            job = find(context, jobs, name)
            has_failed = job.attempt and job.state is JobState.FAILED
            # How it ended is told once what it said is.
            stage.news(f"{name}: {'it has begun' if has_failed else screen.words(job)}")
            if job.attempt or job.state.is_over:
                return
            if job.failure is not None:
                # It can't ever begin, and may hold machines that are paid for.
                jobs.cancel(job)
                remedy = f"{job.failure.tail}; this job is cancelled"
                fix = _NEVER_BEGAN if job.failure.machine else remedy
                context.report.jobs = [job := replace(job, state=JobState.FAILED)]
                _judge(job, fix)
            if deadline.is_over:
                raise StillWaiting(
                    f"{name} has not begun: {screen.words(job)}",
                    why="CAPACITY_TIMEOUT is over; the job stays, and begins when it can",
                    fix=f"aiinfra Logs {name} --follow to wait on; aiinfra Cancel {name} to give it"
                    " up",
                )
            deadline.pause()


def _hear(context: Context, jobs: Jobs, name: str) -> Job:
    """Show what it says, and what happens to it, until it is over."""
    reader = _Reader(jobs, context.console)
    told = 0
    with context.progress.stage(StageName.JOB, OnInterrupt.JOB_GOES_ON) as stage:
        while True:
            job = find(context, jobs, name)
            for event in job.events[told:]:
                context.console.progress(f"{name}: {event}")
            told = len(job.events)
            stage.news(f"{name}: {screen.words(job)}")
            reader.read(job)
            if job.state.is_over:
                reader.end()
                _judge(job)
                return job
            context.clock.pause(_POLL)


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
    """Raise what the end of a job means.

    `fix`: what to do if it has failed; "" for what is usual.

    Raises:
        ClusterError: It failed, or was cancelled.
    """
    if job.state is JobState.SUCCEEDED:
        return
    if job.state is JobState.CANCELLED:
        raise ClusterError(f"{job.name} was cancelled", code=Code.JOB_FAILED, why=job.why)
    raise ClusterError(
        f"{job.name} failed: {screen.words(job)}",
        code=Code.JOB_FAILED,
        why=job.failure.tail if job.failure and job.failure.machine else "",
        fix=fix
        or f"aiinfra Jobs {job.name} tells of each attempt, aiinfra Logs {job.name} what it said;"
        " then run it again",
    )
