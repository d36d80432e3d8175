"""Applying objects in a cluster, in stages; each stage has to be ready before the next one."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from provision.documents.timeline import StageName
from provision.kinds.gke.kubernetes.client import KubernetesError
from provision.kinds.gke.kubernetes.objects import Object, conditions, holds, title
from provision.time.retries import TransientError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from provision.kinds.gke.kubernetes.client import Cluster
    from provision.time.deadline import Deadline
    from provision.time.progress import Progress

STAGE_TIMEOUT: Final = 600.0
"""The timeout of one stage, in seconds of cloud time; Kueue takes a minute or two to start."""

_PAUSE: Final = 2.0
_NOT_FOUND: Final = 404


@dataclass(frozen=True)
class Stage:
    """Objects that are applied in order, and then waited for."""

    name: str  # what the stage installs, for progress messages
    objects: list[Object] = field(default_factory=list)


def apply(
    cluster: Cluster,
    stages: Iterable[Stage],
    *,
    progress: Progress,
    timeout: float = STAGE_TIMEOUT,
) -> int:
    """Apply all stages in order; objects that are up to date do not change.

    `timeout`: the timeout of each stage, in seconds of cloud time.

    Raises:
        KubernetesError: Kubernetes refused an object, and a retry would not help.
        ClusterError: A stage was not ready in time.
    """
    total = done = 0
    wanted = [stage for stage in stages if stage.objects]
    everything = sum(len(stage.objects) for stage in wanted)
    with progress.stage(StageName.OBJECTS) as shown:
        for stage in wanted:
            deadline = shown.deadline(timeout, _PAUSE)
            changed = 0
            for thing in stage.objects:
                shown.counts(f"{done} of {everything} objects; {stage.name}: {title(thing)}")
                changed += deadline.retry(
                    lambda thing=thing: _apply(cluster, thing),  # type: ignore[misc]  # mypy knows no lambda with defaults
                    f"apply {title(thing)}",
                )
                done += 1
            for thing in stage.objects:
                shown.counts(f"{done} of {everything} objects; {stage.name}: {title(thing)}")
                _await(cluster, thing, deadline)
            total += changed
            if changed:
                shown.news(
                    f"Kubernetes: {stage.name} ({changed} of {len(stage.objects)} objects changed)"
                )
        shown.counts(f"{everything} objects, {total} of them changed" if total else "")
    return total


def _apply(cluster: Cluster, thing: Object) -> bool:
    """Apply an object; returns whether that changed its resourceVersion."""
    metadata = thing["metadata"]
    try:
        before = cluster.find(
            thing["apiVersion"], thing["kind"], metadata["name"], metadata.get("namespace", "")
        )
        after = cluster.apply(thing)
    except KubernetesError as error:
        # GKE's own kinds exist only some time after the cluster does, and a namespace is usable
        # only some time after its object exists.
        if error.code == _NOT_FOUND:
            raise TransientError(error.message) from error
        raise
    return before is None or _version(before) != _version(after)


def _version(thing: Object) -> str:
    return str(thing["metadata"].get("resourceVersion", ""))


def _await(cluster: Cluster, thing: Object, deadline: Deadline) -> None:
    """Wait until an object is ready, if it is of a kind that takes time.

    Raises:
        ClusterError: It is not ready in time.
    """
    condition = _CONDITIONS.get(thing["kind"])
    if condition is None:
        return
    doing = f"see {title(thing)} become {condition}"

    def look() -> None:
        metadata = thing["metadata"]
        found = cluster.find(
            thing["apiVersion"], thing["kind"], metadata["name"], metadata.get("namespace", "")
        )
        words = _unmet(found or {}, condition)
        if words is not None:
            raise TransientError(words)

    deadline.retry(look, doing)


_CONDITIONS: Final = {
    "CustomResourceDefinition": "Established",
    "Deployment": "Available",
}
"""Kind -> the condition that must hold before the next stage."""


def _unmet(thing: Object, condition: str) -> str | None:
    """Why a condition does not hold; None if it holds."""
    if holds(thing, condition):
        return None
    return str(conditions(thing).get(condition, {}).get("message") or "it reports no status yet")
