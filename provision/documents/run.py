"""The document of a run: what `--output json` prints."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from provision.documents.backend import Backend
from provision.documents.changes import Changes
from provision.documents.checks import Bandwidth, CheckState, VmBandwidth, VmCheck
from provision.documents.connection import ClusterConnection, Connection, VmsConnection
from provision.documents.cost import Cost
from provision.documents.deployed import Deployed
from provision.documents.ending import Ending
from provision.documents.gke_status import GkeCluster
from provision.documents.image import BootImage, OwnImage
from provision.documents.job import Job
from provision.documents.json_value import SettingValues, TerraformOutputs, TerraformVariables
from provision.documents.older_machine import OlderMachine
from provision.documents.plan import Plan
from provision.documents.problem import Problem
from provision.documents.status import Status
from provision.documents.timeline import Stage
from provision.documents.vm_status import VmGroup


@dataclass(frozen=True, kw_only=True)
class Run:
    """The document of a run; what does not apply to the action, or was not reached, is absent.

    Attributes:
        schema_version: Rises when a key goes or changes its meaning; new keys, and new codes of
            problems, come without.
        action: The action's name; "" if it is not known.
        rehearsal: Whether Google Cloud was simulated.
        ok: Whether the run did what it was to do.
        exit_code: The exit code of the program.
        problems: What made the run fail.
        notes: What is worth knowing, and did not make it fail.
        settings: Setting -> effective value, with secrets masked; of commands and metadata a mask
            with a fingerprint.
        image: The image that VMs boot from.
        images: The images that Bake has made: the one, or of a Status of the project all.
        tfvars: The variables for Terraform, in the same way.
        backend: Where Terraform keeps its state.
        online_checks: Online check -> what became of it; those that do not apply are left out.
        plan: What the run would make, change and lose.
        ending: What a Destroy ends.
        log: The URL of the log with Terraform's output.
        changes: What Terraform's plans count.
        cost: What the cluster costs.
        out_of_date: The machines that are older than the settings.
        outputs: Terraform's outputs after the apply.
        connection: How to connect to the cluster.
        status: The status of the deployment.
        deployments: All deployments of the state bucket, for a Status without NAME_PREFIX.
        checks: VM, group of VMs or node pool -> what Test has found.
        role: The permissions of a custom role for this env.list (`Validate --role`).
        jobs: The jobs that the action is about: the one that was run, or all; of Status those
            that are not over.
        timeline: The stages of the run, in the order in which they began.
    """

    schema_version: int
    action: str
    rehearsal: bool
    ok: bool
    exit_code: int
    problems: tuple[Problem, ...]
    notes: tuple[Problem, ...]
    settings: SettingValues | None = None
    image: BootImage | None = None
    images: tuple[OwnImage, ...] | None = None
    tfvars: TerraformVariables | None = None
    backend: Backend | None = None
    online_checks: Mapping[str, CheckState] | None = None
    plan: Plan | None = None
    ending: Ending | None = None
    log: str | None = None
    changes: Changes | None = None
    cost: Cost | None = None
    out_of_date: tuple[OlderMachine, ...] | None = None
    outputs: TerraformOutputs | None = None
    connection: VmsConnection | ClusterConnection | Connection | None = None
    status: VmGroup | GkeCluster | Status | None = None
    deployments: tuple[Deployed, ...] | None = None
    checks: Mapping[str, VmCheck | VmBandwidth | Bandwidth] | None = None
    role: tuple[str, ...] | None = None
    jobs: tuple[Job, ...] | None = None
    timeline: tuple[Stage, ...] | None = None
