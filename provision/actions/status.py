"""Status: what exists and the state that it is in; of one deployment, or in short of all."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from provision.actions import watching
from provision.context import connect
from provision.documents.deployed import Deployed
from provision.documents.status import Status
from provision.errors import ClusterError, ProvisionError, SettingsError, StateError
from provision.kinds import registry, status
from provision.lifecycle import ownership
from provision.screens import deployed as screen
from provision.screens import images
from provision.state.location import FOLDER

if TYPE_CHECKING:
    from collections.abc import Iterator

    from provision.context import Cloud, Context
    from provision.deployment.kind import Kind
    from provision.documents.job import Job
    from provision.state.record import Record


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
        lines = [*screen.lines(everything, bucket, width), *images.listed(own, width)]
        context.console.show(lines, as_result=True)
        return not all(one.in_order for one in everything)
    context.report.backend = cloud.folder.location.backend
    found = _look(context, cloud, None)
    if context.watch:
        watching.watch(context, found, lambda before: _look(context, cloud, before))
    else:
        watching.report(context, found)
        context.console.show(watching.lines(context), as_result=True)
    last = context.report.status
    if last is not None and last.is_unknown:
        return None
    return last is None or last.kind is None or bool(last.trouble)


def _all(context: Context, cloud: Cloud) -> Iterator[Deployed]:
    """All deployments of the state bucket; what can't be read of one is its trouble."""
    for folder in cloud.folder.others() if cloud.has_bucket() else ():
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
    record = ownership.deployed(context, cloud)
    if record is None:
        ownership.require_nothing(context, cloud, registry.ALL)
        return Status(state=cloud.folder.location.url)
    kind = registry.named(record.kind)
    context.report.jobs = _jobs(context, cloud, record, kind) or None
    return status.look(context, cloud, record, kind, before)


def _jobs(context: Context, cloud: Cloud, record: Record, kind: Kind[Any]) -> list[Job]:
    """The jobs of Run that are not over; none where nothing answers that would know them."""
    try:
        jobs = kind.jobs(context, cloud, record)
        return list(filter(None, map(jobs.find, jobs.unfinished())))
    except (SettingsError, StateError, ClusterError):
        return []  # what does not answer is told beside it
