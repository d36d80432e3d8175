"""Versions of GKE: which one a text stands for, and the oldest that has a feature.

A version is written in full, 1.33.5-gke.1080000, or as a beginning of it: 1.33, 1.33. or 1.33.5.
Terraform holds a full version to the same floors, for whoever uses its modules alone.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(frozen=True)
class Floor:
    """The oldest version that has a feature.

    Attributes:
        feature: In words.
        version: In full.
    """

    feature: str
    version: str

    def refuses(self, version: str) -> bool:
        """Whether each version that the text can stand for is older than the floor."""
        given = _numbers(version)
        return given < _numbers(self.version)[: len(given)]


FLEX_START: Final = Floor("flex start", "1.32.2-gke.1652000")
"""For GPUs; queueing together with flex start has the same."""

QUEUED: Final = Floor("queued provisioning with a limited run", "1.28.5-gke.1355000")
RAY_OPERATOR: Final = Floor("the Ray operator", "1.29.8-gke.1054000")


def is_full(version: str) -> bool:
    """Whether a version stands for itself alone."""
    return "-gke." in version


def settle(asked: str | None, offered: Iterable[str], settled: str | None) -> str | None:
    """The full version that a cluster is made with, the same at every run.

    Args:
        asked: The setting; None for the channel's default, which has no version here.
        offered: The full versions that Google offers at the place, in any order.
        settled: What an earlier run has settled on, if any.

    Returns:
        What was settled on, while it is what is asked for, else the newest version that is
        offered; None when nothing is asked for, or nothing that is asked for is offered.
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
