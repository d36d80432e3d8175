"""The report of a run: the JSON document of `--output json`."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from provision.documents.checks import Bandwidth, CheckState, VmBandwidth, VmCheck
    from provision.documents.connection import Connection
    from provision.documents.cost import Cost, Offer
    from provision.documents.deployed import Deployed, Ending, OlderMachine
    from provision.documents.job import Fetched, Job
    from provision.documents.plan import Backend, Changes, Plan
    from provision.documents.run import Run, SettingValues, TerraformOutputs, TerraformVariables
    from provision.documents.status import Status
    from provision.documents.timeline import Stage
    from provision.documents.topology import BootImage, OwnImage, Topology
    from provision.errors import Problem

SCHEMA_VERSION: Final = 1
"""Rises when a key of the document goes or changes its meaning; new keys may come without."""


@dataclass
class Report:
    """The report of a run; the action fills it step by step, so that a failure loses nothing."""

    action: str = ""  # the action's name; "" if it is not known
    rehearsal: bool = False  # whether Google Cloud was simulated
    problems: list[Problem] = field(default_factory=list)  # the problems that made the run fail
    notes: list[Problem] = field(default_factory=list)  # notes, which did not make it fail
    # What each of these is, the field of `Run` with its name says.
    settings: SettingValues | None = None
    image: BootImage | None = None
    images: Sequence[OwnImage] | None = None
    tfvars: TerraformVariables | None = None
    backend: Backend | None = None
    online_checks: Mapping[str, CheckState] | None = None
    plan: Plan | None = None
    ending: Ending | None = None
    log: str | None = None
    changes: Changes | None = None
    cost: Cost | None = None  # None where no prices are asked for
    offers: Sequence[Offer] | None = None
    out_of_date: Sequence[OlderMachine] | None = None
    outputs: TerraformOutputs | None = None
    connection: Connection | None = None
    status: Status | None = None
    deployments: Sequence[Deployed] | None = None
    checks: Mapping[str, VmCheck | VmBandwidth | Bandwidth] | None = None
    role: Sequence[str] | None = None
    jobs: Sequence[Job] | None = None
    fetched: Fetched | None = None
    timeline: list[Stage] | None = None
    # what the cluster consists of, before there is a plan; programs find it in that
    topology: Topology | None = None

    def document(self, exit_code: int) -> Run:
        """The document of the run."""
        # Most runs print no document, and its types take a tenth of a start.
        from provision.documents.problem import of  # noqa: PLC0415 - as just said
        from provision.documents.run import Run  # noqa: PLC0415 - as just said

        own = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        told: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value
            for name, value in own.items()
            if name not in {"problems", "notes", "topology"}
        }
        return Run(
            schema_version=SCHEMA_VERSION,
            ok=not self.problems,
            exit_code=exit_code,
            problems=tuple(map(of, self.problems)),
            notes=tuple(map(of, self.notes)),
            **told,
        )
