"""Run: send a folder, run a program with it on the machines, and follow it.

With `--create` the cluster is made first; with `--destroy-after` it is destroyed at the end.
"""

from __future__ import annotations

import dataclasses
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

from provision.actions import copied_folder
from provision.actions import jobs as jobs_action
from provision.actions.create import create
from provision.actions.destroy import after_all
from provision.codes import Code
from provision.context import connect
from provision.errors import Declined, SettingsError
from provision.files import COPY_FOLDER
from provision.kinds import connection, registry
from provision.lifecycle import consent, ownership, phases
from provision.lifecycle.consent import Stake, Way
from provision.screens import jobs as screen
from provision.spec import job, script
from provision.terraform.log import Log

if TYPE_CHECKING:
    from collections.abc import Mapping

    from provision.context import Context
    from provision.deployment.kind import Jobs
    from provision.spec.job import JobSpec
    from provision.spec.script import WhyNot


def run(context: Context) -> None:
    """Submit a job and, unless it is detached, follow it to its end.

    Raises:
        ClusterError: The job failed.
        StillWaiting: It has not begun in time; it goes on to wait.
    """
    spec = job.of(context.settings, context.command, context.env, ray=context.ray)
    if not context.destroy_after:
        _make_and_run(context, spec)
        return
    if context.detach:
        raise SettingsError(
            "--detach does not go together with --destroy-after",
            code=Code.INVALID_COMMAND_LINE,
            why="nobody would be there to destroy the cluster when the job is over",
            fix="remove one of them",
        )
    spec = dataclasses.replace(spec, ends_cluster=True)
    after_all(context, lambda: _make_and_run(context, spec), lambda: _settle(context))


def _make_and_run(context: Context, spec: JobSpec) -> None:
    own = dataclasses.replace(context, copy=_folder(context))

    def judge(entries: Mapping[str, int], why_not: WhyNot) -> None:
        notes = script.require_there(spec, context.settings, entries, why_not)
        settings = context.settings
        most = 1 if settings.is_gke or settings.is_ray else settings.instance_count
        context.note([*notes, *script.alone(spec, spec.nodes or most)])

    # A folder that is not there, too large, or without the program is told before machines cost.
    to = "the job's machines"
    with copied_folder.packed(own, takes_files=True, to=to, judge=judge) as archive:
        makes = context.create and not _stands(context)
        if makes:
            job.require_possible(spec, context.settings)
            create(context, copies=False)
        jobs = jobs_action.opened(context)
        # Who has agreed to the plan of the cluster, minutes ago, may no longer be there.
        _agree(context, jobs, spec, asks=not (makes or context.agreed))
        name = jobs.submit(spec, archive)
    context.console.progress(f"{name} is submitted; aiinfra Cancel {name} ends it")
    if context.detach:
        jobs_action.find(context, jobs, name)
        context.console.result(f"{name} keeps running: aiinfra Logs {name} --follow")
        return
    ended = jobs_action.follow(context, jobs, name)
    context.console.result(screen.end(ended))


def _agree(context: Context, jobs: Jobs, spec: JobSpec, *, asks: bool) -> None:
    """Say what the job takes, and ask where it costs as much as a Create asks for."""
    needs = jobs.needs(spec)
    if needs is None:
        return
    context.console.progress(needs.words)
    dear = needs.more >= Decimal(str(context.settings.ask_above))
    way = consent.way([Stake.JOB] if dear else [], terminal=context.console.is_terminal)
    if not asks or way is Way.PASSES:
        return
    with consent.unanswered("no job was submitted"):
        agrees = context.console.go_on("Go on?")
    if not agrees:
        raise Declined("No job was submitted, as you said")


def _stands(context: Context) -> bool:
    """Whether a Create has come to its end here."""
    cloud = connect(context)
    if ownership.deployed(context, cloud) is None:
        return False
    # What has powered itself off is started by Create, which changes nothing else.
    may_be_off = context.settings.idle_timeout is not None
    return not may_be_off and cloud.folder.read(connection.KEPT) is not None


def _folder(context: Context) -> Path | None:
    """The folder of the job: that of --copy, the one in the container, else the current one."""
    if context.copy is not None or COPY_FOLDER.exists():
        return context.copy
    here = Path.cwd()
    # A home has too much in it that is nobody's business.
    return None if here in {Path.home(), Path("/")} else here


def _settle(context: Context) -> str:
    """End the job if it goes on, and keep its log, which goes with the cluster; where that is."""
    found = context.report.jobs
    cloud = connect(context)
    record = ownership.deployed(context, cloud)
    if not found or record is None:
        return ""
    jobs = registry.named(record.kind).jobs(context, cloud, record)
    (one,) = found
    if not one.state.is_over:
        with phases.aside(context):
            jobs_action.cancel(context, jobs, one)
    said = b"".join(piece for _, piece in jobs.log(one, one.attempt, 0, 0))
    if not said:
        return ""
    name = Log.name(one.name)
    cloud.folder.write(name, said.decode("utf-8", "replace"), "text/plain; charset=utf-8")
    context.console.progress(f"The log of {one.name} is kept in {cloud.folder.location.url}/{name}")
    return f"{cloud.folder.location.url}/{name}"
