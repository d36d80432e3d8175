"""Jobs, Logs and Cancel: look at jobs, hear what they say, end them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from provision.actions import job_following
from provision.codes import Code
from provision.context import connect
from provision.documents.timeline import OnInterrupt, StageName
from provision.errors import ClusterError, SettingsError
from provision.kinds import registry
from provision.lifecycle import ownership
from provision.screens import jobs as screen
from provision.settings.choices import Action
from provision.spec import job as naming

if TYPE_CHECKING:
    from provision.context import Context
    from provision.deployment.jobs import Jobs
    from provision.documents.job import Job

_POLL: Final = 3.0
_ENDING: Final = 300.0
"""Seconds of cloud time within which a job that is cancelled ends."""


def act(context: Context, action: Action) -> None:
    """Do one of these actions.

    Raises:
        ClusterError: A job that is followed failed, or one that is cancelled did not end.
        StillWaiting: A job that is followed has not begun in time.
    """
    wanted = context.job or context.settings.job_name or ""
    if action is Action.CANCEL and not wanted:
        raise SettingsError(
            "Cancel has no job",
            code=Code.INVALID_COMMAND_LINE,
            fix="write its name behind it: Cancel NAME; Jobs lists them",
        )
    jobs = opened(context)
    if action is Action.JOBS and not context.job:
        found = filter(None, map(jobs.find, jobs.names()))
        context.report.jobs = list(found)
        context.console.show(screen.lines(context.report.jobs), as_result=True)
        return
    job = _meant(context, jobs, wanted)
    if action is Action.JOBS:
        context.console.show(screen.whole(job), as_result=True)
    elif action is Action.CANCEL:
        cancel(context, jobs, job)
    elif context.follow:
        job_following.follow(context, jobs, job.name)
    else:
        job_following.show(context, jobs, job)


def opened(context: Context) -> Jobs:
    """The jobs of the cluster."""
    cloud = connect(context)
    record = ownership.existing(context, cloud, registry.ALL, "to run jobs on")
    return registry.named(record.kind).jobs(context, cloud, record)


def _meant(context: Context, jobs: Jobs, wanted: str) -> Job:
    """The job of this name, the newest with it before its number, or of all."""
    known = jobs.names()
    name = naming.newest(wanted, known) if wanted else next(iter(known[::-1]), None)
    return job_following.find(context, jobs, name or wanted or "yet")


def cancel(context: Context, jobs: Jobs, job: Job) -> None:
    """End a job, and wait until it has ended; one that is over is no error.

    Raises:
        ClusterError: It did not end in time.
    """
    if job.state.is_over:
        context.console.result(f"{job.name} is over: {job.state}")
        return
    jobs.cancel(job)
    with context.progress.stage(StageName.JOB, OnInterrupt.KEEPS) as stage:
        deadline = stage.deadline(_ENDING, _POLL)
        while not (job := job_following.find(context, jobs, job.name)).state.is_over:
            stage.news(f"{job.name}: {screen.words(job)}")
            if deadline.is_over:
                raise ClusterError(
                    f"{job.name} is to end, and has not ended yet: {job.state}",
                    code=Code.NOT_IN_TIME,
                    why="its machines do not answer, or wait for one that comes before it",
                    fix=f"aiinfra Jobs {job.name} shows when it is over; Status shows them",
                )
            deadline.pause()
        stage.counts(f"{job.name}: {job.state}")
    context.console.result(f"{job.name} is {job.state}")
