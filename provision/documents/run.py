"""The document of a run: what `--output json` prints."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

from provision.documents.checks import Bandwidth, CheckState, VmBandwidth, VmCheck
from provision.documents.connection import ClusterConnection, Connection, VmsConnection
from provision.documents.cost import Cost, Offer
from provision.documents.deployed import Deployed, Ending, OlderMachine
from provision.documents.events import EventKind
from provision.documents.gke_status import GkeCluster
from provision.documents.job import Fetched, Job
from provision.documents.plan import Backend, Changes, Plan
from provision.documents.problem import Problem
from provision.documents.status import Status
from provision.documents.timeline import Stage
from provision.documents.topology import BootImage, OwnImage
from provision.documents.vm_status import VmGroup

if TYPE_CHECKING:
    Json: TypeAlias = (
        "bool | int | float | str | list[Json] | tuple[Json, ...] | Mapping[str, Json] | None"
    )
else:
    # What the schema says of it.
    Json = Any

SettingValues: TypeAlias = Mapping[str, Json]
"""Setting -> its effective value, with secrets masked; null where it has none."""

TerraformVariables: TypeAlias = Mapping[str, Json]
"""Variable of the Terraform root -> its value, with secrets masked."""

TerraformOutputs: TypeAlias = Mapping[str, Json]
"""Output of the Terraform root -> its value."""


@dataclass(frozen=True, kw_only=True)
class Run:
    """The document of a run; what does not apply to the action, or was not reached, is absent."""

    schema_version: Annotated[
        int,
        "rises when a key goes or changes its meaning; new keys, and new codes of problems, "
        "come without",
    ]
    action: Annotated[str, 'the action\'s name; "" if it is not known']
    rehearsal: Annotated[bool, "whether Google Cloud was simulated"]
    ok: Annotated[bool, "whether the run did what it was to do"]
    exit_code: Annotated[int, "the exit code of the program"]
    problems: Annotated[tuple[Problem, ...], "what made the run fail"]
    notes: Annotated[tuple[Problem, ...], "what is worth knowing, and did not make it fail"]
    settings: Annotated[
        SettingValues | None,
        "setting -> effective value, with secrets masked; of commands and metadata a mask with "
        "a fingerprint",
    ] = None
    image: Annotated[BootImage | None, "the image that VMs boot from"] = None
    images: Annotated[
        tuple[OwnImage, ...] | None,
        "the images that Bake has made: the one, or of a Status of the project all",
    ] = None
    tfvars: Annotated[TerraformVariables | None, "the variables for Terraform, in the same way"] = (
        None
    )
    backend: Annotated[Backend | None, "where Terraform keeps its state"] = None
    online_checks: Annotated[
        Mapping[str, CheckState] | None,
        "online check -> what became of it; those that do not apply are left out",
    ] = None
    plan: Annotated[Plan | None, "what the run would make, change and lose"] = None
    ending: Annotated[Ending | None, "what a Destroy ends"] = None
    log: Annotated[str | None, "the URL of the log with Terraform's output"] = None
    changes: Annotated[Changes | None, "what Terraform's plans count"] = None
    cost: Annotated[Cost | None, "what the cluster costs"] = None
    offers: Annotated[
        tuple[Offer, ...] | None,
        "the machines with the GPU that Offers was asked for, or with any, the cheapest for a GPU "
        "first",
    ] = None
    out_of_date: Annotated[
        tuple[OlderMachine, ...] | None, "the machines that are older than the settings"
    ] = None
    outputs: Annotated[TerraformOutputs | None, "Terraform's outputs after the apply"] = None
    connection: Annotated[
        VmsConnection | ClusterConnection | Connection | None, "how to connect to the cluster"
    ] = None
    status: Annotated[VmGroup | GkeCluster | Status | None, "the status of the deployment"] = None
    deployments: Annotated[
        tuple[Deployed, ...] | None,
        "all deployments of the state bucket, for a Status without NAME_PREFIX",
    ] = None
    checks: Annotated[
        Mapping[str, VmCheck | VmBandwidth | Bandwidth] | None,
        "VM, group of VMs or node pool -> what Test has found",
    ] = None
    role: Annotated[
        tuple[str, ...] | None,
        "the permissions of a custom role for this env.list (`Validate --role`)",
    ] = None
    jobs: Annotated[
        tuple[Job, ...] | None,
        "the jobs that the action is about: the one that was run, or all; of Status those that "
        "are not over",
    ] = None
    fetched: Annotated[Fetched | None, "what Fetch has copied to this machine"] = None
    timeline: Annotated[
        tuple[Stage, ...] | None, "the stages of the run, in the order in which they began"
    ] = None


@dataclass(frozen=True, kw_only=True)
class ResultEvent(Run):
    """The last line of a run: its whole document."""

    event: Annotated[Literal[EventKind.RESULT], "its kind"] = EventKind.RESULT
    time: Annotated[str, "when, as ISO 8601 in UTC"]
