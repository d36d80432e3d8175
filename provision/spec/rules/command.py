"""Whether the command is begun again where machines are taken away, and where that is of use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from provision.codes import Code
from provision.settings.choices import Orchestrator, Restart
from provision.spec.rules.findings import Case, Finding, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator


def _restart(case: Case) -> Iterator[Finding]:
    settings = case.settings
    if settings.orchestrator_type is Orchestrator.GKE:
        return
    if settings.startup_command is None:
        if case.on("startup_restart") and settings.startup_restart is not Restart.NEVER:
            yield Finding(
                code=Code.MISSING_SETTING,
                field="startup_restart",
                what="is set without STARTUP_COMMAND",
                why="it says when that command is begun again",
                fix="set STARTUP_COMMAND too, or take STARTUP_RESTART out",
            )
    elif settings.enable_spot and not case.asked("startup_restart"):
        yield Finding(
            field="startup_restart",
            what="is not set: a command that ends when Google takes one VM of several back stays"
            " ended on the others",
            why="spot VMs come back one by one, and the default is to begin a command once in the"
            " life of a VM",
            fix="STARTUP_RESTART=on-failure, with a command that goes on from its last checkpoint;"
            " STARTUP_RESTART=never keeps it so",
            note=True,
        )


def _idle(case: Case) -> Iterator[Finding]:
    settings = case.settings
    if settings.idle_timeout is None:
        return
    if settings.enable_flex_start:
        yield Finding(
            field="idle_timeout",
            what="can't be combined with ENABLE_FLEX_START",
            why="Google starts no VM of flex start again that was off: it comes by a new request",
            fix="MAX_RUN_DURATION=12h, which ends them; or remove IDLE_TIMEOUT",
        )
    elif settings.enable_spot:
        yield Finding(
            field="idle_timeout",
            what="leaves VMs that Google takes back as they are, until the next Create",
            why="a group that lets its VMs power themselves off makes none again that was lost",
            fix="IDLE_TIMEOUT only with jobs that need not survive a lost VM",
            note=True,
        )


RULES: Final = (
    Rule(("idle_timeout", "enable_flex_start", "enable_spot"), _idle),
    Rule(("startup_restart", "startup_command", "enable_spot", "orchestrator_type"), _restart),
)
