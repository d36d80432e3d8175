"""What GKE's autoscaler says of pods that it ignores: they consume a ProvisioningRequest.

Such pods are ignored also where another pool would take them (published source, 2026-08-21).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rehearsal.cloud.kubernetes import checks, objects, pods

if TYPE_CHECKING:
    from rehearsal.cloud.kubernetes.objects import Object, World

_LATE: Final = 600.0
"""Seconds of cloud time after which a pod should have found its request's nodes."""
_NEVER: Final = "arrived too late and will never schedule"


def tell(world: World, waiting: list[Object]) -> None:
    """Note events of pods that wait, and consume a request."""
    kind = world.kind(*checks.REQUESTS)
    for pod in waiting:
        name, namespace = pods.consumed(pod), pod["metadata"]["namespace"]
        request = world.get(kind, namespace, name) if kind else None
        weight, reason, words = _said(world, request)
        objects.note(
            world,
            pod,
            weight,
            reason,
            "Unschedulable pod ignored in scale-up loop, because it's consuming ProvisioningRequest"
            f" {namespace}/{name} that {words}",
        )


def _said(world: World, request: Object | None) -> tuple[str, str, str]:
    """Weight, reason, and what a sentence about the request ends with; the ends are believed."""
    if request is None:
        return "Warning", "MissingProvisioningRequest", "doesn't exist."
    failed = objects.condition(request, "Failed")
    if failed.get("status") == "True":
        said = f'failed: [{failed["reason"]}] "{failed["message"]}"'
        return "Warning", "FailedProvisioningRequest", said
    if objects.holds(request, "CapacityRevoked"):
        return "Warning", "IgnoredInScaleUp", f"had its capacity revoked: the pod {_NEVER}."
    if objects.holds(request, "BookingExpired"):
        return "Warning", "IgnoredInScaleUp", f"has an expired booking: the pod {_NEVER}."
    if objects.holds(request, "Provisioned"):
        over = request.get("_provisioned", world.now) + _LATE * world.request.rate
        weight = "Warning" if world.request.rate and over <= world.now else "Normal"
        return weight, "IgnoredInScaleUp", "was provisioned."
    accepted = objects.holds(request, "Accepted")
    return "Normal", "IgnoredInScaleUp", "was accepted." if accepted else "wasn't accepted yet."
