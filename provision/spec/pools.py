"""The GPU node pools of a GKE cluster: what the settings come to, for each of them."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from provision.catalogue import gpu_networks, machines, names

if TYPE_CHECKING:
    from provision.catalogue.gpu_networks import Network
    from provision.catalogue.machines import MachineType
    from provision.settings import Settings
    from provision.settings.pools import NodePool

LONGEST_RUN: Final = 7 * 86400
"""Seconds that a node of flex start, or a queued one, may run; also what it gets unasked."""

MOST_NODES: Final = 1000
"""The most nodes of one pool."""


class Capacity(enum.StrEnum):
    """How a pool gets its nodes, as Terraform's variables say it."""

    STANDARD = "standard"
    SPOT = "spot"
    RESERVATION = "reservation"
    FLEX_START = "flex_start"
    QUEUED = "queued"
    FLEX_START_QUEUED = "flex_start_queued"

    @property
    def flex_start(self) -> bool:
        """Whether nodes come by DWS flex start."""
        return self in {Capacity.FLEX_START, Capacity.FLEX_START_QUEUED}

    @property
    def queued(self) -> bool:
        """Whether nodes come, all at once, for a request in a queue."""
        return self in {Capacity.QUEUED, Capacity.FLEX_START_QUEUED}

    @property
    def starts_empty(self) -> bool:
        """Whether nodes come when a job asks for them, never before."""
        return self.flex_start or self.queued


@dataclass(frozen=True, kw_only=True)
class Size:
    """How many nodes a pool has.

    Attributes:
        count: A fixed number; None where it scales.
        min: The fewest nodes of one that scales.
        max: The most.
    """

    count: int | None = None
    min: int | None = None
    max: int | None = None

    @property
    def most(self) -> int:
        """The most nodes that there ever are."""
        return self.count if self.count is not None else self.max or 0


@dataclass(frozen=True, kw_only=True)
class Pool:
    """One pool, everything said.

    Attributes:
        name: As Google has it.
        machine_type: As the API has it.
        zone: Of all its nodes.
        gpu_type: Each node's GPUs, by the API's name; None where nobody said it of a machine
            type that the tool does not know.
        gpu_count: How many each node has; None likewise.
        capacity: How its nodes are got.
        reservation: Where from, for those of a reservation.
        max_run_seconds: When each node ends; None: never, or as the request says.
        size: How many nodes.
        disk_size_gb: Boot disk, in GiB.
        disk_type: Its type, by the API's name.
        compact: Whether nodes stand close together.
    """

    name: str
    machine_type: str
    zone: str
    gpu_type: str | None
    gpu_count: int | None
    capacity: Capacity
    reservation: str | None
    max_run_seconds: int | None
    size: Size
    disk_size_gb: int
    disk_type: str
    compact: bool

    @property
    def machine(self) -> MachineType | None:
        """What the tool knows of the machine type."""
        return machines.lookup(self.machine_type)

    @property
    def local_ssds(self) -> int:
        """The local SSDs that are part of each node."""
        return self.machine.local_ssds if self.machine else 0

    @property
    def networks(self) -> tuple[Network, ...]:
        """The networks of each node's interfaces after the first; () where it has one alone."""
        machine = self.machine
        if machine is None or machine.gpu_network is None:
            return ()
        return gpu_networks.beside_the_first(machine)


def of(settings: Settings) -> tuple[Pool, ...]:
    """All GPU pools, in the order in which they were written."""
    if settings.gke_node_pools is not None:
        return tuple(_written(pool, settings) for pool in settings.gke_node_pools)
    return tuple(_equal(number, settings) for number in range(1, settings.gke_node_pool_count + 1))


