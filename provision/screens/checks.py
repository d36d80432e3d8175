"""What a Test has found: a table of the machines, and one of the bandwidth between them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from provision.documents.checks import Bandwidth, NodeCheck, VmBandwidth, VmCheck
from provision.screens import layout
from provision.screens.layout import Line, Look
from provision.words import counted

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_MOST: Final = 16  # machines without faults that are listed one by one
_UNITS: Final = ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"))


def lines(found: Mapping[str, VmCheck | VmBandwidth | Bandwidth], width: int) -> list[Line]:
    """The tables.

    `found`: VM -> what it found about itself; group or node pool -> the bandwidth between its
    machines, and of a pool what was found on its nodes.
    """
    vms = {name: it for name, it in found.items() if isinstance(it, VmCheck)}
    rows = [_Row((name, *_of_vm(it)), it.faults) for name, it in vms.items()]
    shown = list(_machines(_OF_VMS, rows, width)) if rows else []
    for name, it in found.items():
        if isinstance(it, VmBandwidth):
            shown += _bandwidth(it, width)
        elif isinstance(it, Bandwidth):
            shown += _pool(name, it, width)
    return shown


_OF_VMS: Final = ("VM", "GPUs", "driver", "ECC errors", "DCGM", "interfaces", "local SSDs")
_OF_NODES: Final = ("node", "GPUs", "driver", "ECC errors", "interfaces")


@dataclass(frozen=True)
class _Row:
    """A machine: its cells, and what is wrong with it."""

    cells: tuple[str, ...]
    faults: tuple[str, ...]


def _machines(titles: tuple[str, ...], rows: Sequence[_Row], width: int) -> Iterator[Line]:
    """Those with faults first, each with its faults below it."""
    bad = [row for row in rows if row.faults]
    shown = [*bad, *[row for row in rows if not row.faults][:_MOST]]
    head, *table = layout.columns([titles, *(row.cells for row in shown)])
    fits = max(map(len, [head, *table])) <= width
    if fits:
        yield Line(head, Look.TITLE)
    for row, text in zip(shown, table, strict=True):
        look = Look.BAD if row.faults else Look.PLAIN
        if fits:
            yield Line(text, look)
        else:
            cells = [f"{name} {cell}" for name, cell in zip(titles[2:], row.cells[2:], strict=True)]
            told = f"{row.cells[0]}: {', '.join([row.cells[1], *cells])}"
            yield from layout.wrapped(told, width, rest="    ", look=look)
        for fault in row.faults:
            yield from layout.wrapped(fault, width, first="  ", rest="    ", look=Look.BAD)
    if len(rows) > len(shown):
        yield Line(f"and {len(rows) - len(shown):,} more without faults", Look.FAINT)


def _of_vm(it: VmCheck) -> tuple[str, ...]:
    return (
        _gpus(it),
        it.driver or "-",
        _number(it.ecc_errors),
        it.diagnostic,
        _number(it.interfaces),
        _number(it.local_ssds),
    )


def _of_node(it: NodeCheck) -> tuple[str, ...]:
    return (_gpus(it), it.driver or "-", _number(it.ecc_errors), _number(it.interfaces))


def _gpus(it: VmCheck | NodeCheck) -> str:
    kinds = ", ".join(dict.fromkeys(one.removeprefix("NVIDIA ") for one in it.names))
    return "?" if it.gpus is None else f"{it.gpus} x {kinds}" if it.gpus else "none"


def _pool(name: str, it: Bandwidth, width: int) -> Iterator[Line]:
    """The nodes of a pool, and between which the measurements were good."""
    yield Line(name, Look.TITLE)
    rows = [_Row((node, *_of_node(one)), one.faults) for node, one in it.checked.items()]
    yield from _machines(_OF_NODES, rows, width)
    if it.ray is not None:
        used = ", ".join(f"{gpus} on {node}" for node, gpus in it.ray.gpus.items())
        state = f"each GPU was used: {used}" if it.ray.passed else it.ray.why
        look = Look.PLAIN if it.ray.passed else Look.BAD
        yield from layout.wrapped(f"through Ray: {state}", width, rest="    ", look=look)
    yield from _tries([(one.nodes, one.bandwidth, one.passed) for one in it.tries], width)


def _tries(
    tries: Sequence[tuple[tuple[str, ...], float | None, bool]], width: int
) -> Iterator[Line]:
    """What was measured after the first, to find out who is at fault."""
    for number, (members, bandwidth, passed) in enumerate(tries[1:], 2):
        reached = "-" if bandwidth is None else f"{bandwidth:.1f} GB/s"
        state = "good" if passed else "too slow or failed"
        text = f"measurement {number}: {', '.join(members)}: {reached}, {state}"
        look = Look.PLAIN if passed else Look.BAD
        yield from layout.wrapped(text, width, rest="    ", look=look)


def _number(value: int | None) -> str:
    return "-" if value is None else str(value)


def _bandwidth(it: VmBandwidth, width: int) -> Iterator[Line]:
    yield Line("")
    if it.not_measured:
        yield from layout.wrapped(f"Bandwidth not measured: {it.not_measured}", width, rest="    ")
        return
    over = f" over {', '.join(it.networks)}" if it.networks else ""
    with_nccl = f", NCCL {it.nccl}" if it.nccl else ""
    who = f"{counted(it.vms, 'VM')} with {counted(it.gpus, 'GPU')}"
    head = f"{it.collective} between {who}{over}{with_nccl}"
    yield from layout.wrapped(head, width, rest="    ", look=Look.TITLE)
    if it.rows:
        rows: list[tuple[str, ...]] = [("size", "out of place", "in place", "wrong")]
        rows += [
            (_size(row.size), f"{row.out_of_place:.1f}", f"{row.in_place:.1f}", str(row.wrong))
            for row in it.rows
        ]
        head, *table = _right(rows)
        yield Line(f"{head}  (bus GB/s)", Look.FAINT)
        yield from map(Line, table)
    if it.expected is not None and it.least is not None:
        text = (
            f"published: {it.expected:g} GB/s at {_size(it.size)} between 2 machines; enough:"
            f" {it.least:.1f} ({it.source})"
        )
        yield from layout.wrapped(text, width, rest="    ", look=Look.FAINT)
    yield from _tries([(one.vms, one.bandwidth, one.passed) for one in it.tries], width)


def _right(rows: list[tuple[str, ...]]) -> list[str]:
    """The cells of a table of numbers, aligned at their right ends."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return [
        "  " + "  ".join(cell.rjust(size) for cell, size in zip(row, widths, strict=True))
        for row in rows
    ]


def _size(size: int) -> str:
    unit, name = next((it for it in _UNITS if size >= it[0]), (1, "B"))
    return f"{size / unit:g} {name}"
