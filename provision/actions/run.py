"""Run: send a folder, run a program with it on the machines, and follow it.

With `--create` the cluster is made first; with `--destroy-after` it is destroyed at the end.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import json
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Final

from provision import intake, words
from provision.actions import copied_folder, validate
from provision.actions import jobs as jobs_action
from provision.actions.create import create
from provision.actions.destroy import after_all
from provision.codes import Code
from provision.context import Move, connect
from provision.documents.job import JobState
from provision.errors import (
    CapacityError,
    CheckError,
    Interrupted,
    Problem,
    SettingsError,
    StateError,
    StillWaiting,
    Unanswered,
)
from provision.files import COPY_FOLDER, commit
from provision.kinds import connection, registry
from provision.lifecycle import consent, ownership, phases, plan_document, pricing
from provision.lifecycle.consent import Stake
from provision.screens import jobs as screen
from provision.settings import masking
from provision.settings.candidates import ASKED_BY
from provision.spec import job, packages, script
from provision.terraform.log import Log

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from provision.context import Context
    from provision.deployment.kind import Jobs, Stranded
    from provision.documents.job import Job
    from provision.files.archive import Archive
    from provision.spec.job import JobSpec
    from provision.spec.script import WhyNot
    from provision.state.record import Record

_WHERE: Final = frozenset(
    {"ZONE", "REGION", "CAPACITY", "CAPACITY_TIMEOUT", "MAX_RUN_DURATION"}
    | {name.upper() for name in ASKED_BY.values()}
)
"""Settings that say where and how machines come, and what follows from that."""
_STOOD_ON: Final = frozenset({"GCS_MOUNT_LIST", "NFS_FILESHARE_LIST", "SECRETS"})
"""Settings without which a job would seem to work, and lose what it writes."""


def run(context: Context) -> None:
    """Submit a job and, unless it is detached, follow it to its end.

    Raises:
        ClusterError: The job failed.
        StillWaiting: It has not begun in time; it goes on to wait.
    """
    jobs = None
    if context.again:
        _require_own_folder(context)
        jobs = jobs_action.opened(context, lambda it: _require_as_made(context, it))
        spec = _again(context, jobs)
    else:
        said = (context.command, context.env, context.secrets, context.mounts)
        spec = job.of(context.settings, *said, ray=context.ray)
    if not context.destroy_after:
        _make_and_run(context, spec, jobs)
        return
    if context.detach:
        raise SettingsError(
            "--detach does not go together with --destroy-after",
            code=Code.INVALID_COMMAND_LINE,
            why="nobody would be there to destroy the cluster when the job is over",
            fix="remove one of them",
        )
    spec = dataclasses.replace(spec, ends_cluster=True)
    after_all(context, lambda: _make_and_run(context, spec, jobs), lambda: _settle(context))


def _require_own_folder(context: Context) -> None:
    """See that nothing is said that a job that there was can't have."""
    if context.copy is not None:
        raise SettingsError(
            "--copy does not go together with --again",
            code=Code.INVALID_COMMAND_LINE,
            why="the job has its own folder, which lies beside the state of its cluster",
            fix="remove one of them",
        )


def _again(context: Context, jobs: Jobs) -> JobSpec:
    """A job that there was, with what the command line says in place of what it was.

    Raises:
        StateError: There is no such job, or its folder is gone.
    """
    name = job.newest(context.again, jobs.names()) or context.again
    asked = jobs.asked(name, again=True)
    if asked is None:
        raise StateError(
            f"There is no job {name} of Run",
            code=Code.NO_JOB,
            why="the cluster was destroyed meanwhile, or nobody has submitted it by Run",
            fix="aiinfra Jobs lists those that there are",
        )
    said = (context.command, context.env, context.secrets, context.mounts)
    return job.again(context.settings, name, asked, *said, ray=context.ray)


