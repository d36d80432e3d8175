"""Showing what a Create would do, and whether that is meant."""

from __future__ import annotations

import contextlib
from decimal import Decimal
from typing import TYPE_CHECKING

from provision.codes import Code
from provision.documents.plan import Change
from provision.errors import Declined, SettingsError
from provision.lifecycle import consent, planned
from provision.lifecycle.consent import Stake, Way

if TYPE_CHECKING:
    from collections.abc import Iterator

    from provision.context import Cloud, Context
    from provision.deployment.deployment import SpecT
    from provision.deployment.kind import Kind
    from provision.terraform.plan import Plan


def describe(context: Context, cloud: Cloud, kind: Kind[SpecT], spec: SpecT, found: Plan) -> None:
    """Put what Terraform would do into the report's plan."""
    if context.report.plan is not None:
        context.report.plan = planned.complete(context.report.plan, cloud, kind, spec, found)


def show(
    context: Context, *, older: int = 0, is_again: bool = False, as_result: bool = False
) -> None:
    """Show the report's plan.

    `older`: VMs that are older than the settings, although nothing changes. `is_again`: whether
    this run has shown a plan before: then only what is counted is said.
    """
    from provision.screens import layout  # noqa: PLC0415 - not every action needs it
    from provision.screens import plan as screen  # noqa: PLC0415 - as above

    plan = context.report.plan
    if plan is None:
        return
    if is_again:
        context.console.progress(layout.unglued(screen.summary(plan, older)))
        return
    lines = screen.lines(
        plan, context.report.cost, context.console.width, older=older, hint=not context.full
    )
    context.console.show(lines, as_result=as_result)


def asks_first(context: Context) -> bool:
    """Whether a person is asked before anything of a new cluster is made."""
    is_new = context.report.plan is not None and context.report.plan.change is Change.NEW
    return is_new and context.console.is_terminal and not context.agreed


def require(context: Context, found: Plan, *, is_again: bool = False) -> None:
    """Ask, as the table of `consent` says, before a plan is applied."""
    if context.agreed or found.is_empty:
        return
    losses = "\n".join(loss.words for loss in found.losses if consent.matters(loss))
    undone, no = "nothing was changed", "Nothing was changed, as you said"
    if asks_first(context):
        undone, no = "nothing was made", "Not created, as you said: nothing was made"
    if is_again:
        undone = "what was made before is kept"
    way = consent.way(_stakes(context, losses), terminal=context.console.is_terminal)
    # After something was made, an interrupt and a no are told as they are anywhere else.
    with contextlib.nullcontext() if is_again else consent.unanswered(undone):
        match way:
            case Way.PASSES:
                agrees = True
            case Way.GOES_ON:
                agrees = context.console.go_on("Go on?")
            case Way.ASKS:
                agrees = context.console.ask("Apply these changes?")
            case Way.REFUSES:
                raise SettingsError(
                    f"This Create would end or lose what exists; {undone}",
                    why=losses,
                    fix="if that is what you want, run Create again with --yes, which agrees to it",
                    code=Code.APPROVAL_NEEDED,
                )
    if agrees:
        return
    if is_again:
        raise SettingsError(f"The rest was not done, as you said; {undone}", code=Code.DECLINED)
    raise Declined(no, why=losses)


def _stakes(context: Context, losses: str) -> Iterator[Stake]:
    if losses:
        yield Stake.LOSS
    plan, cost = context.report.plan, context.report.cost
    if plan is not None and plan.change is Change.NEW:
        yield Stake.CLUSTER
    if cost is not None and cost.before is not None:
        grown = cost.most.per_hour - cost.before
        if grown >= Decimal(str(context.settings.ask_above)):
            yield Stake.COST
