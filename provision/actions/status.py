"""Status: what exists and how it stands."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provision.cloud import connect
from provision.kinds import status
from provision.lifecycle import ownership

if TYPE_CHECKING:
    from provision.context import Run


def show_status(run: Run) -> None:
    """Say what exists and how it stands, without a lock and without writing anything."""
    cloud = connect(run)
    run.report.backend = cloud.folder.location.backend
    record = ownership.deployed(run, cloud)
    if record is None:
        run.report.status = {"kind": None, "resources": []}
        run.console.result(f"There is no deployment in {cloud.folder.location.url}")
        return
    run.report.status = status.look(run, cloud, record)
    run.console.result(status.text(run.report.status))
