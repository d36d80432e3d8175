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
    """The document of a run; what does not apply to the action, or was not reached, is absent."""

    # rises when a key goes or changes its meaning; new keys, and new codes of problems, come
    # without
    schema_version: int
    action: str  # the action's name; "" if it is not known
    rehearsal: bool  # whether Google Cloud was simulated
    ok: bool  # whether the run did what it was to do
    exit_code: int  # the exit code of the program
    problems: tuple[Problem, ...]  # what made the run fail
    notes: tuple[Problem, ...]  # what is worth knowing, and did not make it fail
    # setting -> effective value, with secrets masked; of commands and metadata a mask with a
    # fingerprint
    settings: SettingValues | None = None
    image: BootImage | None = None  # the image that VMs boot from
    # the images that Bake has made: the one, or of a Status of the project all
    images: tuple[OwnImage, ...] | None = None
    tfvars: TerraformVariables | None = None  # the variables for Terraform, in the same way
    backend: Backend | None = None  # where Terraform keeps its state
    # online check -> what became of it; those that do not apply are left out
    online_checks: Mapping[str, CheckState] | None = None
    plan: Plan | None = None  # what the run would make, change and lose
    ending: Ending | None = None  # what a Destroy ends
    log: str | None = None  # the URL of the log with Terraform's output
    changes: Changes | None = None  # what Terraform's plans count
    cost: Cost | None = None  # what the cluster costs
    # the machines that are older than the settings
    out_of_date: tuple[OlderMachine, ...] | None = None
    outputs: TerraformOutputs | None = None  # Terraform's outputs after the apply
    # how to connect to the cluster
    connection: VmsConnection | ClusterConnection | Connection | None = None
    status: VmGroup | GkeCluster | Status | None = None  # the status of the deployment
    # all deployments of the state bucket, for a Status without NAME_PREFIX
    deployments: tuple[Deployed, ...] | None = None
    # VM, group of VMs or node pool -> what Test has found
    checks: Mapping[str, VmCheck | VmBandwidth | Bandwidth] | None = None
    # the permissions of a custom role for this env.list (`Validate --role`)
    role: tuple[str, ...] | None = None
    # the jobs that the action is about: the one that was run, or all; of Status those that are not
    # over
    jobs: tuple[Job, ...] | None = None
    # the stages of the run, in the order in which they began
    timeline: tuple[Stage, ...] | None = None