def _make_and_run(context: Context, spec: JobSpec, jobs: Jobs | None = None) -> None:
    own = dataclasses.replace(context, copy=_folder(context))
    setup = ""

    def judge(entries: Mapping[str, int], why_not: WhyNot) -> None:
        nonlocal setup
        setup = _setup(context, spec, entries)
        notes = script.require_there(spec, context.settings, entries, why_not)
        settings = context.settings
        most = 1 if settings.is_gke or settings.is_ray else settings.instance_count
        context.note([*_worth_knowing(context), *notes, *script.alone(spec, spec.nodes or most)])

    # A folder that is not there, too large, or without the program is told before machines cost.
    to = "the job's machines"
    packed = copied_folder.packed(own, takes_files=True, to=to, judge=judge)
    with contextlib.nullcontext() if context.again else packed as archive:
        makes = context.create and not _stands(context)
        # One that has only powered itself off is not this run's.
        is_new = makes and ownership.deployed(context, connect(context)) is None
        validate.require_granted(context, spec.secrets, spec.mounts, makes=makes)
        if makes:
            job.require_possible(spec, context.settings)
            create(context, copies=False)
        jobs = jobs or jobs_action.opened(context, lambda it: _require_as_made(context, it))
        if archive:
            spec = dataclasses.replace(spec, commit=commit.of(own.copy or COPY_FOLDER))
        wanted = dataclasses.replace(
            spec, command=packages.wrapped(spec.command, setup, spec.image or "")
        )
        told = "waits already, with the same command and folder; --name for another one"
        name = "" if context.again else _waiting(jobs, wanted, archive)
        if context.again and context.create and (found := _unfinished(context, jobs, wanted)):
            told, name = "is not over, and is followed", found
        told = f"{name} {told}"
        if not name:
            # Who has agreed to the plan of the cluster, minutes ago, may no longer be there.
            _agree(context, jobs, spec, asks=not makes)
            with _naming_the_role():
                name = jobs.submit(wanted, archive)
            told = f"{name} is submitted; aiinfra Cancel {name} ends it"
    context.console.progress(told)
    if context.detach:
        jobs_action.find(context, jobs, name)
        context.console.result(f"{name} keeps running: aiinfra Logs {name} --follow")
        return
    if not context.create:
        ended = jobs_action.follow(context, jobs, name)
    else:
        goes_on = functools.partial(_elsewhere, context, jobs, own=is_new or context.destroy_after)
        patience = 0.0 if context.again else jobs_action.PATIENCE
        ended = jobs_action.follow(context, jobs, name, goes_on, patience=patience)
    context.console.result(screen.end(ended))


def _unfinished(context: Context, jobs: Jobs, wanted: JobSpec) -> str:
    """The job that is to be run again, if that goes on, and is what is asked for."""
    name = job.newest(context.again, jobs.names()) or context.again
    if name not in jobs.unfinished(every=True):
        return ""
    found, asked = jobs.find(name), jobs.asked(name) or {}
    goes_on = found is not None and not found.state.is_over
    return name if goes_on and job.is_same(wanted, wanted.files, name, asked) else ""


def _elsewhere(context: Context, jobs: Jobs, one: Job, found: Stranded, *, own: bool) -> bool:
    """Have a cluster whose machines were lost go on where Google has some; whether it was tried.

    What was refused before anything was changed is noted: the job waits on where it is.
    """
    cloud = connect(context)
    try:
        record = ownership.existing(context, cloud, registry.ALL, "to run jobs on")
        spec = registry.of(context.settings).spec(context.settings)
        _require_movable(context, jobs, record, one, found)
        lost = tuple(consent.of_others(jobs)) if found.left else ()
        settings = pricing.of_the_rest(context, cloud, spec)
        if settings is not context.settings:
            context.report.settings = intake.effective(settings)
        left, serial = found.left, record.serial
        move = Move(why=found.what, left=left, serial=serial, own=own, lost=lost)
        create(context.but(settings=settings, move=move), copies=False)
    except (SettingsError, CheckError, StateError) as error:
        context.note(error.problems)
        context.console.progress(f"{one.name} waits on where it is")
        return False
    except Unanswered as error:
        # Its job goes on: with --destroy-after, both end as after any other signal.
        back = f"aiinfra Logs {one.name} --follow to come back to it"
        raise Interrupted(error.signum, error.problems[0].what, fix=back) from error
    except (CapacityError, StillWaiting) as error:
        again = f"run aiinfra Run --again {one.name} --create"
        error.problems = tuple(
            dataclasses.replace(it, fix=it.fix.replace("run Create again", again))
            for it in error.problems
        )
        raise
    return True


