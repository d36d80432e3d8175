"""From the settings to running resources: check, plan, adopt, ask for approval, apply."""

from __future__ import annotations

import dataclasses
import functools
from typing import TYPE_CHECKING, Any, Final

from provision import __version__, intake, preflight, words
from provision.deployment import deployment, workspace
from provision.deployment.deployment import Applied, Deployment, OutOfDate, RunInputs, SpecT
from provision.deployment.kind import deploy
from provision.deployment.workspace import Workspace
from provision.documents.checks import CheckState
from provision.documents.plan import Changes
from provision.documents.timeline import OnInterrupt, StageName
from provision.errors import Interrupted, SettingsError, TerraformError
from provision.google import refusals, resources
from provision.lifecycle import (
    candidates,
    consent,
    exclusive,
    in_use,
    marked,
    ownership,
    phases,
    plan_document,
    pricing,
)
from provision.lifecycle.exclusive import await_account
from provision.lifecycle.phases import Phase
from provision.preflight.check import Answers
from provision.settings.choices import OnlineCheck
from provision.settings.model import Settings
from provision.spec import topology
from provision.state.record import Record
from provision.terraform.failures import ExistsError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from provision.context import Cloud, Context
    from provision.deployment.kind import Kind
    from provision.documents.plan import Loss
    from provision.documents.plan import Plan as PlanDocument
    from provision.files.archive import Archive
    from provision.preflight import CheckResults
    from provision.settings.candidates import Site
    from provision.spec.cluster import ClusterSpec
    from provision.terraform.plan import Plan


_OF_OFFERS: Final = frozenset({OnlineCheck.ZONE, OnlineCheck.MACHINE_TYPE, OnlineCheck.ACCELERATOR})
"""The checks that answer what dated lists guess."""
_TRIES: Final = 3
"""How often what needs a new account is applied again, until nobody calls it new any more."""
_UNASKED: Final = frozenset({CheckState.SKIPPED, CheckState.UNCHECKED})


def settle(  # noqa: PLR0913 - each is a fact of its own
    context: Context,
    cloud: Cloud,
    kind: Kind[SpecT],
    archive: Archive | None,
    *,
    bucket: bool,
    is_gate: bool = False,
    looks: bool = False,
    place: tuple[Site, tuple[Site, ...]] | None = None,
) -> Deployment[SpecT]:
    """Check this machine, run the online checks, and describe the deployment if they pass.

    `bucket`: whether the state's bucket exists, and so could hold a deployment. `is_gate`: whether
    a check that could not be made counts as one that failed. `looks`: whether nothing is made: then
    an account that may only look is no problem. `place`: the zone and way, and those that there is
    a choice of, once one has been tried.
    """
    asked = kind.spec(context.settings)
    missing = kind.missing(asked, context.environ)
    if missing:
        raise SettingsError.of(missing)
    of_kind = kind.preflight(asked)
    context.report.topology = topology.of(asked)
    record = ownership.check(context, cloud, kind.name) if bucket else None
    answers, owner = Answers(cloud.api), ownership.ours(asked, cloud.folder.location)

    def at(site: Site) -> SpecT:
        return kind.spec(context.settings.by(site.way)).in_zone(site.zone)

    look = functools.partial(
        _look,
        kind,
        answers=answers,
        owner=owner,
        in_state=cloud.folder.known() if record else (),
        record=record,
        makes_bucket=not bucket,
    )
    listed = pricing.current(context, cloud, bucket=bucket)
    tried = context.report.plan.candidates if context.report.plan else ()
    with context.progress.stage(StageName.CHECKS, OnInterrupt.NOTHING):
        if place is not None:
            asked = dataclasses.replace(at(place[0]), places=place[1])
        elif asked.places:
            of_zone = functools.partial(look, of_zone=True)
            asked, tried = candidates.choose(
                context, cloud, kind, asked, at, record, answers, of_zone, listed
            )
        found = look(asked)
    if looks:
        found = found.of_looking()
    if asked.way is not None:
        context.report.settings = intake.effective(context.settings.by(asked.way))
    context.report.online_checks = found.states
    unasked = any(found.states.get(name) in _UNASKED for name in _OF_OFFERS)
    notes = [*(context.guesses if unasked else ()), *found.remarks(is_gate=is_gate)]
    context.note([it for it in notes if it not in context.report.notes])
    writers: tuple[str, ...] = ()
    if bucket:
        told, writers = cloud.folder.audit(
            needs_uniform=of_kind.grants_in_state_folder, meant=context.state_writers
        )
        context.note(told)
    spec = kind.resolve(found.require(is_gate=is_gate), record)
    # As long as nothing was made, nobody has said yes to it.
    deployed = record if record and cloud.folder.has_state() else None
    begun = plan_document.begun(context, kind, spec, deployed, found.checks, tried)
    newer_tool = deployed.newer_tool if deployed else None
    context.report.plan = dataclasses.replace(begun, writers=writers, newer_tool=newer_tool)
    pricing.tell(context, spec, listed, deployed)
    inputs = RunInputs(files=archive, certificates=context.certificates)
    return deployment.show(context, deploy(kind, spec, cloud.folder.location, inputs))


