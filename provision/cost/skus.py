"""Google's own prices: its Cloud Billing Catalog (v1) -> a list, kept beside the state for a week.

There is no SKU for a machine type: a machine is vCPUs, memory, GPUs and local SSDs, except where a
part of a GPU is sold with all that belongs to it. A SKU is known by its whole description, up to
where it holds; the field `usageType` says "OnDemand" of flex start, calendar mode and reservations
too. So what is not in the table below is nothing. Where two SKUs that are in it
disagree about a price in a region, the higher one is taken for an estimate.

How the Cloud Billing Catalog describes what a cluster consists of is one table of whole texts.
Sources: dumps of the catalogue of 2026-07-30 and 2026-08-11, bills, and sums of SKUs that equal
Google's price pages. "DWS Defined Duration" is flex start: such sums show it. A description ends
with the place where it holds, which is cut off here: only the field `serviceRegions` tells regions.
"""

from __future__ import annotations

import datetime as dt
import functools
import itertools
import re
from collections import defaultdict
from dataclasses import dataclass
from decimal import Decimal, DecimalException
from fractions import Fraction
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from provision import background
from provision.catalogue import machines, prices
from provision.catalogue.filestores import Tier
from provision.catalogue.machines import Consumption
from provision.catalogue.prices import EVERYWHERE, Prices, Source
from provision.documents.cost import Origin
from provision.errors import CheckError
from provision.google.api import Service
from provision.state.objects import Stored, Writer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from provision.catalogue.machines import MachineType
    from provision.google.api import GoogleApi
    from provision.state.folder import StateFolder

LOCAL_SSD: Final = "local ssd"
"""A GiB of a local SSD that a machine type includes, per month."""
EIGHTH: Final = "eighth of a gpu"
"""An eighth of a G4's GPU with all that belongs to it, per hour: larger parts are several of it."""
_HOURLY: Final = "h"
GIB_HOUR: Final = "GiBy.h"
_MONTHLY: Final = "mo"
GIB_MONTH: Final = "GiBy.mo"
_PLACE: Final = re.compile(r" (?:running )?in [^()]*$")
_SPOT: Final = "Spot Preemptible "
_ON_SPOT: Final = " attached to Spot Preemptible VMs"
_FLEX: Final = "DWS Defined Duration "
_ON_FLEX: Final = " attached to DWS Defined Duration VMs"
SERIES: Final[Mapping[str, str]] = {
    "a2-highgpu": "A2",
    "a2-megagpu": "A2",
    "a2-ultragpu": "A2",
    "a3-highgpu": "A3",
    "a3-megagpu": "A3Plus",
    "a3-ultragpu": "A3Ultra",
    "g2-standard": "G2",
    "g4-standard": "G4",
}
"""Family -> how SKUs name its vCPUs and memory."""
_GPUS: Final[Mapping[str, tuple[str, ...]]] = {
    "nvidia-tesla-a100": ("Nvidia Tesla A100 GPU",),
    "nvidia-a100-80gb": ("Nvidia Tesla A100 80GB GPU",),
    "nvidia-h100-80gb": ("Nvidia H100 80GB GPU",),
    "nvidia-h100-mega-80gb": (
        "Nvidia H100 80GB Mega GPU",
        "Nvidia H100 80GB Plus GPU",
        "Nvidia H100 Mega 80GB GPU",
    ),
    "nvidia-h200-141gb": ("H200 141GB GPU",),
    "nvidia-l4": ("Nvidia L4 GPU",),
    "nvidia-rtx-pro-6000": ("RTX 6000 96GB",),
    "nvidia-tesla-t4": ("Nvidia Tesla T4 GPU",),
    "nvidia-tesla-v100": ("Nvidia Tesla V100 GPU",),
    "nvidia-tesla-p100": ("Nvidia Tesla P100 GPU",),
    "nvidia-tesla-p4": ("Nvidia Tesla P4 GPU",),
}
"""GPU -> how SKUs name it; the same in all ways to get it."""
_B200: Final = "A4 Nvidia B200 (1 gpu slice)"
_EIGHTH: Final = "1/8 vGPU no lssd"
_SHARES: Final[Mapping[str, tuple[Tier, ...]]] = {
    "Filestore Capacity Basic HDD (Standard)": (Tier.BASIC_HDD,),
    "Filestore Capacity Basic SSD (Premium)": (Tier.BASIC_SSD,),
    "Filestore Capacity Zonal and High Scale": (Tier.ZONAL, Tier.HIGH_SCALE_SSD),
    "Filestore Capacity Regional and Enterprise": (Tier.REGIONAL, Tier.ENTERPRISE),
}
"""How the descriptions of Filestore's capacity begin -> the tiers; the place follows at once."""
SERVICES: Final[Mapping[str, str]] = {
    "Compute Engine": "6F81-5844-456A",
    "Kubernetes Engine": "CCD8-9BF1-090E",
    "Cloud Filestore": "D97E-AB26-5D95",
    "Networking": "E505-1604-58F8",
}
"""The services whose SKUs are needed, by their IDs."""
_GIB: Final = Decimal(2**30) / Decimal(10**9)
_FACTORS: Final[Mapping[tuple[str, str], Decimal]] = {
    ("GBy.h", GIB_HOUR): _GIB,
    ("GBy.mo", GIB_MONTH): _GIB,
    ("GiBy.h", GIB_MONTH): Decimal(prices.HOURS_OF_A_MONTH),
}
"""A unit, and the unit that is wanted -> what makes a price for the one one for the other."""
_PARTS: Final = frozenset(
    {
        LOCAL_SSD,
        EIGHTH,
        *(prices.core(series.lower()) for series in SERIES.values()),
        *(prices.memory(series.lower()) for series in SERIES.values()),
        *(prices.gpu(row.gpu.name) for row in machines.ROWS if row.gpu),
    }
)
"""What machines are made of, and nobody gets alone."""