def _require_movable(
    context: Context, jobs: Jobs, record: Record, one: Job, found: Stranded
) -> None:
    """See that there is somewhere to go, and that nothing else would change, end or be lost."""
    settings, going = context.settings, {JobState.PREPARING, JobState.RUNNING, JobState.STOPPING}
    found_jobs = filter(None, map(jobs.find, jobs.names()))
    others = [it.name for it in found_jobs if it.state in going and it.name != one.name]
    if others and found.left:
        raise SettingsError(
            f"{one.name} waits for machines that were lost: {found.what}",
            code=Code.IN_USE,
            why=f"{words.listed(others)} still runs on those that are left, and would end",
            fix=f"wait for its end, or Cancel it; then aiinfra Run --again {one.name} --create",
        )
    if not (settings.sites or found.here):
        raise SettingsError(
            f"{one.name} waits for machines that were lost, and may go nowhere else: {found.what}",
            code=Code.CAPACITY_REFUSED,
            why="ZONE names one zone, and CAPACITY no ways",
            fix="ZONE=any, or zones in their order; or CAPACITY=spot,on_demand; then aiinfra Run"
            f" --again {one.name} --create",
            setting="ZONE",
        )
    if settings.nfs_fileshare_list or record.settings.get("NFS_FILESHARE_LIST"):
        raise SettingsError(
            f"{one.name} waits for machines that were lost: {found.what}",
            code=Code.CAPACITY_REFUSED,
            why="the cluster has a Filestore share, which a move would delete with all its files",
            fix="copy them; then Create --yes with another ZONE moves it",
            setting="NFS_FILESHARE_LIST",
        )
    given = {name.upper() for name in settings.model_fields_set}
    now = context.report.settings or {}
    changed = plan_document.changed_settings(record.settings, now, given)
    if told := "; ".join(f"{it.setting} {it.words}" for it in changed if it.setting not in _WHERE):
        raise SettingsError(
            f"{one.name} waits for machines that were lost: {found.what}",
            code=Code.WITHOUT_EFFECT,
            why=f"these settings are not those that the cluster was made with: {told}",
            fix="Plan shows what Create would do; Create does it",
        )


@contextlib.contextmanager
def _naming_the_role() -> Iterator[None]:
    """Say to who may not submit that a role of less than the bucket's owner is enough."""
    try:
        yield
    except StateError as error:
        first, *others = error.problems
        if first.code is Code.PERMISSION_MISSING:
            role = "aiinfra Jobs --role prints the role that has just what Run needs"
            error.problems = (dataclasses.replace(first, fix=role), *others)
        raise


def _waiting(jobs: Jobs, wanted: JobSpec, archive: Archive | None) -> str:
    """The job of an earlier Run that has not begun, or has lost its machines; "" for none.

    A pipeline that ended with 75 is begun again: a second copy would run beside the first.
    """
    files = archive.sha256 if archive else ""
    for name in jobs.unfinished():
        if job.is_same(wanted, files, name, jobs.asked(name) or {}):
            found = jobs.find(name)
            if found is None or not found.state.may_lack_machines:
                continue
            is_new = found.state is JobState.WAITING and not found.attempt
            if is_new or jobs.stranded(found):
                return name
    return ""


