"""The report of a run: the JSON document of `--output json`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from provision.documents import plain
from provision.documents.problem import of

if TYPE_CHECKING:
    from collections.abc import Callable

    from provision.documents.cost import Cost
    from provision.documents.ending import Ending
    from provision.documents.plan import Plan
    from provision.documents.timeline import Stage
    from provision.errors import Problem


SCHEMA_VERSION: Final = 1
"""Rises when a key of the document goes or changes its meaning; new keys may come without."""

_WHERE_IT_APPLIES = (
    "settings",
    "image",
    "tfvars",
    "backend",
    "plan",
    "ending",
    "log",
    "changes",
    "cost",
    "out_of_date",
    "outputs",
    "connection",
    "status",
    "checks",
    "timeline",
)


@dataclass
class Report:
    """The report of a run; the action fills it step by step, so that a failure loses nothing.

    Attributes:
        action: The action's name; "" if it is not known.
        rehearsal: Whether Google Cloud was simulated.
        problems: The problems that made the run fail.
        notes: Notes, which did not make it fail.
        settings: Setting -> effective value, with secrets masked.
        image: The image that VMs boot from: "project", "family", "name", "supported_until", and
            "resolved", which is false as long as Google has to be asked for its name.
        tfvars: The variables for Terraform, with secrets masked.
        backend: "bucket" and "prefix" of the Terraform state.
        plan: What the run would make, change and lose.
        ending: What a Destroy ends.
        log: The URL of the log with Terraform's output.
        changes: The plan's counts "add", "change" and "destroy".
        cost: What the cluster costs; None where no prices are asked for.
        out_of_date: The machines that are older than the settings: "name" and "differences".
        outputs: Terraform's outputs after the apply.
        connection: How to connect to the cluster.
        status: The status of the deployment.
        checks: What Test found, by VM or node pool.
        role: The permissions of a custom role for this env.list (`Validate --role`).
        timeline: The stages of the run, in the order in which they began.
    """

    action: str = ""
    rehearsal: bool = False
    problems: list[Problem] = field(default_factory=list)
    notes: list[Problem] = field(default_factory=list)
    settings: dict[str, Any] | None = None
    image: dict[str, Any] | None = None
    tfvars: dict[str, Any] | None = None
    backend: dict[str, str] | None = None
    plan: Plan | None = None
    ending: Ending | None = None
    log: str | None = None
    changes: dict[str, int] | None = None
    cost: Cost | None = None
    out_of_date: list[dict[str, Any]] | None = None
    outputs: dict[str, Any] | None = None
    connection: dict[str, Any] | None = None
    status: dict[str, Any] | None = None
    checks: dict[str, Any] | None = None
    role: list[str] | None = None
    timeline: list[Stage] | None = None

    def document(self, exit_code: int, veil: Callable[[str], str] = str) -> dict[str, Any]:
        """The JSON document; keys that do not apply are absent.

        Args:
            exit_code: The run's.
            veil: Hides credentials in the words of problems and notes.
        """
        document: dict[str, Any] = {
            "schema_version": SCHEMA_VERSION,
            "action": self.action,
            "rehearsal": self.rehearsal,
            "ok": not self.problems,
            "exit_code": exit_code,
            "problems": [plain(of(problem, veil)) for problem in self.problems],
            "notes": [plain(of(note, veil)) for note in self.notes],
        }
        for key in _WHERE_IT_APPLIES:
            value = getattr(self, key)
            if value is not None:
                document[key] = plain(value)
        return document
