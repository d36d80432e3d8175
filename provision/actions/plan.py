"""Plan: what Create would do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provision import copied_folder, rollout
from provision.cloud import connect

if TYPE_CHECKING:
    from provision.run import Run


def plan(run: Run) -> bool:
    """Show what Create would do, and say whether that is anything.

    Nothing is written to the cloud, not even a lock.
    """
    cloud = connect(run)
    exists = cloud.has_bucket()
    with copied_folder.packed(run) as archive:
        target = rollout.settle(run, cloud, archive, bucket=exists)
        found = rollout.plan(run, cloud, target, backend=exists and cloud.folder.has_state())
    run.report.changes = found.counts
    run.console.result(rollout.counts(found))
    return not found.is_empty
