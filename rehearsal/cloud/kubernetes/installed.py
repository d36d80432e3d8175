"""What DaemonSets have brought to a node: files, NCCL's plugin, devices, the device injector."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from rehearsal.cloud.facts import fabrics
from rehearsal.cloud.kubernetes import selection, shell

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rehearsal.cloud.facts.machines import GpuNetwork
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
    kind = world.kind("apps/v1", "daemonsets")
    for daemon_set in world.each(kind) if kind else ():
        if is_done(world, daemon_set, node):
            _add(found, (daemon_set["spec"].get("template") or {}).get("spec") or {})
    return found


def is_done(world: World, daemon_set: Object, node: Object) -> bool:
    """Whether the pod of a DaemonSet is ready on a node."""
    pod = (daemon_set["spec"].get("template") or {}).get("spec") or {}
    if not node["_ready"] or not selection.wants(pod, node) or missing_images(pod):
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
