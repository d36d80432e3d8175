"""Which zones have which machine types and GPUs, and in which ways Google gives them."""

import functools
from collections.abc import Iterable, Mapping
from typing import Final

from rehearsal.cloud.facts import machines, places
from rehearsal.cloud.facts.machines import GpuNetwork, Machine

EVERYWHERE: Final = "everywhere"  # the scenario in which every zone has everything


def has_machine(zone: str, name: str, scenarios: frozenset[str]) -> bool:
    """Whether a zone has a machine type; those without GPUs of their own are in all zones."""
    found = machines.find(name)
    return _has(found.places if found else None, zone, scenarios)


def has_gpu(zone: str, name: str, scenarios: frozenset[str]) -> bool:
    """Whether a zone has a GPU: one to attach, or one of a machine type that it has."""
    row = machines.GPUS.get(name, {})
    if "places" in row:
        return _has(frozenset(row["places"].split()), zone, scenarios)
    carriers = (it.name for it in machines.MACHINES.values() if it.gpu == name)
    return any(has_machine(zone, carrier, scenarios) for carrier in carriers)


def is_given(machine: str, model: str, scenarios: frozenset[str]) -> bool:
    """Whether machines of a type come with a provisioning model; those that are not known may."""
    return EVERYWHERE in scenarios or machines.comes_by(machine, model)


def _has(there: frozenset[str] | None, zone: str, scenarios: frozenset[str]) -> bool:
    if there is None or EVERYWHERE in scenarios:
        return True
    return not there.isdisjoint({zone, places.region_of(zone)})


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
    return found if found and has_machine(zone, name, scenarios) else None


@functools.cache
def machines_in(zone: str, scenarios: frozenset[str]) -> Iterable[str]:
    """The names of the machine types in a zone."""
    return [name for name in machines.MACHINES if has_machine(zone, name, scenarios)]


def vcpus(name: str) -> int | None:
    """The virtual processors of a machine type, if it is known."""
    found = machines.find(name)
    return None if found is None else found.vcpus


def gpus_in(zone: str, scenarios: frozenset[str]) -> Iterable[str]:
    """The names of the GPUs in a zone."""
    return [name for name in machines.gpus() if has_gpu(zone, name, scenarios)]


def has_profile(name: str, scenarios: frozenset[str]) -> bool:
    """Whether there is a network profile of that name ("us-central1-b-vpc-roce").

    A zone has one if it has machines whose GPUs need it; that no other zone has one is believed.
    """
    zone = name.removesuffix(machines.RDMA_PROFILE)
    if zone == name or not places.is_zone(zone, scenarios):
        return False
    rdma = (it.name for it in machines.MACHINES.values() if it.gpu_network is GpuNetwork.RDMA)
    return any(has_machine(zone, machine, scenarios) for machine in rdma)
