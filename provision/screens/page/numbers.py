"""Numbers of the page in words: money, counts, times."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from provision.documents.cost import Amount
    from provision.documents.topology import Machines

UNKNOWN: Final = "unknown"
TIMES: Final = "\N{MULTIPLICATION SIGN}"
_CENT: Final = Decimal("0.01")
_MINUTE: Final = 60
_HOUR: Final = 3600
_DAY: Final = 86_400


def money(usd: Decimal | None) -> str:
    """An amount in US dollars: "$7.82", or "$0.0014" below a cent; "unknown" for None."""
    if usd is None:
        return UNKNOWN
    if 0 < usd < _CENT:
        return f"${usd.normalize():f}"
    return f"${usd:,.2f}"


def total(amount: Amount, usd: Decimal) -> str:
    """A sum, with what is to be known of it: "≈" for an estimate, "≥" with unknown parts."""
    lead = "≥ " if amount.unknown else "≈ " if amount.is_estimate else ""
    return lead + money(usd)


def count(number: int, noun: str) -> str:
    """A number of things: "1 GPU", "16 GPUs"."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def duration(seconds: int) -> str:
    """A duration in the largest unit that says it whole: "7 days", "36 hours", "90 minutes"."""
    for size, unit in ((_DAY, "day"), (_HOUR, "hour"), (_MINUTE, "minute")):
        if seconds % size == 0:
            return count(seconds // size, unit)
    return count(seconds, "second")


def clock(seconds: float) -> str:
    """A duration as a clock shows it: "0:42", "1:02:30"."""
    whole = round(seconds)
    hours, minutes = divmod(whole // _MINUTE, 60)
    if whole >= _HOUR:
        return f"{hours}:{minutes:02}:{whole % _MINUTE:02}"
    return f"{minutes}:{whole % _MINUTE:02}"


def how_many(pool: Machines) -> str:
    """The number of a pool's machines: "2", or "0 to 16"."""
    return f"{pool.first:,}" if pool.first == pool.most else f"{pool.first:,} to {pool.most:,}"


_MODES: Final = {
    "standard": "on demand",
    "spot": "spot: Google may take them back",
    "reservation": "from a reservation",
    "reservation_bound": "bound to a reservation",
    "flex_start": "flex start",
    "queued": "queued",
    "flex_start_queued": "flex start, queued",
}


def mode(pool: Machines) -> str:
    """How machines are got, in words."""
    if pool.reservation:
        return f"{_MODES.get(pool.mode, pool.mode)}, {pool.reservation}"
    return _MODES.get(pool.mode, pool.mode)


def ends(pool: Machines) -> str:
    """When machines end, in words."""
    if pool.max_run_seconds is None:
        return "never by itself"
    return f"{duration(pool.max_run_seconds)} after it starts"