def _look(kind: Kind[SpecT], spec: SpecT, **facts: Any) -> CheckResults[SpecT]:
    """Run the online checks; what a kind adds follows from how machines are got."""
    return preflight.run(spec, of_kind=kind.preflight(spec), **facts)


def plan(
    context: Context, cloud: Cloud, kind: Kind[SpecT], target: Deployment[SpecT], *, backend: bool
) -> tuple[Plan, Sequence[OutOfDate]]:
    """Find out what Create would do, and show it. No lock is taken, and only a log is written.

    Returns the plan, and the machines that are older than the settings.
    """
    with (
        context.log(cloud if backend else None, "plan") as log,
        workspace.run_folder(target, backend=backend) as root,
    ):
        tool = context.terraform(root, log)
        tool.init()
        desk = Workspace(root, tool, live=False)
        prepared, _ = kind.prepare(cloud, target, desk)
        found = _planned(context, cloud, kind, prepared, desk)
        consent.describe_plan(context, cloud, kind, prepared.spec, found)
        older = kind.out_of_date(cloud, target.spec) if backend else ()
        # Here already: nobody should wait for the log to be kept.
        consent.show_plan(context, older=len(older), as_result=True)
        return found, older


def agree(
    context: Context, cloud: Cloud, kind: Kind[SpecT], target: Deployment[SpecT]
) -> PlanDocument | None:
    """Have a person agree to a new cluster before anything is made: bucket, record, lock or log.

    So it is with a move after a loss. Returns the plan that they agreed to; None where none is.
    """
    if context.move:
        consent.require_move(context, context.move)
    if not consent.asks_first(context):
        return None
    try:
        found, _ = plan(context, cloud, kind, target, backend=False)
        consent.require_create(context, found)
    except Interrupted as error:
        raise Interrupted(error.signum, "Interrupted; nothing was made") from error
    return context.report.plan


