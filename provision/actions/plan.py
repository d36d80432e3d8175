"""Plan: what Create would do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provision.actions import copied_folder, report_page, secrets_access, validate
from provision.context import connect
from provision.kinds import registry
from provision.lifecycle import apply, calendar, plan_document

if TYPE_CHECKING:
    from provision.context import Context


def plan(context: Context) -> bool:
    """Show what Create would do. Nothing is made, no lock is taken, and only a log is written."""
    if context.role:
        validate.show_role(context, looks=True)
        return False
    with report_page.written(context):
        return _plan(context)


def _plan(context: Context) -> bool:
    context.look_for_terraform()
    kind = registry.of(context.settings)
    # A folder that is not there is told before anybody has to log in.
    with copied_folder.packed(context, takes_files=kind.takes_files) as archive:
        cloud = connect(context)
        exists = cloud.has_bucket()
        secrets_access.tell(context)
        target = apply.settle(context, cloud, kind, archive, bucket=exists, looks=True)
        calendar.tell(context, cloud, target.spec)
        backend = exists and cloud.folder.has_state()
        found, older = apply.plan(context, cloud, kind, target, backend=backend)
    context.report.changes = found.counts
    plan_document.tell_of_older(context, older)
    return bool(older) or not found.is_empty
