"""Where there is no Run yet, and what to use instead."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from provision.codes import Code
from provision.settings.choices import Action, Orchestrator
from provision.spec.rules.findings import Case, Finding, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

_INSTEAD: Final = {
    Orchestrator.RAY: "submit it with ray job submit, on the head: docs/how-to/ray.md",
}
"""Orchestrator -> how to run a job there; those that have Run are not in it."""


def _run(case: Case) -> Iterator[Finding]:
    kind = case.settings.orchestrator_type
    if case.settings.action is Action.RUN and kind in _INSTEAD:
        yield Finding(
            code=Code.WITHOUT_EFFECT,
            field="orchestrator_type",
            what="has no Run",
            why="Run is for groups of VMs and GKE clusters, ORCHESTRATOR_TYPE=none and gke",
            fix=_INSTEAD[kind],
        )


RULES: Final = (Rule(("action", "orchestrator_type"), _run),)
