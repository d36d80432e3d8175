"""Pods and nodes: which pod runs where, and until when."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rehearsal.cloud.kubernetes import objects, pods, pools

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rehearsal.cloud.kubernetes.kinds import Kind
    from rehearsal.cloud.kubernetes.objects import Object, World

_MACHINE: Final = "node.kubernetes.io/instance-type"
_REPELLING: Final = frozenset({"NoSchedule", "NoExecute"})


def look(world: World) -> None:
    """End the pods whose time is over, and place those that wait."""
    kind, of_nodes = world.kind("v1", "pods"), world.kind("v1", "nodes")
    if kind is None or of_nodes is None:
        return
    waiting = []
    there = {it["metadata"]["name"]: it for it in world.each(of_nodes)}
    free = {name: pools.gpus_on(node) for name, node in there.items() if node["_ready"]}
    for pod in world.each(kind):
        node = pod["spec"].get("nodeName")
        if pods.is_over(pod):
            continue
        if node is None:
            waiting.append(pod)
        elif node not in there:
            # What a lost node ran is made anew by its owner.
            world.remove(kind, pod)
        elif pod["_ends"] is not None and pod["_ends"] <= world.now:
            _end(world, kind, pod)
        elif node in free:
            free[node] -= pools.gpus_of(pod["spec"])
    for pod in waiting:
        _place(world, kind, pod, there, free)


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
    pod["status"] |= {"phase": "Running", "startTime": world.stamp}
    seconds = pod["_seconds"]
    pod["_ends"] = None if seconds is None else world.request.after(seconds)
    world.wake(pod["_ends"] or world.now)
    pod["_machine"] = nodes[chosen]["metadata"]["labels"][_MACHINE]
    for name in ("PodScheduled", "Initialized", "ContainersReady", "Ready"):
        objects.tell(world, pod, name, True, "", "")
    running = {"running": {"startedAt": world.stamp}}
    pod["status"]["containerStatuses"] = _containers(pod, running, ready=True)
    world.put(kind, pod)
    of_nodes = world.kind("v1", "nodes")
    if of_nodes is not None:
        world.put(of_nodes, {**nodes[chosen], "_used": True, "_idle": None})


def _end(world: World, kind: Kind, pod: Object) -> None:
    pod["status"]["phase"] = "Succeeded"
    for name in ("ContainersReady", "Ready"):
        objects.tell(world, pod, name, False, "PodCompleted", "")
    ended = {"terminated": {"exitCode": 0, "reason": "Completed", "finishedAt": world.stamp}}
    pod["status"]["containerStatuses"] = _containers(pod, ended, ready=False)
    world.put(kind, pod)


def _containers(pod: Object, state: Object, *, ready: bool) -> list[Object]:
    return [
        {
            "name": it["name"],
            "image": it.get("image", ""),
            "ready": ready,
            "restartCount": 0,
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
