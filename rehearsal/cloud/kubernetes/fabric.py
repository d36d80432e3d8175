"""Whether NCCL in a pod reaches the network of the node's GPUs, and what it says of it.

Source: its facts, `facts/fabrics.json`, and NCCL's own ways: with NCCL_NET it uses that network or
ends, without it tries those of its plugin and then takes plain sockets.

The receive-datapath managers of TCPX and TCPXO: whether the one of a pod works, and its words.

Source: their facts, `facts/fabrics.json`; the words are those of TCPXO's source where it has them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from rehearsal.cloud.facts import fabrics, machines
from rehearsal.cloud.facts.fabrics import Stack
from rehearsal.cloud.facts.machines import GpuNetwork
from rehearsal.cloud.kubernetes import claims, installed, objects, pools, shell
from rehearsal.cloud.kubernetes.installed import Installed
from rehearsal.cloud.kubernetes.objects import Object, World
from rehearsal.cloud.kubernetes.shell import Shell

_MACHINE: Final = "node.kubernetes.io/instance-type"
_SOCKET: Final = "Socket"
_GIB_SCRIPT: Final = "set_nccl_env.sh"
_APERTURES: Final = "/dev/aperture_devices"
_PROGRAMS: Final = ("all_gather_perf", "all_reduce_perf", "torchrun")
_RAY_WORKER: Final = "ray-worker"
_INFO: Final = "NCCL INFO"
_WARN: Final = "NCCL WARN"
_NO_SPACE: Final = (
    "NCCL WARN Error: failed to extend /dev/shm/nccl-hGVyXr to 9637892 bytes, error: No space left"
    " on device (28)"
)
_SHOWN: Final = frozenset({"INFO", "TRACE"})
_WARNED: Final = frozenset({"VERSION", "WARN", *_SHOWN})
_TRIES: Final = "Failed to connect to buffer operation client: UNAVAILABLE: Connection refused,"


@dataclass
class Verdict:
    """What becomes of NCCL in a pod."""

    network: str = ""  # what it uses; "" where it ends
    on_fabric: bool = False  # whether that is the network of the GPUs
    share: float = 1.0  # the part of it that it can use
    lines: list[str] = field(default_factory=list)  # what it has to log of its start
    level: str = ""  # how much of that it logs: NCCL_DEBUG
    problem: str = ""  # with what it ends, or the shell before it; "" where it goes on


def stack_of(node: Object) -> Stack | None:
    """The software of the network of a node's GPUs; None where they have none of their own."""
    machine = machines.find(node["metadata"]["labels"].get(_MACHINE, ""))
    return fabrics.STACKS[machine.gpu_network] if machine and machine.gpu_network else None


def main_container(spec: Mapping[str, Any]) -> Mapping[str, Any]:
    """The container of a pod that has its GPUs, or else the first one."""
    every: list[Mapping[str, Any]] = spec.get("containers") or [{}]
    return next((it for it in every if pools.gpus_of({"containers": [it]})), every[0])


def uses_nccl(container: Mapping[str, Any]) -> bool:
    """Whether a container runs a program that is known to use NCCL, or runs those of Ray."""
    text = " ".join(shell.words(container))
    return container.get("name") == _RAY_WORKER or any(it in text for it in _PROGRAMS)


def judge(world: World, pod: Object, node: Object) -> Verdict:
    """What becomes of NCCL in the container of a pod that has GPUs."""
    container = main_container(pod["spec"])
    on_node = installed.on(world, node)
    way = Shell(variables(container), _Sourced(pod, container, on_node))
    for words in shell.words(container):
        way.read(words)
    if way.problem or not uses_nccl(container):
        return Verdict(problem=way.problem)
    size = installed.shared_memory(pod, container)
    case = _Case(world, pod, container, on_node, way.variables)
    found = _network(case, stack_of(node))
    if pools.gpus_of(pod["spec"]) > 1 and size < fabrics.LEAST_SHARED_MEMORY:
        found = Verdict(problem=_NO_SPACE, lines=[_NO_SPACE])
    elif not found.problem:
        found.lines.append(f"{_INFO} Using network {found.network}")
    found.level = way.variables.get("NCCL_DEBUG", "").upper()
    return found


