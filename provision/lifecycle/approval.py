"""Showing what a Create would do, and whether that is meant."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from provision.codes import Code
from provision.documents.plan import Change
from provision.errors import SettingsError
from provision.google import resources
from provision.lifecycle import planned

if TYPE_CHECKING:
    from collections.abc import Sequence

    from provision.context import Context
    from provision.deployment.deployment import SpecT
    from provision.deployment.kind import Kind
    from provision.documents.plan import Loss
    from provision.terraform.plan import Plan


_HOLD_NOTHING: Final = frozenset({resources.TEMPLATE.noun, resources.DASHBOARD.noun})
"""What can be made anew without the end of a machine."""


class Declined(SettingsError):  # noqa: N818 - not a failure: a decision
    """A person said no to the plan."""

    usual_code = Code.DECLINED


def describe(context: Context, kind: Kind[SpecT], spec: SpecT, found: Plan) -> None:
    """Put what Terraform would do into the report's plan.

    Args:
        context: The run, whose report has the plan as far as it is known.
        kind: The kind of cluster.
        spec: What the settings ask for.
        found: Terraform's plan.
    """
    if context.report.plan is not None:
        context.report.plan = planned.complete(context.report.plan, kind, spec, found)


def show(
    context: Context, *, older: int = 0, is_again: bool = False, as_result: bool = False
) -> None:
    """Show the report's plan.

    Args:
        context: The run.
        older: VMs that are older than the settings, although nothing changes.
        is_again: Whether this run has shown a plan before: then only what is counted is said.
        as_result: Whether the plan is the action's result.
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


def require(context: Context, found: Plan) -> None:
    """Ask before anything is replaced, removed or shrunk, and once before a first Create.

    Raises:
        Declined: The person said no.
        SettingsError: Something is lost, and there is no terminal to ask on.
    """
    if context.agreed or found.is_empty:
        return
    losses = _words(found.losses)
    if context.console.is_terminal:
        if losses and not context.console.ask("Apply these changes?"):
            raise Declined("Nothing was changed: you did not approve the plan", why=losses)
        if asks_first(context) and not losses and not context.console.go_on("Go on?"):
            raise Declined("Not created, as you said: nothing was made")
    elif losses:
        raise SettingsError(
            "This Create would replace, remove or shrink existing resources; nothing was changed",
            why=losses,
            fix="if that is what you want, run Create again with --yes",
            code=Code.APPROVAL_NEEDED,
        )


def _words(losses: Sequence[Loss]) -> str:
    lines = [loss.words for loss in losses]
    if losses and _HOLD_NOTHING.issuperset(loss.noun for loss in losses):
        lines.append("no machine ends by that")
    return "\n".join(lines)
