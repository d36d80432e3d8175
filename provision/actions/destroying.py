"""Do something with a cluster, and destroy the cluster however that ends."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from provision.actions.destroy import destroy
from provision.codes import Code
from provision.context import connect
from provision.errors import Interrupted, Problem, ProvisionError, SettingsError
from provision.kinds import registry
from provision.lifecycle import confirmation, ownership, phases

if TYPE_CHECKING:
    from collections.abc import Callable

    from provision.context import Context

_AGAIN = "run the same command again"


def after(context: Context, work: Callable[[], None], settle: Callable[[], str]) -> None:
    """Do the work, and destroy the cluster however that ends.

    Args:
        context: The run.
        work: Makes the cluster, if need be, and does with it what it is for.
        settle: Keeps what would go with the cluster; returns the URL of a log, or "".

    Raises:
        SettingsError: The cluster is protected, or the work was refused; a cluster that was there
            before stays then.
        ProvisionError: What the work, or else Destroy, ended with.
        Interrupted: A signal; the cluster is destroyed.
    """
    before = ownership.deployed(context, connect(context))
    doubts = confirmation.doubts(context, before, registry.given(context.settings))
    if doubts and not context.agreed:
        raise SettingsError.of(doubts)
    context.stages.destroys = True
    try:
        work()
        with phases.aside(context):
            settle()
    except BaseException as end:
        if isinstance(end, SettingsError) and before is not None:
            raise
        _clean_up(context, end, settle)
        raise
    destroy(context)


def _clean_up(context: Context, end: BaseException, settle: Callable[[], str]) -> None:
    """Destroy what there is, and say beside the first failure what became of that."""
    log, gone = "", "the cluster is destroyed"
    try:
        if ownership.deployed(context, connect(context)) is None:
            return
        context.console.progress("The cluster is destroyed now, whatever happened")
        with phases.aside(context):
            log = settle()
        destroy(context)
    except (ProvisionError, Interrupted) as error:
        context.note(error.problems)
        gone = f"the cluster is not destroyed, and is billed: {error.problems[0].what}"
    if isinstance(end, (ProvisionError, Interrupted)):
        end.problems = tuple(_since(problem, log, gone) for problem in end.problems)


def _since(problem: Problem, log: str, gone: str) -> Problem:
    """What is still true of a problem once Destroy has run."""
    what, why, fix = problem.what, problem.why, problem.fix
    match problem.code:
        case Code.INTERRUPTED:
            what, why, fix = "Interrupted", "", _AGAIN
        case Code.WAITING:
            why, fix = "CAPACITY_TIMEOUT is over", f"{_AGAIN}, with a greater CAPACITY_TIMEOUT"
        case Code.JOB_FAILED:
            fix = _AGAIN
        case _:
            pass
    return dataclasses.replace(
        problem,
        what=what,
        why="\n".join(filter(None, [why, gone])),
        fix="; ".join(filter(None, [log and f"its log is {log}", fix])),
    )
