"""Pods and nodes: which pod runs where, and until when."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rehearsal.cloud.kubernetes import (
    exits,
    objects,
    pod_jobs,
    pods,
    pools,
    programs,
    sidecars,
    starting,
    training,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rehearsal.cloud.kubernetes.kinds import Kind
    from rehearsal.cloud.kubernetes.objects import Object, World

_MACHINE: Final = "node.kubernetes.io/instance-type"
_SILENCE: Final = 300.0
"""Seconds of cloud time that pods tolerate a node that is not ready (Kubernetes' default)."""
_LAST_WORDS: Final = 2048
"""Characters of a log that the kubelet takes for a container's last words."""
_QUARANTINE: Final = 40.0
"""Seconds of cloud time for which a node has to be gone before its pods are deleted."""
_REPELLING: Final = frozenset({"NoSchedule", "NoExecute"})


def look(world: World) -> None:
    """End the pods whose time is over, and place those that wait."""
    kind, of_nodes = world.kind("v1", "pods"), world.kind("v1", "nodes")
    if kind is None or of_nodes is None:
        return
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
    chosen = next((name for name in fitting if free[name] >= wanted), None)
    if chosen is None:
        words = f"0/{len(nodes)} nodes are available: {_obstacle(wanted, len(fitting))}"
        objects.tell(world, pod, "PodScheduled", False, "Unschedulable", words)
        world.put(kind, pod)
        return
    free[chosen] -= wanted
    pod["spec"]["nodeName"] = chosen
    pod["status"]["startTime"] = world.stamp
    labels = nodes[chosen]["metadata"]["labels"]
    # What its log tells of when the node is gone.
    pod["_machine"], pod["_gpu"] = labels[_MACHINE], labels.get(pools.ACCELERATOR, "")
    objects.tell(world, pod, "PodScheduled", True, "", "")
    _start(world, kind, pod, nodes[chosen])
    of_nodes = world.kind("v1", "nodes")
    if of_nodes is not None:
        world.put(of_nodes, {**nodes[chosen], "_used": True, "_idle": None})


def _start(world: World, kind: Kind, pod: Object, node: Object) -> None:
    """Start the containers of a pod that is on a node, once it has all that they need."""
    waiting = starting.look(world, pod, node)
    if waiting is not None:
        starting.tell(world, pod, waiting)
        world.put(kind, pod)
        return
    missing = starting.unpulled(world, pod)
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
    if is_training and sidecars.bursts(world, pod):
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
    if sidecars.bursts(world, pod):
        pods.lose(world, pod, "TerminationByKubelet", sidecars.EVICTED, evicted=True)
        return
    written = "_course" not in pod and exits.code(pod["spec"])
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
