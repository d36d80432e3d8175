"""What a Test of VMs has found: a table of the VMs, and one of the bandwidth between them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from provision.documents.checks import VmBandwidth, VmCheck
from provision.screens import layout
from provision.screens.layout import Line, Look

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from provision.documents.checks import Bandwidth

_MOST: Final = 16
"""VMs without faults that are listed one by one."""
_UNITS: Final = ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"))


def lines(found: Mapping[str, VmCheck | VmBandwidth | Bandwidth], width: int) -> list[Line]:
    """The tables.

    Args:
        found: VM -> what it found about itself; group -> the bandwidth between its VMs.
        width: The columns.
    """
    vms = {name: it for name, it in found.items() if isinstance(it, VmCheck)}
    shown = list(_vms(vms, width))
    for it in found.values():
        if isinstance(it, VmBandwidth):
            shown += _bandwidth(it, width)
    return shown


_COLUMNS: Final = ("VM", "GPUs", "driver", "ECC errors", "DCGM", "interfaces", "local SSDs")


def _vms(vms: Mapping[str, VmCheck], width: int) -> Iterator[Line]:
    """Those with faults first, each with its faults below it."""
    bad = {name: it for name, it in vms.items() if it.faults}
    good = {name: it for name, it in vms.items() if not it.faults}
    listed = dict(list(good.items())[:_MOST])
    rows = [_row(name, it) for name, it in (bad | listed).items()]
    head, *table = layout.columns([_COLUMNS, *rows])
    fits = max(map(len, [head, *table])) <= width
    if fits:
        yield Line(head, Look.TITLE)
    for it, row, text in zip((bad | listed).values(), rows, table, strict=True):
        look = Look.BAD if it.faults else Look.PLAIN
        if fits:
            yield Line(text, look)
        else:
            cells = [f"{name} {cell}" for name, cell in zip(_COLUMNS[2:], row[2:], strict=True)]
            told = f"{row[0]}: {', '.join([row[1], *cells])}"
            yield from layout.wrapped(told, width, rest="    ", look=look)
        for fault in it.faults:
            yield from layout.wrapped(fault, width, first="  ", rest="    ", look=Look.BAD)
    if len(good) > len(listed):
        yield Line(f"and {len(good) - len(listed):,} more without faults", Look.FAINT)


def _row(name: str, it: VmCheck) -> tuple[str, ...]:
    kinds = ", ".join(dict.fromkeys(one.removeprefix("NVIDIA ") for one in it.names))
    return (
        name,
        "?" if it.gpus is None else f"{it.gpus} x {kinds}" if it.gpus else "none",
        it.driver or "-",
        _number(it.ecc_errors),
        it.diagnostic,
        _number(it.interfaces),
        _number(it.local_ssds),
    )


def _number(value: int | None) -> str:
    return "-" if value is None else str(value)


def _bandwidth(it: VmBandwidth, width: int) -> Iterator[Line]:
    yield Line("")
    if it.not_measured:
        yield from layout.wrapped(f"Bandwidth not measured: {it.not_measured}", width, rest="    ")
        return
    over = f" over {', '.join(it.networks)}" if it.networks else ""
    with_nccl = f", NCCL {it.nccl}" if it.nccl else ""
    head = f"{it.collective} between {it.vms} VMs with {it.gpus} GPUs{over}{with_nccl}"
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
    for number, one in enumerate(it.tries[1:], 2):
        reached = "-" if one.bandwidth is None else f"{one.bandwidth:.1f} GB/s"
        state = "good" if one.passed else "too slow or failed"
        text = f"measurement {number}: {', '.join(one.vms)}: {reached}, {state}"
        look = Look.PLAIN if one.passed else Look.BAD
        yield from layout.wrapped(text, width, rest="    ", look=look)


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
