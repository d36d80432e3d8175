"""Whether secrets go to somebody."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from provision.codes import Code
from provision.settings.choices import Orchestrator
from provision.spec.rules.findings import Case, Finding, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator


def _to_somebody(case: Case) -> Iterator[Finding]:
    # Which clusters have secrets at all is another rule's matter.
    if case.settings.orchestrator_type is Orchestrator.GKE:
        return
    if case.settings.secrets and case.settings.startup_command is None:
        yield Finding(
            code=Code.MISSING_SETTING,
            field="secrets",
            what="is set without STARTUP_COMMAND",
            why="secrets stand in the environment of that command, and nowhere else",
            fix="set STARTUP_COMMAND too, or take SECRETS out",
        )


RULES: Final = (Rule(("secrets", "orchestrator_type", "startup_command"), _to_somebody),)
