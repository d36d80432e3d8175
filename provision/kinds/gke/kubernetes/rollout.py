"""Whether what Create installs on GPU nodes is there, on the nodes that exist already.

Nodes that come later get it when they come, and pods wait for it there: see `gate`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from provision.codes import Code
from provision.documents.timeline import StageName
from provision.errors import ClusterError, Problem
from provision.kinds.gke.kubernetes import gate, nccl

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from provision.kinds.gke.kubernetes.client import Cluster
    from provision.kinds.gke.kubernetes.facts import ClusterFacts, GpuPool
    from provision.kinds.gke.kubernetes.objects import Object
    from provision.time.progress import Progress

TIMEOUT: Final = 600.0
"""Seconds of cloud time; a node pulls an image of some gigabytes."""

_POLL: Final = 5.0
_DOING: Final = "look at what is installed on the GPU nodes"
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


@dataclass(frozen=True, kw_only=True)
class Unfinished:
    """A DaemonSet that is not ready on all of its nodes."""

    name: str
    ready: int  # the number of nodes on which it is ready
    nodes: int | None  # the number of its nodes; None as long as Kubernetes has not looked at it
    # what goes wrong in its pods, in words; empty where they are only slow
    wrong: tuple[str, ...] = ()

    def __str__(self) -> str:
        """How far it is."""
        if self.nodes is None:
            return f"{self.name} is not scheduled yet"
        return f"{self.name} is ready on {self.ready} of {self.nodes} GPU nodes"


def wait(
    cluster: Cluster, facts: ClusterFacts, *, progress: Progress, timeout: float = TIMEOUT
) -> list[Problem]:
    """Wait until NCCL's software is on all GPU nodes that there are.

    `timeout`: the longest wait, in seconds of cloud time. Returns notes on what is still being
    installed then, and on pools that get nothing.

    Raises:
        ClusterError: Something can't be installed.
        KubernetesError: Kubernetes refused to tell.
    """
    names = [it["metadata"]["name"] for it in nccl.objects(facts)]
    first = progress.deadline(timeout, _POLL)
    left = first.retry(lambda: _look(cluster, names), _DOING) if names else []
    notes = [_without(pool) for pool in facts.pools if pool.gpu_network and pool.is_arm]
    if not left:
        return notes
    with progress.stage(StageName.OBJECTS) as stage:
        deadline = stage.deadline(timeout, _POLL)
        while left and not deadline.is_over:
            stage.counts("; ".join(map(str, left)))
            deadline.pause()
            left = deadline.retry(lambda: _look(cluster, names), _DOING)
        if not left:
            stage.counts("NCCL is installed on the GPU nodes")
    if any(it.wrong for it in left):
        raise ClusterError.of([_problem(it) for it in left if it.wrong])
    return [*notes, *(_note(it) for it in left)]


def _look(cluster: Cluster, names: list[str]) -> list[Unfinished]:
    return [it for it in (_of(cluster, name) for name in names) if it is not None]


def _of(cluster: Cluster, name: str) -> Unfinished | None:
    found = cluster.find("apps/v1", "DaemonSet", name, nccl.NAMESPACE) or {}
    status = found.get("status") or {}
    if status.get("observedGeneration", 0) < found.get("metadata", {}).get("generation", 1):
        return Unfinished(name=name, ready=0, nodes=None)
    nodes = status.get("desiredNumberScheduled", 0)
    # Pods of the version before are ready too.
    ready = min(status.get("numberReady", 0), status.get("updatedNumberScheduled", 0))
    if ready >= nodes:
        return None
    pods = cluster.all("v1", "Pod", nccl.NAMESPACE, f"k8s-app={name}")
    wrong = tuple(dict.fromkeys(line for pod in pods for line in _wrong(pod)))
    return Unfinished(name=name, ready=ready, nodes=nodes, wrong=wrong)


def _wrong(pod: Object) -> Iterator[str]:
    """What goes wrong in the containers of a pod."""
    status: Mapping[str, Any] = pod.get("status") or {}
    node = (pod.get("spec") or {}).get("nodeName", "")
    for kind in ("initContainerStatuses", "containerStatuses"):
        for container in status.get(kind) or []:
            waiting = (container.get("state") or {}).get("waiting") or {}
            if waiting.get("reason") in _WRONG:
                last = (container.get("lastState") or {}).get("terminated") or {}
                said = last.get("message") or waiting.get("message") or ""
                yield f"{container['name']} on {node}: {waiting['reason']}: {said}".rstrip(": ")


def _problem(it: Unfinished) -> Problem:
    return Problem(
        code=Code.KUBERNETES_FAILED,
        what=f"NCCL can't be installed: the DaemonSet {it}",
        why="\n".join(it.wrong),
        fix=f"{_commands(it)}; then run Create again: jobs on these nodes would fail",
    )


def _note(it: Unfinished) -> Problem:
    minutes = gate.SECONDS // 60
    return Problem(
        code=Code.STILL_RUNNING,
        what=f"NCCL is still being installed: the DaemonSet {it}",
        why="a node takes some minutes to pull the image, and one with jobs gets another version"
        " when none of them uses NCCL",
        fix=f"nothing now: jobs wait for it, {minutes} minutes long; if they fail, {_commands(it)}",
    )


def _without(pool: GpuPool) -> Problem:
    return Problem(
        code=Code.NOTE,
        what=f"Nothing of NCCL is installed on the nodes of {pool.name} ({pool.machine_type})",
        why="gIB for Arm and the IMEX channels of these machines are not set up: NCCL uses NVLink"
        " within a domain, and plain sockets between domains",
        fix="nothing, for jobs within one domain",
    )


def _commands(it: Unfinished) -> str:
    pods = f"kubectl --namespace {nccl.NAMESPACE} describe pods --selector k8s-app={it.name}"
    return f"see why by {pods}"
