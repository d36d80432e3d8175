"""What each example costs, against the bill of a month that a person would add up.

The figures are those of a list put together on 2026-11-22 (its newest source of 2026-09-17), put
down here by hand and for us-central1 unless said otherwise, so that neither a slip in the program's
own list nor one in its arithmetic goes unseen: here all is summed by the month of 730 hours.
"""

from pathlib import Path
from typing import NamedTuple

import pytest

from provision.catalogue import prices
from provision.cost import estimate
from provision.documents.cost import PartKind
from provision.intake import load
from provision.kinds import registry

EXAMPLES = Path(__file__).parents[3] / "examples"
MONTH = 730
WEEK = 7 * 24

# USD an hour.
A2_HIGHGPU_1G, A2_HIGHGPU_2G, A2_HIGHGPU_8G = 3.673385, 7.34677, 29.38708
A2_ULTRAGPU_8G = 40.550383123
A3_HIGHGPU_8G, A3_MEGAGPU_8G = 88.490000119, 93.400712807
A3_ULTRAGPU_8G_SPOT = 50.874449096
A3_HIGHGPU_8G_FLEX, A3_ULTRAGPU_8G_FLEX, A2_HIGHGPU_1G_FLEX = 38.320038, 42.338776, 2.02038
A4_HIGHGPU_8G_FLEX = 64.44
G2_STANDARD_24, G2_STANDARD_24_SPOT, G2_STANDARD_24_IN_EUROPE_WEST4 = 2.000833, 1.124816, 2.102975
N1_STANDARD_8_T4 = 8 * 0.031611 + 30 * 0.004237 + 0.35
N1_STANDARD_2_T4 = 2 * 0.031611 + 7.5 * 0.004237 + 0.35
E2_STANDARD_4 = 4 * 0.0218116 + 16 * 0.0029235
E2_STANDARD_2_SPOT = 2 * 0.01309 + 8 * 0.001754
ADDRESS = NAT_ADDRESS = 0.005
SPOT_ADDRESS = 0.0025
BEHIND_NAT = 0.0014
GKE = 0.1
# USD a month for a GiB.
SSD, BALANCED, SSD_IN_EUROPE_WEST4, BASIC_SSD, ZONAL = 0.17, 0.1, 0.187, 0.3, 0.25
# USD a month for a Hyperdisk of 100 GiB: 600 IOPS and 150 MiB/s are more than what is free.
HYPERDISK_100 = 100 * 0.08 + 600 * 0.005 + 150 * 0.04
# And of 2,000 GiB: 15,000 IOPS and 2,400 MiB/s, the most of throughput.
HYPERDISK_2000 = 2000 * 0.08 + 12000 * 0.005 + 2260 * 0.04


def vm(hourly: float, disk: float, address: float = ADDRESS) -> float:
    """The month of a VM with an external address."""
    return MONTH * (hourly + address) + disk


def node(hourly: float, disk: float) -> float:
    """The month of a machine behind a NAT that counts it."""
    return MONTH * (hourly + BEHIND_NAT) + disk


def gke(*nodes: float) -> float:
    """The month of a GKE cluster: its fee, its NAT's address, and its nodes."""
    return MONTH * (GKE + NAT_ADDRESS) + sum(nodes)


class Bill(NamedTuple):
    """What an example costs: in a month from the beginning and at most, and in all, in USD."""

    now: float
    most: float
    in_all: float | None = None


def always(month: float) -> Bill:
    return Bill(month, month)


SYSTEM = node(E2_STANDARD_4, 100 * BALANCED)
SMALL = node(E2_STANDARD_2_SPOT, 20 * BALANCED)
ULTRA = node(A3_ULTRAGPU_8G_FLEX, HYPERDISK_100)


def _two(hourly: float) -> Bill:
    """Two nodes, and from one node of the system to three."""
    nodes = 2 * node(hourly, 100 * SSD)
    return Bill(gke(nodes, SYSTEM), gke(nodes, 3 * SYSTEM))


