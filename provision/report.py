"""What an action has found out and done, for people and for programs."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from provision.errors import Problem


_WHERE_IT_APPLIES = (
    "settings",
    "tfvars",
    "backend",
    "changes",
    "outputs",
    "connection",
    "status",
    "checks",
)


@dataclass
class Report:
    """The one document of a run; it grows while the action goes on, so a failure loses nothing.

    Attributes:
        action: The action's name, as far as it is known.
        rehearsal: Whether Google Cloud was simulated.
        problems: What made the run fail.
        notes: What is worth knowing, but did not make it fail.
        settings: Every setting's effective value by its name, secrets masked.
        tfvars: The variables that Terraform gets, secrets masked.
        backend: "bucket" and "prefix" of the Terraform state.
        changes: Counts "add", "change" and "destroy" of the plan.
        outputs: Terraform's outputs after the apply.
        connection: How to reach what was made.
        status: What exists and how it stands.
        checks: What Test has found, by VM.
    """

    action: str = ""
    rehearsal: bool = False
    problems: list[Problem] = field(default_factory=list)
    notes: list[Problem] = field(default_factory=list)
    settings: dict[str, Any] | None = None
    tfvars: dict[str, Any] | None = None
    backend: dict[str, str] | None = None
    changes: dict[str, int] | None = None
    outputs: dict[str, Any] | None = None
    connection: dict[str, Any] | None = None
    status: dict[str, Any] | None = None
    checks: dict[str, Any] | None = None

    def document(self, exit_code: int, veil: Callable[[str], str] = str) -> dict[str, Any]:
        """The JSON document; keys that do not apply are absent.

        Args:
            exit_code: The run's.
            veil: Hides credentials in the words of problems and notes.
        """

        def words(problem: Problem) -> dict[str, str]:
            return {name: veil(text) for name, text in dataclasses.asdict(problem).items()}

        document: dict[str, Any] = {
            "action": self.action,
            "rehearsal": self.rehearsal,
            "ok": not self.problems,
            "exit_code": exit_code,
            "problems": [words(problem) for problem in self.problems],
            "notes": [words(note) for note in self.notes],
        }
        for key in _WHERE_IT_APPLIES:
            value = getattr(self, key)
            if value is not None:
                document[key] = value
        return document
