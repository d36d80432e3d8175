"""What zones offer: machine types, GPUs, network profiles; and the types of disks."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from rehearsal.cloud.facts import machines, offers, places
from rehearsal.cloud.facts.machines import GpuNetwork

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from rehearsal.cloud.facts.machines import Machine

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


def machine_in(zone: str, name: str, scenarios: frozenset[str]) -> Machine | None:
    """The machine type of that name in that zone, or None."""
    found = machines.find(name)
    return found if found and offers.has_machine(zone, name, scenarios) else None


@functools.cache
def machines_in(zone: str, scenarios: frozenset[str]) -> Iterable[str]:
    """The names of the machine types in a zone."""
    return [name for name in machines.MACHINES if offers.has_machine(zone, name, scenarios)]


def vcpus(name: str) -> int | None:
    """The virtual processors of a machine type, if it is known."""
    found = machines.find(name)
    return None if found is None else found.vcpus


def gpus_in(zone: str, scenarios: frozenset[str]) -> Iterable[str]:
    """The names of the GPUs in a zone."""
    return [name for name in machines.gpus() if offers.has_gpu(zone, name, scenarios)]


def has_profile(name: str, scenarios: frozenset[str]) -> bool:
    """Whether there is a network profile of that name ("us-central1-b-vpc-roce").

    A zone has one if it has machines whose GPUs need it; that no other zone has one is believed.
    """
    zone = name.removesuffix(machines.RDMA_PROFILE)
    if zone == name or not places.is_zone(zone, scenarios):
        return False
    rdma = (it.name for it in machines.MACHINES.values() if it.gpu_network is GpuNetwork.RDMA)
    return any(offers.has_machine(zone, machine, scenarios) for machine in rdma)