def apply(
    context: Context,
    cloud: Cloud,
    kind: Kind[SpecT],
    target: Deployment[SpecT],
    agreed: PlanDocument | None = None,
) -> Applied[SpecT]:
    """Plan, show the plan, apply exactly that plan, and write the deployment's record.

    Raises:
        TerraformError: Terraform failed.
    """
    with (
        context.log(cloud, "create") as log,
        workspace.run_folder(target, backend=True) as root,
        exclusive.explained(
            cloud, "run Create again to finish, or Destroy to remove what was made"
        ),
    ):
        tool = context.terraform(root, log, cloud)
        version = tool.binary.version
        with exclusive.alone(context, cloud, target.spec, root, tool) as follows_killed:
            if (earlier := cloud.folder.record()) is None:
                # Before anything else: a folder without a record does not count as ours.
                cloud.folder.write_record(_record(context, None, kind, target, version, {}))
            elif context.move and target.spec.places:
                # At each step: between two, while machines are waited for, nobody has the lock.
                ownership.require_unmoved(context, earlier, context.move.serial)
                # It is agreed to: what a move ends is no loss any more, for a later run neither.
                if not earlier.searching:
                    cloud.folder.write_record(dataclasses.replace(earlier, searching=True))
            cloud.folder.begin_state(version)
            pricing.keep(context, cloud)
            tool.init()
            desk = Workspace(root, tool, live=True)
            prepared, postponed = kind.prepare(cloud, target, desk)
            try:
                found = _plan_and_apply(context, cloud, kind, prepared, desk, agreed)
            except ExistsError:
                # Google can create a resource and answer with an error. Terraform then tries
                # again, and finds what it takes for somebody else's.
                context.console.progress("A resource exists already: looking up whose it is")
                found = _plan_and_apply(context, cloud, kind, prepared, desk, agreed)
            outputs = context.report.outputs = cloud.folder.outputs()
            before = cloud.folder.record()
            record = _record(context, before, kind, prepared, version, outputs)
            record = dataclasses.replace(record, serial=cloud.folder.serial())
            if found.is_empty and before is not None and before.newer_tool:
                # What is there is still as the newer one made it.
                record = dataclasses.replace(record, tool_version=before.newer_tool)
            cloud.folder.write_record(record)
            if context.move:
                context.move.serial = record.serial
            if follows_killed or found.displaces:
                _clean(context, cloud, kind, prepared)
    deployment.show(context, prepared)
    # A group that was replaced has lost the VMs for which nothing had to be requested.
    return Applied(
        prepared,
        outputs,
        postponed + found.emptied,
        young=_makes(found, resources.SERVICE_ACCOUNT),
        is_new=_makes(found, resources.GROUP),
        is_newest=_makes(found, resources.GROUP) or found.is_newest,
    )


def _plan_and_apply(  # noqa: PLR0913, PLR0917 - each is a source of its own
    context: Context,
    cloud: Cloud,
    kind: Kind[SpecT],
    target: Deployment[SpecT],
    desk: Workspace,
    agreed: PlanDocument | None,
    *,
    tries: int | None = None,
) -> Plan:
    """Plan, show the plan, have it agreed to, and apply it.

    It is done again where something is in the way that no state tells of, and `tries` times at most
    where Google does not know everywhere what it has just made; None: if this plan makes that.
    """
    found = _planned(context, cloud, kind, target, desk)
    is_again = agreed is not None or context.report.changes is not None
    context.report.changes = (context.report.changes or Changes()) + found.counts
    # Machines of an account that is made again do not act as this one.
    is_young = _makes(found, resources.SERVICE_ACCOUNT)
    asks = not _makes(found, resources.GROUP) and (is_young or not (found.change or found.add))
    older = kind.out_of_date(cloud, target.spec) if asks else ()
    if is_young and older and not (is_again or context.replace_vms):
        context.note([plan_document.note_of_older(older)])
    consent.describe_plan(context, cloud, kind, target.spec, found)
    if agreed is None or context.report.plan != agreed:
        consent.show_plan(context, older=len(older), is_again=is_again)
        if not _goes_on(cloud, target.spec) or _loses_more(context, found):
            consent.require_create(context, found, is_again=is_again)
    try:
        if found.is_empty:
            return dataclasses.replace(found, is_newest=not older)
        context.made.update(it.address for it in found.creations)
        desk.tool.apply()
    except ExistsError:
        raise
    except TerraformError as error:
        if found.displaces and _clean(context, cloud, kind, target):
            return _plan_and_apply(context, cloud, kind, target, desk, agreed)
        if tries is None and any(refusals.has_ended(it.why) for it in error.problems):
            # Between the look at it and its end.
            kind.prepare(cloud, target, desk)
            return _plan_and_apply(context, cloud, kind, target, desk, agreed, tries=0)
        left = tries if tries is not None else _TRIES * is_young
        if not left or not any(refusals.may_be_late(it.why) for it in error.problems):
            raise
        await_account(context.progress, refusals.YOUNG / _TRIES)
        again = _plan_and_apply(context, cloud, kind, target, desk, agreed, tries=left - 1)
        return dataclasses.replace(again, creations=found.creations)
    return found


