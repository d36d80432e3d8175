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

    Attributes:
        action: The action's name; "" if it is not known.
        rehearsal: Whether Google Cloud was simulated.
        problems: The problems that made the run fail.
        notes: Notes, which did not make it fail.
        settings: Setting -> effective value, with secrets masked; of commands and metadata a mask
            with a fingerprint.
        image: The image that VMs boot from.
        images: The images that Bake has made: the one, or of a Status of the project all.
        tfvars: The variables for Terraform, in the same way.
        backend: Where Terraform keeps its state.
        online_checks: Online check -> what became of it.
        plan: What the run would make, change and lose.
        ending: What a Destroy ends.
        log: The URL of the log with Terraform's output.
        changes: What the plans count.
        cost: What the cluster costs; None where no prices are asked for.
        out_of_date: The machines that are older than the settings.
        outputs: Terraform's outputs after the apply.
        connection: How to connect to the cluster.
        status: The status of the deployment.
        deployments: All deployments of the state bucket (Status without NAME_PREFIX).
        checks: What Test found, by VM, group of VMs or node pool.
        role: The permissions of a custom role for this env.list (`Validate --role`).
        jobs: The jobs that the action is about.
        timeline: The stages of the run, in the order in which they began.
        topology: What the cluster consists of, before there is a plan; programs find it in that.
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
    cost: Cost | None = None
    out_of_date: Sequence[OlderMachine] | None = None
    outputs: TerraformOutputs | None = None
    connection: Connection | None = None
    status: Status | None = None
    deployments: Sequence[Deployed] | None = None
    checks: Mapping[str, VmCheck | VmBandwidth | Bandwidth] | None = None
    role: Sequence[str] | None = None
    jobs: Sequence[Job] | None = None
    timeline: list[Stage] | None = None
    topology: Topology | None = None

    def document(self, exit_code: int) -> Run:
        """The document of the run.

        Args:
            exit_code: The run's.
        """
        # Most runs print no document, and its types take a tenth of a start.
        from provision.documents.problem import of  # noqa: PLC0415 - as just said
        from provision.documents.run import Run  # noqa: PLC0415 - as just said

        return Run(
            schema_version=SCHEMA_VERSION,
            action=self.action,
            rehearsal=self.rehearsal,
            ok=not self.problems,
            exit_code=exit_code,
            problems=tuple(of(problem) for problem in self.problems),
            notes=tuple(of(note) for note in self.notes),
            settings=self.settings,
            image=self.image,
            images=None if self.images is None else tuple(self.images),
            tfvars=self.tfvars,
            backend=self.backend,
            online_checks=self.online_checks,
            plan=self.plan,
            ending=self.ending,
            log=self.log,
            changes=self.changes,
            cost=self.cost,
            out_of_date=None if self.out_of_date is None else tuple(self.out_of_date),
            outputs=self.outputs,
            connection=self.connection,
            status=self.status,
            deployments=None if self.deployments is None else tuple(self.deployments),
            checks=self.checks,
            role=None if self.role is None else tuple(self.role),
            jobs=None if self.jobs is None else tuple(self.jobs),
            timeline=None if self.timeline is None else tuple(self.timeline),
        )
