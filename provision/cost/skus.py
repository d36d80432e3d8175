"""Google's Cloud Billing Catalog (v1) -> a list of prices. Pure.

There is no SKU for a machine type: a machine is vCPUs, memory, GPUs and local SSDs, except where a
part of a GPU is sold with all that belongs to it. A SKU is known by its whole description, up to
where it holds; the field `usageType` says "OnDemand" of flex start, calendar mode and reservations
too. So what is not in the table of `descriptions` is nothing. Where two SKUs that are in it
disagree about a price in a region, the higher one is taken for an estimate.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from decimal import Decimal, DecimalException
from fractions import Fraction
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from provision.catalogue import machines, prices
from provision.catalogue.machines import Consumption
from provision.catalogue.prices import EVERYWHERE, Prices, Source
from provision.cost import descriptions
from provision.documents.cost import Origin

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from provision.catalogue.machines import MachineType
    from provision.cost.descriptions import Meaning

SERVICES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "Compute Engine": "6F81-5844-456A",
        "Kubernetes Engine": "CCD8-9BF1-090E",
        "Cloud Filestore": "D97E-AB26-5D95",
        "Networking": "E505-1604-58F8",
    }
)
"""The services whose SKUs are needed, by their IDs."""

_GIB: Final = Decimal(2**30) / Decimal(10**9)
_FACTORS: Final[Mapping[tuple[str, str], Decimal]] = MappingProxyType(
    {
        ("GBy.h", descriptions.GIB_HOUR): _GIB,
        ("GBy.mo", descriptions.GIB_MONTH): _GIB,
        ("GiBy.h", descriptions.GIB_MONTH): Decimal(prices.HOURS_OF_A_MONTH),
    }
)
"""A unit, and the unit that is wanted -> what makes a price for the one one for the other."""


class NoPricesError(ValueError):
    """There is not one machine among the SKUs: this is not the catalogue as it is known here."""


@dataclass(frozen=True)
class _Value:
    """What a unit of an item costs in a region."""

    usd: Decimal  # USD; of several the highest
    is_disputed: bool = False  # whether SKUs disagree about it


_Found = dict[tuple[str, Consumption], dict[str, _Value]]
"""Item and way -> region -> what it costs."""


def read(skus: Iterable[Mapping[str, Any]], day: str) -> Prices:
    """Make a list of prices from SKUs.

    `skus`: those of all `SERVICES`, as `services.skus.list` has them; others do not matter. `day`:
    today, such as "2026-11-22": the catalogue does not say since when a price holds.

    Raises:
        NoPricesError: There is no price of any machine among them.
    """
    seen: defaultdict[tuple[str, Consumption, str], set[Decimal]] = defaultdict(set)
    for sku in skus:
        for meaning, region, usd in _read(sku):
            seen[meaning.item, meaning.way, region].add(usd)
    found: _Found = defaultdict(dict)
    for (item, way, region), values in seen.items():
        found[item, way][region] = _Value(max(values), is_disputed=len(values) > 1)
    whole = {
        (prices.machine(one.name), way): sums
        for one in machines.MACHINE_TYPES.values()
        for way in (Consumption.ON_DEMAND, Consumption.SPOT, Consumption.FLEX_START)
        if (sums := _machine(one, way, found))
    }
    if not whole:
        raise NoPricesError("there is no price of a machine in it")
    source, disputed = f"catalogue {day}", f"catalogue {day}, disputed"
    own = {key: there for key, there in found.items() if key[0] not in _PARTS}
    return Prices(
        origin=Origin.LIVE,
        sources={
            source: Source(text="Cloud Billing Catalog", date=day),
            disputed: Source(
                text="Cloud Billing Catalog, the highest of several prices",
                date=day,
                is_estimate=True,
            ),
        },
        rows={
            key: {
                region: (_text(value.usd), disputed if value.is_disputed else source)
                for region, value in there.items()
            }
            for key, there in {**own, **whole}.items()
        },
    )


def matters(sku: Mapping[str, Any]) -> bool:
    """Whether a SKU is something that a cluster consists of."""
    return bool(_meanings(sku))


def _meanings(sku: Mapping[str, Any]) -> tuple[Meaning, ...]:
    return descriptions.meanings(str(sku.get("description", "")))


_PARTS: Final = frozenset(
    {
        descriptions.LOCAL_SSD,
        descriptions.EIGHTH,
        *(prices.core(series.lower()) for series in descriptions.SERIES.values()),
        *(prices.memory(series.lower()) for series in descriptions.SERIES.values()),
        *(prices.gpu(row.gpu.name) for row in machines.ROWS if row.gpu),
    }
)
"""What machines are made of, and nobody gets alone."""


def _read(sku: Mapping[str, Any]) -> Iterator[tuple[Meaning, str, Decimal]]:
    """What a SKU is, in each region that it is for, and what it costs; nothing if it is no use."""
    usage = str(sku.get("category", {}).get("usageType", ""))
    for meaning in _meanings(sku):
        is_spot = meaning.way is Consumption.SPOT
        if usage != "OnDemand" and not (is_spot and usage == "Preemptible"):
            continue
        try:
            usd = _usd(sku["pricingInfo"][0]["pricingExpression"], meaning.unit)
        except (LookupError, TypeError, ValueError, DecimalException):
            continue
        if usd is not None:
            for region in sku.get("serviceRegions", ()):
                yield meaning, EVERYWHERE if region == "global" else str(region), usd


def _usd(expression: Mapping[str, Any], wanted: str) -> Decimal | None:
    """The price in USD for a unit; None if it is for another unit, or free.

    What is free up to some amount costs something beyond that: the first price that is not 0.
    """
    factor = _factor(expression["usageUnit"], wanted)
    if factor is None:
        return None
    for tier in expression["tieredRates"]:
        money = tier["unitPrice"]
        if money.get("currencyCode", "USD") != "USD":
            return None
        usd = Decimal(money.get("units") or 0) + Decimal(money.get("nanos") or 0) / 10**9
        if usd > 0:
            return usd * factor
    return None


def _factor(unit: str, wanted: str) -> Decimal | None:
    """What to multiply a price for one unit with, to have that for another; None for nothing."""
    return Decimal(1) if unit == wanted else _FACTORS.get((unit, wanted))


def _machine(one: MachineType, way: Consumption, found: _Found) -> dict[str, _Value]:
    """Region -> what a machine type costs in an hour, where all its parts have a price."""
    terms = _terms(one)
    if not terms:
        return {}
    by_item = [(count, _of(item, way, found)) for count, item in terms]
    regions = set.intersection(*(set(there) for _, there in by_item))
    return {
        region: _Value(
            sum((count * there[region].usd for count, there in by_item), Decimal(0)),
            is_disputed=any(there[region].is_disputed for _, there in by_item),
        )
        for region in regions
    }


def _of(item: str, way: Consumption, found: _Found) -> Mapping[str, _Value]:
    """The prices of a part; local SSDs cost the same on demand and with flex start."""
    there = found.get((item, way), {})
    if item == descriptions.LOCAL_SSD and way is Consumption.FLEX_START:
        return {**found.get((item, Consumption.ON_DEMAND), {}), **there}
    return there


def _terms(one: MachineType) -> list[tuple[Decimal, str]]:
    """How many of what a machine type is; nothing for one that is not known by its parts."""
    gpus = Decimal(one.gpus or 0)
    if one.shape.part:
        return [(Decimal(int(8 * Fraction(one.shape.part))), descriptions.EIGHTH)]
    if one.family.name == "a4-highgpu":
        return [(gpus, prices.gpu(str(one.accelerator)))]
    memory, series = one.shape.gib, descriptions.SERIES.get(one.family.name)
    if memory is None or series is None:
        return []
    terms = [
        (Decimal(one.vcpus), prices.core(series.lower())),
        (Decimal(memory), prices.memory(series.lower())),
        (gpus, prices.gpu(str(one.accelerator))),
    ]
    if one.local_ssd_gb:
        terms.append((Decimal(one.local_ssd_gb) / prices.HOURS_OF_A_MONTH, descriptions.LOCAL_SSD))
    return terms


def _text(usd: Decimal) -> str:
    """A price as lists have it: without zeros at the end, and at most nine digits of cents."""
    return f"{usd.quantize(Decimal('1e-9')).normalize():f}"
