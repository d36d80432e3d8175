"""What a cluster costs, by the parts that are billed."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from decimal import Decimal


class Origin(enum.StrEnum):
    """Where prices are from.

    Attributes:
        LIST: The dated list that comes with the program.
        LIVE: Google's catalogue, read for this run or within the last week.
    """

    LIST = "list"
    LIVE = "live"


class PartKind(enum.StrEnum):
    """What kind of thing is billed."""

    MACHINES = "machines"
    DISKS = "disks"
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
        pool: The name of the group of VMs or of the node pool that it belongs to; None if none.
        now: How much is billed from the beginning, in USD per hour; None if unknown. Machines that
            Google queues, and pools that start empty, cost nothing yet.
        most: How much is billed with everything that can come, such as all nodes of a pool that
            starts empty, in USD per hour; None if unknown.
        dated: The day of the price, such as "2026-07-30", or the month; of several the oldest; None
            if unknown.
        source: Where the price is from; None if unknown.
        is_estimate: Whether it is derived rather than published, or outdated.
        outdated: Why the price may be another by now, and what tells it; None if nothing says so.
        remark: What the price does not tell, such as that a reservation is billed whether it is
            used or not, or why it is unknown; None for nothing.
    """

    kind: PartKind
    name: str
    pool: str | None = None
    now: Decimal | None
    most: Decimal | None
    dated: str | None = None
    source: str | None = None
    is_estimate: bool = False
    outdated: str | None = None
    remark: str | None = None


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
        prices: Where the prices are from.
        parts: All billed parts.
        now: From the beginning, without what is queued and without pools that start empty.
        most: With everything that can come.
        at_most_in_all: What the machines that expire cost in USD, with their boot disks and
            addresses, if each comes once and runs as long as it may; None if none expires, or if a
            price is unknown. The rest of the cluster ends with Destroy alone.
        before: What the last Create said of `most`, in USD per hour; None if it said nothing.
    """

    currency: str
    prices: Origin
    parts: tuple[Part, ...]
    now: Amount
    most: Amount
    at_most_in_all: Decimal | None = None
    before: Decimal | None = None
