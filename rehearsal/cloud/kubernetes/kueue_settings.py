"""What the cluster's Kueue was told in its ConfigMap: how long pods may be not ready.

As Kueue 0.18.3 reads it (its source of 2026-07-10): without the section `waitForPodsReady` nothing
is waited for, and with it what is left out has the values below.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import yaml

if TYPE_CHECKING:
    from rehearsal.cloud.kubernetes.objects import World

_NAMESPACE: Final = "kueue-system"
_NAME: Final = "kueue-manager-config"
_KEY: Final = "controller_manager_config.yaml"

_TIMEOUT: Final = "5m"
_BASE: Final = 60
_MOST: Final = 3600
_UNITS: Final = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
_PART: Final = re.compile(r"(\d+(?:\.\d+)?)(ms|h|m|s)")


@dataclass(frozen=True, kw_only=True)
class Patience:
    """The section `waitForPodsReady`; times in seconds of cloud time."""

    start: float  # from a job's admission until all its pods are ready
    recovery: float | None  # from a lost pod until all are ready again; None for ever
    base: float  # the pause before a job is queued again for the first time; it doubles
    most: float  # the longest pause
    limit: int | None  # how often a job is queued again; None for ever

    def pause(self, count: int) -> float:
        """The pause before a job is queued again for the `count`th time."""
        return float(min(self.most, self.base * 2 ** (count - 1)))


def patience(world: World) -> Patience | None:
    """How long jobs are waited for; None for ever."""
    kind = world.kind("v1", "configmaps")
    found = world.get(kind, _NAMESPACE, _NAME) if kind else None
    return _parse(str((found or {}).get("data", {}).get(_KEY, "")))


@functools.lru_cache(maxsize=8)
def _parse(text: str) -> Patience | None:
    document: Any = yaml.safe_load(text) or {}
    section = document.get("waitForPodsReady")
    if not section:
        return None
    start = _seconds(section.get("timeout") or _TIMEOUT)
    recovery = _seconds(section["recoveryTimeout"]) if "recoveryTimeout" in section else start
    again = section.get("requeuingStrategy") or {}
    return Patience(
        start=start,
        recovery=recovery or None,
        base=float(again.get("backoffBaseSeconds", _BASE)),
        most=float(again.get("backoffMaxSeconds", _MOST)),
        limit=again.get("backoffLimitCount"),
    )


def _seconds(duration: str) -> float:
    """A duration in Go's form, such as "1h30m"."""
    return sum(float(number) * _UNITS[unit] for number, unit in _PART.findall(duration))
