"""Versions of GKE: resolving a prefix, and the minimum versions of features.

A version is written in full, 1.33.5-gke.1080000, or as a prefix: 1.33, 1.33. or 1.33.5. The
Terraform modules check a full version against the same minimum versions, for users of the modules
alone.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(frozen=True)
class Floor:
    """The minimum version of a feature.

    Attributes:
        feature: The name of the feature.
        version: The full version.
    """

    feature: str
    version: str

    def refuses(self, version: str) -> bool:
        """Whether all versions with a given prefix are older than the minimum version."""
        given = _numbers(version)
        return given < _numbers(self.version)[: len(given)]


FLEX_START: Final = Floor("flex start", "1.32.2-gke.1652000")
"""For GPUs; it is the same for flex start with queued provisioning."""

QUEUED: Final = Floor("queued provisioning with a limited run", "1.28.5-gke.1355000")
GPU_PARTS: Final = Floor("machine types with a part of a GPU", "1.34.5-gke.1153000")
"""GKE, "Run GPUs in Standard node pools" (2026-04); of 1.35 it is 1.35.2-gke.1485000 and newer."""

RAY_OPERATOR: Final = Floor("the Ray operator", "1.29.8-gke.1054000")


def is_full(version: str) -> bool:
    """Whether a version is a full one, not a prefix."""
    return "-gke." in version


def settle(asked: str | None, offered: Iterable[str], settled: str | None) -> str | None:
    """Resolve the setting to a full version, the same one in every run.

    Args:
        asked: The setting; None for the channel's default version.
        offered: The full versions that Google offers in the region, in any order.
        settled: The version that an earlier run chose; None if there was none.

    Returns:
        The version of the earlier run if it matches the setting, otherwise the newest offered
        version that matches; None if nothing is set, or no offered version matches.
    """
    if asked is None:
        return None
    wanted = _numbers(asked)
    if settled is not None and _numbers(settled)[: len(wanted)] == wanted:
        return settled
    fitting = [version for version in offered if _numbers(version)[: len(wanted)] == wanted]
    return max(fitting, key=_numbers, default=None)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", version)))
