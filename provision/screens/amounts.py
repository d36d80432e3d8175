"""What something costs, and how long something lasts, in a few words."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

    from provision.documents.cost import Amount, Part

_ROUND: Final = 100
"""USD from which on nobody reads cents."""
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
            number = int(seconds // size)
            return f"{number} {unit}" if number == 1 else f"{number} {unit}s"
    return f"{int(seconds)} seconds"


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
