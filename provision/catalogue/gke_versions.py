"""Versions of GKE: resolving a prefix, and the minimum versions of features and machine types.

A version is written in full, 1.35.7-gke.1222000, or as a prefix: 1.35, 1.35. or 1.35.7. The
Terraform modules check a full version against the same minimum versions of flex start, queues and
the Ray operator, for users of the modules alone.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


@dataclass(frozen=True)
class Floor:
    """The minimum version of a feature."""

    feature: str
    version: str
    # the full versions of later minor versions whose first ones lack it
    later: tuple[str, ...] = ()

    def of(self, version: str) -> str:
        """The minimum version for what a prefix begins: that of its own minor version, if any."""
        minor = _numbers(version)[:_MINOR]
        return next((it for it in self.later if _numbers(it)[:_MINOR] == minor), self.version)

    def refuses(self, version: str) -> bool:
        """Whether all versions with a given prefix are older than the minimum version."""
        given = _numbers(version)
        return given < _numbers(self.of(version))[: len(given)]


_MINOR: Final = 2

FLEX_START: Final = Floor("flex start", "1.32.2-gke.1652000")
"""For GPUs; it is the same for flex start with queued provisioning."""

QUEUED: Final = Floor("queued provisioning with a limited run", "1.28.5-gke.1355000")
GPU_PARTS: Final = Floor(
    "machine types with a part of a GPU", "1.34.5-gke.1153000", later=("1.35.2-gke.1485000",)
)
"""GKE, "Run GPUs in Standard node pools" (2026-04-08)."""

RAY_OPERATOR: Final = Floor("the Ray operator", "1.29.8-gke.1054000")

MANAGED_RDMA: Final = Floor("GPUDirect RDMA that GKE manages", "1.36")
"""No source names the first version that takes the strategy RDMA. The google provider's test asked
for it with the newest one that us-central1-b had in April 2026, of a minor version before this one.
DRANET alone, which gives pods the interfaces, is in 1.34.1-gke.1829001 and newer (GKE, "Allocate
network resources by using GKE managed DRANET", 2026-04-10)."""

DRIVER_OF_H200: Final = Floor("the default driver on A3 Ultra", "1.31.5-gke.1169000")
"""Older ones install R535 unless the driver is LATEST (same page as for A3 Ultra below)."""

_SUPPORTED_UNTIL: Final[Mapping[tuple[int, ...], str]] = {
    (1, 31): "2026-01-16",
    (1, 32): "2026-04-11",
    (1, 33): "2026-08-03",
    (1, 34): "2026-10-01",
    (1, 35): "2027-04-11",
    (1, 36): "2027-08-09",
}
"""The end of standard support by GKE's release schedule, as endoflife.date had it on 2026-08-21.

Google calls later dates estimates. The channel EXTENDED has some ten months more.
"""

_OF_MACHINES: Final[Mapping[str, Floor]] = {
    # For GPUDirect-TCPX and -TCPXO: GKE, "Maximize GPU network bandwidth in Standard mode
    # clusters", as the Cluster Toolkit took it over (gpu_direct.tf of 2024). Since 2026 the
    # Toolkit has other ones, which are those of security bulletins about the nodes' kernel.
    "a3-highgpu-8g": Floor(
        "GPUDirect-TCPX on A3 High",
        "1.27.7-gke.1121000",
        later=("1.28.8-gke.1095000", "1.29.3-gke.1093000", "1.30.2-gke.1023000"),
    ),
    "a3-megagpu-": Floor(
        "GPUDirect-TCPXO on A3 Mega",
        "1.28.9-gke.1250000",
        later=("1.29.4-gke.1542000", "1.30.4-gke.1129000", "1.31.1-gke.2008000"),
    ),
    # For GPUDirect RDMA: AI Hypercomputer, "Create a custom AI-optimized GKE cluster" (2026).
    # A4's nodes themselves need 1.32.1-gke.1729000, for R570.
    "a3-ultragpu-": Floor("GPUDirect RDMA on A3 Ultra", "1.31.4-gke.1183000"),
    "a4-highgpu-": Floor("GPUDirect RDMA on A4", "1.32.2-gke.1475000"),
    # GKE, "Run GPUs in Standard node pools" (2026-04-08). The Cluster Toolkit says 1.32.11.
    "g4-standard-": Floor("G4", "1.34.0-gke.1662000"),
}
"""The beginning of the names of machine types -> what they need."""


def of_machine(machine_type: str) -> Floor | None:
    """The minimum version for the nodes of a machine type; None where no source names one."""
    found = (it for name, it in _OF_MACHINES.items() if machine_type.startswith(name))
    return next(found, None)


def supported_until(version: str) -> str | None:
    """The last day of a full version's standard support, as "2026-08-03"; None if not known."""
    return _SUPPORTED_UNTIL.get(_numbers(version)[:_MINOR])


def highest_first(floors: Iterable[Floor]) -> list[Floor]:
    """The floors without duplicates, that of the newest version first."""
    return sorted(dict.fromkeys(floors), key=lambda it: _numbers(it.version), reverse=True)


def is_of_its_minor(version: str, other: str) -> bool:
    """Whether two full versions are of one minor version."""
    return _numbers(version)[:_MINOR] == _numbers(other)[:_MINOR]


def newest(versions: Iterable[str]) -> str:
    """The newest of some full versions."""
    return max(versions, key=_numbers)


def is_full(version: str) -> bool:
    """Whether a version is a full one, not a prefix."""
    return "-gke." in version


def settle(asked: str | None, offered: Iterable[str], settled: str | None) -> str | None:
    """Resolve the setting to a full version, the same one in every run.

    `asked`: the setting; None for the channel's default version. `offered`: the full versions that
    Google offers in the region, in any order. `settled`: the version that an earlier run chose;
    None if there was none. Returns the version of the earlier run if it matches the setting,
    otherwise the newest offered version that matches; None if nothing is set, or no offered version
    matches.
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
