"""What a cluster costs, by the parts that are billed, and what machines with a GPU do."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated

from provision.documents.plan import Quota


class Origin(enum.StrEnum):
    """Where prices are from.

    `LIST`: The dated list that comes with the program. `LIVE`: Google's catalogue, read for this
    run or within the last week.
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
    """One billed part of a cluster."""

    kind: Annotated[PartKind, "what kind of thing it is"]
    name: Annotated[str, 'it in words, such as "16 x a3-ultragpu-8g, flex start"']
    pool: Annotated[
        str | None,
        "the name of the group of VMs or of the node pool that it belongs to; None if none",
    ] = None
    now: Annotated[
        Decimal | None,
        "How much is billed from the beginning, in USD per hour; None if unknown. Machines "
        "that Google queues, and pools that start empty, cost nothing yet.",
    ]
    most: Annotated[
        Decimal | None,
        "how much is billed with everything that can come, such as all nodes of a pool that "
        "starts empty, in USD per hour; None if unknown",
    ]
    dated: Annotated[
        str | None,
        'the day of the price, such as "2026-07-30", or the month; of several the oldest; None '
        "if unknown",
    ] = None
    source: Annotated[str | None, "where the price is from; None if unknown"] = None
    is_estimate: Annotated[bool, "whether it is derived rather than published, or outdated"] = False
    outdated: Annotated[
        str | None,
        "why the price may be another by now, and what tells it; None if nothing says so",
    ] = None
    remark: Annotated[
        str | None,
        "what the price does not tell, such as that a reservation is billed whether it is used "
        "or not, or why it is unknown; None for nothing",
    ] = None


@dataclass(frozen=True, kw_only=True)
class Amount:
    """A sum of parts."""

    per_hour: Annotated[Decimal, "USD per hour, of the parts whose price is known"]
    per_day: Annotated[Decimal, "USD per day, of the same"]
    unknown: Annotated[
        tuple[str, ...],
        "the names of the parts whose price is not known; with any, the sum is a minimum",
    ] = ()
    is_estimate: Annotated[bool, "whether one of the prices is an estimate"] = False


@dataclass(frozen=True, kw_only=True)
class Cost:
    """What a cluster costs: list prices, without tax, traffic, discounts and contracts."""

    currency: Annotated[str, 'always "USD"']
    prices: Annotated[Origin, "where the prices are from"]
    parts: Annotated[tuple[Part, ...], "all billed parts"]
    now: Annotated[
        Amount, "from the beginning, without what is queued and without pools that start empty"
    ]
    most: Annotated[Amount, "with everything that can come"]
    at_most_in_all: Annotated[
        Decimal | None,
        "What the machines that expire cost in USD, with their boot disks and addresses, if "
        "each comes once and runs as long as it may; None if none expires, or if a price is "
        "unknown. The rest of the cluster ends with Destroy alone.",
    ] = None
    before: Annotated[
        Decimal | None,
        "what the last Create said of `most`, in USD per hour; None if it said nothing",
    ] = None


@dataclass(frozen=True, kw_only=True)
class Offer:
    """A machine type, got in one way, where that is the cheapest by the list."""

    gpu: Annotated[str, 'the name of the GPU in the API, such as "nvidia-l4"']
    machine_type: Annotated[str, "the machine type"]
    gpus: Annotated[Decimal, "how many GPUs each has; less than 1 for a part of one"]
    way: Annotated[
        str,
        'how it is got: "on-demand", "spot", "flex start", "reservation" or "reservation in '
        'calendar mode"',
    ]
    per_hour: Annotated[
        Decimal | None,
        "what one costs in USD per hour, with its GPUs and included local SSDs, without disk and "
        "address; None if unknown",
    ]
    per_gpu_hour: Annotated[Decimal | None, "the same for one GPU of it; None if unknown"]
    at_most: Annotated[
        Decimal | None, "what one costs in MAX_RUN_DURATION; None if that is not set, or unknown"
    ] = None
    region: Annotated[
        str | None,
        "the region that the price is of: that of ZONE if such machines are there, else the "
        "cheapest; None if no list says where they are",
    ]
    zones: Annotated[
        tuple[str, ...],
        "where such machines were on the day of the list: zones, or regions of which it does not "
        "tell the zones",
    ]
    dated: Annotated[str | None, "the day of the price, or the month; None if unknown"] = None
    source: Annotated[str | None, "where the price is from; None if unknown"] = None
    is_estimate: Annotated[bool, "whether it is derived rather than published, or outdated"] = False
    remark: Annotated[str | None, "what else is to be known of it; None for nothing"] = None
    quota: Annotated[
        Quota | None, "the project's quota of such GPUs there; None if nobody was asked"
    ] = None
    settings: Annotated[
        Mapping[str, str],
        "setting -> its value, with which an env.list asks for it; one with <...> in it is for a "
        "person to complete",
    ]
