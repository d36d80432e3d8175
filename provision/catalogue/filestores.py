"""Filestore's service tiers and the share sizes that each takes."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping


class Tier(enum.StrEnum):
    """A Filestore service tier, by the API's name."""

    BASIC_HDD = "BASIC_HDD"
    BASIC_SSD = "BASIC_SSD"
    HIGH_SCALE_SSD = "HIGH_SCALE_SSD"
    ENTERPRISE = "ENTERPRISE"
    ZONAL = "ZONAL"
    REGIONAL = "REGIONAL"


@dataclass(frozen=True)
class Sizes:
    """One range of share sizes.

    Attributes:
        smallest: The least size, in GiB.
        largest: The greatest size, in GiB.
        step: Sizes are the smallest plus a multiple of this, in GiB.
    """

    smallest: int
    largest: int
    step: int

    def __contains__(self, size_gb: int) -> bool:
        """Whether a share of that many GiB can be made."""
        return (
            self.smallest <= size_gb <= self.largest and (size_gb - self.smallest) % self.step == 0
        )

    def __str__(self) -> str:
        """The range in words."""
        steps = "" if self.step == 1 else f" in steps of {self.step}"
        return f"{self.smallest} to {self.largest} GiB{steps}"

    def nearest(self, size_gb: int) -> int:
        """The size of this range that is closest to the wanted one, in GiB."""
        steps = round((size_gb - self.smallest) / self.step)
        return self.smallest + self.step * max(
            0, min(steps, (self.largest - self.smallest) // self.step)
        )


DEFAULT_SIZE_GB: Final = 2560
"""The size of a share that names none, in GiB, where the tier takes it."""

_BANDED: Final = (Sizes(1024, 9984, 256), Sizes(10240, 102400, 2560))

TIERS: Final[Mapping[Tier, tuple[Sizes, ...]]] = MappingProxyType(
    {
        Tier.BASIC_HDD: (Sizes(1024, 65433, 1),),
        Tier.BASIC_SSD: (Sizes(2560, 65433, 1),),
        Tier.HIGH_SCALE_SSD: (Sizes(10240, 102400, 2560),),
        Tier.ENTERPRISE: (Sizes(1024, 10240, 256),),
        Tier.ZONAL: _BANDED,
        Tier.REGIONAL: _BANDED,
    },
)
"""Tier -> the ranges of sizes that it takes."""


_REGIONAL: Final = frozenset({Tier.ENTERPRISE, Tier.REGIONAL})


def is_regional(tier: Tier) -> bool:
    """Whether the tier's shares are made in a region; all others are made in a zone."""
    return tier in _REGIONAL


def takes(tier: Tier, size_gb: int) -> bool:
    """Whether the tier has shares of that many GiB."""
    return any(size_gb in sizes for sizes in TIERS[tier])


def default_size(tier: Tier) -> int | None:
    """The size of a share that names none, in GiB; None where the tier has no such size."""
    return DEFAULT_SIZE_GB if takes(tier, DEFAULT_SIZE_GB) else None


def nearest_size(tier: Tier, size_gb: int) -> int:
    """The size that the tier takes and that is closest to the wanted one, in GiB."""
    return min((sizes.nearest(size_gb) for sizes in TIERS[tier]), key=lambda it: abs(it - size_gb))


def sizes_in_words(tier: Tier) -> str:
    """What the tier takes, as a sentence part."""
    return " or ".join(str(sizes) for sizes in TIERS[tier])