def words(pod: Object, level: str = "") -> str:
    """What NCCL, or the shell before it, said in a pod, by NCCL_DEBUG or the pod's own ("")."""
    said = pod["_nccl"]
    shown = level or said["level"]
    hidden = [it for it, levels in ((_INFO, _SHOWN), (_WARN, _WARNED)) if shown not in levels]
    lines = [it for it in said["lines"] if not it.startswith(tuple(hidden))]
    own = [f"{pod['metadata']['name']}:51:51 [0] {it}\n" for it in lines]
    if said["problem"] and said["problem"] not in said["lines"]:
        own.append(f"{said['problem']}\n")
    return "".join(own)


@dataclass(frozen=True)
class _Sourced:
    """What scripts that installers bring do to a shell."""

    pod: Object
    container: Mapping[str, Any]
    node: Installed

    def __call__(self, path: str, variables: Mapping[str, str]) -> dict[str, str] | str:
        name = path.rpartition("/")[2]
        at = installed.on_node(self.pod, self.container, path)
        if name.startswith("nccl-env-profile"):
            is_there = GpuNetwork.TCPXO in self.node.plugins
            if at != f"{fabrics.LIBRARIES}/{name}" or not is_there:
                return f"{path}: No such file or directory"
            return _profile(path, variables)
        if name == _GIB_SCRIPT:
            is_there = GpuNetwork.RDMA in self.node.plugins
            if at != f"{fabrics.GIB}/scripts/{name}" or not is_there:
                return f"{path}: No such file or directory"
            return {"NCCL_NET": "gIB"}
        return {}


def _profile(path: str, variables: Mapping[str, str]) -> dict[str, str] | str:
    folder = variables.get("NCCL_LIB_DIR", "")
    if not folder:
        return f"{path}: line 14: NCCL_LIB_DIR: Must set NCCL_LIB_DIR"
    names = fabrics.STACKS[GpuNetwork.TCPXO].interfaces
    return {
        "LD_LIBRARY_PATH": f"{folder}:{variables.get('LD_LIBRARY_PATH', '')}",
        "NCCL_FASTRAK_IFNAME": ",".join(names),
        "NCCL_FASTRAK_CTRL_DEV": "eth0",
        "NCCL_SOCKET_IFNAME": "eth0",
        "NCCL_FASTRAK_USE_LLCM": "1",
        "CUDA_VISIBLE_DEVICES": "0,1,2,3,4,5,6,7",
        "NCCL_DEBUG": "WARN",
        "NCCL_DEBUG_SUBSYS": "INIT,NET,ENV,COLL,GRAPH",
    }


@dataclass(frozen=True)
class _Case:
    """A pod's container at the start of NCCL."""

    world: World
    pod: Object
    container: Mapping[str, Any]
    node: Installed
    variables: Mapping[str, str]  # the container's variables

    @property
    def wanted(self) -> str:
        """The network that NCCL is told to use; "" for any."""
        return self.variables.get("NCCL_NET", "")


def _network(case: _Case, stack: Stack | None) -> Verdict:
    if stack is None:
        return _without("", case.wanted)
    network = next(it for it, other in fabrics.STACKS.items() if other is stack)
    if not _finds_plugin(case, network):
        return _without("NCCL INFO NET/Plugin: Could not find: libnccl-net.so", case.wanted)
    if case.wanted == _SOCKET:
        return Verdict(network=_SOCKET)
    if network is GpuNetwork.RDMA:
        return _rdma(case, stack)
    return _with_daemon(case, stack, network)


def _rdma(case: _Case, stack: Stack) -> Verdict:
    there = devices(case.world, case.pod, "RDMA") + claims.held(case.pod)
    if not there:
        return _without("NCCL INFO NET/gIB : No device found.", case.wanted)
    share = min(there / len(stack.interfaces), 1.0)
    return Verdict(network=stack.network, on_fabric=True, share=share)


