"""Status: what exists and the state that it is in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from provision.actions import watching
from provision.context import connect
from provision.documents.status import Status
from provision.errors import ClusterError, SettingsError, StateError
from provision.kinds import registry, status
from provision.lifecycle import ownership

if TYPE_CHECKING:
    from provision.context import Cloud, Context
    from provision.deployment.kind import Kind
    from provision.documents.job import Job


def show_status(context: Context) -> None:
    """Show what exists and the state that it is in, without a lock and without writing anything."""
    cloud = connect(context)
    context.report.backend = cloud.folder.location.backend
    found = _look(context, cloud, None)
    if context.watch:
        watching.watch(context, found, lambda before: _look(context, cloud, before))
    else:
        watching.report(context, found)
        context.console.show(watching.lines(context), as_result=True)


def _look(context: Context, cloud: Cloud, before: Status | None) -> Status:
    """Look once; `before` is what an earlier look of this run returned."""
    record = ownership.deployed(context, cloud)
    if record is None:
        ownership.require_nothing(context, cloud, registry.ALL)
        return Status(state=cloud.folder.location.url)
    kind = registry.named(record.kind)
    context.report.jobs = _jobs(context, cloud, kind) or None
    return status.look(context, cloud, record, kind, before)


def _jobs(context: Context, cloud: Cloud, kind: Kind[Any]) -> list[Job]:
    """The jobs of Run that are not over; none where nothing answers that would know them."""
    try:
        jobs = kind.jobs(context, cloud)
        return list(filter(None, map(jobs.find, jobs.unfinished())))
    except (SettingsError, StateError, ClusterError):
        return []  # what does not answer is told beside it
