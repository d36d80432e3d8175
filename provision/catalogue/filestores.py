"""Filestore's service tiers and the share sizes that each one supports."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping


class Tier(enum.StrEnum):
    """A Filestore service tier, by its name in the API."""

    BASIC_HDD = "BASIC_HDD"
    BASIC_SSD = "BASIC_SSD"
    HIGH_SCALE_SSD = "HIGH_SCALE_SSD"
    ENTERPRISE = "ENTERPRISE"
    ZONAL = "ZONAL"
    REGIONAL = "REGIONAL"


@dataclass(frozen=True)
class Sizes:
    """One range of share sizes."""

    smallest: int  # the smallest size, in GiB
    largest: int  # the largest size, in GiB
    step: int  # every size is the smallest one plus a multiple of this, in GiB

    def __contains__(self, size_gb: int) -> bool:
        """Whether a share can have this size, in GiB."""
        return (
            self.smallest <= size_gb <= self.largest and (size_gb - self.smallest) % self.step == 0
        )

    def __str__(self) -> str:
        """The range in words."""
        steps = "" if self.step == 1 else f" in steps of {self.step}"
        return f"{self.smallest} to {self.largest} GiB{steps}"

    def nearest(self, size_gb: int) -> int:
        """The size in this range that is closest to a given one, in GiB."""
        steps = round((size_gb - self.smallest) / self.step)
        return self.smallest + self.step * max(
            0, min(steps, (self.largest - self.smallest) // self.step)
        )


DEFAULT_SIZE_GB: Final = 2560
"""The default size of a share, in GiB, for tiers that support it."""

_BANDED: Final = (Sizes(1024, 9984, 256), Sizes(10240, 102400, 2560))

TIERS: Final[Mapping[Tier, tuple[Sizes, ...]]] = {
    Tier.BASIC_HDD: (Sizes(1024, 65433, 1),),
    Tier.BASIC_SSD: (Sizes(2560, 65433, 1),),
    Tier.HIGH_SCALE_SSD: (Sizes(10240, 102400, 2560),),
    Tier.ENTERPRISE: (Sizes(1024, 10240, 256),),
    Tier.ZONAL: _BANDED,
    Tier.REGIONAL: _BANDED,
}
"""Tier -> the ranges of sizes that it supports."""

QUOTAS: Final[Mapping[Tier, str]] = {
    Tier.BASIC_HDD: "StandardStorageGbPerRegion",
    Tier.BASIC_SSD: "PremiumStorageGbPerRegion",
    Tier.HIGH_SCALE_SSD: "HighScaleSSDStorageGibPerRegion",
    Tier.ENTERPRISE: "EnterpriseStorageGibPerRegion",
}
"""Tier -> its quota in a region, by its ID in Cloud Quotas (Cluster Toolkit, August 2026).

Which quota zonal and regional instances use is not known.
"""


WITHOUT_KEYS: Final = frozenset({Tier.BASIC_HDD, Tier.BASIC_SSD})
"""Can't have a key of Cloud KMS (Filestore, "Apply a CMEK organization policy", 2025-08-18)."""


def is_regional(tier: Tier) -> bool:
    """Whether the tier's instances are in a region; all others are in a zone."""
    return tier in {Tier.ENTERPRISE, Tier.REGIONAL}


def takes(tier: Tier, size_gb: int) -> bool:
    """Whether the tier supports this size, in GiB."""
    return any(size_gb in sizes for sizes in TIERS[tier])


def default_size(tier: Tier) -> int | None:
    """The default size of a share, in GiB; None if the tier does not support it."""
    return DEFAULT_SIZE_GB if takes(tier, DEFAULT_SIZE_GB) else None


def nearest_size(tier: Tier, size_gb: int) -> int:
    """The size that the tier supports and that is closest to a given one, in GiB."""
    return min((sizes.nearest(size_gb) for sizes in TIERS[tier]), key=lambda it: abs(it - size_gb))


def sizes_in_words(tier: Tier) -> str:
    """The sizes that the tier supports, as part of a sentence."""
    return " or ".join(str(sizes) for sizes in TIERS[tier])
