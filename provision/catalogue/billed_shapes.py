"""How many vCPUs and how much memory of a machine are billed, for series priced by both.

Compute Engine, "General-purpose machine family", and the price list of E2: the types that share a
core are billed as a part of one. A custom machine has prices of its own, which are not known here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from provision.catalogue import machines

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, kw_only=True)
class BilledShape:
    """What is billed of a machine."""

    series: str  # the first part of its name, such as "e2"
    vcpus: Decimal
    gib: Decimal  # the memory in GiB


_GIB_PER_VCPU: Final[Mapping[str, Decimal]] = MappingProxyType(
    {
        "n1-standard": Decimal("3.75"),
        "n1-highmem": Decimal("6.5"),
        "n1-highcpu": Decimal("0.9"),
        "e2-standard": Decimal(4),
        "e2-highmem": Decimal(8),
        "e2-highcpu": Decimal(1),
    }
)

SHARED_CORE: Final[Mapping[str, tuple[Decimal, Decimal]]] = MappingProxyType(
    {
        "e2-micro": (Decimal("0.25"), Decimal(1)),
        "e2-small": (Decimal("0.5"), Decimal(2)),
        "e2-medium": (Decimal(1), Decimal(4)),
    }
)
"""Name -> the vCPUs that are billed, and GiB."""

_SIZED: Final = re.compile(r"(?P<kind>[a-z]\d-[a-z]+)-(?P<vcpus>\d{1,3})")


def of(name: str) -> BilledShape | None:
    """What is billed of a machine type; None if it is not billed so, or not known."""
    series = name.partition("-")[0]
    if name in SHARED_CORE:
        vcpus, gib = SHARED_CORE[name]
        return BilledShape(series=series, vcpus=vcpus, gib=gib)
    sized = _SIZED.fullmatch(name)
    if sized is None or sized["kind"] not in _GIB_PER_VCPU:
        return None
    vcpus = Decimal(sized["vcpus"])
    return BilledShape(series=series, vcpus=vcpus, gib=vcpus * _GIB_PER_VCPU[sized["kind"]])


def memory(name: str) -> Decimal | None:
    """The memory of a machine type in GiB, however it is billed; None if it is not known."""
    known = machines.lookup(name)
    if known is not None and known.shape.gib is not None:
        return Decimal(known.shape.gib)
    shape = of(name)
    return None if shape is None else shape.gib
