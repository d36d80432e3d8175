"""Destroy: remove what Create made."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provision.cloud import connect
from provision.deployment import deployment
from provision.deployment.kind import Kind
from provision.lifecycle import exclusive, ownership, remove

if TYPE_CHECKING:
    from provision.context import Run


def destroy(run: Run) -> None:
    """Remove what Create made, then the state folder but its logs."""
    cloud = connect(run)
    location = cloud.folder.location
    run.report.backend = location.backend
    record = ownership.deployed(run, cloud)
    if record is None:
        run.report.changes = {"add": 0, "change": 0, "destroy": 0}
        run.console.result(f"Nothing to destroy: there is no deployment in {location.url}")
        return
    with (
        run.log(cloud, "destroy") as log,
        deployment.removal_folder(Kind(record.kind), location, record) as root,
        exclusive.explained(cloud, "run Destroy again to remove the rest"),
    ):
        tool = run.terraform(root, log)
        with exclusive.alone(run, cloud, record, root, tool):
            tool.init()
            remove.remove(run, cloud, record, tool)
    cloud.folder.clear()
    count = (run.report.changes or {}).get("destroy", 0)
    run.console.result(f"Destroyed {count} resources; {location.url} holds nothing but its logs.")