def _equal(number: int, settings: Settings) -> Pool:
    capacity = _capacity(
        reservation=settings.reservation_name,
        spot=settings.enable_spot,
        flex_start=settings.enable_flex_start,
        queued=settings.enable_queued_provisioning,
    )
    return Pool(
        name=names.node_pool(settings.name_prefix, f"nodepool-{number}"),
        machine_type=settings.vm_type,
        zone=settings.zone,
        gpu_type=settings.accelerator_type,
        gpu_count=settings.gpu_count,
        capacity=capacity,
        reservation=settings.reservation_name,
        max_run_seconds=_run(None, capacity, settings),
        size=_cluster_wide_size(capacity, settings),
        disk_size_gb=settings.disk_size_gb,
        disk_type=settings.disk_type.value,
        compact=settings.enable_compact_placement,
    )


def _written(pool: NodePool, settings: Settings) -> Pool:
    machine = machines.lookup(pool.vm_type)
    built_in = (machine.accelerator, machine.gpus) if machine else (None, None)
    reservation = settings.reservation_name if pool.reservation is None else pool.reservation
    capacity = _capacity(
        reservation=reservation,
        spot=_or(pool.spot, settings.enable_spot),
        flex_start=_or(pool.flex_start, settings.enable_flex_start),
        queued=_or(pool.queued, settings.enable_queued_provisioning),
    )
    return Pool(
        name=names.node_pool(settings.name_prefix, pool.name),
        machine_type=pool.vm_type,
        zone=pool.zone or settings.zone,
        gpu_type=pool.accelerator_type or built_in[0],
        gpu_count=pool.gpu_count or built_in[1],
        capacity=capacity,
        reservation=reservation,
        max_run_seconds=_run(pool.max_run_duration, capacity, settings),
        size=_size(pool, capacity, settings),
        disk_size_gb=pool.disk_size_gb or settings.disk_size_gb,
        disk_type=_disk_type(pool, settings),
        compact=settings.enable_compact_placement,
    )


def _or(own: bool | None, cluster_wide: bool) -> bool:  # noqa: FBT001 - settings' values
    return cluster_wide if own is None else own


def _capacity(*, reservation: str | None, spot: bool, flex_start: bool, queued: bool) -> Capacity:
    """The one way; the rules about settings refuse to ask for two that exclude each other."""
    if flex_start and queued:
        return Capacity.FLEX_START_QUEUED
    if flex_start:
        return Capacity.FLEX_START
    if queued:
        return Capacity.QUEUED
    if spot:
        return Capacity.SPOT
    return Capacity.RESERVATION if reservation else Capacity.STANDARD


def _run(own: int | None, capacity: Capacity, settings: Settings) -> int | None:
    """The seconds that each node runs at most.

    The cluster-wide value may be a default for flex start alone, of which other pools have none.
    """
    asked = settings.max_run_duration if "max_run_duration" in settings.model_fields_set else None
    return own or asked or (LONGEST_RUN if capacity.flex_start else None)


def _cluster_wide_size(capacity: Capacity, settings: Settings) -> Size:
    """The size of a pool that says nothing of its own.

    The cluster-wide limits may be defaults for flex start and queueing alone.
    """
    asked = {"gke_min_node_count", "gke_max_node_count"} & settings.model_fields_set
    if not asked and not capacity.starts_empty:
        return Size(count=settings.instance_count)
    most = settings.gke_max_node_count
    return Size(
        min=settings.gke_min_node_count or 0, max=settings.instance_count if most is None else most
    )


def _size(pool: NodePool, capacity: Capacity, settings: Settings) -> Size:
    if pool.count is not None and pool.min is None and pool.max is None:
        return Size(count=pool.count)
    if pool.min is None and pool.max is None:
        return _cluster_wide_size(capacity, settings)
    most = pool.max or settings.gke_max_node_count or settings.instance_count
    return Size(min=pool.min or 0, max=most)


def _disk_type(pool: NodePool, settings: Settings) -> str:
    if pool.disk_type is not None:
        return pool.disk_type.value
    family = machines.family(pool.vm_type)
    if "disk_type" not in settings.model_fields_set and family is not None:
        return family.boot_disks[0]
    return settings.disk_type.value
