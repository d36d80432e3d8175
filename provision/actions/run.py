"""Run: send a folder, run a program with it on the machines, and follow it."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING

from provision.actions import copied_folder, job_following
from provision.actions.jobs import opened
from provision.files.archive import COPY_FOLDER
from provision.kinds import registry
from provision.spec import job

if TYPE_CHECKING:
    from provision.context import Context


def run(context: Context) -> None:
    """Submit a job and, unless it is detached, follow it to its end.

    Raises:
        SettingsError: There is no command, or the cluster can't run it.
        StateError: There is no cluster.
        ClusterError: The job failed.
        StillWaiting: It has not begun in time; it goes on to wait.
    """
    spec = job.of(context.settings, context.command, context.env)
    own = dataclasses.replace(context, copy=_folder(context))
    kind = registry.of(context.settings)
    with copied_folder.packed(own, takes_files=kind.takes_files) as archive:
        jobs = opened(context)
        name = jobs.submit(spec, archive)
    context.console.progress(f"{name} is submitted; aiinfra Cancel {name} ends it")
    if context.detach:
        job_following.find(context, jobs, name)
        context.console.result(f"{name} keeps running: aiinfra Logs {name} --follow")
        return
    ended = job_following.follow(context, jobs, name)
    context.console.result(f"{ended.name} succeeded")


def _folder(context: Context) -> Path | None:
    """The folder of the job: that of --copy, the one in the container, else the current one."""
    if context.copy is not None or COPY_FOLDER.exists():
        return context.copy
    here = Path.cwd()
    # A home has too much in it that is nobody's business.
    return None if here in {Path.home(), Path("/")} else here
