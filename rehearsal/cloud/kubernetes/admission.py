"""What happens to objects as they come in: defaults, and what webhooks of add-ons do."""

from typing import Final

from rehearsal.cloud.kubernetes import objects, volumes
from rehearsal.cloud.kubernetes.kinds import Kind
from rehearsal.cloud.kubernetes.objects import Object, World

QUEUE: Final = "kueue.x-k8s.io/queue-name"
QUEUED_KINDS: Final = frozenset({"Job", "JobSet", "RayCluster", "RayJob"})


def admit(world: World, kind: Kind, thing: Object) -> None:
    """Complete an object that somebody makes or changes."""
    if kind.name == "CustomResourceDefinition":
        message = "the initial names have been accepted"
        objects.tell(world, thing, "NamesAccepted", True, "NoConflicts", message)
        objects.tell(world, thing, "Established", True, "InitialNamesAccepted", message)
    if kind.name == "Namespace":
        thing.setdefault("status", {})["phase"] = "Active"
    is_new = "uid" not in thing["metadata"]
    if kind.name == "PersistentVolumeClaim" and is_new:
        known = thing["metadata"].get("finalizers") or []
        thing["metadata"]["finalizers"] = [*known, volumes.IN_USE]
    if kind.name in QUEUED_KINDS and is_new and is_queued(thing) and has_kueue(world):
        # Kueue's webhook: it starts a job when it has admitted it.
        thing.setdefault("spec", {})["suspend"] = True


def is_queued(thing: Object) -> bool:
    """Whether a job is to wait in a queue; what another job owns goes with that one."""
    metadata = thing["metadata"]
    return QUEUE in (metadata.get("labels") or {}) and not metadata.get("ownerReferences")


def has_kueue(world: World) -> bool:
    """Whether Kueue's kinds are there, which stand for Kueue."""
    return world.kind("kueue.x-k8s.io/v1beta2", "workloads") is not None
