"""The machines that an env.list asks for, whatever kind of cluster they are for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from provision.catalogue import machines, zones
from provision.settings.choices import Orchestrator
from provision.spec import pools
from provision.spec.pools import Capacity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from provision.settings import Settings

_SYSTEM_DISK = "pd-balanced"
"""What GKE gives nodes whose pool names no disk type."""


@dataclass(frozen=True, kw_only=True)
class Machines:
    """Equal machines in one zone.

    Attributes:
        setting: The variable that says their type.
        zone_setting: The variable that says their zone.
        zone: Their zone.
        machine_type: Their type.
        count: How many there are from the start.
        most: How many there may ever be.
        gpu: The kind of GPU of each, by the API's name; None for none.
        gpus: How many each has.
        attached: Whether the GPUs are attached, and not part of the machine type.
        preemptible: Whether preemptible quota is what they use: spot and flex start.
        requested: Whether they come by a request that Google queues.
        reserved: Whether they are taken from a reservation, which has used the quota already.
        disk_type: Of the boot disk, by the API's name.
        disk_size_gb: Of the boot disk, in GiB.
        external_ip: Whether each has a public address; GKE's nodes never have.
    """

    setting: str
    zone_setting: str = "ZONE"
    zone: str
    machine_type: str
    count: int
    most: int
    gpu: str | None = None
    gpus: int = 0
    attached: bool = False
    preemptible: bool = False
    requested: bool = False
    reserved: bool = False
    disk_type: str
    disk_size_gb: int
    external_ip: bool = False

    @property
    def region(self) -> str:
        """The zone's region."""
        return zones.region_of(self.zone)


def of(settings: Settings) -> tuple[Machines, ...]:
    """All machines that the settings ask for."""
    if settings.orchestrator_type is Orchestrator.GKE:
        return (*_pools(settings), _system_pool(settings))
    return (_group(settings),)


def _group(settings: Settings) -> Machines:
    return Machines(
        setting="VM_TYPE",
        zone=settings.zone,
        machine_type=settings.vm_type,
        count=settings.instance_count,
        most=settings.instance_count,
        gpu=settings.accelerator_type,
        gpus=settings.gpu_count or 0,
        attached=_attached(settings.vm_type, settings.accelerator_type),
        preemptible=settings.enable_spot or settings.enable_flex_start,
        requested=settings.enable_flex_start,
        reserved=settings.reservation_name is not None,
        disk_type=settings.disk_type.value,
        disk_size_gb=settings.disk_size_gb,
        external_ip=settings.enable_external_ip,
    )


def _pools(settings: Settings) -> Iterator[Machines]:
    written = settings.gke_node_pools is not None
    for pool in pools.of(settings):
        yield Machines(
            setting="GKE_NODE_POOLS" if written else "VM_TYPE",
            zone_setting="GKE_NODE_POOLS" if written else "ZONE",
            zone=pool.zone,
            machine_type=pool.machine_type,
            count=pool.size.min or 0 if pool.size.count is None else pool.size.count,
            most=pool.size.most,
            gpu=pool.gpu_type,
            gpus=pool.gpu_count or 0,
            attached=_attached(pool.machine_type, pool.gpu_type),
            preemptible=pool.capacity is Capacity.SPOT or pool.capacity.starts_empty,
            requested=pool.capacity.starts_empty,
            reserved=pool.capacity is Capacity.RESERVATION,
            disk_type=pool.disk_type,
            disk_size_gb=pool.disk_size_gb,
        )


def _system_pool(settings: Settings) -> Machines:
    return Machines(
        setting="SYSTEM_NODE_POOL_VM_TYPE",
        zone_setting="SYSTEM_NODE_POOL_ZONE",
        zone=settings.system_node_pool_zone,
        machine_type=settings.system_node_pool_vm_type,
        count=settings.system_node_pool_min,
        most=settings.system_node_pool_max,
        preemptible=settings.system_node_pool_spot,
        disk_type=_SYSTEM_DISK,
        disk_size_gb=settings.system_node_pool_disk_size_gb,
    )


def _attached(machine_type: str, gpu: str | None) -> bool:
    """Whether a GPU is attached; that of a type which the tool does not know is part of it."""
    known = machines.lookup(machine_type)
    return gpu is not None and known is not None and known.accelerator is None
