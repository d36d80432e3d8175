"""Status: what exists and the state that it is in; of one deployment, or in short of all.

With `--watch` it looks again and again, and shows what is news.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import signal
from typing import TYPE_CHECKING, Any, Final

from provision.context import connect
from provision.documents.deployed import Deployed, OlderMachine
from provision.documents.status import Status
from provision.errors import ClusterError, Interrupted, ProvisionError, SettingsError, StateError
from provision.kinds import registry, status
from provision.lifecycle import ownership
from provision.screens import jobs, project
from provision.screens import status as screen
from provision.screens.layout import Line, Look
from provision.state.folder import LOG
from provision.state.location import FOLDER

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from provision.context import Cloud, Context
    from provision.deployment.kind import Kind
    from provision.documents.job import Job
    from provision.state.record import Record

_INTERVAL: Final = 10.0  # seconds of cloud time between two looks
_SIGN_OF_LIFE: Final = 60.0
"""Seconds of cloud time after which something is said, where there is no terminal."""
_FAILURES: Final = 3  # looks in a row that may fail before the watch does


def show_status(context: Context) -> bool | None:
    """Show what exists and the state that it is in, without a lock and without writing anything.

    Returns whether something is broken, or the deployment that is named does not exist; None where
    nobody knows.
    """
    cloud = connect(context)
    if context.lists:
        everything = context.report.deployments = list(_all(context, cloud))
        bucket = f"gs://{cloud.folder.location.bucket}"
        context.report.images = own = [
            image
            for kind in registry.ALL
            if kind.images is not None
            for image in kind.images.found(cloud, context.settings.project_id)
        ]
        width = context.console.width
        listed = [*project.deployments(everything, bucket, width), *project.listed(own, width)]
        context.console.show(listed, as_result=True)
        return not all(one.in_order for one in everything)
    context.report.backend = cloud.folder.location.backend
    found = _look(context, cloud, None)
    if context.watch:
        watch(context, found, lambda before: _look(context, cloud, before))
    else:
        report(context, found)
        context.console.show(lines(context), as_result=True)
    last = context.report.status
    if last is not None:
        context.lookout.learn(last.ends, context.clock)
        context.look()
    if last is not None and last.is_unknown:
        return None
    return last is None or last.kind is None or bool(last.trouble)


def _all(context: Context, cloud: Cloud) -> Iterator[Deployed]:
    """All deployments of the state bucket; what can't be read of one is its trouble."""
    cloud = cloud.looking(of_all=True)
    if not cloud.has_bucket():
        return
    forms = [it for kind in registry.ALL for it in kind.listed(jobs=False)]
    cloud.folder.list_once(forms, of_all=True)
    for folder in cloud.folder.others():
        try:
            one = _in_short(context, dataclasses.replace(cloud, folder=folder))
        except ProvisionError as error:
            name = folder.location.folder.rpartition("/")[2].removesuffix(FOLDER)
            what = tuple(problem.what for problem in error.problems)
            one = Deployed(name=name, state=folder.location.url, in_order=False, trouble=what)
        if one is not None:
            yield one


def _in_short(context: Context, cloud: Cloud) -> Deployed | None:
    """A deployment; None where only logs are left of one."""
    record = ownership.deployed(context, cloud)
    if record is None:
        return None
    found = status.look(context, cloud, record, registry.named(record.kind))
    return Deployed(
        name=found.name,
        state=found.state,
        kind=found.kind,
        words=found.words,
        zone=found.zone,
        machines=found.machines,
        hours=found.so_far.hours if found.so_far else None,
        cost=found.cost.now if found.cost else None,
        in_order=not found.trouble,
        trouble=tuple(one.what for one in found.trouble),
        pending=found.is_pending,
    )


def _look(context: Context, cloud: Cloud, before: Status | None) -> Status:
    """Look once; `before` is what an earlier look of this run returned."""
    cloud = cloud.looking()
    record = ownership.deployed(context, cloud)
    if record is None:
        ownership.require_nothing(context, cloud, registry.ALL)
        return Status(state=cloud.folder.location.url)
    kind = registry.named(record.kind)
    cloud.folder.list_once([LOG, *kind.listed(jobs=True)])
    context.report.jobs = _jobs(context, cloud, record, kind) or None
    return status.look(context, cloud, record, kind, before)


def _jobs(context: Context, cloud: Cloud, record: Record, kind: Kind[Any]) -> list[Job]:
    """The jobs of Run that are not over; none where nothing answers that would know them."""
    try:
        known = kind.jobs(context, cloud, record)
        return list(filter(None, map(known.find, known.unfinished())))
    except (SettingsError, StateError, ClusterError):
        return []  # what does not answer is told beside it


def watch(context: Context, first: Status, look: Callable[[Status], Status]) -> None:
    """Look until nothing is pending, or until Ctrl-C, which is no error here."""
    try:
        _watch(context, first, look)
    except Interrupted as interrupted:
        if interrupted.signum != signal.SIGINT:
            raise
    else:
        context.console.progress("Nothing is pending, so this watch ends")


def report(context: Context, found: Status) -> None:
    """Put a look into the report, with a limited number of everything unless all is asked for."""
    shown = found if context.full else found.short()
    context.report.status = shown
    context.report.out_of_date = [
        OlderMachine(name=name, differences=group.differences)
        for group in shown.out_of_date
        for name in group.names
    ]


def lines(context: Context) -> list[Line]:
    """What is in the report as lines for people."""
    found = context.report.status or Status()
    told = list(screen.lines(found, context.console.width, full=context.full))
    return [*told, *jobs.lines(context.report.jobs)] if context.report.jobs else told


def _watch(context: Context, found: Status, look: Callable[[Status], Status]) -> None:
    report(context, found)
    _show(context)
    silent = 0.0
    while found.is_pending:
        context.clock.pause(_INTERVAL)
        before, found = found, _look_again(context, found, look)
        report(context, found)
        if context.console.redraws or found.news != before.news:
            _show(context)
            silent = 0.0
            continue
        silent += _INTERVAL
        if silent >= _SIGN_OF_LIFE:
            context.console.progress(f"{_now()}  unchanged; Ctrl-C ends this watch")
            silent = 0.0


def _look_again(context: Context, before: Status, look: Callable[[Status], Status]) -> Status:
    """Look once more; what one look can't find out, a later one may."""
    for _ in range(_FAILURES - 1):
        try:
            return look(before)
        except ProvisionError as error:
            context.console.progress(f"{_now()}  this look failed, another follows: {error}")
            context.clock.pause(_INTERVAL)
    return look(before)


def _show(context: Context) -> None:
    """Show a look: over the last one on a terminal, elsewhere as a block."""
    title = Line(f"{_now()}, every {_INTERVAL:.0f} s; Ctrl-C ends this watch", Look.FAINT)
    if context.console.redraws:
        context.console.redraw([title, *lines(context)])
    else:
        context.console.show([title, *lines(context), Line("")], as_result=True)


def _now() -> str:
    return f"{dt.datetime.now(dt.UTC):%H:%M:%S} UTC"


def test(context: Context) -> None:
    """Run the test of the kind of cluster that exists, and print its verdict."""
    cloud = connect(context)
    record = ownership.existing(context, cloud, registry.ALL, "to test")
    context.console.result(registry.named(record.kind).test(context, cloud, record))