def _goes_on(cloud: Cloud, spec: ClusterSpec) -> bool:
    """Whether this is a search that goes on: what a move ends, it has made itself."""
    record = cloud.folder.record()
    return bool(spec.places) and record is not None and record.searching


def _loses_more(context: Context, found: Plan) -> bool:
    """Whether more would go than a search makes on its way: a GKE cluster with nodes, or old data.

    Of a run that was killed at its end nobody knows that machines have worked with a share since.
    """
    has_nodes = any(it.machines for it in found.losses)
    return any(
        (it.data and it.address not in context.made)
        or (has_nodes and it.noun == resources.CLUSTER.noun)
        for it in found.losses
    )


def _makes(found: Plan, row: resources.Resource) -> bool:
    return any(one.type == row.type for one in found.creations)


def _clean(context: Context, cloud: Cloud, kind: Kind[SpecT], target: Deployment[SpecT]) -> int:
    """Remove networks and the like that a run left beside those in use; returns their number.

    A failure is a note.
    """
    with phases.aside(context), phases.during(Phase.MAKING, cloud):
        record = cloud.folder.record()
        return marked.sweep(
            context,
            cloud,
            record or target.spec,
            last=False,
            buckets={cloud.folder.location.bucket, *(in_use.buckets(record) if record else ())},
            rows=resources.WITHOUT_LOSS,
            held=kind.held(cloud, target.spec),
        )
    return 0


def _planned(
    context: Context,
    cloud: Cloud,
    kind: Kind[SpecT],
    target: Deployment[SpecT],
    desk: Workspace,
) -> Plan:
    """Plan, and again after untainting pools, after leaving what machines hold, after imports."""
    desk = dataclasses.replace(desk, replaces=_got_otherwise(cloud, target.spec))
    found = _of_ours(context, cloud, target, desk)
    tainted = [it for it in found.tainted_pools if it.address not in desk.replaces]
    kept = kind.to_untaint(cloud, tainted)
    if kept:
        words = "it is kept, and Google keeps trying" if desk.live else "Create will keep it"
        for address in kept:
            context.console.progress(f"{address} exists but does not have all its nodes: {words}")
        desk.keep(kept)
        found = _of_ours(context, cloud, target, desk)
    found, held = _held(context, cloud, kind, target, desk, found)
    found = _adopted(context, cloud, target, desk, found)
    return dataclasses.replace(found, held=held, losses=_queued(context, cloud, kind, found))


def _queued(context: Context, cloud: Cloud, kind: Kind[SpecT], found: Plan) -> tuple[Loss, ...]:
    """The losses, and with a group what others run on it, or have in its queue."""
    record = cloud.folder.record()
    gone = {it.address for it in found.removals if it.type == resources.GROUP.type}
    if not gone or record is None:
        return found.losses
    others = words.listed(list(consent.of_others(kind.jobs(context, cloud, record))))
    lost = f"; jobs of others are lost: {others}" if others else ""
    return tuple(
        dataclasses.replace(it, words=f"{it.words}{lost}") if it.address in gone else it
        for it in found.losses
    )


def _held(  # noqa: PLR0913, PLR0917 - each is a fact of its own
    context: Context,
    cloud: Cloud,
    kind: Kind[SpecT],
    target: Deployment[SpecT],
    desk: Workspace,
    found: Plan,
) -> tuple[Plan, tuple[str, ...]]:
    """The plan, made again if it would take what machines hold; the names of what stays."""
    kept: tuple[str, ...] = ()
    unbinds = found.unbinds and not context.replace_vms
    keeping = kind.keeping_policy(cloud, target) if unbinds else None
    if keeping is not None:
        bound, instead = keeping
        kept = in_use.policies(found)
        desk.tell(bound)
        found = _of_ours(context, cloud, target, desk)
        if any(it.type == resources.GROUP.type for it in found.removals):
            # It goes for another reason, and takes what it would keep with it.
            desk.tell(target)
            found, kept = _of_ours(context, cloud, target, desk), ()
        context.note([in_use.note_of_policy(it, instead) for it in kept])
    stays = in_use.take_out_of_state(cloud, kind, target, desk, found)
    if stays:
        found = _of_ours(context, cloud, target, desk)
    return found, kept + in_use.names_of(stays)


