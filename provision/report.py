"""The report of a run: the JSON document of `--output json`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from provision.documents.backend import Backend
    from provision.documents.changes import Changes
    from provision.documents.checks import Bandwidth, CheckState, VmBandwidth, VmCheck
    from provision.documents.connection import Connection
    from provision.documents.cost import Cost
    from provision.documents.deployed import Deployed
    from provision.documents.ending import Ending
    from provision.documents.image import BootImage, OwnImage
    from provision.documents.job import Job
    from provision.documents.json_value import (
        SettingValues,
        TerraformOutputs,
        TerraformVariables,
    )
    from provision.documents.older_machine import OlderMachine
    from provision.documents.plan import Plan
    from provision.documents.run import Run
    from provision.documents.status import Status
    from provision.documents.timeline import Stage
    from provision.documents.topology import Topology
    from provision.errors import Problem


SCHEMA_VERSION: Final = 1
"""Rises when a key of the document goes or changes its meaning; new keys may come without."""


@dataclass
class Report:
    """The report of a run; the action fills it step by step, so that a failure loses nothing.

    What each field is, `Run` says.
    """

    action: str = ""
    rehearsal: bool = False
    problems: list[Problem] = field(default_factory=list)
    notes: list[Problem] = field(default_factory=list)
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
    out_of_date: Sequence[OlderMachine] | None = None
    outputs: TerraformOutputs | None = None
    connection: Connection | None = None
    status: Status | None = None
    deployments: Sequence[Deployed] | None = None
    checks: Mapping[str, VmCheck | VmBandwidth | Bandwidth] | None = None
    role: Sequence[str] | None = None
    jobs: Sequence[Job] | None = None
    timeline: Sequence[Stage] | None = None
    # what the cluster consists of, before there is a plan; programs find it in that
    topology: Topology | None = None

    def document(self, exit_code: int) -> Run:
        """The document of the run."""
        # Most runs print no document, and its types take a tenth of a start.
        from provision.documents.problem import of  # noqa: PLC0415 - as just said
        from provision.documents.run import Run  # noqa: PLC0415 - as just said

        told = {name: value for name, value in vars(self).items() if name != "topology"}
        told |= {name: tuple(value) for name, value in told.items() if isinstance(value, list)}
        told |= {name: tuple(map(of, told[name])) for name in ("problems", "notes")}
        ok = not self.problems
        return Run(schema_version=SCHEMA_VERSION, ok=ok, exit_code=exit_code, **told)
