"""Status: what exists and the state that it is in."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provision.context import connect
from provision.documents.older_machine import OlderMachine
from provision.documents.status import Status
from provision.kinds import registry, status
from provision.lifecycle import ownership
from provision.screens import status as screen

if TYPE_CHECKING:
    from provision.context import Cloud, Context


def show_status(context: Context) -> None:
    """Show what exists and the state that it is in, without a lock and without writing anything."""
    cloud = connect(context)
    context.report.backend = cloud.folder.location.backend
    found = _look(context, cloud, None)
    _report(context, found)
    shown = context.report.status or found
    context.console.show(screen.lines(shown, context.console.width), as_result=True)


def _look(context: Context, cloud: Cloud, before: Status | None) -> Status:
    """Look once; `before` is what an earlier look of this run returned."""
    record = ownership.deployed(context, cloud)
    if record is None:
        ownership.require_nothing(context, cloud, registry.ALL)
        return Status(state=cloud.folder.location.url)
    kind = registry.named(record.kind)
    return status.look(context, cloud, record, kind, before)


def _report(context: Context, found: Status) -> None:
    """Put a look into the report, with a limited number of everything unless all is asked for."""
    shown = found.short()
    context.report.status = shown
    context.report.out_of_date = [
        OlderMachine(name=name, differences=group.differences)
        for group in shown.out_of_date
        for name in group.names
    ]
