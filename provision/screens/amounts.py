"""What something costs, and how long it lasts, in a few words; and what GPUs cost, as a table."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Final

from provision.screens import layout
from provision.screens.layout import Line, Look
from provision.words import counted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from provision.documents.cost import Amount, Offer, Part

_ROUND: Final = 100  # USD from which on nobody reads cents
_MINUTE: Final = 60
_HOUR: Final = 3600
_DAY: Final = 86400


def usd(amount: Decimal) -> str:
    """An amount of USD, such as "$7.82" or "$1,640"."""
    if amount and amount < Decimal("0.01"):
        return "under $0.01"
    return f"${amount:,.0f}" if amount >= _ROUND else f"${amount:,.2f}"


def per_hour(amount: Amount) -> str:
    """A sum per hour: "≈" for an estimate, "at least" with parts whose price is unknown."""
    return _marked(amount, f"{usd(amount.per_hour)}/h")


def per_hour_and_day(amount: Amount) -> str:
    """A sum per hour and per day, marked like `per_hour`."""
    if not amount.per_hour and not amount.unknown:
        return "nothing"
    return _marked(amount, f"{usd(amount.per_hour)}/h, {usd(amount.per_day)}/day")


def of_parts(parts: Iterable[Part]) -> str:
    """What some parts cost per hour together once they are there; "" without any."""
    found = list(parts)
    if not found:
        return ""
    known = [part.most for part in found if part.most is not None]
    if not known:
        return "unknown"
    least = "at least " if len(known) < len(found) else ""
    about = "≈ " if any(part.is_estimate for part in found if part.most) else ""
    return f"{least}{about}{usd(sum(known, Decimal(0)))}/h"


def span(seconds: float) -> str:
    """How long something lasts, in the largest unit that says it exactly, such as "7 days"."""
    for size, unit in ((_DAY, "day"), (_HOUR, "hour"), (_MINUTE, "minute")):
        if seconds >= size and seconds % size == 0:
            return counted(int(seconds // size), unit)
    return counted(int(seconds), "second")


def clock(seconds: float) -> str:
    """A time that has passed, such as "4:31" or "1:04:31"."""
    whole = int(seconds)
    hours, minutes, rest = whole // _HOUR, whole // _MINUTE % _MINUTE, whole % _MINUTE
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def _marked(amount: Amount, text: str) -> str:
    if amount.unknown and not amount.per_hour:
        return "unknown"
    least = "at least " if amount.unknown else ""
    about = "≈ " if amount.is_estimate else ""
    return f"{least}{about}{text}"


# ------------------------------------------------------------------ what GPUs cost

_HOW: Final = {"on-demand": "on demand", "spot": "Spot", "reservation in calendar mode": "calendar"}
"""A way of `Offer` -> what it is called in a table, where that is not its name."""
_NUMBERS: Final = frozenset({"GPUs", "$/GPU h", "$/h"})
_RESERVED: Final = "reservation"


def offers(found: Sequence[Offer], width: int, *, seconds: int | None) -> Iterator[Line]:
    """The machines with a GPU, the cheapest for a GPU first, and what to write for the first."""
    kin: dict[str, dict[str, None]] = {}
    for it in found:
        kin.setdefault(it.gpu, {})["-".join(it.machine_type.split("-")[:2])] = None
    names = " and ".join(f"{gpu} ({', '.join(types)})" for gpu, types in kin.items())
    title = f"{names}, list prices in USD, the cheapest for a GPU first"
    yield from layout.wrapped(title, width, rest="    ", look=Look.TITLE)
    on_demand = {it.machine_type for it in found if it.way == "on-demand"}
    shown = [it for it in found if it.way != _RESERVED or it.machine_type not in on_demand]
    # What no list has a price for is told below, unless there is nothing else.
    priced = [it for it in shown if it.per_hour is not None] or shown
    head = ["machine", "GPUs", "how", "$/GPU h", "$/h"]
    in_all = [f"$ in {_short(seconds)}"] if seconds else []
    table = [
        [
            it.machine_type,
            str(Fraction(it.gpus)),
            _HOW.get(it.way, it.way),
            _about(it, it.per_gpu_hour),
            _about(it, it.per_hour),
            *[_about(it, it.at_most)] * bool(seconds),
            _where(it),
        ]
        for it in priced
    ]
    yield from _table([*head, *in_all, "where"], table, width)
    yield from _places(shown, width)
    yield from _remarks(found, width)
    first = found[0]
    yield Line("")
    yield from layout.wrapped("For the first, write these into your env.list:", width)
    for name, value in first.settings.items():
        yield Line(f"  {name}={value}")


def each_gpu(cheapest: Sequence[Offer], width: int) -> Iterator[Line]:
    """All GPUs, a line each, with the cheapest way to get it."""
    yield Line("The cheapest way to each GPU, list prices in USD", Look.TITLE)
    table = [
        [
            it.gpu.removeprefix("nvidia-").removeprefix("tesla-"),
            _about(it, it.per_gpu_hour),
            it.machine_type,
            _HOW.get(it.way, it.way),
            _where(it),
        ]
        for it in cheapest
    ]
    yield from _table(["GPU", "$/GPU h", "in a", "how", "where"], table, width)
    yield from _remarks(cheapest, width)
    yield from layout.wrapped("Offers GPU, such as Offers L4, has all ways to one of them.", width)


def _table(head: list[str], table: list[list[str]], width: int) -> Iterator[Line]:
    numbers = [it in _NUMBERS or it.startswith("$ in") for it in head]
    sizes = [max(len(row[at]) for row in (head, *table)) for at in range(len(head))]
    if sum(sizes) + 2 * (len(sizes) - 1) > width:
        # How many more regions there are, their list tells.
        table = [[*row[:-1], row[-1].partition(" ")[0]] for row in table]
    rows = [
        [cell.rjust(size) if is_number else cell for cell, size, is_number in cells]
        for cells in (zip(row, sizes, numbers, strict=True) for row in (head, *table))
    ]
    for number, text in enumerate(layout.columns(rows)):
        look = Look.PLAIN if number else Look.TITLE
        yield from layout.wrapped(text, width, rest="    ", look=look)


def _short(seconds: int) -> str:
    number, _, unit = span(seconds).partition(" ")
    return f"{number} {unit[0]}"


def _about(offer: Offer, amount: Decimal | None) -> str:
    """An amount without its sign, which the heading has."""
    if amount is None:
        return "unknown"
    return ("≈ " if offer.is_estimate else "") + f"{amount:,.2f}"


def _where(offer: Offer) -> str:
    more = len({_region(it) for it in offer.zones} - {offer.region})
    return f"{offer.region or 'unknown'}{f' +{more}' if more else ''}"


def _region(place: str) -> str:
    """The region of a place, which is one itself or a zone."""
    return place if place[-1:].isdigit() else place.rpartition("-")[0]


def _places(found: Sequence[Offer], width: int) -> Iterator[Line]:
    """Where machines are, once for all that are in the same places."""
    those: dict[tuple[str, ...], dict[str, None]] = {}
    for it in found:
        those.setdefault(it.zones, {})[it.machine_type] = None
    for places, types in those.items():
        names = ", ".join(types) if len(those) > 1 else "They"
        text = f"{names} are in {', '.join(places)}" if places else f"{names}: no list says where"
        yield from layout.wrapped(text, width, rest="  ", look=Look.FAINT)


def _remarks(found: Sequence[Offer], width: int) -> Iterator[Line]:
    dates = sorted(it.dated for it in found if it.dated)
    days = f" of {' to '.join(dict.fromkeys((dates[0], dates[-1])))}" if dates else ""
    about = (
        f"Where: the region with that price, and how many more have such machines. Prices{days},"
        " without disk, address, tax and contracts: Plan has the whole. Those of Spot change up to"
        " once a day."
    )
    said = [about]
    if any(it.is_estimate for it in found):
        said.append("≈ is derived from other prices, or Google has announced a new one since.")
    if any(it.way == _RESERVED and it.per_hour is not None for it in found):
        said.append("A reservation that you have is billed as on demand, used or not.")
    doubts = [it for it in found if it.remark and "disagree" in it.remark]
    if doubts:
        types = ", ".join(
            dict.fromkeys(f"{it.machine_type} {_HOW.get(it.way, it.way)}" for it in doubts)
        )
        said.append(f"Not certain, as Google's pages disagree or do not tell: {types}.")
    unknown: dict[str, list[str]] = {}
    for it in found:
        if it.per_hour is None:
            unknown.setdefault(it.machine_type, []).append(_HOW.get(it.way, it.way))
    if unknown:
        ways = "; ".join(f"{name} {', '.join(how)}" for name, how in unknown.items())
        said.append(f"Without a price in the list: {ways}. Of reservations Google tells it.")
    for quota in dict.fromkeys((it.region, it.quota) for it in found if it.quota):
        region, known = quota
        limit = "unlimited" if known.limit is None else known.limit
        used = "" if known.used is None else f", {known.used} used"
        said.append(f"Quota {known.metric} in {region}: {limit}{used}.")
    for text in said:
        yield from layout.wrapped(text, width, rest="  ", look=Look.FAINT)
