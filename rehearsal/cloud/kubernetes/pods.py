"""Pods: making them for what owns them, and what they are up to."""

import copy
import hashlib
from collections.abc import Mapping
from typing import Any, Final

from rehearsal.cloud.kubernetes import checks, objects, pod_jobs, pools, provisioning, training
from rehearsal.cloud.kubernetes.objects import Object, World

FOREVER: Final = None  # how long a pod runs that ends with its owner

_OVER: Final = frozenset({"Succeeded", "Failed"})


def of(world: World, owner: Object) -> list[Object]:
    """The pods of an owner, in the order of their names."""
    uid = owner["metadata"]["uid"]
    return [
        pod
        for pod in (world.each(world.own("v1", "pods"), owner["metadata"]["namespace"]))
        if any(it["uid"] == uid for it in pod["metadata"]["ownerReferences"])
    ]


def every(world: World) -> list[Object]:
    """All pods."""
    return world.each(world.own("v1", "pods"))


def is_over(pod: Object) -> bool:
    """Whether a pod has ended."""
    return pod["status"]["phase"] in _OVER


def make(  # noqa: PLR0913 - what a pod is made of
    world: World,
    owner: Object,
    prefix: str,
    template: Mapping[str, Any],
    *,
    labels: Mapping[str, str],
    seconds: float | None,
) -> None:
    """Make a pod that waits for a node and runs so many seconds of cloud time, or `FOREVER`."""
    kind = world.own("v1", "pods")
    given = template.get("metadata") or {}
    digest = hashlib.sha256(f"{owner['metadata']['uid']} {prefix} {world.version()}".encode())
    metadata: Object = {
        "name": f"{prefix}-{digest.hexdigest()[:5]}",
        "namespace": owner["metadata"]["namespace"],
        "labels": {**(given.get("labels") or {}), **labels},
        "ownerReferences": [objects.owner(owner)],
    }
    if given.get("annotations"):
        metadata["annotations"] = dict(given["annotations"])
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "_seconds": seconds}
    spec = copy.deepcopy(dict(template.get("spec") or {}))
    request = consumed(pod)
    if request:
        # GKE keeps such pods on the nodes of their request, and those nodes from being drained.
        name = provisioning.resize_request(metadata["namespace"], request)
        spec["nodeSelector"] = {**(spec.get("nodeSelector") or {}), pools.REQUEST: name}
        metadata["annotations"].setdefault(_EVICTABLE, "false")
    if pools.gpus_of(spec):
        # GKE admits pods that ask for GPUs to the nodes that have them.
        spec["tolerations"] = [*(spec.get("tolerations") or []), dict(_GPU_TOLERATION)]
    world.put(kind, {**pod, "spec": spec, "status": {"phase": "Pending"}})


_EVICTABLE: Final = "cluster-autoscaler.kubernetes.io/safe-to-evict"
_CONSUME: Final = (checks.CONSUME, "cluster-autoscaler.kubernetes.io/consume-provisioning-request")


def consumed(pod: Object) -> str:
    """The ProvisioningRequest whose nodes a pod is to run on; "" for none."""
    annotations = pod["metadata"].get("annotations") or {}
    return next((str(annotations[key]) for key in _CONSUME if key in annotations), "")


_GPU_TOLERATION: Final = {"key": pools.GPU, "operator": "Exists", "effect": "NoSchedule"}


def remove(world: World, pod: Object) -> None:
    """Delete a pod."""
    world.remove(world.own("v1", "pods"), pod)


def stop(world: World, pod: Object) -> None:
    """Delete a pod in order: its programs get SIGTERM, and time to save what they did."""
    training.stop(world, pod)
    if not is_over(pod):
        pod_jobs.stop(world, pod)
    remove(world, pod)


def lose(world: World, pod: Object, reason: str, message: str, *, evicted: bool = False) -> None:
    """End a pod whose node is gone, as Kubernetes does: failed, and told why, then deleted.

    Nothing more is saved. Of a Job's pod the object stays until the Job has counted it; one that
    the kubelet has evicted stays as long as its node.
    """
    kind = world.own("v1", "pods")
    if not evicted:
        training.lose(world, pod)
    if pod["metadata"]["ownerReferences"][0]["kind"] != "Job":
        world.remove(kind, pod)
        return
    pod["status"]["phase"] = "Failed"
    if evicted:
        pod["status"] |= {"reason": "Evicted", "message": message}
    else:
        pod["metadata"]["deletionTimestamp"] = world.stamp
    objects.tell(world, pod, "DisruptionTarget", True, reason, message)
    for name in ("ContainersReady", "Ready"):
        objects.tell(world, pod, name, False, "PodFailed", "")
    world.put(kind, pod)


def count(world: World, pod: Object) -> None:
    """Note that its Job has counted a failed pod; one that was to be deleted goes."""
    kind = world.own("v1", "pods")
    if "deletionTimestamp" in pod["metadata"]:
        world.remove(kind, pod)
    else:
        world.put(kind, {**pod, "_counted": True})


def restarts(pod: Object) -> int:
    """How often the containers of a pod that goes on were begun again."""
    if is_over(pod):
        return 0
    return sum(it["restartCount"] for it in pod["status"].get("containerStatuses") or [])
