"""What a cluster costs, by the parts that are billed."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from decimal import Decimal


class PartKind(enum.StrEnum):
    """What kind of thing is billed."""

    MACHINES = "machines"
    DISKS = "disks"
    LOCAL_SSDS = "local_ssds"
    SYSTEM_NODES = "system_nodes"
    CONTROL_PLANE = "control_plane"
    SHARES = "shares"
    NAT = "nat"
    ADDRESSES = "addresses"


@dataclass(frozen=True, kw_only=True)
class Part:
    """One billed part of a cluster.

    Attributes:
        kind: What kind of thing it is.
        name: It in words, such as "16 x a3-ultragpu-8g, flex start".
        now: How much is billed as soon as Create is done, in USD per hour; None if unknown.
        most: How much is billed with everything that can come, such as all nodes of a pool that
            starts empty, in USD per hour; None if unknown.
        dated: The day of the price, such as "2026-07-30"; None if unknown.
        source: Where the price is from; None if unknown.
        is_estimate: Whether it is derived rather than published.
    """

    kind: PartKind
    name: str
    now: Decimal | None
    most: Decimal | None
    dated: str | None = None
    source: str | None = None
    is_estimate: bool = False


@dataclass(frozen=True, kw_only=True)
class Amount:
    """A sum of parts.

    Attributes:
        per_hour: USD per hour, of the parts whose price is known.
        per_day: USD per day, of the same.
        unknown: The names of the parts whose price is not known; with any, the sum is a minimum.
        is_estimate: Whether one of the prices is an estimate.
    """

    per_hour: Decimal
    per_day: Decimal
    unknown: tuple[str, ...] = ()
    is_estimate: bool = False


@dataclass(frozen=True, kw_only=True)
class Cost:
    """What a cluster costs: list prices, without tax, traffic, discounts and contracts.

    Attributes:
        currency: Always "USD".
        prices: Where the prices are from: "list" for the dated one that comes with the program,
            "live" for Google's catalogue.
        parts: All billed parts.
        now: From the end of Create on.
        most: With everything that can come.
        at_most_in_all: For machines that end by themselves: USD until the last one has ended if
            all come at once; None if they never end, or if a price is unknown.
    """

    currency: str
    prices: str
    parts: tuple[Part, ...]
    now: Amount
    most: Amount
    at_most_in_all: Decimal | None = None
