"""The receive-datapath managers of TCPX and TCPXO: whether the one of a pod works, and its words.

Source: their facts, `facts/fabrics.json`; the words are those of TCPXO's source where it has them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from rehearsal.cloud.facts import fabrics
from rehearsal.cloud.kubernetes import folders, installed, interfaces, pools, shell

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rehearsal.cloud.facts.fabrics import Stack
    from rehearsal.cloud.kubernetes.installed import Installed
    from rehearsal.cloud.kubernetes.objects import Object

_ANNOTATION: Final = "devices.gke.io/container."
_PATH: Final = re.compile(r"path:\s*(\S+)")
_GPU: Final = re.compile(r"/dev/nvidia\d+")
_HELPER: Final = "/dev/dmabuf_import_helper"
_HEALTH: Final = "HEALTH_CHECK_LOG_FILE"
_SOCKETS: Final = re.compile(r"--uds_path (\S+)")
_IN_TREE: Final = (
    "Number of GPUs detected in the PCI tree {} is not equal to the actual number of GPUs reported"
    " by CUDA {}."
)
_LISTENS: Final = "Buffer manager initialization completed."


@dataclass(frozen=True)
class Daemon:
    """The daemon of a pod."""

    container: Mapping[str, Any]
    version: str
    problem: str  # why it ends at once, in its words; "" where it works
    sockets: str  # the folder in which it listens; "" where it uses none
    is_sidecar: bool  # whether it is begun before the job's containers, and ends after them
    is_awaited: bool  # whether those begin when it listens

    @property
    def log(self) -> str:
        """What it writes."""
        return f"{self.problem or _LISTENS}\n"


def of(pod: Object, stack: Stack, node: Installed) -> Daemon | None:
    """The daemon of a pod; None if it has none."""
    for container, is_sidecar in _containers(pod):
        name, version = installed.image_of(container.get("image", ""))
        if stack.daemon and name == stack.daemon:
            found = _SOCKETS.search(_arguments(container))
            sockets = found.group(1) if found else ""
            return Daemon(
                container,
                version,
                next(_problems(pod, container, stack, node), ""),
                sockets,
                is_sidecar,
                is_sidecar and _is_awaited(container, sockets),
            )
    return None


def variables(container: Mapping[str, Any]) -> dict[str, str]:
    """The variables that a container is given by name and value."""
    return {it["name"]: str(it["value"]) for it in container.get("env") or [] if "value" in it}


def _containers(pod: Object) -> Iterator[tuple[Mapping[str, Any], bool]]:
    for it in pod["spec"].get("initContainers") or []:
        yield it, it.get("restartPolicy") == "Always"
    for it in pod["spec"].get("containers") or []:
        yield it, False


def _arguments(container: Mapping[str, Any]) -> str:
    """Its words on one line, with a space for each "=" of an argument."""
    return re.sub(r"(--\w+)=", r"\1 ", " ".join(shell.words(container))).replace("\n", " ")


def _problems(
    pod: Object, container: Mapping[str, Any], stack: Stack, node: Installed
) -> Iterator[str]:
    """What ends a daemon, in the order in which it meets it."""
    rights = container.get("securityContext") or {}
    is_privileged = bool(rights.get("privileged"))
    wanted = pools.gpus_of(pod["spec"])
    seen = wanted if is_privileged else _devices(pod, container, stack, node)
    if isinstance(seen, str):
        yield seen
        return
    where = variables(container).get("LD_LIBRARY_PATH", "").split(":")
    if not any(folders.on_node(pod, container, it) == fabrics.LIBRARIES for it in where if it):
        yield (
            "error while loading shared libraries: libcuda.so.1: cannot open shared object file:"
            " No such file or directory"
        )
    if not is_privileged:
        yield from _without_rights(pod, container, stack, rights)
    if not seen:
        yield "CUDA initialization failed"
    if not is_privileged and folders.on_node(pod, container, "/hostsysfs") != "/sys":
        yield _IN_TREE.format(0, seen)
    there = interfaces.of(pod)
    found = sum(it in there for it in stack.interfaces) * wanted // len(stack.interfaces)
    if found != seen:
        yield _IN_TREE.format(found, seen)
    words = _arguments(container)
    for argument in stack.arguments:
        if argument not in words:
            yield f"no interface found for the GPUs: {argument} is not set"


def _without_rights(
    pod: Object, container: Mapping[str, Any], stack: Stack, rights: Mapping[str, Any]
) -> Iterator[str]:
    """What keeps a daemon that is not privileged from tuning its interfaces."""
    added = set((rights.get("capabilities") or {}).get("add") or [])
    for missing in sorted(stack.capabilities - added):
        yield f"netlink error: Operation not permitted (CAP_{missing})"
    if folders.on_node(pod, container, "/hostprocsysfs") != "/proc/sys":
        yield "/proc/sys/net/ipv4/conf/all/rp_filter: Read-only file system"


def _devices(pod: Object, container: Mapping[str, Any], stack: Stack, node: Installed) -> int | str:
    """How many GPUs a daemon gets by its pod's annotation, or why its container is not made."""
    annotations = pod["metadata"].get("annotations") or {}
    named = _PATH.findall(annotations.get(f"{_ANNOTATION}{container['name']}", ""))
    if not node.has_injector or not named:
        return 0
    if _HELPER in named and not node.has_apertures:
        return (
            "CreateContainerError: failed to get info from device path"
            f" {_HELPER}: no such file or directory"
        )
    if missing := [it for it in (*fabrics.GPU_DEVICES, *stack.devices) if it not in named]:
        return f"CUDA initialization failed: no {missing[0]}"
    return len({it for it in named if _GPU.fullmatch(it)})


def _is_awaited(container: Mapping[str, Any], sockets: str) -> bool:
    """Whether a probe at the start can tell that it listens."""
    command = ((container.get("startupProbe") or {}).get("exec") or {}).get("command") or []
    text = " ".join(command)
    file = variables(container).get(_HEALTH, "")
    # The daemon makes no file with an underscore in its name.
    if file and file in text:
        return "_" not in file.rpartition("/")[2]
    return bool(sockets) and sockets in text
