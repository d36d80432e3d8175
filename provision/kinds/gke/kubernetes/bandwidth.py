"""Reading what the pods of the bandwidth test have written, and judging it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from provision import words
from provision.catalogue import bandwidths, machines
from provision.documents.checks import BandwidthRow, NodeCheck
from provision.kinds import gpus as gpu_words

if TYPE_CHECKING:
    from collections.abc import Mapping

    from provision.kinds.gke.kubernetes.facts import GpuPool
    from provision.kinds.gke.kubernetes.nodes import Node


@dataclass(frozen=True, kw_only=True)
class Measurement:
    """The results in a log; bus bandwidths in GB/s."""

    rows: tuple[BandwidthRow, ...]  # by message size
    average: float | None  # over all sizes; None if the test did not end
    out_of_bounds: int | None  # the total of wrong values; None if the test did not end
    # host -> the networks that NCCL used there, such as "gIB" or "Socket"
    used: Mapping[str, tuple[str, ...]]
    table: str  # as NCCL printed it

    @property
    def networks(self) -> tuple[str, ...]:
        """The networks that NCCL used on any host."""
        return tuple(dict.fromkeys(it for used in self.used.values() for it in used))

    @property
    def peak(self) -> float:
        """The higher one of the two peaks."""
        return max(self.peak_out_of_place, self.peak_in_place)

    @property
    def peak_out_of_place(self) -> float:
        """The highest bus bandwidth out of place."""
        return max((row.out_of_place for row in self.rows), default=0.0)

    @property
    def peak_in_place(self) -> float:
        """The highest bus bandwidth in place."""
        return max((row.in_place for row in self.rows), default=0.0)


_ROW: Final = re.compile(
    r"^\s*(\d+)\s+\d+\s+\w+\s+\w+\s+-?\d+"
    r"\s+[\d.]+\s+[\d.]+\s+(\d+(?:\.\d+)?)\s+(\d+|N/A)"
    r"\s+[\d.]+\s+[\d.]+\s+(\d+(?:\.\d+)?)\s+(\d+|N/A)\s*$"
)
_HEADER: Final = re.compile(r"^#\s+(size|\(B\))\s")
_AVERAGE: Final = re.compile(r"^#\s*Avg bus bandwidth\s*:\s*(\d+(?:\.\d+)?)", re.MULTILINE)
_BOUNDS: Final = re.compile(r"^#\s*Out of bounds values\s*:\s*(\d+)", re.MULTILINE)
_NETWORK: Final = re.compile(r"(?:^|(\S+?):\d+:\d+ .*)Using network (\S+)", re.MULTILINE)
_SOCKETS: Final = "Socket"
"""What NCCL calls plain TCP."""
# What the program of the test writes beside NCCL's output (`all_gather`).
_PAIR: Final = re.compile(r"^aiinfra-pair (\d+) (\d+)\s*$", re.MULTILINE)
_SILENT: Final = re.compile(r"^aiinfra-silent (\d+)\s*$", re.MULTILINE)
_INTERFACES: Final = re.compile(r"^aiinfra-interfaces \S+ (\d+)\s*$", re.MULTILINE)
_GPU: Final = re.compile(r"^aiinfra-gpu (.*?)\s*$", re.MULTILINE)
_CELLS: Final = 3
"""Of a line of nvidia-smi: name, driver and errors, as they are asked for."""


def parse(log: str) -> Measurement:
    """Read what one measurement wrote; lines of other programs are ignored."""
    lines = log.replace("\r", "").splitlines()
    average, bounds = _AVERAGE.search(log), _BOUNDS.search(log)
    shown = [line for line in lines if _ROW.match(line) or _HEADER.match(line)]
    shown += [found.group().rstrip() for found in (bounds, average) if found]
    used: dict[str, dict[str, None]] = {}
    for host, network in _NETWORK.findall(log):
        used.setdefault(host, {})[network] = None
    return Measurement(
        rows=tuple(_row(found) for found in map(_ROW.match, lines) if found),
        average=float(average.group(1)) if average else None,
        out_of_bounds=int(bounds.group(1)) if bounds else None,
        used={host: tuple(networks) for host, networks in used.items()},
        table="\n".join(shown),
    )


def _row(found: re.Match[str]) -> BandwidthRow:
    size, out_of_place, wrong_out, in_place, wrong_in = found.groups()
    # Without checks (-c 0) NCCL writes N/A.
    wrong = sum(int(number) for number in (wrong_out, wrong_in) if number.isdigit())
    return BandwidthRow(
        size=int(size), out_of_place=float(out_of_place), in_place=float(in_place), wrong=wrong
    )


@dataclass(frozen=True, kw_only=True)
class Told:
    """What the first pod of a test has told."""

    whole: Measurement  # what was measured between all nodes
    # two nodes, by the numbers of their pods -> what was measured between them
    pairs: Mapping[tuple[int, int], Measurement]
    silent: tuple[int, ...]  # the numbers of the pods that have not answered the first one


def read(log: str) -> Told:
    """Read the log of the pod that measured."""
    whole, *rest = _PAIR.split(log)
    numbered = zip(rest[::3], rest[1::3], rest[2::3], strict=True)
    return Told(
        whole=parse(whole),
        pairs={(int(one), int(other)): parse(text) for one, other, text in numbered},
        silent=tuple(map(int, _SILENT.findall(whole))),
    )


@dataclass(frozen=True, kw_only=True)
class Bars:
    """What is enough, in GB/s of bus bandwidth; 0 for what is not judged."""

    out_of_place: float = 0.0  # the peak with the results in another buffer
    in_place: float = 0.0  # the peak with the results in the same buffer
    average: float = 0.0  # over all sizes


def bars(pool: GpuPool, nodes: int) -> Bars:
    """What is enough between nodes of a pool, by what is published.

    All figures are of two machines. Between more, small messages take longer and weigh in the
    average, so the peak alone is judged there; within one there is no network to judge.
    """
    figures = pool.bandwidth
    if figures is None or nodes < bandwidths.MACHINES:
        return Bars()
    average = figures.average if nodes == bandwidths.MACHINES else None
    return Bars(
        out_of_place=figures.tolerance * figures.out_of_place,
        in_place=figures.tolerance * (figures.in_place or 0.0),
        average=figures.tolerance * (average or 0.0),
    )


def why_bad(measured: Measurement, pool: GpuPool, nodes: int) -> str:
    """Why a measurement is not as it should be; "" if it is."""
    if not measured.rows or measured.average is None:
        return "the measurement did not end, or failed"
    if wrong := max(measured.out_of_bounds or 0, sum(row.wrong for row in measured.rows)):
        return f"NCCL computed {wrong} wrong values"
    if nodes >= bandwidths.MACHINES and on_sockets(measured, pool):
        return "NCCL used plain sockets instead of the GPU network"
    figures, enough = pool.bandwidth, bars(pool, nodes)
    if figures is None:
        return ""
    compared = (
        ("peak bus bandwidth out of place", measured.peak_out_of_place, enough.out_of_place),
        ("peak bus bandwidth in place", measured.peak_in_place, enough.in_place),
        ("average bus bandwidth", measured.average, enough.average),
    )
    return "; ".join(
        f"its {name} is {value:.1f} GB/s, {value / (least / figures.tolerance):.0%} of the"
        f" {least / figures.tolerance:g} GB/s published"
        for name, value, least in compared
        if value < least
    )


def on_sockets(measured: Measurement, pool: GpuPool) -> frozenset[str]:
    """The hosts on which NCCL used plain sockets, though the GPUs have a network of their own."""
    # Arm machines get no plugin.
    if pool.gpu_network is None or pool.is_arm:
        return frozenset()
    return frozenset(host for host, used in measured.used.items() if _SOCKETS in used)


def of_log(log: str, pool: GpuPool) -> NodeCheck:
    """What a pod of the test found on its node, judged by what the pool's machines have."""
    lines = [line.split(", ") for line in _GPU.findall(log)]
    gpus = [
        {"name": name, "driver": driver, "ecc_volatile": int(ecc) if ecc.isdigit() else None}
        for name, driver, ecc in (cells for cells in lines if len(cells) == _CELLS)
    ]
    error = " ".join(", ".join(cells) for cells in lines if len(cells) != _CELLS)
    found = _INTERFACES.search(log)
    interfaces = int(found.group(1)) if found else None
    if lines:
        told = f"nvidia-smi failed: {error}" if error else ""
        faults = list(gpu_words.faults(gpus, told, pool.gpus, _kind(pool)))
    else:
        faults = ["it has told nothing of its GPUs"]
    if interfaces is not None and interfaces < pool.interfaces:
        faults.append(
            f"its pod has {interfaces} of {pool.interfaces} network interfaces: see kubectl get"
            " networks,gkenetworkparamsets"
        )
    return NodeCheck(
        gpus=len(gpus),
        names=tuple(str(gpu["name"]) for gpu in gpus),
        driver=next((str(gpu["driver"]) for gpu in gpus), None),
        ecc_errors=gpu_words.memory_errors(gpus),
        interfaces=interfaces,
        faults=tuple(faults),
    )


def of_node(node: Node, pool: GpuPool) -> tuple[str, ...]:
    """What Kubernetes says is wrong with a node's GPUs; a test can't run on such a node.

    A node that is not ready, or has not told of its GPUs yet, is none: it may be starting.
    """
    found = []
    if node.xids:
        found.append(f"a GPU has failed: XID {words.listed(node.xids)} (XidCriticalError)")
    if not node.unready and 0 < node.usable < pool.gpus:
        found.append(f"it offers {node.usable} GPUs instead of {pool.gpus}")
    return tuple(found)


def _kind(pool: GpuPool) -> machines.Gpu | None:
    if pool.attached_gpu:
        return machines.GPUS.get(pool.attached_gpu)
    machine = machines.lookup(pool.machine_type)
    return machine.family.gpu if machine else None
