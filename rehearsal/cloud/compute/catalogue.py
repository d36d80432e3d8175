"""Facts about what Google offers, and where: machine types, GPUs, disk types, profiles."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING

from provision.catalogue import machines, zones

if TYPE_CHECKING:
    from collections.abc import Mapping

# Google's own list changes from month to month, so a rehearsal does not refuse by it: all GPUs are
# in all zones, except in regions that have none.
_WITHOUT_GPUS = frozenset({"africa-south1", "northamerica-south1", "southamerica-west1"})

# GiB of memory per vCPU, by family.
_MEMORY: Mapping[str, float] = {
    "a2-highgpu": 85 / 12,
    "a2-megagpu": 1360 / 96,
    "a2-ultragpu": 170 / 12,
    "a3-highgpu": 9,
    "a3-megagpu": 9,
    "a3-ultragpu": 2952 / 224,
    "a4-highgpu": 3968 / 224,
    "a4x-highgpu": 884 / 140,
    "c2-standard": 4,
    "c3-standard": 4,
    "e2-highcpu": 1,
    "e2-highmem": 8,
    "e2-standard": 4,
    "g2-standard": 4,
    "g4-standard": 3.75,
    "n1-highcpu": 0.9,
    "n1-highmem": 6.5,
    "n1-standard": 3.75,
    "n2-highcpu": 1,
    "n2-highmem": 8,
    "n2-standard": 4,
    "n2d-standard": 4,
}
# Machine types without GPUs, as system node pools and controllers have them: family -> vCPUs.
_CPU_SIZES: Mapping[str, tuple[int, ...]] = {
    "c2-standard": (4, 8, 16, 30, 60),
    "c3-standard": (4, 8, 22, 44, 88, 176),
    "e2-highcpu": (2, 4, 8, 16, 32),
    "e2-highmem": (2, 4, 8, 16),
    "e2-standard": (2, 4, 8, 16, 32),
    "n2-highcpu": (2, 4, 8, 16, 32, 48, 64, 80, 96),
    "n2-highmem": (2, 4, 8, 16, 32, 48, 64, 80, 96, 128),
    "n2-standard": (2, 4, 8, 16, 32, 48, 64, 80, 96, 128),
    "n2d-standard": (2, 4, 8, 16, 32, 48, 64, 80, 96, 128, 224),
}
_SHARED_CPU: Mapping[str, float] = {"e2-micro": 1, "e2-small": 2, "e2-medium": 4}  # GiB

DISK_TYPES: Mapping[str, tuple[int, int]] = {
    "hyperdisk-balanced": (4, 65536),
    "hyperdisk-extreme": (64, 65536),
    "hyperdisk-ml": (4, 65536),
    "hyperdisk-throughput": (2048, 32768),
    "local-ssd": (375, 375),
    "pd-balanced": (10, 65536),
    "pd-extreme": (500, 65536),
    "pd-ssd": (10, 65536),
    "pd-standard": (10, 65536),
}
"""Disk type -> least and greatest size in GB."""


PROFILE = f"-{machines.GpuNetwork.RDMA.profile}"
"""What follows a zone's name in that of its network profile for RDMA over converged Ethernet."""


@dataclass(frozen=True)
class Machine:
    """A machine type as the API tells it.

    Attributes:
        name: Such as "a2-highgpu-8g".
        vcpus: Virtual processors.
        memory_mb: Memory in MiB.
        shared: Whether the processors are shared with others.
        known: What more is known about it, if it is one for GPUs.
    """

    name: str
    vcpus: int
    memory_mb: int
    shared: bool = False
    known: machines.MachineType | None = None

    @property
    def has_gpus(self) -> bool:
        """Whether it must or may have GPUs, so that it is where those are."""
        return self.known is not None and self.known.accelerator is not None


@functools.cache
def machines_by_name() -> Mapping[str, Machine]:
    """All machine types, in the order of their names."""

    def memory(family: str, vcpus: int) -> int:
        return round(_MEMORY.get(family, 4) * vcpus * 1024)

    with_gpus = (
        Machine(it.name, it.vcpus, memory(it.family.name, it.vcpus), known=it)
        for it in machines.MACHINE_TYPES.values()
    )
    plain = (
        Machine(f"{family}-{size}", size, memory(family, size))
        for family, sizes in _CPU_SIZES.items()
        for size in sizes
    )
    shared = (Machine(name, 2, round(gib * 1024), shared=True) for name, gib in _SHARED_CPU.items())
    return {it.name: it for it in sorted((*with_gpus, *plain, *shared), key=lambda it: it.name)}


def machine_in(zone: str, name: str) -> Machine | None:
    """The machine type of that name in that zone, or None."""
    found = machines_by_name().get(name)
    return None if found is None or (found.has_gpus and not has_gpus(zone)) else found


def is_unknown(name: str) -> bool:
    """Whether no machine type of that name is known anywhere; it may be a new one."""
    return name not in machines_by_name()


def vcpus(name: str) -> int | None:
    """The virtual processors of a machine type, if it is known."""
    found = machines_by_name().get(name)
    return None if found is None else found.vcpus


def accelerator_in(zone: str, name: str) -> bool:
    """Whether there are such GPUs in that zone."""
    return name in machines.ACCELERATORS and has_gpus(zone)


def has_gpus(zone: str) -> bool:
    """Whether a zone has GPUs at all."""
    return zones.region_of(zone) not in _WITHOUT_GPUS


def has_profile(name: str) -> bool:
    """Whether there is a network profile of that name ("us-central1-b-vpc-roce")."""
    zone = name.removesuffix(PROFILE)
    known = zone in zones.ZONES.get(zones.region_of(zone), ())
    return zone != name and known and has_gpus(zone)
