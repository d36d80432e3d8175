"""What DaemonSets have brought to a node: files, NCCL's plugin, devices, the device injector."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from rehearsal.cloud.facts import fabrics
from rehearsal.cloud.facts.machines import GpuNetwork
from rehearsal.cloud.kubernetes import pools, quantities, shell
from rehearsal.cloud.kubernetes.objects import Object, World

START: Final = 20.0
"""Seconds of cloud time from a DaemonSet, or a node, to its pod's readiness there."""

_INSTALL: Final = "container_entry.sh install"
_HELPER: Final = "modprobe import-helper"
_APERTURES: Final = "/dev/aperture_devices"
_INJECTOR: Final = "/nri-device-injector"
_FOLDER: Final = "/gce-ai-infra/"
_IMAGE: Final = re.compile(
    r"(?P<name>[^:@]+)(?::(?P<tag>[^@]+))?(?:@(?P<digest>sha256:[0-9a-f]+))?"
)


@dataclass
class Installed:
    """What is on a node."""

    files: set[str] = field(default_factory=set)  # the files that installers made for others to see
    # kind of GPU network -> the version of its plugin in the libraries' folder
    plugins: dict[GpuNetwork, str] = field(default_factory=dict)
    has_apertures: bool = False  # whether the devices of TCPXO are there, and its kernel module
    has_injector: bool = False  # whether annotations of pods give their containers devices


def on(world: World, node: Object) -> Installed:
    """What is on a node by now."""
    found = Installed()
    for daemon_set in world.each(world.own("apps/v1", "daemonsets")):
        if is_done(world, daemon_set, node):
            _add(found, (daemon_set["spec"].get("template") or {}).get("spec") or {})
    if _brings_gib(world, node):
        # In the folders that Google's test of managed RDMA mounts; which version is not published.
        found.plugins[GpuNetwork.RDMA] = ""
        found.files.add(f"{fabrics.GIB}/{fabrics.STACKS[GpuNetwork.RDMA].script}")
    return found


def _brings_gib(world: World, node: Object) -> bool:
    """Whether GKE has installed gIB on a node by now; how long that takes is believed."""
    name = node["metadata"]["labels"].get(pools.POOL)
    if not node["_ready"] or not any(
        it.name == name and it.brings_gib for it in pools.every(world)
    ):
        return False
    ready = node["_ready_since"] + START * world.request.rate
    world.wake(ready)
    return bool(ready <= world.now)


def is_done(world: World, daemon_set: Object, node: Object) -> bool:
    """Whether the pod of a DaemonSet is ready on a node."""
    pod = (daemon_set["spec"].get("template") or {}).get("spec") or {}
    if not node["_ready"] or not wants(pod, node) or missing_images(pod):
        return False
    since = max(daemon_set.get("_since", world.now), node["_ready_since"])
    ready = since + START * world.request.rate
    world.wake(ready)
    return bool(ready <= world.now)


def missing_images(pod: Mapping[str, Any]) -> list[str]:
    """The images of NCCL's software that a pod names and its registry does not have."""
    return [it["image"] for it in _containers(pod) if not _exists(it.get("image", ""))]


def _exists(image: str) -> bool:
    """Whether an image can be pulled; a mirror has what Google has, of others nothing is known."""
    if _FOLDER not in image:
        return True
    name, tag = image_of(image)
    for stack in fabrics.STACKS.values():
        if name == stack.plugin:
            return tag in stack.pairs
        if stack.daemon and name == stack.daemon:
            return tag in stack.pairs.values()
    return True


def image_of(reference: str) -> tuple[str, str]:
    """The name of an image of Google's registry for NCCL, or of its mirror, and its tag."""
    found = _IMAGE.fullmatch(reference.rpartition(_FOLDER)[2])
    return (found["name"], found["tag"] or "") if found else (reference, "")


def _add(found: Installed, pod: Mapping[str, Any]) -> None:
    paths = {
        it["name"]: (it.get("hostPath") or {}).get("path", "") for it in pod.get("volumes", [])
    }
    for container in _containers(pod):
        text = "\n".join(shell.words(container))
        name, tag = image_of(container.get("image", ""))
        mounts = {it["mountPath"]: paths[it["name"]] for it in container.get("volumeMounts") or []}
        for file in shell.touches(container):
            folder = next((at for at in mounts if file.startswith(f"{at}/")), None)
            if folder is not None:
                found.files.add(mounts[folder] + file.removeprefix(folder))
        reaches = any(fabrics.LIBRARIES.startswith(path) for path in mounts.values() if path)
        for network, stack in fabrics.STACKS.items():
            if name == stack.plugin and _INSTALL in text and reaches and "cp -" in text:
                found.plugins[network] = tag
        if _HELPER in text and _APERTURES in text:
            found.has_apertures = True
        if name.endswith(_INJECTOR) or _INJECTOR in name:
            found.has_injector = True


def _containers(pod: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield from pod.get("initContainers") or []
    yield from pod.get("containers") or []


def wants(pod: Mapping[str, Any], node: Object) -> bool:
    """Whether a pod's selector, and the affinity that it requires, choose a node."""
    labels = node["metadata"]["labels"]
    selector = pod.get("nodeSelector") or {}
    if any(labels.get(key) != value for key, value in selector.items()):
        return False
    affinity = ((pod.get("affinity") or {}).get("nodeAffinity") or {}).get(_REQUIRED) or {}
    terms = affinity.get("nodeSelectorTerms") or []
    return not terms or any(
        all(_fits(it, labels) for it in term.get("matchExpressions") or []) for term in terms
    )


_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"


def _fits(expression: Object, labels: Object) -> bool:
    value = labels.get(expression["key"])
    match expression["operator"]:
        case "In":
            return value in expression["values"]
        case "NotIn":
            return value not in expression["values"]
        case "Exists":
            return value is not None
        case _:
            return value is None


_SHARED_MEMORY: Final = "/dev/shm"  # noqa: S108 - where systems have it


def on_node(pod: Object, container: Mapping[str, Any], path: str) -> str:
    """The path on the node of what a container sees at a path; "" for the container's own."""
    volumes = {it["name"]: it for it in pod["spec"].get("volumes") or []}
    for mount in sorted(
        container.get("volumeMounts") or [], key=lambda it: len(it["mountPath"]), reverse=True
    ):
        at = mount["mountPath"].rstrip("/")
        if path == at or path.startswith(f"{at}/"):
            folder = (volumes.get(mount["name"], {}).get("hostPath") or {}).get("path", "")
            return f"{folder.rstrip('/')}{path.removeprefix(at)}" if folder else ""
    return ""


def named_at(container: Mapping[str, Any], path: str) -> str:
    """The name of the volume that a container mounts at a path; "" for none."""
    for mount in container.get("volumeMounts") or []:
        if mount["mountPath"].rstrip("/") == path.rstrip("/"):
            return str(mount["name"])
    return ""


def shared_memory(pod: Object, container: Mapping[str, Any]) -> float:
    """The size of a container's /dev/shm, in bytes."""
    name = named_at(container, _SHARED_MEMORY)
    for volume in pod["spec"].get("volumes") or []:
        memory = volume.get("emptyDir") or {}
        if volume["name"] == name and memory.get("medium") == "Memory":
            limit = memory.get("sizeLimit")
            return float(quantities.parse(limit)) if limit else float("inf")
    return float(fabrics.SHARED_MEMORY_UNASKED)
