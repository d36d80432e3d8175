"""Destroy: remove what Create made."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provision.catalogue import names
from provision.codes import Code
from provision.context import connect
from provision.deployment import workspace
from provision.documents.changes import Changes
from provision.errors import StateError
from provision.kinds import registry
from provision.lifecycle import consent, exclusive, ownership, phases, remove
from provision.lifecycle.phases import Phase

if TYPE_CHECKING:
    from provision.context import Context


def destroy(context: Context) -> None:
    """Remove what Create made, then everything in the state folder except its logs.

    What a Bake that was killed has left of its VM goes first.
    """
    context.look_for_terraform()
    cloud = connect(context)
    baking = names.for_image(context.settings.name_prefix)
    if cloud.folder.beside(baking).record() is not None:
        context.console.progress(f"A Bake has left {baking}: it is destroyed first")
        destroy(context.of(baking))
    location = cloud.folder.location
    context.report.backend = location.backend
    record = ownership.deployed(context, cloud)
    if record is None:
        count = remove.without_state(context, cloud, registry.ALL)
        context.report.changes = Changes(destroy=count)
        if count:
            context.console.result(f"Destroyed {count} resources that were in no state.")
        else:
            context.console.result(
                f"Nothing to destroy: there is no deployment in {location.url}, and nothing in"
                f" {context.settings.project_id} carries its names and this tool's marker"
            )
        return
    kind = registry.named(record.kind)
    consent.require_destroy(context, cloud, record, kind, asked=registry.given(context.settings))
    with (
        context.log(cloud, "destroy") as log,
        workspace.removal_folder(kind.root, location, record) as root,
        exclusive.explained(cloud, "run Destroy again to remove the rest"),
        phases.during(Phase.REMOVING, cloud),
    ):
        tool = context.terraform(root, log)
        with exclusive.alone(context, cloud, record, root, tool):
            ownership.require_same(context, cloud, record)
            cloud.folder.begin_state(tool.binary.version)
            tool.init()
            left = remove.remove(context, cloud, record, tool, kind)
            cloud.folder.clear()
    count = (context.report.changes or Changes()).destroy
    context.console.result(f"Destroyed {count} resources; {location.url} contains only logs now.")
    if left:
        raise StateError(
            "The state named what is not this deployment's: that was left, and the rest removed",
            code=Code.STATE_FOREIGN,
            why="\n".join(left),
            fix="if this deployment made it after all, delete it: it may be billed",
        )
