"""How the Cloud Billing Catalog describes what a cluster consists of: one table, whole texts.

Sources: dumps of the catalogue of 2026-07-30 and 2026-08-11, bills, and sums of SKUs that equal
Google's price pages. "DWS Defined Duration" is flex start: such sums show it. A description ends
with the place where it holds, which is cut off here: only the field `serviceRegions` tells regions.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from provision.catalogue import prices
from provision.catalogue.filestores import Tier
from provision.catalogue.machines import Consumption

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

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


@dataclass(frozen=True)
class Meaning:
    """What a SKU is."""

    item: str
    unit: str
    way: Consumption = Consumption.ON_DEMAND  # how machines are got


SERIES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "a2-highgpu": "A2",
        "a2-megagpu": "A2",
        "a2-ultragpu": "A2",
        "a3-highgpu": "A3",
        "a3-megagpu": "A3Plus",
        "a3-ultragpu": "A3Ultra",
        "g2-standard": "G2",
        "g4-standard": "G4",
    }
)
"""Family -> how SKUs name its vCPUs and memory."""

_GPUS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
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
)
"""GPU -> how SKUs name it; the same in all ways to get it."""

_B200: Final = "A4 Nvidia B200 (1 gpu slice)"


_EIGHTH: Final = "1/8 vGPU no lssd"


def _meanings() -> Iterator[tuple[str, Meaning]]:
    """Description without its place -> what it is."""
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

_SHARES: Final[Mapping[str, tuple[Tier, ...]]] = MappingProxyType(
    {
        "Filestore Capacity Basic HDD (Standard)": (Tier.BASIC_HDD,),
        "Filestore Capacity Basic SSD (Premium)": (Tier.BASIC_SSD,),
        "Filestore Capacity Zonal and High Scale": (Tier.ZONAL, Tier.HIGH_SCALE_SSD),
        "Filestore Capacity Regional and Enterprise": (Tier.REGIONAL, Tier.ENTERPRISE),
    }
)
"""How the descriptions of Filestore's capacity begin -> the tiers; the place follows at once."""


def meanings(description: str) -> tuple[Meaning, ...]:
    """What a SKU is; nothing if it is nothing that a cluster consists of.

    `description`: such as "Nvidia H100 80GB GPU running in Americas".
    """
    for start, tiers in _SHARES.items():
        if description == start or description.startswith(f"{start} "):
            return tuple(Meaning(prices.share(tier), GIB_MONTH) for tier in tiers)
    if "Calendar Mode" in description:
        return ()
    found = _MEANINGS.get(_PLACE.sub("", description))
    return () if found is None else (found,)
