"""Plan: what Create would do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provision.actions import copied_folder
from provision.cloud import connect
from provision.lifecycle import apply

if TYPE_CHECKING:
    from provision.context import Run


def plan(run: Run) -> bool:
    """Show what Create would do, and say whether that is anything.

    Nothing is written to the cloud, not even a lock.
    """
    cloud = connect(run)
    exists = cloud.has_bucket()
    with copied_folder.packed(run) as archive:
        target = apply.settle(run, cloud, archive, bucket=exists)
        found = apply.plan(run, cloud, target, backend=exists and cloud.folder.has_state())
    run.report.changes = found.counts
    run.console.result(apply.counts(found))
    return not found.is_empty
