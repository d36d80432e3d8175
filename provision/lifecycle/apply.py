"""From settings to what exists: plan, adopt, agree, apply."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from provision import preflight
from provision.catalogue import gke_versions
from provision.deployment import deployment
from provision.deployment.kind import Findings
from provision.errors import CheckError, SettingsError
from provision.kinds.gke import unfinished
from provision.kinds.vms import flex_start
from provision.lifecycle import adopt, exclusive, ownership

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from provision.context import Cloud, Context
    from provision.deployment.deployment import Deployment
    from provision.deployment.record import Record
    from provision.files import archive as files
    from provision.settings import Settings
    from provision.terraform import Terraform
    from provision.terraform import plan as plans


@dataclass(frozen=True)
class Made:
    """What stands after an apply.

    Attributes:
        target: The deployment, with all that was found out on the way.
        outputs: Terraform's.
        postponed: VMs that are to be asked for once the open requests have ended.
    """

    target: Deployment
    outputs: Mapping[str, Any]
    postponed: int


def settle(
    context: Context, cloud: Cloud, archive: files.Archive | None, *, bucket: bool
) -> Deployment:
    """Make the deployment, if Google would take it.

    Args:
        context: The run.
        cloud: Says what exists.
        archive: What travels to the VMs.
        bucket: Whether there is a bucket that could hold a deployment.

    Raises:
        CheckError: Google would refuse what the settings ask for.
    """
    offline = deployment.make(context.settings)
    record = ownership.check(context, cloud, offline.kind) if bucket else None
    found = preflight.run(
        context.settings,
        cloud.api,
        cluster_id=offline.cluster_id,
        record=record,
        makes_bucket=not bucket,
    )
    context.note(found.notes)
    settings = found.require()
    findings = Findings(
        image=record.image if record else {},
        files=archive,
        version=_version(settings, found.gke_version, record),
    )
    return deployment.show(context, deployment.make(settings, findings))


def _version(settings: Settings, found: str | None, record: Record | None) -> str | None:
    """The full version of a GKE cluster; what an earlier run has settled on where nobody looked.

    Raises:
        CheckError: It stands for many, and Google was not asked for them.
    """
    if settings.gke_version is None or found is not None:
        return found
    before = record.gke_version if record else None
    settled = gke_versions.settle(settings.gke_version, [settings.gke_version], before)
    if settled is None or gke_versions.is_full(settled):
        return settled
    raise CheckError(
        f"Which version of GKE {settled} stands for is not known",
        why="Google's versions could not be asked for, or the check of them was skipped",
        fix="take gke-version out of SKIP_CHECKS, or write the version in full, such as"
        " 1.33.5-gke.1080000",
        setting="GKE_VERSION",
    )


def plan(context: Context, cloud: Cloud, target: Deployment, *, backend: bool) -> plans.Plan:
    """Find out what Create would do; nothing is written to the cloud, not even a lock.

    Args:
        context: The run.
        cloud: Where it would be.
        target: What would be made.
        backend: Whether there is a state.
    """
    with (
        context.log(cloud if backend else None, "plan") as log,
        deployment.run_folder(target, backend=backend) as root,
    ):
        tool = context.terraform(root, log)
        tool.init()
        flex_start.ask_nothing_yet(cloud, target, root)
        found = tool.plan(var_file=deployment.VARIABLES_FILE, lock=False)
        pools = unfinished.standing(found.unfinished, cloud.api)
        for address in pools:
            context.console.progress(f"{address} stands, but lacks nodes: Create keeps it as it is")
        if pools:
            deployment.detach(root, unfinished.untainted(tool.state(), pools))
            tool.init()
            found = tool.plan(var_file=deployment.VARIABLES_FILE, lock=False)
        orphans = adopt.find(
            found.creations, target.cluster_id, cloud.folder.addresses(), cloud.api
        )
        here = [orphan for orphan in orphans if not orphan.displaces]
        if here:
            _tell_orphans(context, here)
            deployment.write_imports(root, adopt.import_blocks(here))
            found = tool.plan(var_file=deployment.VARIABLES_FILE, lock=False)
    return found


def apply(context: Context, cloud: Cloud, target: Deployment) -> Made:
    """Plan, show, apply that plan, and keep what was settled on.

    Raises:
        SettingsError: Nobody agrees to what would be lost.
        StateError: Somebody else is at work.
        TerraformError: It failed.
    """
    with (
        context.log(cloud, "create") as log,
        deployment.run_folder(target, backend=True) as root,
        exclusive.explained(
            cloud, "run Create again to finish, or Destroy to remove what was made"
        ),
    ):
        tool = context.terraform(root, log)
        if cloud.folder.record() is None:
            # Before anything else is there: a folder without it would not count as ours.
            cloud.folder.write_record(record(context, cloud, target, tool, {}))
        with exclusive.alone(context, cloud, target.settings, root, tool):
            tool.init()
            asked = flex_start.ask(cloud, target, root, tool)
            found = _planned(context, cloud, asked.target, root, tool)
            context.report.changes = _sum(context.report.changes, found.counts)
            context.console.progress(counts(found))
            _agree(context, found)
            if not found.is_empty:
                tool.apply()
            outputs = context.report.outputs = tool.outputs()
            cloud.folder.write_record(
                record(context, cloud, asked.target, tool, outputs.get("image", {}))
            )
    deployment.show(context, asked.target)
    return Made(asked.target, outputs, asked.postponed)


def _sum(before: Mapping[str, int] | None, counts: Mapping[str, int]) -> dict[str, int]:
    """What all plans of a run did together."""
    return {name: count + (before or {}).get(name, 0) for name, count in counts.items()}


def record(
    context: Context,
    cloud: Cloud,
    target: Deployment,
    tool: Terraform,
    image: Mapping[str, str | None],
) -> Record:
    """What `deployment.json` is to say of a deployment.

    Args:
        context: The run.
        cloud: Has what it said before.
        target: The deployment.
        tool: The Terraform that applies it.
        image: Terraform's output on the image; {} before there is one.
    """
    settled: dict[str, str | None] = {}
    if image:
        asked = target.settings
        family = None if asked.image_name else asked.image_family_name
        settled = {"project": asked.image_project, "family": family, "name": image["name"]}
    before = cloud.folder.record()
    return dataclasses.replace(
        target.record(context.report.settings or {}, tool.binary.version, settled),
        last_request=before.last_request if before else 0,
    )


def counts(found: plans.Plan) -> str:
    """What a plan would do, in a sentence."""
    if not any(found.counts.values()) and not found.imported:
        return "No changes: what exists is what the settings describe."
    if found.imported:
        return (
            f"Plan: {found.imported} to import, {found.add} to add, {found.change} to change,"
            f" {found.destroy} to destroy."
        )
    return f"Plan: {found.add} to add, {found.change} to change, {found.destroy} to destroy."


def _planned(
    context: Context, cloud: Cloud, target: Deployment, root: Path, tool: Terraform
) -> plans.Plan:
    """Plan, and plan again with what a run that ended early left behind."""
    found = tool.plan(var_file=deployment.VARIABLES_FILE)
    pools = unfinished.standing(found.unfinished, cloud.api)
    for address in pools:
        context.console.progress(
            f"{address} stands, but lacks nodes: it is kept, and Google goes on"
        )
        tool.untaint(address)
    if pools:
        found = tool.plan(var_file=deployment.VARIABLES_FILE)
    orphans = adopt.find(found.creations, target.cluster_id, cloud.folder.addresses(), cloud.api)
    if not orphans:
        return found
    _tell_orphans(context, orphans)
    tool.forget([orphan.address for orphan in orphans if orphan.displaces])
    deployment.write_imports(root, adopt.import_blocks(orphans))
    return tool.plan(var_file=deployment.VARIABLES_FILE)


def _tell_orphans(context: Context, orphans: Sequence[adopt.Orphan]) -> None:
    for orphan in orphans:
        context.console.progress(
            f"{orphan.import_id} is there already: a run that ended early left it behind."
            " It is brought into the state."
        )


def _agree(context: Context, found: plans.Plan) -> None:
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