def _of_ours(context: Context, cloud: Cloud, target: Deployment[SpecT], desk: Workspace) -> Plan:
    """A plan of what is this deployment's alone."""
    found = desk.plan(context.console.progress)
    ownership.require_ours(found, target.spec, cloud.folder.location)
    return found


def _got_otherwise(cloud: Cloud, spec: ClusterSpec) -> tuple[str, ...]:
    """The addresses of groups and pools of a search that goes on, in another way or zone.

    New groups alone make all VMs of the new template: those that Google has not given yet may be
    asked for by the old one as long as their group is there. So it is with a pool that GKE would
    take to another zone while it still asks for nodes in the first (ADR 75).
    """
    record = cloud.folder.record()
    if record is None or not _goes_on(cloud, spec):
        return ()
    zone_of = {pool.name: pool.zone for pool in spec.pools}
    pools = cloud.folder.of_type(resources.NODE_POOL.type).items()
    moved = [
        address
        for address, it in pools
        if zone_of.get(it["name"]) not in (None, *(it.get("node_locations") or ()))
    ]
    if spec.way is not None and marked.way(cloud, record) is not spec.way:
        moved += cloud.folder.of_type(resources.GROUP.type)
    return tuple(moved)


def _adopted(
    context: Context,
    cloud: Cloud,
    target: Deployment[SpecT],
    desk: Workspace,
    found: Plan,
) -> Plan:
    """The plan, made again if it would create what an earlier run has made already."""
    ours = ownership.ours(target.spec, cloud.folder.location)
    orphans = ownership.orphans(found.creations, ours, cloud.folder.addresses(), cloud.api)
    if not desk.live:
        # An address that is in the state has to be removed from it before an import.
        orphans = [orphan for orphan in orphans if not orphan.displaces]
    if not orphans:
        return found
    for orphan in orphans:
        context.console.progress(
            f"{orphan.import_id} exists already: an earlier run was interrupted and left it."
            " It is imported into the state."
        )
    desk.tool.forget([orphan.address for orphan in orphans if orphan.displaces])
    desk.adopt(ownership.import_blocks(orphans))
    displaces = any(orphan.displaces for orphan in orphans)
    return dataclasses.replace(_of_ours(context, cloud, target, desk), displaces=displaces)


def _record(  # noqa: PLR0913, PLR0917 - each is a source of its own
    context: Context,
    before: Record | None,
    kind: Kind[SpecT],
    target: Deployment[SpecT],
    terraform_version: str,
    outputs: Mapping[str, Any],
) -> Record:
    """The content of `deployment.json`; `outputs` is {} before the first apply."""
    spec = target.spec
    return Record(
        kind=target.kind,
        cluster_id=target.owner.id,
        project_id=spec.project_id,
        name_prefix=spec.name_prefix,
        region=spec.region,
        zone=spec.zone,
        tool_version=__version__,
        terraform_version=terraform_version,
        last_request=before.last_request if before else 0,
        searching=bool(spec.places),
        settings={**_unknown_settings(before), **(context.report.settings or {})},
        later=before.later if before else {},
        held=before.held if before else (),
        hosts=tuple(sorted({*spec.hosts, *(before.hosts if before else ())})),
        hourly=_hourly(context),
        **kind.recorded(target, outputs),
    )


def _unknown_settings(before: Record | None) -> Mapping[str, Any]:
    """Those of a newer version of this program, which are not this one's to forget."""
    if before is None or not before.newer_tool:
        return {}
    known = Settings.model_fields
    return {name: value for name, value in before.settings.items() if name.lower() not in known}


def _hourly(context: Context) -> str | None:
    cost = context.report.cost
    return None if cost is None or cost.most.unknown else str(cost.most.per_hour)
