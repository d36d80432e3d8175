"""Pods and nodes: which pod runs where, and until when."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from rehearsal.cloud import scenarios
from rehearsal.cloud.facts import fabrics, machines
from rehearsal.cloud.kubernetes import (
    claims,
    fabric,
    installed,
    objects,
    pod_jobs,
    pods,
    pools,
    programs,
    shell,
    training,
)
from rehearsal.cloud.kubernetes.fabric import Daemon
from rehearsal.cloud.kubernetes.installed import Installed
from rehearsal.cloud.kubernetes.kinds import Kind
from rehearsal.cloud.kubernetes.objects import Object, World

_MACHINE: Final = "node.kubernetes.io/instance-type"
_SILENCE: Final = 300.0
"""Seconds of cloud time that pods tolerate a node that is not ready (Kubernetes' default)."""
_LAST_WORDS: Final = 2048  # characters of a log that the kubelet takes for a container's last words
_QUARANTINE: Final = 40.0
"""Seconds of cloud time for which a node has to be gone before its pods are deleted."""
_REPELLING: Final = frozenset({"NoSchedule", "NoExecute"})


def look(world: World) -> None:
    """End the pods whose time is over, and place those that wait."""
    kind, of_nodes = world.own("v1", "pods"), world.own("v1", "nodes")
    there = {it["metadata"]["name"]: it for it in world.each(of_nodes)}
    free = {name: pools.gpus_on(node) for name, node in there.items() if node["_ready"]}
    alive = []
    for pod in world.each(kind):
        if not pods.is_over(pod):
            alive.append(pod)
        elif pod["spec"].get("nodeName", "") not in {*there, ""} and world.request.rate:
            _collect(world, kind, pod)
    for pod in alive:
        node = pod["spec"].get("nodeName")
        if node is not None and _stays(world, kind, pod, there.get(node)):
            free[node] -= pools.gpus_of(pod["spec"])
    for pod in alive:
        if "nodeName" not in pod["spec"]:
            _place(world, kind, pod, there, free)


def _collect(world: World, kind: Kind, pod: Object) -> None:
    """Delete an ended pod whose node is gone: nobody can read its log any more.

    Source: Kubernetes' pkg/controller/podgc/gc_controller.go, `gcOrphaned`, which does not look at
    the phase; where nothing takes time, no time passes either.
    """
    moment = pod.setdefault("_orphaned", world.now) + _QUARANTINE * world.request.rate
    world.wake(moment)
    if moment <= world.now:
        pods.remove(world, pod)
    else:
        world.put(kind, pod)


def _stays(world: World, kind: Kind, pod: Object, node: Object | None) -> bool:
    """Whether a pod goes on running on a node that is there; it ends with it, or before it."""
    if node is None:
        pods.lose(world, pod, "DeletionByPodGC", "PodGC: node no longer exists")
    elif not node["_ready"]:
        _miss(world, kind, pod)
    elif pod.get("_deadline", world.now) < world.now:
        _expire(world, kind, pod)
    elif pod["status"]["phase"] == "Pending":
        _start(world, kind, pod, node)
        return not pods.is_over(pod)
    elif pod["_ends"] is not None and pod["_ends"] <= world.now:
        _end(world, kind, pod)
    else:
        if pod.pop("_missed", None) is not None:
            objects.tell(world, pod, "Ready", True, "", "")
        pod_jobs.go_on(world, pod)
        world.put(kind, pod)
        return True
    return False


def _expire(world: World, kind: Kind, pod: Object) -> None:
    """The kubelet ends a pod that has been on its node for as long as it may be."""
    pod_jobs.stop(world, pod)
    words = "Pod was active on the node longer than the specified deadline"
    pod["status"] |= {"phase": "Failed", "reason": "DeadlineExceeded", "message": words}
    for name in ("ContainersReady", "Ready"):
        objects.tell(world, pod, name, False, "PodFailed", "")
    world.put(kind, pod)


def _miss(world: World, kind: Kind, pod: Object) -> None:
    """A pod whose node is silent is not ready, and after a while it is given up."""
    since = pod.setdefault("_missed", world.now)
    objects.tell(world, pod, "Ready", False, "NodeNotReady", "")
    world.put(kind, pod)
    moment = since + _SILENCE * world.request.rate
    world.wake(moment)
    if moment <= world.now and world.request.rate:
        words = "Taint manager: deleting due to NoExecute taint"
        pods.lose(world, pod, "DeletionByTaintManager", words)


def _place(
    world: World,
    kind: Kind,
    pod: Object,
    nodes: Mapping[str, Object],
    free: dict[str, int],
) -> None:
    wanted = pools.gpus_of(pod["spec"])
    fitting = [name for name in free if _suits(pod, nodes[name])]
    roomy = [name for name in fitting if free[name] >= wanted]
    unclaimed = {name: claims.obstacle(world, pod, nodes[name]) for name in roomy}
    chosen = next((name for name in roomy if not unclaimed[name]), None)
    if chosen is None:
        why = next(iter(unclaimed.values()), "") or _obstacle(wanted, len(fitting))
        words = f"0/{len(nodes)} nodes are available: {why}"
        objects.tell(world, pod, "PodScheduled", False, "Unschedulable", words)
        world.put(kind, pod)
        return
    free[chosen] -= wanted
    pod["spec"]["nodeName"] = chosen
    claims.allocate(world, pod)
    pod["status"]["startTime"] = world.stamp
    if pod["spec"].get("activeDeadlineSeconds") and world.request.rate:
        pod["_deadline"] = world.request.after(pod["spec"]["activeDeadlineSeconds"])
        world.wake(pod["_deadline"])
    labels = nodes[chosen]["metadata"]["labels"]
    # What its log tells of when the node is gone.
    pod["_machine"], pod["_gpu"] = labels[_MACHINE], labels.get(pools.ACCELERATOR, "")
    objects.tell(world, pod, "PodScheduled", True, "", "")
    _start(world, kind, pod, nodes[chosen])
    world.put(world.own("v1", "nodes"), {**nodes[chosen], "_used": True, "_idle": None})


def _start(world: World, kind: Kind, pod: Object, node: Object) -> None:
    """Start the containers of a pod that is on a node, once it has all that they need."""
    waiting = _missing(world, pod, node)
    if waiting is not None:
        _tell_waiting(world, pod, waiting)
        world.put(kind, pod)
        return
    missing = _unpulled(world, pod)
    if missing:
        waits = {"waiting": {"reason": "ImagePullBackOff", "message": missing}}
        pod["status"]["containerStatuses"] = _containers(pod, waits, ready=False)
        world.put(kind, pod)
        return
    programs.begin(world, pod, node)
    pod["status"]["phase"] = "Running"
    pod["status"].pop("initContainerStatuses", None)
    goes_on = not programs.exit_code(pod)
    is_training = goes_on and training.is_one(pod)
    seconds = training.start(world, pod, node) if is_training else pod["_seconds"]
    if is_training and training.bursts(world, pod):
        seconds = training.first_save(pod)
    pod["_ends"] = None if seconds is None else world.request.after(seconds)
    world.wake(pod["_ends"] or world.now)
    for name in ("Initialized", "ContainersReady", "Ready"):
        objects.tell(world, pod, name, True, "", "")
    running = {"running": {"startedAt": world.stamp}}
    pod["status"]["containerStatuses"] = _containers(pod, running, ready=True)
    world.put(kind, pod)


def _end(world: World, kind: Kind, pod: Object) -> None:
    """The program in a pod has ended; where the pod says so, it is begun again."""
    if training.bursts(world, pod):
        pods.lose(world, pod, "TerminationByKubelet", training.EVICTED, evicted=True)
        return
    written = not {"_course", "_only_ends"} & pod.keys() and programs.written_code(pod["spec"])
    code = programs.exit_code(pod) or training.code(pod) or written or 0
    again = pod["spec"].get("restartPolicy")
    if again == "Always" or (code and again == "OnFailure"):
        pod["_restarts"] = pod.get("_restarts", 0) + 1
        pod["_ends"] = world.request.after(pod["_seconds"])
        world.wake(pod["_ends"])
        running = {"running": {"startedAt": world.stamp}}
        pod["status"]["containerStatuses"] = _containers(pod, running, ready=True)
        world.put(kind, pod)
        return
    training.finish(world, pod)
    pod_jobs.end(world, pod)
    pod["status"]["phase"] = "Failed" if code else "Succeeded"
    for name in ("ContainersReady", "Ready"):
        objects.tell(world, pod, name, False, "PodFailed" if code else "PodCompleted", "")
    reason = "Error" if code else "Completed"
    ended = {"terminated": {"exitCode": code, "reason": reason, "finishedAt": world.stamp}}
    container: Object = next(iter(pod["spec"].get("containers") or []), {})
    if code and container.get("terminationMessagePolicy") == "FallbackToLogsOnError":
        ended["terminated"]["message"] = programs.log(world, pod, container)[-_LAST_WORDS:]
    pod["status"]["containerStatuses"] = _containers(pod, ended, ready=False)
    world.put(kind, pod)


def _containers(pod: Object, state: Object, *, ready: bool) -> list[Object]:
    return [
        {
            "name": it["name"],
            "image": it.get("image", ""),
            "ready": ready,
            "restartCount": pod.get("_restarts", 0),
            "state": state,
        }
        for it in pod["spec"].get("containers") or []
    ]


def _obstacle(gpus: int, fitting: int) -> str:
    if fitting and gpus:
        return f"{fitting} Insufficient {pools.GPU}."
    return "no node matches Pod's node affinity/selector and has no untolerated taint."


def _suits(pod: Object, node: Object) -> bool:
    """Whether a node may run a pod, its free GPUs aside."""
    spec, labels = pod["spec"], node["metadata"]["labels"]
    if node["spec"].get("unschedulable"):
        return False  # somebody has cordoned it
    selector = spec.get("nodeSelector") or {}
    if any(labels.get(key) != value for key, value in selector.items()):
        return False
    tolerations = spec.get("tolerations") or []
    return all(
        any(pools.tolerates(toleration, taint) for toleration in tolerations)
        for taint in node["spec"].get("taints") or []
        if taint["effect"] in _REPELLING
    )


@dataclass(frozen=True)
class _Waiting:
    container: str  # the init container that it waits for; "" for its sandbox
    reason: str
    message: str
    has_failed: bool = False  # whether it waits no more: the init container gave up


def _missing(world: World, pod: Object, node: Object) -> _Waiting | None:
    """What a pod on a node still waits for; None once its containers can start."""
    pod.setdefault("_placed", world.now)
    machine = machines.find(node["metadata"]["labels"].get(_MACHINE, ""))
    words = fabric.interface_problem(world, pod, machine.most_nics if machine else 1)
    if words:
        words = f"Failed to create pod sandbox: {words}"
        objects.warn(world, pod, "FailedCreatePodSandBox", words)
        return _Waiting("", "ContainerCreating", words)
    on_node = installed.on(world, node)
    for container in pod["spec"].get("initContainers") or []:
        found = _container(world, pod, node, on_node, container)
        if found is not None:
            return found
    return None


def _tell_waiting(world: World, pod: Object, waiting: _Waiting) -> None:
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


def _unpulled(world: World, pod: Object) -> str:
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


def init_log(world: World, pod: Object, container: Mapping[str, Any]) -> str:
    """What an init container wrote."""
    for it in pod["status"].get("initContainerStatuses") or []:
        if it["name"] == container["name"]:
            state = it["state"].get("terminated") or it["state"].get("waiting") or {}
            return f"{state['message']}\n" if state else ""
    node = world.get(world.own("v1", "nodes"), "", pod["spec"]["nodeName"])
    stack = fabric.stack_of(node) if node else None
    found = fabric.daemon_of(pod, stack, installed.on(world, node)) if stack and node else None
    own = found is not None and found.container["name"] == container["name"]
    return found.log if found and own else ""


def _container(
    world: World, pod: Object, node: Object, on_node: Installed, container: Mapping[str, Any]
) -> _Waiting | None:
    obstacle = pod_jobs.obstacle(world, pod, container)
    if obstacle:
        return _Waiting(container["name"], "Error", obstacle, has_failed=True)
    wanted = shell.waits_for(container)
    if wanted is not None:
        return _file(world, pod, on_node, container, *wanted)
    stack = fabric.stack_of(node)
    daemon = fabric.daemon_of(pod, stack, on_node) if stack else None
    own = daemon is not None and daemon.container["name"] == container["name"]
    return _sidecar(world, pod, daemon) if daemon and own and daemon.is_sidecar else None


def _sidecar(world: World, pod: Object, daemon: Daemon) -> _Waiting | None:
    name = daemon.container["name"]
    if daemon.problem.startswith("CreateContainerError"):
        return _Waiting(name, "CreateContainerError", daemon.problem)
    if "startupProbe" not in daemon.container:
        # Its container has started, whatever becomes of it then.
        return None
    if daemon.problem or not daemon.is_awaited:
        return _Waiting(name, "CrashLoopBackOff", daemon.problem or "Startup probe failed")
    listens = pod.setdefault("_daemon", world.now) + fabrics.DAEMON_SECONDS * world.request.rate
    world.wake(listens)
    return (
        _Waiting(name, "PodInitializing", "Startup probe failed") if listens > world.now else None
    )


def _file(  # noqa: PLR0913, PLR0917 - all that it depends on
    world: World,
    pod: Object,
    on_node: Installed,
    container: Mapping[str, Any],
    file: str,
    seconds: float,
) -> _Waiting | None:
    name = container["name"]
    if pod.get("_gate") or installed.on_node(pod, container, file) in on_node.files:
        pod["_gate"] = True
        return None
    rate = world.request.rate
    until = pod["_placed"] + seconds * rate if rate else world.now
    if until <= world.now:
        words = f"{file} is missing after {seconds:.0f} s"
        return _Waiting(name, "Error", words, has_failed=True)
    world.wake(until)
    return _Waiting(name, "PodInitializing", f"waiting for {file}")
