"""Bringing objects into a cluster: in stages, each of which has to be ready before the next one.

What Create installs on GPU nodes is waited for on those that exist already. Nodes that come later
get it when they come, and pods wait for it there (`nccl.gate`).
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from provision.codes import Code
from provision.documents.timeline import StageName
from provision.errors import ClusterError, Problem
from provision.kinds.gke.kubernetes import nccl
from provision.kinds.gke.kubernetes.client import KubernetesError
from provision.kinds.gke.kubernetes.objects import Object, conditions, containers, holds, title
from provision.time.retries import TransientError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from provision.kinds.gke.kubernetes.client import Cluster
    from provision.kinds.gke.kubernetes.facts import ClusterFacts, GpuPool
    from provision.time.deadline import Deadline
    from provision.time.progress import Progress

TIMEOUT: Final = 600.0
"""Seconds of cloud time for a stage, and for NCCL: Kueue takes a minute or two to start, and a node
pulls an image of some gigabytes."""

_PAUSE: Final = 2.0
_NOT_FOUND: Final = 404
_CONDITIONS: Final = {"CustomResourceDefinition": "Established", "Deployment": "Available"}
"""Kind -> the condition that must hold before the next stage."""


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
    timeout: float = TIMEOUT,
) -> int:
    """Apply all stages in order; objects that are up to date do not change."""
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
                    functools.partial(_apply, cluster, thing),
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
    try:
        before = _find(cluster, thing)
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
    """Wait until an object is ready, if it is of a kind that takes time."""
    condition = _CONDITIONS.get(thing["kind"])
    if condition is None:
        return

    def look() -> None:
        found = _find(cluster, thing) or {}
        if not holds(found, condition):
            told = conditions(found).get(condition, {}).get("message")
            raise TransientError(str(told or "it reports no status yet"))

    deadline.retry(look, f"see {title(thing)} become {condition}")


def _find(cluster: Cluster, thing: Object) -> Object | None:
    metadata = thing["metadata"]
    return cluster.find(
        thing["apiVersion"], thing["kind"], metadata["name"], metadata.get("namespace", "")
    )


# ------------------------------------------------------------------------------ NCCL

_POLL: Final = 5.0
# In these a container waits that goes wrong; in others it is only slow.
_WRONG: Final = frozenset(
    {
        "CrashLoopBackOff",
        "CreateContainerConfigError",
        "CreateContainerError",
        "ErrImagePull",
        "ImagePullBackOff",
        "InvalidImageName",
        "RunContainerError",
    }
)


def wait(
    cluster: Cluster, facts: ClusterFacts, *, progress: Progress, timeout: float = TIMEOUT
) -> list[Problem]:
    """Wait until NCCL is on all GPU nodes that there are; notes on what is slow or gets none."""
    names = [it["metadata"]["name"] for it in nccl.objects(facts)]

    def look(deadline: Deadline) -> dict[str, _Unfinished]:
        doing = "look at what is installed on the GPU nodes"
        found = deadline.retry(lambda: {it: _unfinished(cluster, it) for it in names}, doing)
        return {name: it for name, it in found.items() if it is not None}

    left = look(progress.deadline(timeout, _POLL)) if names else {}
    notes = [_without(pool) for pool in facts.pools if pool.gpu_network and pool.is_arm]
    if not left:
        return notes
    with progress.stage(StageName.OBJECTS) as stage:
        deadline = stage.deadline(timeout, _POLL)
        while left and not deadline.is_over:
            stage.counts("; ".join(words for words, _ in left.values()))
            deadline.pause()
            left = look(deadline)
        if not left:
            stage.counts("NCCL is installed on the GPU nodes")
    told = [(wrong, _told(name, words, wrong)) for name, (words, wrong) in left.items()]
    failed = [problem for wrong, problem in told if wrong]
    if failed:
        raise ClusterError.of(failed)
    return [*notes, *(problem for _, problem in told)]


_Unfinished = tuple[str, tuple[str, ...]]
"""How far a DaemonSet is that is not ready on all of its nodes, and what goes wrong in its pods;
nothing where they are only slow."""


def _unfinished(cluster: Cluster, name: str) -> _Unfinished | None:
    found = cluster.find("apps/v1", "DaemonSet", name, nccl.NAMESPACE) or {}
    status = found.get("status") or {}
    if status.get("observedGeneration", 0) < found.get("metadata", {}).get("generation", 1):
        return f"{name} is not scheduled yet", ()
    nodes = status.get("desiredNumberScheduled", 0)
    # Pods of the version before are ready too.
    ready = min(status.get("numberReady", 0), status.get("updatedNumberScheduled", 0))
    if ready >= nodes:
        return None
    pods = cluster.all("v1", "Pod", nccl.NAMESPACE, f"k8s-app={name}")
    wrong = tuple(dict.fromkeys(line for pod in pods for line in _wrong(pod)))
    return f"{name} is ready on {ready} of {nodes} GPU nodes", wrong


def _wrong(pod: Object) -> Iterator[str]:
    """What goes wrong in the containers of a pod."""
    node = (pod.get("spec") or {}).get("nodeName", "")
    for container in containers(pod):
        waiting = (container.get("state") or {}).get("waiting") or {}
        if waiting.get("reason") in _WRONG:
            last = (container.get("lastState") or {}).get("terminated") or {}
            said = last.get("message") or waiting.get("message") or ""
            yield f"{container['name']} on {node}: {waiting['reason']}: {said}".rstrip(": ")


def _told(name: str, words: str, wrong: tuple[str, ...]) -> Problem:
    """An error about a DaemonSet whose pods go wrong, or a note on one that is slow."""
    pods = f"kubectl --namespace {nccl.NAMESPACE} describe pods --selector k8s-app={name}"
    if wrong:
        return Problem(
            code=Code.KUBERNETES_FAILED,
            what=f"NCCL can't be installed: the DaemonSet {words}",
            why="\n".join(wrong),
            fix=f"see why by {pods}; then run Create again: jobs on these nodes would fail",
        )
    return Problem(
        code=Code.STILL_RUNNING,
        what=f"NCCL is still being installed: the DaemonSet {words}",
        why="a node takes some minutes to pull the image, and one with jobs gets another version"
        " when none of them uses NCCL",
        fix=f"nothing now: jobs wait for it, {nccl.GATE_SECONDS // 60} minutes long; if they fail,"
        f" see why by {pods}",
    )


def _without(pool: GpuPool) -> Problem:
    return Problem(
        code=Code.NOTE,
        what=f"Nothing of NCCL is installed on the nodes of {pool.name} ({pool.machine_type})",
        why="gIB for Arm and the IMEX channels of these machines are not set up: NCCL uses NVLink"
        " within a domain, and plain sockets between domains",
        fix="nothing, for jobs within one domain",
    )