@dataclass(frozen=True)
class Meaning:
    """What a SKU is."""

    item: str
    unit: str
    way: Consumption = Consumption.ON_DEMAND  # how machines are got


def _meanings() -> Iterator[tuple[str, Meaning]]:
    ways = Consumption
    for series in (*dict.fromkeys(SERIES.values()), "E2", "N1"):
        kind = "N1 Predefined" if series == "N1" else series
        for word, item, unit in (
            ("Core", prices.core(series.lower()), _HOURLY),
            ("Ram", prices.memory(series.lower()), GIB_HOUR),
        ):
            yield f"{kind} Instance {word}", Meaning(item, unit)
            yield f"{_SPOT}{kind} Instance {word}", Meaning(item, unit, ways.SPOT)
            yield f"{_FLEX}{series} {word}", Meaning(item, unit, ways.FLEX_START)
    attached = [(name, prices.gpu(gpu)) for gpu, names in _GPUS.items() for name in names]
    for name, item in [*attached, (_EIGHTH, EIGHTH)]:
        yield name, Meaning(item, _HOURLY)
        yield f"{name}{_ON_SPOT}", Meaning(item, _HOURLY, ways.SPOT)
        yield f"{name}{_ON_FLEX}", Meaning(item, _HOURLY, ways.FLEX_START)
    yield f"{_SPOT}{_EIGHTH}", Meaning(EIGHTH, _HOURLY, ways.SPOT)
    b200 = prices.gpu("nvidia-b200")
    yield _B200, Meaning(b200, _HOURLY)
    yield f"{_SPOT}{_B200}", Meaning(b200, _HOURLY, ways.SPOT)
    yield f"{_FLEX}{_B200}", Meaning(b200, _HOURLY, ways.FLEX_START)
    ssd = "SSD backed Local Storage"
    yield ssd, Meaning(LOCAL_SSD, GIB_MONTH)
    yield f"{ssd}{_ON_SPOT}", Meaning(LOCAL_SSD, GIB_MONTH, ways.SPOT)
    yield f"{_FLEX}{ssd}", Meaning(LOCAL_SSD, GIB_MONTH, ways.FLEX_START)
    yield "SSD backed PD Capacity", Meaning(prices.disk("pd-ssd"), GIB_MONTH)
    yield "Balanced PD Capacity", Meaning(prices.disk("pd-balanced"), GIB_MONTH)
    yield "Storage PD Capacity", Meaning(prices.disk("pd-standard"), GIB_MONTH)
    fast = "hyperdisk-balanced"
    yield "Hyperdisk Balanced Capacity", Meaning(prices.disk(fast), GIB_MONTH)
    yield "Hyperdisk Balanced IOPS", Meaning(prices.iops(fast), _MONTHLY)
    yield "Hyperdisk Balanced Throughput", Meaning(prices.throughput(fast), _MONTHLY)
    yield "External IP Charge on a Standard VM", Meaning(prices.ADDRESS, _HOURLY)
    spot_address = Meaning(prices.ADDRESS, _HOURLY, ways.SPOT)
    yield "External IP Charge on a Spot Preemptible VM", spot_address
    yield "Regional Kubernetes Clusters", Meaning(prices.CONTROL_PLANE, _HOURLY)
    yield "Networking Cloud Nat Gateway Uptime", Meaning(prices.NAT, _HOURLY)
    yield "Networking Cloud NAT IP Usage", Meaning(prices.NAT_ADDRESS, _HOURLY)


_MEANINGS: Final = MappingProxyType(dict(_meanings()))


def meanings(description: str) -> tuple[Meaning, ...]:
    """What a SKU such as "Nvidia H100 80GB GPU running in Americas" is; nothing for no part."""
    for start, tiers in _SHARES.items():
        if description == start or description.startswith(f"{start} "):
            return tuple(Meaning(prices.share(tier), GIB_MONTH) for tier in tiers)
    if "Calendar Mode" in description:
        return ()
    found = _MEANINGS.get(_PLACE.sub("", description))
    return () if found is None else (found,)


