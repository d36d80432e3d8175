"""All deployments of a state bucket, a row each, and what is broken of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provision import words
from provision.screens import amounts, layout
from provision.screens.layout import Line, Look

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from provision.documents.deployed import Deployed

_HOUR = 3600


def lines(found: Sequence[Deployed], bucket: str, width: int) -> Iterator[Line]:
    """The list as lines."""
    number = layout.counted(len(found), "deployment") if found else "No deployments"
    yield from layout.wrapped(f"{number} in {bucket}", width, look=Look.TITLE)
    for one, row in zip(found, layout.columns([_cells(it) for it in found]), strict=True):
        look = Look.PLAIN if one.in_order else Look.BAD
        yield from layout.wrapped(row, width, first="  ", rest="      ", look=look)
        for trouble in one.trouble:
            yield from layout.wrapped(trouble, width, first="      ", rest="      ")


def _cells(one: Deployed) -> tuple[str, ...]:
    machines = [f"{it.there:,} x {it.machine_type}" for it in one.machines if it.there]
    verdict = "not in order" if not one.in_order else "under way" if one.pending else "in order"
    return (
        one.name,
        f"{one.words} in {one.zone}" if one.words else "",
        ", ".join(machines) or "no machines",
        f"for {words.duration(float(one.hours) * _HOUR)}" if one.hours else "",
        amounts.per_hour(one.cost) if one.cost else "",
        verdict,
    )
