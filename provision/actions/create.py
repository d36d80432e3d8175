"""Create: check, plan, show, apply that plan, wait, and say how to connect."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from provision.actions import copied_folder
from provision.context import connect
from provision.deployment.kind import Kind
from provision.errors import TerraformError
from provision.kinds.vms import arrival
from provision.lifecycle import apply

if TYPE_CHECKING:
    from provision.context import Cloud, Context
    from provision.deployment.deployment import Deployment
    from provision.lifecycle.apply import Made


class Arrival(Protocol):
    """What follows the apply of a kind of cluster."""

    def capacity(self, context: Context, cloud: Cloud, made: Made) -> None:
        """Wait for the machines that were asked for."""

    def finish(self, context: Context, cloud: Cloud, made: Made) -> None:
        """Bring up what runs on them, and say how to connect."""

    def explain(self, cloud: Cloud, target: Deployment) -> None:
        """Raise what lies behind an apply that failed, where Google knows more than Terraform."""


def _arrival(kind: Kind) -> Arrival:
    match kind:
        case Kind.MIG:
            return arrival
        case Kind.GKE:
            from provision.kinds.gke import (  # noqa: PLC0415 - Kubernetes' part is for it alone
                arrival as gke_arrival,
            )

            return gke_arrival


def create(context: Context) -> None:
    """Check, plan, show, apply that plan, wait for the VMs, say how to connect."""
    cloud = connect(context)
    exists = cloud.has_bucket()
    with copied_folder.packed(context) as archive:
        target = apply.settle(context, cloud, archive, bucket=exists)
        if not exists and cloud.folder.require_bucket(
            cloud.project_number, context.settings.region
        ):
            bucket = cloud.folder.location.bucket
            context.console.progress(f"Made the bucket gs://{bucket} for the state")
        while True:
            made = _applied(context, cloud, target)
            coming = _arrival(made.target.kind)
            with arrival.standing(cloud):
                coming.capacity(context, cloud, made)
            # What could not be asked for while a request was open is asked for now.
            if not made.postponed:
                break
    with arrival.standing(cloud):
        coming.finish(context, cloud, made)


def _applied(context: Context, cloud: Cloud, target: Deployment) -> Made:
    """Apply, and ask Google for the reason where Terraform can't tell it.

    Raises:
        TerraformError: It failed.
        CapacityError: Google refused machines.
    """
    try:
        return apply.apply(context, cloud, target)
    except TerraformError:
        _arrival(target.kind).explain(cloud, target)
        raise
