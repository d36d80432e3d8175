"""Bringing objects into a cluster: in stages, each awaited, as often as one likes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from provision.kinds.gke.kubernetes.client import KubernetesError
from provision.kinds.gke.kubernetes.objects import Object, conditions, holds, title
from provision.time.retries import PassingError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from provision.kinds.gke.kubernetes.client import Cluster
    from provision.time.deadline import Deadline
    from provision.time.progress import Progress

STAGE_TIMEOUT: Final = 600.0
"""Seconds of cloud time for one stage; a first Kueue takes a minute or two to start."""

_PAUSE: Final = 2.0
_NOT_FOUND: Final = 404


@dataclass(frozen=True)
class Stage:
    """Objects that are applied one after the other, and then awaited.

    Attributes:
        name: For the progress: what is there after it.
        objects: In their order.
    """

    name: str
    objects: list[Object] = field(default_factory=list)


def apply(
    cluster: Cluster,
    stages: Iterable[Stage],
    *,
    progress: Progress,
    timeout: float = STAGE_TIMEOUT,
) -> int:
    """Apply all stages in order; what is as it should be is left alone.

    Args:
        cluster: Where to.
        stages: What to apply; the timeout counts for each stage anew.
        progress: The run's clock and voice.
        timeout: Seconds of cloud time for each stage.

    Returns:
        How many objects are new or not as they were.

    Raises:
        KubernetesError: An object is refused for good.
        ClusterError: A stage is not done in time.
        CredentialsError: The token is not taken.
    """
    total = 0
    for stage in stages:
        if not stage.objects:
            continue
        deadline = progress.deadline(timeout, _PAUSE)
        changed = 0
        for thing in stage.objects:
            changed += deadline.retry(
                lambda thing=thing: _apply(cluster, thing),  # type: ignore[misc]  # mypy knows no lambda with defaults
                f"apply {title(thing)}",
            )
        for thing in stage.objects:
            _await(cluster, thing, deadline)
        total += changed
        if changed:
            progress.tell(
                f"Kubernetes: {stage.name} ({changed} of {len(stage.objects)} objects changed)"
            )
    return total


def _apply(cluster: Cluster, thing: Object) -> bool:
    """Apply an object; whether that changed anything, which the API's version of it tells."""
    metadata = thing["metadata"]
    try:
        before = cluster.find(
            thing["apiVersion"], thing["kind"], metadata["name"], metadata.get("namespace", "")
        )
        after = cluster.apply(thing)
    except KubernetesError as error:
        # GKE's own kinds appear a while after the cluster does, and a namespace after its object.
        if error.code == _NOT_FOUND:
            raise PassingError(error.message) from error
        raise
    return before is None or _version(before) != _version(after)


def _version(thing: Object) -> str:
    return str(thing["metadata"].get("resourceVersion", ""))


def _await(cluster: Cluster, thing: Object, deadline: Deadline) -> None:
    """Wait until an object of a kind that takes its time is of use.

    Raises:
        ClusterError: It is not in time.
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
            raise PassingError(words)

    deadline.retry(look, doing)


_CONDITIONS: Final = {
    "CustomResourceDefinition": "Established",
    "Deployment": "Available",
}
"""Kind -> the condition without which what comes after it fails."""


def _unmet(thing: Object, condition: str) -> str | None:
    """Why a condition does not hold; None when it does."""
    if holds(thing, condition):
        return None
    return str(conditions(thing).get(condition, {}).get("message") or "it says nothing yet")