class NoPricesError(ValueError):
    """There is not one machine among the SKUs: this is not the catalogue as it is known here."""


@dataclass(frozen=True)
class _Value:
    usd: Decimal  # USD; of several the highest
    is_disputed: bool = False  # whether SKUs disagree about it


_Found = dict[tuple[str, Consumption], dict[str, _Value]]  # item and way -> region -> what it costs


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


def _of_sku(sku: Mapping[str, Any]) -> tuple[Meaning, ...]:
    return meanings(str(sku.get("description", "")))


def _read(sku: Mapping[str, Any]) -> Iterator[tuple[Meaning, str, Decimal]]:
    """What a SKU is, in each region that it is for, and what it costs; nothing if it is no use."""
    usage = str(sku.get("category", {}).get("usageType", ""))
    for meaning in _of_sku(sku):
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
    unit = expression["usageUnit"]
    factor = Decimal(1) if unit == wanted else _FACTORS.get((unit, wanted))
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
    if item == LOCAL_SSD and way is Consumption.FLEX_START:
        return {**found.get((item, Consumption.ON_DEMAND), {}), **there}
    return there


def _terms(one: MachineType) -> list[tuple[Decimal, str]]:
    """How many of what a machine type is; nothing for one that is not known by its parts."""
    gpus = Decimal(one.gpus or 0)
    if one.part:
        return [(Decimal(int(8 * Fraction(one.part))), EIGHTH)]
    if one.family.name == "a4-highgpu":
        return [(gpus, prices.gpu(str(one.accelerator)))]
    memory, series = one.gib, SERIES.get(one.family.name)
    if memory is None or series is None:
        return []
    terms = [
        (Decimal(one.vcpus), prices.core(series.lower())),
        (Decimal(memory), prices.memory(series.lower())),
        (gpus, prices.gpu(str(one.accelerator))),
    ]
    if one.local_ssd_gb:
        terms.append((Decimal(one.local_ssd_gb) / prices.HOURS_OF_A_MONTH, LOCAL_SSD))
    return terms


def _text(usd: Decimal) -> str:
    """A price as lists have it: without zeros at the end, and at most nine digits of cents."""
    return f"{usd.quantize(Decimal('1e-9')).normalize():f}"


_KEPT: Final = dt.timedelta(days=7)
_PAGE: Final = {"currencyCode": "USD", "pageSize": "5000"}
"""The largest page that the catalogue gives."""


def _listed(content: bytes) -> Prices | None:
    try:
        return prices.read(content, Origin.LIVE)
    except ValueError:
        return None  # they are read again


_LIST: Final = Stored("prices.json", Writer.PROGRAM, _listed, largest=2**24)


class PriceBook:
    """Google's prices for one run.

    The catalogue can't be asked for a region or a machine: all of it is read, some 25 MB in a
    minute. So what matters of it is kept, in the deployment's folder.
    """

    def __init__(self, api: GoogleApi, folder: StateFolder, today: dt.date) -> None:
        self._api = api
        self._folder = folder
        self._today = today
        self._new: Prices | None = None

    def prices(self, tell: Callable[[str], None], *, bucket: bool) -> Prices:
        """The prices.

        Raises:
            ProvisionError: Google, or Cloud Storage, refuses; or there is no price in the answer.
        """
        kept = self.kept() if bucket else None
        if kept is not None:
            return kept
        tell("Reading Google's price list, which takes up to two minutes once a week")
        self._new = ask(self._api, self._today)
        return self._new

    def keep(self) -> None:
        """Keep what was read from the catalogue; nothing if nothing was."""
        if self._new is not None:
            self._folder.write(_LIST.name, prices.write(self._new), "application/json")
            self._new = None

    def kept(self) -> Prices | None:
        """What was kept; None if there is nothing, or nothing that is good and new enough."""
        found = self._folder.read(_LIST)
        if found is None:
            return None
        try:
            days = [dt.date.fromisoformat(it.date or "") for it in found.sources.values()]
        except ValueError:
            return None
        is_new = all(dt.timedelta() <= self._today - day < _KEPT for day in days)
        return found if days and is_new else None


def ask(api: GoogleApi, today: dt.date) -> Prices:
    """Read the catalogue."""
    asked = [
        background.begin(functools.partial(_of_service, api, service))
        for service in SERVICES.values()
    ]
    lists = [answer.result() for answer in asked]
    try:
        return read(itertools.chain.from_iterable(lists), today.isoformat())
    except NoPricesError as error:
        raise CheckError("Google's price list is not as it was", why=str(error)) from error


def _of_service(api: GoogleApi, service: str) -> list[Mapping[str, Any]]:
    """The SKUs of a service that matter; there are tens of thousands of others."""
    pages = api.pages("GET", f"services/{service}/skus", "skus", _PAGE, service=Service.BILLING)
    return [sku for sku in pages if _of_sku(sku)]