def _with_daemon(case: _Case, stack: Stack, network: GpuNetwork) -> Verdict:
    head = f"NCCL WARN NET/{stack.network} : "
    version = case.node.plugins[network]
    if (since := stack.gone_with.get(version)) and _minor(case.world) >= since:
        words = f"{head}ioctl get dma_buf frags: Inappropriate ioctl for device"
        return Verdict(problem=words, lines=[words, "NCCL WARN gpu_tx_reg_mr failed -5"])
    obstacle = (_tcpx if network is GpuNetwork.TCPX else _tcpxo)(case)
    if obstacle:
        return _without(f"{head}{obstacle}", case.wanted)
    daemon = daemon_of(case.pod, stack, case.node)
    if daemon is None or daemon.problem or not daemon.is_awaited:
        return _without(f"{head}{_TRIES}", case.wanted)
    if daemon.version != stack.pairs.get(version):
        words = f"{head}Got malformed response from buffer manager."
        return Verdict(problem=words, lines=[words])
    if network is GpuNetwork.TCPX and not _shares_sockets(case, daemon):
        return _without(f"{head}{_TRIES}", case.wanted)
    return Verdict(network=stack.network, on_fabric=True)


def _without(line: str, wanted: str) -> Verdict:
    """NCCL without its fabric: sockets, or the end where another network is asked for."""
    lines = [line] if line else []
    if wanted and wanted != _SOCKET:
        words = f"NCCL WARN Error: network {wanted} not found."
        return Verdict(problem=words, lines=[*lines, words])
    return Verdict(network=_SOCKET, lines=lines)


def _finds_plugin(case: _Case, network: GpuNetwork) -> bool:
    if network not in case.node.plugins:
        return False
    where = [it for it in case.variables.get("LD_LIBRARY_PATH", "").split(":") if it]
    if "ldconfig" in " ".join(shell.words(case.container)):
        where.append("/usr/local/nvidia/lib64")
    found = {installed.on_node(case.pod, case.container, it) for it in where}
    own = {fabrics.LIBRARIES}
    return bool(found & (own | {f"{fabrics.GIB}/lib64"} if network is GpuNetwork.RDMA else own))


def _tcpx(case: _Case) -> str:
    """What keeps TCPX from its interfaces; "" for nothing."""
    names = case.variables.get("NCCL_GPUDIRECTTCPX_SOCKET_IFNAME", "").split(",")
    there = interfaces_of(case.pod)
    for name in fabrics.STACKS[GpuNetwork.TCPX].interfaces:
        if name not in names or name not in there:
            return f"no interface {name}"
    control = case.variables.get("NCCL_GPUDIRECTTCPX_CTRL_DEV", "")
    return "" if there.get(control) == "default" else f'no control interface "{control}"'


def _tcpxo(case: _Case) -> str:
    """What keeps TCPXO from its interfaces; "" for nothing."""
    names = case.variables.get("NCCL_FASTRAK_IFNAME", "").split(",")
    there = interfaces_of(case.pod)
    for name in fabrics.STACKS[GpuNetwork.TCPXO].interfaces:
        if name not in names or name not in there:
            return f"no interface {name}"
    if (case.container.get("securityContext") or {}).get("privileged"):
        return ""
    folder = case.variables.get("NCCL_FASTRAK_LLCM_DEVICE_DIRECTORY", "")
    seen = bool(folder) and installed.on_node(case.pod, case.container, folder) == _APERTURES
    return "" if seen and case.node.has_apertures else "No LLCM device found for address 10.0.0.2"


def _shares_sockets(case: _Case, daemon: Daemon) -> bool:
    """Whether TCPX's plugin looks for its daemon in a folder that both have."""
    prefix = case.variables.get("NCCL_GPUDIRECTTCPX_UNIX_CLIENT_PREFIX", "")
    own = installed.named_at(case.container, prefix)
    return bool(own) and own == installed.named_at(daemon.container, daemon.sockets)