BILLS = {
    "a2-group": always(4 * vm(A2_HIGHGPU_8G, 1000 * SSD)),
    "a3-high": always(2 * node(A3_HIGHGPU_8G, 2000 * SSD) + MONTH * NAT_ADDRESS),
    "a3-mega": always(2 * node(A3_MEGAGPU_8G, 2000 * SSD) + MONTH * NAT_ADDRESS),
    "own-ranges": always(2 * node(A3_MEGAGPU_8G, 2000 * SSD) + MONTH * NAT_ADDRESS),
    "a3-ultra": always(2 * node(A3_ULTRAGPU_8G_SPOT, HYPERDISK_2000) + MONTH * NAT_ADDRESS),
    "any-zone": always(2 * node(A3_HIGHGPU_8G, 2000 * SSD) + MONTH * NAT_ADDRESS),
    "cmek": always(2 * vm(A2_HIGHGPU_2G, 2000 * SSD) + 1024 * ZONAL),
    "env": always(vm(A2_HIGHGPU_2G, 2000 * SSD)),
    "flex-start-h100": Bill(
        0,
        2 * node(A3_HIGHGPU_8G_FLEX, 2000 * SSD) + MONTH * NAT_ADDRESS,
        2 * 48 * (A3_HIGHGPU_8G_FLEX + 2000 * SSD / MONTH),
    ),
    **dict.fromkeys(("gke-a3-high", "gke-any-zone"), _two(A3_HIGHGPU_8G)),
    "gke-a3-mega": _two(A3_MEGAGPU_8G),
    "gke-plain": _two(G2_STANDARD_24),
    "gke-a3-ultra-flex-queued": Bill(
        gke(2 * node(4 * E2_STANDARD_4, 100 * BALANCED)),
        gke(16 * ULTRA, 10 * node(4 * E2_STANDARD_4, 100 * BALANCED)),
        16 * WEEK * (A3_ULTRAGPU_8G_FLEX + HYPERDISK_100 / MONTH),
    ),
    "gke-a3-ultra-flex": Bill(
        gke(SYSTEM),
        gke(4 * ULTRA, 3 * SYSTEM),
        4 * WEEK * (A3_ULTRAGPU_8G_FLEX + HYPERDISK_100 / MONTH),
    ),
    "gke-a4": Bill(
        gke(SYSTEM),
        gke(4 * node(A4_HIGHGPU_8G_FLEX, HYPERDISK_100), 3 * SYSTEM),
        4 * 3 * 24 * (A4_HIGHGPU_8G_FLEX + HYPERDISK_100 / MONTH),
    ),
    "gke-ray-h200": Bill(
        gke(2 * node(2 * E2_STANDARD_4, 100 * BALANCED)),
        gke(4 * ULTRA, 2 * node(2 * E2_STANDARD_4, 100 * BALANCED)),
        4 * WEEK * (A3_ULTRAGPU_8G_FLEX + HYPERDISK_100 / MONTH),
    ),
    "gke-t4-a100-queued": Bill(
        gke(SMALL),
        gke(node(N1_STANDARD_2_T4, 20 * SSD), node(A2_HIGHGPU_1G_FLEX, 20 * SSD), 3 * SMALL),
        WEEK * (N1_STANDARD_2_T4 + A2_HIGHGPU_1G_FLEX + 2 * 20 * SSD / MONTH),
    ),
    "n1-t4": always(vm(N1_STANDARD_8_T4, 200 * BALANCED)),
    **dict.fromkeys(
        ("proxy", "no-internet", "shared-vpc"), always(2 * (MONTH * G2_STANDARD_24 + 2000 * SSD))
    ),
    "new-network": always(
        node(G2_STANDARD_24_IN_EUROPE_WEST4, 2000 * SSD_IN_EUROPE_WEST4) + MONTH * NAT_ADDRESS
    ),
    "ray-gcs-filestore": always(4 * vm(A2_HIGHGPU_1G, 2000 * SSD) + 2560 * BASIC_SSD),
    "slurm": always(4 * vm(A2_HIGHGPU_8G, 2000 * SSD) + 2560 * BASIC_SSD),
    "reservation": always(2 * vm(A2_ULTRAGPU_8G, 500 * SSD)),
    "spot": always(2 * vm(G2_STANDARD_24_SPOT, 2000 * SSD, SPOT_ADDRESS)),
    "fine-tune": always(2 * vm(G2_STANDARD_24_SPOT, 2000 * SSD, SPOT_ADDRESS)),
    "batch-inference": always(4 * vm(G2_STANDARD_24_SPOT, 2000 * SSD, SPOT_ADDRESS)),
    "ray-train": always(4 * vm(A2_HIGHGPU_1G, 2000 * SSD)),
    "jax": always(2 * vm(A2_HIGHGPU_8G, 2000 * SSD)),
}
ESTIMATED = {
    "gke-a3-ultra-flex-queued",
    "gke-a3-ultra-flex",
    "gke-ray-h200",
    # Flex start has no discount for what is attached to N1; the list has no price of its own.
    "gke-t4-a100-queued",
}
RECIPES = sorted(EXAMPLES.glob("recipes/*/env.list"))
FILES = [*sorted(EXAMPLES.glob("*.list")), *RECIPES]


def _name(path: Path) -> str:
    return path.parent.name if path in RECIPES else path.name.partition(".")[0]


def test_there_is_a_bill_for_each_example() -> None:
    assert {_name(path) for path in FILES} == set(BILLS)
    assert len(FILES) == 31


@pytest.mark.parametrize("path", FILES, ids=_name)
def test_an_example_costs_what_a_person_would_add_up(path: Path) -> None:
    settings = load({}, path).settings
    assert settings is not None
    cost = estimate.of(registry.of(settings).spec(settings), prices.listed())
    name = _name(path)
    bill = BILLS[name]

    # A cent a month, for parts that are rounded one by one.
    assert float(cost.now.per_hour) * MONTH == pytest.approx(bill.now, abs=0.01)
    assert float(cost.most.per_hour) * MONTH == pytest.approx(bill.most, abs=0.01)
    in_all = None if cost.at_most_in_all is None else float(cost.at_most_in_all)
    assert in_all == (bill.in_all if bill.in_all is None else pytest.approx(bill.in_all, abs=0.01))
    assert cost.now.per_day == 24 * cost.now.per_hour
    assert cost.now.unknown == cost.most.unknown == ()
    assert cost.most.is_estimate is (name in ESTIMATED)
    assert not cost.now.is_estimate

    for part in cost.parts:
        assert (part.most is None) == (part.name in cost.most.unknown)
        assert (part.source is None) == (part.most is None)
        if part.most is None:
            assert part.remark
            assert part.now is None
        if "reserved" in part.name:
            assert "used or not" in str(part.remark)
    assert (PartKind.CONTROL_PLANE in {part.kind for part in cost.parts}) is ("gke" in name)
