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
    # setting -> effective value, with secrets masked; of commands and metadata a mask with a
    # fingerprint
    settings: SettingValues | None = None
    image: BootImage | None = None
    # the images that Bake has made: the one, or of a Status of the project all
    images: Sequence[OwnImage] | None = None
    tfvars: TerraformVariables | None = None  # the variables for Terraform, in the same way
    backend: Backend | None = None  # where Terraform keeps its state
    online_checks: Mapping[str, CheckState] | None = None  # online check -> what became of it
    plan: Plan | None = None  # what the run would make, change and lose
    ending: Ending | None = None
    log: str | None = None  # the URL of the log with Terraform's output
    changes: Changes | None = None  # what the plans count
    cost: Cost | None = None  # what the cluster costs; None where no prices are asked for
    # the machines with a GPU, the cheapest for a GPU first
    offers: Sequence[Offer] | None = None
    # the machines that are older than the settings
    out_of_date: Sequence[OlderMachine] | None = None
    outputs: TerraformOutputs | None = None  # Terraform's outputs after the apply
    connection: Connection | None = None  # how to connect to the cluster
    status: Status | None = None
    # all deployments of the state bucket (Status without NAME_PREFIX)
    deployments: Sequence[Deployed] | None = None
    # what Test found, by VM, group of VMs or node pool
    checks: Mapping[str, VmCheck | VmBandwidth | Bandwidth] | None = None
    # the permissions of a custom role for this env.list (`Validate --role`)
    role: Sequence[str] | None = None
    jobs: Sequence[Job] | None = None  # the jobs that the action is about
    fetched: Fetched | None = None  # what of a job was copied here
    timeline: list[Stage] | None = None  # the stages of the run, in the order in which they began
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
