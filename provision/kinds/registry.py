"""The kind of cluster for each ORCHESTRATOR_TYPE; no other module decides that."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from provision.codes import Code
from provision.deployment.kind import Kind, deploy
from provision.errors import StateError
from provision.kinds.gke.kind import GKE_CLUSTER
from provision.kinds.vms.kind import VM_GROUP
from provision.settings.choices import KIND, Orchestrator

if TYPE_CHECKING:
    from provision.context import Context
    from provision.deployment.deployment import Deployment, RunInputs
    from provision.settings.model import Settings

# Any: each kind has a specification type of its own.
KINDS: Final[dict[Orchestrator, Kind[Any]]] = {
    Orchestrator.NONE: VM_GROUP,
    Orchestrator.RAY: VM_GROUP,
    Orchestrator.SLURM: VM_GROUP,
    Orchestrator.GKE: GKE_CLUSTER,
}

ALL: Final = tuple(dict.fromkeys(KINDS.values()))
"""Each kind, once."""


def of(settings: Settings) -> Kind[Any]:
    """The kind that settings ask for."""
    return KINDS[settings.orchestrator_type]


def given(settings: Settings) -> str | None:
    """The name of the kind that somebody wrote into the settings; None where nobody did."""
    return of(settings).name if KIND.lower() in settings.model_fields_set else None


def named(name: str) -> Kind[Any]:
    """The kind with the name that a record has."""
    for kind in KINDS.values():
        if kind.name == name:
            return kind
    raise StateError(
        f"What is deployed is a cluster of the kind {name}, which this version does not know",
        code=Code.STATE_UNREADABLE,
        why="a later version of this tool made it, or somebody changed its deployment.json",
        fix="use the version of the tool that made this deployment",
    )


def deployment(context: Context, inputs: RunInputs | None = None) -> Deployment[Any]:
    """The deployment that the settings of a run describe, as far as it is known without Google."""
    kind = of(context.settings)
    return deploy(kind, kind.spec(context.settings), context.location, inputs)
