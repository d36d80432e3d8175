"""What a smoke test costs at most, from a small table of dated list prices."""

from __future__ import annotations

import enum
import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

if TYPE_CHECKING:
    from collections.abc import Mapping

_TABLE: Final = Path(__file__).with_name("prices.json")
_HOUR: Final = 3600.0


class Part(enum.Enum):
    """What is billed while it is there; the machines are as in `steps`."""

    GPU_VM = enum.auto()
    """n1-standard-4 with one T4 and its boot disk."""
    L4_VM = enum.auto()
    """g2-standard-4 with its boot disk."""
    SHARE = enum.auto()
    """The smallest Filestore share."""
    CLUSTER = enum.auto()
    """A GKE cluster without nodes."""
    SYSTEM_NODE = enum.auto()
    """e2-standard-4 with its boot disk."""


CPUS: Final = 4
"""vCPUs of n1-standard-4 and of e2-standard-4."""
N1_GIB: Final = 15
E2_GIB: Final = 16
DISK_GIB: Final = 100
SHARE_GIB: Final = 1024


class UnknownPriceError(Exception):
    """The table has no prices for a region."""


@dataclass(frozen=True)
class Prices:
    """List prices of one region."""

    region: str
    date: str  # of the newest of them, as the table says
    hourly: Mapping[Part, float]  # USD an hour of each part

    @classmethod
    def of(cls, region: str) -> Self:
        """The prices of a region.

        Raises:
            UnknownPriceError: The table does not have it; unknown is never taken for nothing.
        """
        table: dict[str, Any] = json.loads(_TABLE.read_text(encoding="utf-8"))
        if region not in table["regions"]:
            known = ", ".join(table["regions"])
            raise UnknownPriceError(f"there are no prices for {region}; there are for {known}")
        t4, n1_cpu, n1_gib, e2_cpu, e2_gib, disk_month = table["regions"][region]
        month = table["hours_of_a_month"]
        disk = DISK_GIB * disk_month / month
        # Prices of Filestore and G2 are known of one region: elsewhere more is taken.
        dearer = 1.0 if region == "us-central1" else table["dearer_elsewhere"]
        share = SHARE_GIB * table["filestore_gib_month"] * dearer / month
        hourly = {
            Part.GPU_VM: t4 + CPUS * n1_cpu + N1_GIB * n1_gib + disk,
            Part.L4_VM: table["g2_standard_4_hour"] * dearer + disk,
            Part.SHARE: share,
            Part.CLUSTER: table["gke_cluster_hour"],
            Part.SYSTEM_NODE: CPUS * e2_cpu + E2_GIB * e2_gib + disk,
        }
        return cls(region, table["date"], hourly)

    def usd(self, parts: Mapping[Part, int], seconds: float) -> float:
        """What so many of each part cost in a time."""
        return sum(self.hourly[part] * count for part, count in parts.items()) * seconds / _HOUR
