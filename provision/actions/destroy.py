"""Destroy: remove what Create made; alone, or at the end of work that needed a cluster."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from provision import words
from provision.catalogue import names
from provision.codes import Code
from provision.context import connect
from provision.deployment import workspace
from provision.documents.events import Milestone
from provision.documents.plan import Changes
from provision.errors import (
    CapacityError,
    Interrupted,
    Problem,
    ProvisionError,
    SettingsError,
    StateError,
    StillWaiting,
    Unanswered,
)
from provision.kinds import registry
from provision.lifecycle import consent, exclusive, ownership, phases, remove
from provision.lifecycle.phases import Phase
from provision.settings.choices import Action

if TYPE_CHECKING:
    from collections.abc import Callable

    from provision.context import Context

_AGAIN = "run the same command again"


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
            context.console.result(
                f"Destroyed {words.counted(count, 'resource')} found in no state."
            )
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
        tool = context.terraform(root, log, cloud)
        with exclusive.alone(context, cloud, record, root, tool):
            ownership.require_same(context, cloud, record)
            cloud.folder.begin_state(tool.binary.version)
            tool.init()
            # What a run that is killed from here on has removed, nobody else has.
            cloud.folder.write_record(dataclasses.replace(record, removing=True))
            with remove.naming_the_rest(cloud, record), phases.during(Phase.REMOVING, cloud):
                left = remove.remove(context, cloud, record, tool, kind)
            cloud.folder.clear()
    count = (context.report.changes or Changes()).destroy
    spent = context.report.ending.in_all if context.report.ending else None
    cost = f"at most ${spent.usd:,.2f} since {spent.since}" if spent is not None else ""
    if cost:
        context.console.result(f"It has cost {cost}.")
    told = "; it has cost ".join(filter(None, ["the cluster is destroyed", cost]))
    context.reached(Milestone.DESTROYED, told, "" if not left else "see what is left: it is billed")
    context.console.result(
        f"Destroyed {words.counted(count, 'resource')}; {location.url} contains only logs now."
    )
    if left:
        raise StateError(
            "The state named what is not this deployment's: that was left, and the rest removed",
            code=Code.STATE_FOREIGN,
            why="\n".join(left),
            fix="if this deployment made it after all, delete it: it may be billed",
        )


def after_all(context: Context, work: Callable[[], None], settle: Callable[[], str]) -> None:
    """Do the work, and destroy the cluster however that ends.

    `settle`: keeps what would go with the cluster; returns the URL of a log, or "".
    """
    before = ownership.deployed(context, connect(context))
    doubts = consent.doubts(context, before, registry.given(context.settings))
    if doubts and not context.agreed:
        raise SettingsError.of(doubts)
    context.stages.destroys = True
    try:
        work()
        with phases.aside(context):
            settle()
    except BaseException as end:
        if isinstance(end, (SettingsError, Unanswered)) and before is not None:
            raise
        was_there = _clean_up(context, end, settle)
        if was_there and isinstance(end, StillWaiting):
            # The exit code of a wait says that everything is kept.
            raise CapacityError.of(end.problems) from end
        raise
    destroy(context)


def _clean_up(context: Context, end: BaseException, settle: Callable[[], str]) -> bool:
    """Destroy what there is, and say beside the first failure what became of that."""
    log, gone = "", "the cluster is destroyed"
    try:
        if ownership.deployed(context, connect(context)) is None:
            return False
        context.console.progress("The cluster is destroyed now, whatever happened")
        with phases.aside(context):
            log = settle()
        destroy(context)
    except (ProvisionError, Interrupted) as error:
        context.note(error.problems)
        gone = f"the cluster is not destroyed, and is billed: {error.problems[0].what}"
        context.reached(Milestone.FAILED, gone, "aiinfra Destroy")
    if isinstance(end, (ProvisionError, Interrupted)):
        end.problems = tuple(_since(context, problem, log, gone) for problem in end.problems)
    return True


def _since(context: Context, problem: Problem, log: str, gone: str) -> Problem:
    """What is still true of a problem once Destroy has run."""
    code, what, why, fix = problem.code, problem.what, problem.why, problem.fix
    match problem.code:
        case Code.INTERRUPTED:
            what, why, fix = "Interrupted", "", _AGAIN
        case Code.WAITING:
            within = words.duration(context.settings.capacity_timeout)
            code, what, why = Code.GAVE_UP, f"Gave up: no machines within {within}", what
            fix = f"{_AGAIN}, with a greater CAPACITY_TIMEOUT"
            if context.report.action == Action.RUN:
                fix += "; without --destroy-after, cluster and job keep their place in the queue"
        case Code.JOB_FAILED:
            fix = _AGAIN
        case _:
            pass
    return dataclasses.replace(
        problem,
        code=code,
        what=what,
        why="\n".join(filter(None, [why, gone])),
        fix="; ".join(filter(None, [log and f"its log is {log}", fix])),
    )