def _setup(context: Context, spec: JobSpec, entries: Collection[str]) -> str:
    """What installs the job's packages on each machine, which is said; "" for nothing."""
    asked = context.settings.job_setup
    line, source = packages.wanted(asked, entries), packages.source(entries)
    if not line:
        return ""
    if spec.ray or context.settings.is_ray:
        context.console.progress(
            f"{source} is copied, and not installed: on Ray, runtime_env of ray.init has packages"
        )
        return ""
    whose, more = "--setup", ""
    if asked is None:
        whose, more = source, f"; --setup {packages.NONE} leaves them out"
    context.console.progress(
        f"The packages of {whose} are installed on each machine, once for their content{more}"
    )
    return line


def _worth_knowing(context: Context) -> Iterator[Problem]:
    """What the job would give away, or lose."""
    settings = context.settings
    told = ", ".join(f"--env {name}" for name in context.env if masking.is_telling(name))
    if told:
        yield Problem(
            code=Code.NOTE,
            what=f"{told} has what looks like a credential",
            why="the job keeps it in the state's bucket, where whoever may read that reads it",
            fix="keep it in Secret Manager, and let the job have it by --secret NAME=SECRET",
        )
    kept = settings.gcs_mount_list or settings.nfs_fileshare_list or context.mounts
    if context.destroy_after and not kept:
        yield Problem(
            code=Code.NOTE,
            what="Neither bucket nor share is mounted: what the job writes ends with the cluster",
            why="--destroy-after removes its machines; only the log of rank 0, or a task, is kept",
            fix="--mount my-bucket:/mnt/results, and write there",
        )


def _require_as_made(context: Context, record: Record) -> None:
    """See that the cluster has what the settings say of mounts and secrets; note what else differs.

    A job would write to a folder of its machines where it takes a bucket for mounted.
    """
    given = {name.upper() for name in context.settings.model_fields_set}
    now = context.report.settings or {}
    changed = [
        it
        for it in plan_document.changed_settings(record.settings, now, given)
        if it.setting in given
    ]
    for it in changed:
        if it.setting not in _STOOD_ON:
            continue
        before, wanted = record.settings.get(it.setting) or [], now.get(it.setting) or []
        if any(one not in before for one in json.loads(json.dumps(wanted, default=str))):
            raise SettingsError(
                f"The cluster was made without what {it.setting} has now: {it.words}",
                code=Code.WITHOUT_EFFECT,
                why="only Create gives its machines and pods what they mount and read",
                fix=f"Create, with --replace-vms where VMs run; or leave {it.setting} as it was"
                + (", and take --secret for this job" * (it.setting == "SECRETS"))
                + (", and take --mount for this job" * (it.setting == "GCS_MOUNT_LIST")),
                setting=it.setting,
            )
    if changed:
        told = "; ".join(f"{it.setting} {it.words}" for it in changed)
        note = Problem(
            code=Code.NOTE,
            what=f"The cluster is as its last Create made it, and not by these settings: {told}",
            why="Run changes no cluster",
            fix="Plan shows what Create would do",
        )
        context.note([note])


def _agree(context: Context, jobs: Jobs, spec: JobSpec, *, asks: bool) -> None:
    """Say what the job takes, and ask where it costs as much as a Create asks for."""
    needs = jobs.needs(spec)
    if needs is None:
        return
    context.console.progress(needs.words)
    dear = needs.more >= Decimal(str(context.settings.ask_above))
    if asks and dear:
        consent.require(context, Stake.JOB, "", "Go on?", "no job was submitted")


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
    # Of tasks, not all have a part in the last attempt.
    rank = one.failure.rank if one.tasks and one.failure else one.ranks[0]
    logs = (jobs.log(one, attempt, rank, 0) for attempt in range(one.attempt, 0, -1))
    said = next(filter(None, (b"".join(piece for _, piece in log) for log in logs)), b"")
    if not said:
        return ""
    name = Log.name(one.name)
    cloud.folder.write(name, said.decode("utf-8", "replace"), "text/plain; charset=utf-8")
    context.console.progress(f"The log of {one.name} is kept in {cloud.folder.location.url}/{name}")
    return f"{cloud.folder.location.url}/{name}"
