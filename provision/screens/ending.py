"""What a Destroy ends, before it starts."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

from provision.screens import amounts, layout
from provision.screens.layout import Look, Row
from provision.screens.plan import fitting, nouns

if TYPE_CHECKING:
    from collections.abc import Iterator

    from provision.documents.cost import Cost
    from provision.documents.ending import Ending
    from provision.screens.layout import Line


def lines(ending: Ending, cost: Cost | None, width: int) -> list[Line]:
    """The screen of a Destroy."""
    title = f"{ending.name}   {ending.words} in {ending.zone}   ends"
    return [
        *layout.wrapped(title, width, rest="    ", look=Look.TITLE),
        *(line for row in _rows(ending, cost) for line in row.lines(width)),
        *layout.wrapped(fitting(lambda most: _summary(ending, most), width), width, rest="    "),
    ]


def _rows(ending: Ending, cost: Cost | None) -> Iterator[Row]:
    for number, words in enumerate(ending.machines or ("none run",)):
        yield Row("machines" if number == 0 else "", words)
    for number, held in enumerate(ending.data):
        words = held.words
        yield Row("for ever" if number == 0 else "", words, look=Look.BAD)
    if not ending.data:
        yield Row("data", "boot disks and local SSDs alone; buckets stay")
    if cost is not None and (cost.now.per_hour or cost.now.unknown):
        yield Row("costs", f"{amounts.per_hour_and_day(cost.now)} end with it")
    elif ending.hourly is not None:
        most = amounts.usd(Decimal(ending.hourly))
        yield Row("costs", f"up to {most}/h, as the last Create said, end with it")


def _summary(ending: Ending, most: int) -> str:
    count = sum(ending.counts.values())
    what = f" ({nouns(list(ending.counts.items()), most)})" if count else ""
    return f"Destroy: {layout.counted(count, 'resource')} in the state{what}."
