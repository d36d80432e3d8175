"""Status: what exists and the state that it is in."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provision.actions import watching
from provision.context import connect
from provision.documents.status import Status
from provision.kinds import registry, status
from provision.lifecycle import ownership

if TYPE_CHECKING:
    from provision.context import Cloud, Context


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
    return status.look(context, cloud, record, kind, before)
