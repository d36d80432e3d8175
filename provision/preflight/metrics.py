"""Which of Google's quotas machines use, and how much of each."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from provision.spec.pools import Pool

GPU_WORDS: Final[Mapping[str, str]] = {
    "nvidia-a100-80gb": "A100_80GB",
    "nvidia-b200": "B200",
    "nvidia-gb200": "GB200",
    "nvidia-h100-80gb": "H100",
    "nvidia-h100-mega-80gb": "H100_MEGA",
    "nvidia-h200-141gb": "H200",
    "nvidia-l4": "L4",
    "nvidia-rtx-pro-6000": "RTX_PRO_6000",
    "nvidia-tesla-a100": "A100",
    "nvidia-tesla-p100": "P100",
    "nvidia-tesla-p4": "P4",
    "nvidia-tesla-t4": "T4",
    "nvidia-tesla-v100": "V100",
}
"""GPU -> what Google's names of its quotas have in their middle."""

_OLDER_GPUS: Final = frozenset({"A100", "A100_80GB", "L4", "P100", "P4", "T4", "V100"})
"""With a quota of their own, and one for all regions; later ones share GPUS_PER_GPU_FAMILY."""

_SHARED_SERIES: Final = frozenset({"e2", "f1", "g1", "n1"})
"""The series that use the plain quota of CPUs; each other one has its own."""

_DISKS: Final[Mapping[str, str]] = {
    "hyperdisk-balanced": "HDB_TOTAL_GB",
    "pd-balanced": "SSD_TOTAL_GB",
    "pd-extreme": "SSD_TOTAL_GB",
    "pd-ssd": "SSD_TOTAL_GB",
    "pd-standard": "DISKS_TOTAL_GB",
}
RESIZE_REQUESTS: Final = "ACTIVE_RESIZE_REQUESTS"
ADDRESSES: Final = "IN_USE_ADDRESSES"


@dataclass(frozen=True, kw_only=True)
class Metric:
    """One quota.

    Attributes:
        name: Such as "PREEMPTIBLE_NVIDIA_A100_GPUS".
        everywhere: Whether it is the project's, for all regions together.
        must: Whether there surely is such a quota, so that its absence is worth a note.
        otherwise: The quota that is used in its place where the project has none of it.
        dimensions: What more tells it from others of that name.
    """

    name: str
    everywhere: bool = False
    must: bool = False
    otherwise: str = ""
    dimensions: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}), hash=False)

    @property
    def words(self) -> str:
        """Its name, with what tells it from others."""
        return " for ".join([self.name, *self.dimensions.values()])


def of(machines: Pool, vcpus: int) -> Iterator[tuple[Metric, int]]:
    """What one machine uses of each quota.

    Args:
        machines: Which; those of a reservation use the quotas of disks and addresses alone.
        vcpus: That each has; 0 where that is not known.
    """
    if not machines.mode.means.reserved:
        yield from _gpus(machines)
        yield from _cpus(machines, vcpus)
    yield Metric(name=_DISKS[machines.disk_type]), machines.disk_size_gb
    yield Metric(name="INSTANCES"), 1
    if machines.external_ip:
        yield Metric(name=ADDRESSES), 1


def _gpus(machines: Pool) -> Iterator[tuple[Metric, int]]:
    word = GPU_WORDS.get(machines.gpu_type or "")
    if word is None or not machines.gpus:
        return
    if machines.mode.means.preemptible:
        yield Metric(name=f"PREEMPTIBLE_NVIDIA_{word}_GPUS", must=True), machines.gpus
    elif word in _OLDER_GPUS:
        yield Metric(name=f"NVIDIA_{word}_GPUS", must=True), machines.gpus
    else:
        family = MappingProxyType({"gpu_family": f"NVIDIA_{word}"})
        shared = Metric(name="GPUS_PER_GPU_FAMILY", must=True, dimensions=family)
        yield shared, machines.gpus
    if word in _OLDER_GPUS:
        yield Metric(name="GPUS_ALL_REGIONS", everywhere=True), machines.gpus


def _cpus(machines: Pool, vcpus: int) -> Iterator[tuple[Metric, int]]:
    series = machines.machine_type.partition("-")[0]
    standard = "CPUS" if series in _SHARED_SERIES else f"{series.upper()}_CPUS"
    if machines.mode.means.preemptible:
        # Who has never asked for preemptible CPUs uses the standard quota.
        yield Metric(name="PREEMPTIBLE_CPUS", otherwise=standard), vcpus
    else:
        yield Metric(name=standard), vcpus
    yield Metric(name="CPUS_ALL_REGIONS", everywhere=True), vcpus
