"""What zones offer: machine types, GPUs, network profiles; and the types of disks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rehearsal.cloud.facts import machines, places

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


def machine_in(zone: str, name: str) -> Machine | None:
    """The machine type of that name in that zone, or None."""
    found = machines.find(name)
    if found is None or (found.gpu and not places.has_gpus(zone)):
        return None
    return found


def vcpus(name: str) -> int | None:
    """The virtual processors of a machine type, if it is known."""
    found = machines.find(name)
    return None if found is None else found.vcpus


def gpus_in(zone: str) -> Iterable[str]:
    """The names of the GPUs in a zone."""
    return machines.gpus() if places.has_gpus(zone) else ()


def has_profile(name: str) -> bool:
    """Whether there is a network profile of that name ("us-central1-b-vpc-roce")."""
    zone = name.removesuffix(machines.RDMA_PROFILE)
    return zone != name and places.is_zone(zone) and places.has_gpus(zone)
