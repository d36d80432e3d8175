"""Reading the output of NCCL's bandwidth test, and judging it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from provision.catalogue import bandwidths
from provision.codes import Code
from provision.errors import ClusterError, Problem

if TYPE_CHECKING:
    from collections.abc import Mapping

    from provision.kinds.gke.kubernetes.facts import GpuPool

INTERFACES_WORD: Final = "aiinfra-interfaces"
"""The first word of the lines in which the job reports the interfaces of each node."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """The result for one size of message.

    Attributes:
        size: The message size in bytes.
        out_of_place: Bus bandwidth in GB/s with the results in another buffer.
        in_place: Bus bandwidth in GB/s with the results in the same buffer.
        wrong: The number of wrong values.
    """

    size: int
    out_of_place: float
    in_place: float
    wrong: int


@dataclass(frozen=True, kw_only=True)
class Measurement:
    """The results in a log.

    Attributes:
        rows: The rows of the table, by message size.
        average: The average bus bandwidth over all sizes, in GB/s; None if the test did not end.
        out_of_bounds: The total of wrong values; None if the test did not end.
        interfaces: Node -> the number of its interfaces, as counted by the job.
        networks: The networks that NCCL used, such as "gIB" or "Socket".
        table: The lines of the table as NCCL printed them.
    """

    rows: tuple[Row, ...]
    average: float | None
    out_of_bounds: int | None
    interfaces: Mapping[str, int]
    networks: tuple[str, ...]
    table: str

    @property
    def peak_out_of_place(self) -> float:
        """The highest bus bandwidth out of place, in GB/s."""
        return max((row.out_of_place for row in self.rows), default=0.0)

    @property
    def peak_in_place(self) -> float:
        """The highest bus bandwidth in place, in GB/s."""
        return max((row.in_place for row in self.rows), default=0.0)


_ROW: Final = re.compile(
    r"^\s*(\d+)\s+\d+\s+\w+\s+\w+\s+-?\d+"
    r"\s+[\d.]+\s+[\d.]+\s+(\d+(?:\.\d+)?)\s+(\d+|N/A)"
    r"\s+[\d.]+\s+[\d.]+\s+(\d+(?:\.\d+)?)\s+(\d+|N/A)\s*$"
)
_AVERAGE: Final = re.compile(r"^#\s*Avg bus bandwidth\s*:\s*(\d+(?:\.\d+)?)", re.MULTILINE)
_BOUNDS: Final = re.compile(r"^#\s*Out of bounds values\s*:\s*(\d+)", re.MULTILINE)
_NETWORK: Final = re.compile(r"Using network (\S+)")
_COUNT: Final = re.compile(rf"^{INTERFACES_WORD} (\S+) (\d+)\s*$", re.MULTILINE)
_HEADER: Final = re.compile(r"^#\s+(size|\(B\))\s")


def parse(log: str) -> Measurement:
    """Read the log of the node that ran the test; lines of other programs are ignored."""
    lines = log.replace("\r", "").splitlines()
    average, bounds = _AVERAGE.search(log), _BOUNDS.search(log)
    shown = [line for line in lines if _ROW.match(line) or _HEADER.match(line)]
    shown += [found.group().rstrip() for found in (bounds, average) if found]
    return Measurement(
        rows=tuple(_row(found) for found in map(_ROW.match, lines) if found),
        average=float(average.group(1)) if average else None,
        out_of_bounds=int(bounds.group(1)) if bounds else None,
        interfaces={node: int(count) for node, count in _COUNT.findall(log)},
        networks=tuple(dict.fromkeys(_NETWORK.findall(log))),
        table="\n".join(shown),
    )


def judge(measured: Measurement, pool: GpuPool, nodes: int) -> str:
    """Judge the results.

    Args:
        measured: The results.
        pool: The pool that the test ran on.
        nodes: The number of nodes.

    Returns:
        The verdict, in one sentence.

    Raises:
        ClusterError: The test did not end, computed wrong values, or was too slow; the error has
            a diagnosis.
    """
    problems = _incomplete(measured) or [
        *_wrong(measured),
        *_slow(measured, pool, nodes),
    ]
    if problems:
        raise ClusterError.of([*problems, *diagnose(measured, pool)])
    if pool.bandwidth is None or nodes < 2:  # noqa: PLR2004 - one node has no network
        return f"No verdict: there is no reference bandwidth for {nodes} x {pool.machine_type}"
    more = nodes > bandwidths.MACHINES
    of_two = f", by the figures of {bandwidths.MACHINES}: there are none for more" if more else ""
    return f"The bandwidth is as expected for {pool.machine_type}{of_two}"


def diagnose(measured: Measurement, pool: GpuPool) -> list[Problem]:
    """Possible causes of a bad result that the log shows."""
    found = []
    few = {node: count for node, count in measured.interfaces.items() if count < pool.interfaces}
    if few:
        nodes = ", ".join(f"{node} has {count}" for node, count in sorted(few.items()))
        found.append(
            Problem(
                code=Code.TEST_FAILED,
                what=f"The pods do not have all network interfaces: {nodes} of {pool.interfaces}",
                why="the Network and GKENetworkParamSet objects, or the pool's networks, are wrong",
                fix="run Create again, then: kubectl get networks,gkenetworkparamsets",
            )
        )
    if pool.gpu_network and "Socket" in measured.networks:
        found.append(
            Problem(
                code=Code.TEST_FAILED,
                what="NCCL used plain sockets instead of the GPU network",
                why="NCCL's plugin is not installed on the node, or does not find its interfaces",
                fix="check kubectl --namespace kube-system get daemonsets, and the installer's log",
            )
        )
    return found


def _row(found: re.Match[str]) -> Row:
    size, out_of_place, wrong_out, in_place, wrong_in = found.groups()
    # Without checks (-c 0) NCCL writes N/A.
    wrong = sum(int(number) for number in (wrong_out, wrong_in) if number.isdigit())
    return Row(
        size=int(size), out_of_place=float(out_of_place), in_place=float(in_place), wrong=wrong
    )


def _incomplete(measured: Measurement) -> list[Problem]:
    if measured.rows and measured.average is not None:
        return []
    return [
        Problem(
            code=Code.TEST_FAILED,
            what="The bandwidth test did not finish: its log has no result",
            fix="read the log above",
        )
    ]


def _wrong(measured: Measurement) -> list[Problem]:
    wrong = max(measured.out_of_bounds or 0, sum(row.wrong for row in measured.rows))
    if not wrong:
        return []
    return [
        Problem(
            code=Code.TEST_FAILED,
            what=f"NCCL computed {wrong} wrong values",
            why="a GPU, its memory or a network interface is broken",
            fix="delete the node, so that another machine replaces it, and run Test again",
        )
    ]


def _slow(measured: Measurement, pool: GpuPool, nodes: int) -> list[Problem]:
    expected = pool.bandwidth
    if expected is None or nodes < 2:  # noqa: PLR2004 - one node has no network
        return []
    sizes = [row.size for row in measured.rows]
    # Small messages take longer with more machines, and weigh in the average.
    averages = nodes == bandwidths.MACHINES
    figures = (
        (
            "average bus bandwidth",
            measured.average or 0.0,
            expected.average_over(sizes[0], sizes[-1]) if averages else None,
        ),
        ("peak bus bandwidth out of place", measured.peak_out_of_place, expected.out_of_place),
        ("peak bus bandwidth in place", measured.peak_in_place, expected.in_place),
    )
    return [
        Problem(
            code=Code.TEST_FAILED,
            what=f"The {name} is {value:g} GB/s, {value / wanted:.0%} of what {pool.machine_type}"
            f" reaches ({wanted:g} GB/s)",
            why=f"less than {expected.tolerance:.0%} is more than normal variation; the figure is"
            f" of {bandwidths.MACHINES} nodes: {expected.source}",
        )
        for name, value, wanted in figures
        if wanted is not None and value < expected.tolerance * wanted
    ]
