"""Which kind of cluster an ORCHESTRATOR_TYPE is: the one place that decides it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from provision.deployment.kind import deploy
from provision.kinds.gke.kind import GKE_CLUSTER
from provision.kinds.vms.kind import VM_GROUP
from provision.settings.choices import Orchestrator

if TYPE_CHECKING:
    from provision.context import Context
    from provision.deployment.deployment import Deployment, Findings
    from provision.deployment.kind import Kind
    from provision.settings.model import Settings

# Any: what a kind makes of the settings is for that kind alone.
KINDS: Final[dict[Orchestrator, Kind[Any]]] = {
    Orchestrator.NONE: VM_GROUP,
    Orchestrator.RAY: VM_GROUP,
    Orchestrator.GKE: GKE_CLUSTER,
}


def of(settings: Settings) -> Kind[Any]:
    """The kind that settings ask for."""
    return KINDS[settings.orchestrator_type]


def named(name: str) -> Kind[Any]:
    """The kind that a record names."""
    return next(kind for kind in KINDS.values() if kind.name == name)


def deployment(context: Context, findings: Findings | None = None) -> Deployment[Any]:
    """The deployment that the settings of a run describe, as far as it is known offline."""
    kind = of(context.settings)
    return deploy(kind, kind.spec(context.settings), context.location, findings)
