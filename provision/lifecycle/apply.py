"""From what is asked for to what exists: check, plan, adopt, agree, apply."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from provision import __version__, preflight
from provision.deployment import deployment, workspace
from provision.deployment.deployment import Deployment, Findings, Made, SpecT
from provision.deployment.kind import deploy
from provision.deployment.workspace import Workspace
from provision.errors import SettingsError
from provision.lifecycle import adopt, exclusive, ownership
from provision.state.record import Record

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from provision.context import Cloud, Context
    from provision.deployment.kind import Kind
    from provision.files.archive import Archive
    from provision.terraform.plan import Plan


def settle(
    context: Context, cloud: Cloud, kind: Kind[SpecT], archive: Archive | None, *, bucket: bool
) -> Deployment[SpecT]:
    """Make the deployment, if Google would take it.

    Args:
        context: The run.
        cloud: Says what exists.
        kind: Of cluster.
        archive: What travels to the VMs.
        bucket: Whether there is a bucket that could hold a deployment.

    Raises:
        CheckError: Google would refuse what the settings ask for.
        StateError: What exists is not ours to change.
    """
    asked = kind.spec(context.settings)
    record = ownership.check(context, cloud, kind.name) if bucket else None
    found = preflight.run(
        asked,
        cloud.api,
        of_kind=kind.preflight(asked),
        cluster_id=deployment.cluster_id(asked.project_id, asked.name_prefix),
        record=record,
        makes_bucket=not bucket,
    )
    context.note(found.notes)
    spec = kind.resolve(found.require(), record)
    findings = Findings(image=record.image if record else {}, files=archive)
    return deployment.show(context, deploy(kind, spec, cloud.folder.location, findings))


def plan(
    context: Context, cloud: Cloud, kind: Kind[SpecT], target: Deployment[SpecT], *, backend: bool
) -> Plan:
    """Find out what Create would do; nothing is written to the cloud, not even a lock.

    Args:
        context: The run.
        cloud: Where it would be.
        kind: Of cluster.
        target: What would be made.
        backend: Whether there is a state.
    """
    with (
        context.log(cloud if backend else None, "plan") as log,
        workspace.run_folder(target, backend=backend) as root,
    ):
        tool = context.terraform(root, log)
        tool.init()
        desk = Workspace(root, tool, live=False)
        prepared, _ = kind.prepare(cloud, target, desk)
        return _planned(context, cloud, kind, prepared, desk)


def apply(
    context: Context, cloud: Cloud, kind: Kind[SpecT], target: Deployment[SpecT]
) -> Made[SpecT]:
    """Plan, show, apply that plan, and keep what was settled on.

    Raises:
        SettingsError: Nobody agrees to what would be lost.
        StateError: Somebody else is at work.
        TerraformError: It failed.
    """
    with (
        context.log(cloud, "create") as log,
        workspace.run_folder(target, backend=True) as root,
        exclusive.explained(
            cloud, "run Create again to finish, or Destroy to remove what was made"
        ),
    ):
        tool = context.terraform(root, log)
        version = tool.binary.version
        if cloud.folder.record() is None:
            # Before anything else is there: a folder without it would not count as ours.
            cloud.folder.write_record(_record(context, None, kind, target, version, {}))
        with exclusive.alone(context, cloud, target.spec, root, tool):
            tool.init()
            desk = Workspace(root, tool, live=True)
            prepared, postponed = kind.prepare(cloud, target, desk)
            found = _planned(context, cloud, kind, prepared, desk)
            context.report.changes = _sum(context.report.changes, found.counts)
            context.console.progress(counts(found))
            _agree(context, found)
            if not found.is_empty:
                tool.apply()
            outputs = context.report.outputs = tool.outputs()
            before = cloud.folder.record()
            cloud.folder.write_record(_record(context, before, kind, prepared, version, outputs))
    deployment.show(context, prepared)
    return Made(prepared, outputs, postponed)


def _planned(
    context: Context,
    cloud: Cloud,
    kind: Kind[SpecT],
    target: Deployment[SpecT],
    desk: Workspace,
) -> Plan:
    """Plan, and plan again with what is kept and with what a run that ended early left behind."""
    found = desk.plan()
    kept = kind.unfinished(cloud, found.unfinished)
    if kept:
        words = "it is kept, and Google goes on" if desk.live else "Create keeps it as it is"
        for address in kept:
            context.console.progress(f"{address} stands, but lacks nodes: {words}")
        desk.keep(kept)
        found = desk.plan()
    orphans = adopt.find(found.creations, target.cluster_id, cloud.folder.addresses(), cloud.api)
    if not desk.live:
        # What is in the state under the same address can't be imported before it is forgotten.
        orphans = [orphan for orphan in orphans if not orphan.displaces]
    if not orphans:
        return found
    _tell_orphans(context, orphans)
    desk.tool.forget([orphan.address for orphan in orphans if orphan.displaces])
    desk.adopt(adopt.import_blocks(orphans))
    return desk.plan()


def _sum(before: Mapping[str, int] | None, counts: Mapping[str, int]) -> dict[str, int]:
    """What all plans of a run did together."""
    return {name: count + (before or {}).get(name, 0) for name, count in counts.items()}


def _record(  # noqa: PLR0913, PLR0917 - each is a source of its own
    context: Context,
    before: Record | None,
    kind: Kind[SpecT],
    target: Deployment[SpecT],
    terraform_version: str,
    outputs: Mapping[str, Any],
) -> Record:
    """What `deployment.json` is to say of a deployment; {} for outputs that are still to come."""
    spec = target.spec
    return Record(
        kind=target.kind,
        cluster_id=target.cluster_id,
        project_id=spec.project_id,
        name_prefix=spec.name_prefix,
        region=spec.region,
        zone=spec.zone,
        tool_version=__version__,
        terraform_version=terraform_version,
        last_request=before.last_request if before else 0,
        settings=dict(context.report.settings or {}),
        **kind.recorded(target, outputs),
    )


def counts(found: Plan) -> str:
    """What a plan would do, in a sentence."""
    if not any(found.counts.values()) and not found.imported:
        return "No changes: what exists is what the settings describe."
    if found.imported:
        return (
            f"Plan: {found.imported} to import, {found.add} to add, {found.change} to change,"
            f" {found.destroy} to destroy."
        )
    return f"Plan: {found.add} to add, {found.change} to change, {found.destroy} to destroy."


def _tell_orphans(context: Context, orphans: Sequence[adopt.Orphan]) -> None:
    for orphan in orphans:
        context.console.progress(
            f"{orphan.import_id} is there already: a run that ended early left it behind."
            " It is brought into the state."
        )


def _agree(context: Context, found: Plan) -> None:
    """Nothing is replaced, removed or made smaller unless somebody agrees.

    Raises:
        SettingsError: Nobody did.
    """
    if not found.losses or context.agreed:
        return
    losses = "\n".join(found.losses)
    if context.console.is_terminal:
        context.console.progress(losses)
        if context.console.ask("Shall that be done?"):
            return
        raise SettingsError("Nothing was changed, as you asked", why=losses)
    raise SettingsError(
        "This Create would replace, remove or shrink what exists; nothing was changed",
        why=losses,
        fix="if that is what you want, run it again with --yes",
    )
