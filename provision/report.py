"""What an action has found out and done, for people and for programs."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from provision.errors import Problem


_WHERE_IT_APPLIES = (
    "settings",
    "tfvars",
    "backend",
    "changes",
    "out_of_date",
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
        out_of_date: The machines that are older than what the settings describe: "name" and
            "differences".
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
    out_of_date: list[dict[str, Any]] | None = None
    outputs: dict[str, Any] | None = None
    connection: dict[str, Any] | None = None
    status: dict[str, Any] | None = None
    checks: dict[str, Any] | None = None

    def document(self, exit_code: int) -> dict[str, Any]:
        """The JSON document; keys that do not apply are absent."""
        document: dict[str, Any] = {
            "action": self.action,
            "rehearsal": self.rehearsal,
            "ok": not self.problems,
            "exit_code": exit_code,
            "problems": [dataclasses.asdict(problem) for problem in self.problems],
            "notes": [dataclasses.asdict(note) for note in self.notes],
        }
        for key in _WHERE_IT_APPLIES:
            value = getattr(self, key)
            if value is not None:
                document[key] = value
        return document
