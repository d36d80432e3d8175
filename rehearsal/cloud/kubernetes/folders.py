"""Where the folders of a container come from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from rehearsal.cloud.facts import fabrics
from rehearsal.cloud.kubernetes import quantities

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rehearsal.cloud.kubernetes.objects import Object

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