def _minor(world: World) -> tuple[int, ...]:
    version = str(world.cluster.record["currentMasterVersion"])
    return tuple(int(it) for it in version.split(".")[:2])


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


def daemon_of(pod: Object, stack: Stack, node: Installed) -> Daemon | None:
    """The daemon of a pod; None if it has none."""
    for container, is_sidecar in _containers(pod):
        name, version = installed.image_of(container.get("image", ""))
        if stack.daemon and name == stack.daemon:
            found = _SOCKETS.search(_arguments(container))
            sockets = found.group(1) if found else ""
            return Daemon(
                container,
                version,
                next(_problems_of_daemon(pod, container, stack, node), ""),
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


def _problems_of_daemon(
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
    if not any(installed.on_node(pod, container, it) == fabrics.LIBRARIES for it in where if it):
        yield (
            "error while loading shared libraries: libcuda.so.1: cannot open shared object file:"
            " No such file or directory"
        )
    if not is_privileged:
        yield from _without_rights(pod, container, stack, rights)
    if not seen:
        yield "CUDA initialization failed"
    if not is_privileged and installed.on_node(pod, container, "/hostsysfs") != "/sys":
        yield _IN_TREE.format(0, seen)
    there = interfaces_of(pod)
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
    if installed.on_node(pod, container, "/hostprocsysfs") != "/proc/sys":
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


_GROUP: Final = "networking.gke.io"
_DEFAULT: Final = f"{_GROUP}/default-interface"
_LIST: Final = f"{_GROUP}/interfaces"
_API: Final = f"{_GROUP}/v1"
_OF_PODS: Final = "default"  # the network that all pods have


def interfaces_of(pod: Object) -> dict[str, str]:
    """A pod's interfaces, each with its network."""
    text = (pod["metadata"].get("annotations") or {}).get(_LIST)
    if text is None:
        return {"eth0": _OF_PODS}
    return {it["interfaceName"]: it["network"] for it in json.loads(text)}


def interface_problem(world: World, pod: Object, most: int) -> str:
    """Why a pod gets no sandbox; "" where it does."""
    return next(_problems_of_interfaces(world, pod, most), "")


def _problems_of_interfaces(world: World, pod: Object, most: int) -> Iterator[str]:
    annotations = pod["metadata"].get("annotations") or {}
    if _LIST not in annotations:
        return
    try:
        wanted = interfaces_of(pod)
    except (ValueError, TypeError, KeyError):
        yield f"invalid annotation {_LIST}"
        return
    first = annotations.get(_DEFAULT)
    if first not in wanted:
        yield f'default interface "{first}" is not among the interfaces of the pod'
    if _OF_PODS not in wanted.values():
        yield f'no interface is in the network "{_OF_PODS}"'
    if len(set(wanted.values())) < len(wanted):
        yield "a network is named twice"
    if len(wanted) > most:
        yield f"the node has {most} interfaces, the pod asks for {len(wanted)}"
    for network in wanted.values():
        if network != _OF_PODS and _parameters(world, network) is None:
            yield f'network "{network}" not found, or not ready'


def _parameters(world: World, network: str) -> Mapping[str, Any] | None:
    """What a network of the cluster is on its nodes; None where it is not there or not ready."""
    kind, of_parameters = (world.kind(_API, it) for it in ("networks", "gkenetworkparamsets"))
    found = world.get(kind, "", network) if kind else None
    if found is None or of_parameters is None:
        return None
    reference = (found["spec"].get("parametersRef") or {}).get("name", "")
    named = world.get(of_parameters, "", reference)
    if named is None or objects.condition(found, "Ready").get("status") == "False":
        return None
    spec: Mapping[str, Any] = named["spec"]
    return spec


def devices(world: World, pod: Object, mode: str) -> int:
    """How many of a pod's interfaces are devices of a mode: "NetDevice" or "RDMA"."""
    found = (_parameters(world, it) for it in interfaces_of(pod).values() if it != _OF_PODS)
    return sum(it is not None and it.get("deviceMode") == mode for it in found)
