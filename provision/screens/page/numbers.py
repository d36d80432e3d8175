"""Words and numbers that several parts of the page have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from provision.screens import amounts
from provision.spec.capacity import Mode

if TYPE_CHECKING:
    from decimal import Decimal

    from provision.documents.cost import Amount
    from provision.documents.topology import Machines

TIMES: Final = "\N{MULTIPLICATION SIGN}"


def titled(text: str) -> str:
    """A text that begins with a capital letter."""
    return text[:1].upper() + text[1:]


def money(usd: Decimal | None) -> str:
    """An amount in US dollars, such as "$7.82"; "unknown" for None, and never 0 for it."""
    return "unknown" if usd is None else amounts.usd(usd)


def per_day(amount: Amount) -> str:
    """A sum per day; what there is to know of it stands at the sum per hour."""
    return f"{amounts.usd(amount.per_day)} a day"


def how_many(pool: Machines) -> str:
    """The number of a pool's machines: "2", or "0 to 16"."""
    return f"{pool.first:,}" if pool.first == pool.most else f"{pool.first:,} to {pool.most:,}"


def mode(pool: Machines) -> str:
    """How machines are got, in words."""
    close = ", close together" if pool.is_compact else ""
    return " ".join(filter(None, [Mode(pool.mode).means.words, pool.reservation])) + close


def ends(pool: Machines) -> str:
    """When machines end, in words."""
    if pool.max_run_seconds is None:
        return "at Destroy only"
    return f"{amounts.span(pool.max_run_seconds)} after it came"
