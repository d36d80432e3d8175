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

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, kw_only=True)
class BilledShape:
    """What is billed of a machine.

    Attributes:
        series: The first part of its name, such as "e2".
        vcpus: The number of vCPUs.
        gib: The memory in GiB.
    """

    series: str
    vcpus: Decimal
    gib: Decimal


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


def _sized(family: str, gib: float, *sizes: int) -> dict[str, Decimal]:
    """The memory of a family's machines that grows with the number in their names."""
    return {f"{family}-{size}g": Decimal(str(gib)) * size for size in sizes}


MEMORY: Final[Mapping[str, Decimal]] = MappingProxyType(
    {
        **_sized("a2-highgpu", 85, 1, 2, 4, 8),
        "a2-megagpu-16g": Decimal(1360),
        **_sized("a2-ultragpu", 170, 1, 2, 4, 8),
        **_sized("a3-highgpu", 234, 1, 2, 4, 8),
        "a3-megagpu-8g": Decimal(1872),
        "a3-ultragpu-8g": Decimal(2952),
        **{f"g2-standard-{size}": Decimal(4 * size) for size in (4, 8, 12, 16, 24, 32, 48, 96)},
        **{f"g4-standard-{size}": Decimal("3.75") * size for size in (48, 96, 192, 384)},
    }
)
"""Machine type with GPUs that is priced by its parts -> its memory in GiB (price lists of 2026-07:
the type lists of Cyclenerd/google-cloud-pricing-cost-calculator). Those of A4, and those with a
part of a GPU, have it in the price of the GPU."""

_PRICED_WHOLE: Final[Mapping[str, Decimal]] = MappingProxyType(
    {
        "a3-edgegpu-8g": Decimal(1872),
        "a3-edgegpu-8g-nolssd": Decimal(1872),
        "a3-ultragpu-8g-nolssd": Decimal(2952),
        "a4-highgpu-8g": Decimal(3968),
        "a4x-highgpu-4g": Decimal(884),
        "a4x-maxgpu-4g-metal": Decimal(960),
        "g4-standard-6": Decimal(22),
        "g4-standard-12": Decimal(45),
        "g4-standard-24": Decimal(90),
    }
)
"""Machine type whose memory has no price of its own -> its memory in GiB (Compute Engine,
"Accelerator-optimized machine family" and, for A4X, "Arm VMs on Compute", read 2026-11-23; parts of
a G4 by what others copied of that page, #59472778636 and #61959670744)."""


def memory(name: str) -> Decimal | None:
    """The memory of a machine type in GiB, however it is billed; None if it is not known."""
    found = MEMORY.get(name, _PRICED_WHOLE.get(name))
    if found is None and (shape := of(name)) is not None:
        return shape.gib
    return found
