"""Status: what exists and the state that it is in."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provision.context import connect
from provision.kinds import registry, status
from provision.lifecycle import older_machines, ownership

if TYPE_CHECKING:
    from provision.context import Context


def show_status(context: Context) -> None:
    """Show what exists and the state that it is in, without a lock and without writing anything."""
    cloud = connect(context)
    context.report.backend = cloud.folder.location.backend
    record = ownership.deployed(context, cloud)
    if record is None:
        ownership.require_nothing(context, cloud, registry.ALL)
        context.report.status = {"kind": None, "resources": []}
        context.console.result(f"There is no deployment in {cloud.folder.location.url}")
        return
    kind = registry.named(record.kind)
    older_machines.tell(context, kind.out_of_date(cloud, record))
    context.report.status = status.look(context, cloud, record, kind)
    context.console.result(status.text(context.report.status, kind))
