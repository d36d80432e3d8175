"""How a pod starts on its node: its interfaces, its init containers one after the other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from rehearsal.cloud import scenarios
from rehearsal.cloud.facts import fabrics, machines
from rehearsal.cloud.kubernetes import (
    daemons,
    fabric,
    folders,
    installed,
    interfaces,
    objects,
    pod_jobs,
    shell,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rehearsal.cloud.kubernetes.daemons import Daemon
    from rehearsal.cloud.kubernetes.installed import Installed
    from rehearsal.cloud.kubernetes.objects import Object, World

_MACHINE: Final = "node.kubernetes.io/instance-type"


@dataclass(frozen=True)
class Waiting:
    """What a pod that is on a node waits for."""

    container: str  # the init container that it waits for; "" for its sandbox
    reason: str
    message: str
    has_failed: bool = False  # whether it waits no more: the init container gave up


def look(world: World, pod: Object, node: Object) -> Waiting | None:
    """What a pod on a node still waits for; None once its containers can start."""
    pod.setdefault("_placed", world.now)
    machine = machines.find(node["metadata"]["labels"].get(_MACHINE, ""))
    words = interfaces.problem(world, pod, machine.most_nics if machine else 1)
    if words:
        words = f"Failed to create pod sandbox: {words}"
        objects.warn(world, pod, "FailedCreatePodSandBox", words)
        return Waiting("", "ContainerCreating", words)
    on_node = installed.on(world, node)
    for container in pod["spec"].get("initContainers") or []:
        found = _container(world, pod, node, on_node, container)
        if found is not None:
            return found
    return None


def tell(world: World, pod: Object, waiting: Waiting) -> None:
    """Write into a pod what it waits for."""
    names = [it["name"] for it in pod["spec"].get("initContainers") or []]
    at = names.index(waiting.container) if waiting.container else 0
    message = f"containers with incomplete status: [{' '.join(names[at:])}]"
    objects.tell(world, pod, "Initialized", False, "ContainersNotInitialized", message)
    state: Object = {"waiting": {"reason": waiting.reason, "message": waiting.message}}
    if waiting.has_failed:
        state = {"terminated": {"exitCode": 1, "reason": "Error", "message": waiting.message}}
        pod["status"]["phase"] = "Failed"
    pod["status"]["initContainerStatuses"] = [
        {
            "name": name,
            "ready": number < at,
            "restartCount": 0,
            "state": state if number == at else {},
        }
        for number, name in enumerate(names)
    ]


def unpulled(world: World, pod: Object) -> str:
    """What the kubelet says of an image that its registry does not have; "" for none."""
    if scenarios.MISSING not in world.request.scenarios:
        return ""
    own = f"-docker.pkg.dev/{world.cluster.name.split('/')[1]}/"
    for container in pod["spec"].get("containers") or []:
        name = str(container.get("image", ""))
        if own in name:
            return (
                f'Back-off pulling image "{name}": ErrImagePull: rpc error: code = NotFound desc ='
                f' failed to pull and unpack image "{name}": failed to resolve reference "{name}":'
                f" {name}: not found"
            )
    return ""


def log(world: World, pod: Object, container: Mapping[str, Any]) -> str:
    """What an init container wrote."""
    for it in pod["status"].get("initContainerStatuses") or []:
        if it["name"] == container["name"]:
            state = it["state"].get("terminated") or it["state"].get("waiting") or {}
            return f"{state['message']}\n" if state else ""
    kind = world.kind("v1", "nodes")
    node = world.get(kind, "", pod["spec"]["nodeName"]) if kind else None
    stack = fabric.stack_of(node) if node else None
    found = daemons.of(pod, stack, installed.on(world, node)) if stack and node else None
    own = found is not None and found.container["name"] == container["name"]
    return found.log if found and own else ""


def _container(
    world: World, pod: Object, node: Object, on_node: Installed, container: Mapping[str, Any]
) -> Waiting | None:
    obstacle = pod_jobs.obstacle(world, pod, container)
    if obstacle:
        return Waiting(container["name"], "Error", obstacle, has_failed=True)
    wanted = shell.waits_for(container)
    if wanted is not None:
        return _file(world, pod, on_node, container, *wanted)
    stack = fabric.stack_of(node)
    daemon = daemons.of(pod, stack, on_node) if stack else None
    own = daemon is not None and daemon.container["name"] == container["name"]
    return _sidecar(world, pod, daemon) if daemon and own and daemon.is_sidecar else None


def _sidecar(world: World, pod: Object, daemon: Daemon) -> Waiting | None:
    name = daemon.container["name"]
    if daemon.problem.startswith("CreateContainerError"):
        return Waiting(name, "CreateContainerError", daemon.problem)
    if "startupProbe" not in daemon.container:
        # Its container has started, whatever becomes of it then.
        return None
    if daemon.problem or not daemon.is_awaited:
        return Waiting(name, "CrashLoopBackOff", daemon.problem or "Startup probe failed")
    listens = pod.setdefault("_daemon", world.now) + fabrics.DAEMON_SECONDS * world.request.rate
    world.wake(listens)
    return Waiting(name, "PodInitializing", "Startup probe failed") if listens > world.now else None


def _file(  # noqa: PLR0913, PLR0917 - all that it depends on
    world: World,
    pod: Object,
    on_node: Installed,
    container: Mapping[str, Any],
    file: str,
    seconds: float,
) -> Waiting | None:
    name = container["name"]
    if pod.get("_gate") or folders.on_node(pod, container, file) in on_node.files:
        pod["_gate"] = True
        return None
    rate = world.request.rate
    until = pod["_placed"] + seconds * rate if rate else world.now
    if until <= world.now:
        words = f"{file} is missing after {seconds:.0f} s"
        return Waiting(name, "Error", words, has_failed=True)
    world.wake(until)
    return Waiting(name, "PodInitializing", f"waiting for {file}")
