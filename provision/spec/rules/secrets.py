"""Whether secrets go to somebody."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from provision.codes import Code
from provision.settings.choices import Orchestrator
from provision.spec.rules.findings import Case, Finding, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator


def _to_somebody(case: Case) -> Iterator[Finding]:
    if not case.settings.secrets:
        return
    if case.settings.orchestrator_type is Orchestrator.GKE:
        yield Finding(
            code=Code.WITHOUT_EFFECT,
            field="secrets",
            what="does not reach the pods of a GKE cluster",
            why="VMs read the secrets for STARTUP_COMMAND, and a GKE cluster runs none",
            fix="take SECRETS out, and let pods read Secret Manager as the workload account",
        )
    elif case.settings.startup_command is None:
        yield Finding(
            code=Code.MISSING_SETTING,
            field="secrets",
            what="is set without STARTUP_COMMAND",
            why="secrets stand in the environment of that command, and nowhere else",
            fix="set STARTUP_COMMAND too, or take SECRETS out",
        )


RULES: Final = (Rule(("secrets", "orchestrator_type", "startup_command"), _to_somebody),)
