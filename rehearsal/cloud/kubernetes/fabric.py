"""Whether NCCL in a pod reaches the network of the node's GPUs, and what it says of it.

Source: its facts, `facts/fabrics.json`, and NCCL's own ways: with NCCL_NET it uses that network or
ends, without it tries those of its plugin and then takes plain sockets.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from rehearsal.cloud.facts import fabrics, machines
from rehearsal.cloud.facts.machines import GpuNetwork
from rehearsal.cloud.kubernetes import (
    daemons,
    folders,
    installed,
    interfaces,
    pools,
    shell,
)
from rehearsal.cloud.kubernetes.shell import Shell

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rehearsal.cloud.facts.fabrics import Stack
    from rehearsal.cloud.kubernetes.installed import Installed
    from rehearsal.cloud.kubernetes.objects import Object, World

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
    way = Shell(daemons.variables(container), _Sourced(pod, container, on_node))
    for words in shell.words(container):
        way.read(words)
    if way.problem or not uses_nccl(container):
        return Verdict(problem=way.problem)
    size = folders.shared_memory(pod, container)
    case = _Case(world, pod, container, on_node, way.variables)
    found = _network(case, stack_of(node))
    if pools.gpus_of(pod["spec"]) > 1 and size < fabrics.LEAST_SHARED_MEMORY:
        found = Verdict(problem=_NO_SPACE, lines=[_NO_SPACE])
    elif not found.problem:
        found.lines.append(f"{_INFO} Using network {found.network}")
    found.level = way.variables.get("NCCL_DEBUG", "").upper()
    return found


def words(pod: Object, level: str = "") -> str:
    """What NCCL said in a pod that has started, or the shell before it.

    `level`: what NCCL_DEBUG is there; "" for what the pod says.
    """
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
        at = folders.on_node(self.pod, self.container, path)
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
    there = interfaces.devices(case.world, case.pod, "RDMA")
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
    daemon = daemons.of(case.pod, stack, case.node)
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
    found = {folders.on_node(case.pod, case.container, it) for it in where}
    own = {fabrics.LIBRARIES}
    return bool(found & (own | {f"{fabrics.GIB}/lib64"} if network is GpuNetwork.RDMA else own))


def _tcpx(case: _Case) -> str:
    """What keeps TCPX from its interfaces; "" for nothing."""
    names = case.variables.get("NCCL_GPUDIRECTTCPX_SOCKET_IFNAME", "").split(",")
    there = interfaces.of(case.pod)
    for name in fabrics.STACKS[GpuNetwork.TCPX].interfaces:
        if name not in names or name not in there:
            return f"no interface {name}"
    control = case.variables.get("NCCL_GPUDIRECTTCPX_CTRL_DEV", "")
    return "" if there.get(control) == "default" else f'no control interface "{control}"'


def _tcpxo(case: _Case) -> str:
    """What keeps TCPXO from its interfaces; "" for nothing."""
    names = case.variables.get("NCCL_FASTRAK_IFNAME", "").split(",")
    there = interfaces.of(case.pod)
    for name in fabrics.STACKS[GpuNetwork.TCPXO].interfaces:
        if name not in names or name not in there:
            return f"no interface {name}"
    if (case.container.get("securityContext") or {}).get("privileged"):
        return ""
    folder = case.variables.get("NCCL_FASTRAK_LLCM_DEVICE_DIRECTORY", "")
    seen = bool(folder) and folders.on_node(case.pod, case.container, folder) == _APERTURES
    return "" if seen and case.node.has_apertures else "No LLCM device found for address 10.0.0.2"


def _shares_sockets(case: _Case, daemon: daemons.Daemon) -> bool:
    """Whether TCPX's plugin looks for its daemon in a folder that both have."""
    prefix = case.variables.get("NCCL_GPUDIRECTTCPX_UNIX_CLIENT_PREFIX", "")
    own = folders.named_at(case.container, prefix)
    return bool(own) and own == folders.named_at(daemon.container, daemon.sockets)


def _minor(world: World) -> tuple[int, ...]:
    version = str(world.cluster.record["currentMasterVersion"])
    return tuple(int(it) for it in version.split(".")[:2])
