"""Equal machines in one zone: a group of VMs, or a node pool of a GKE cluster."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from provision.catalogue import gpu_networks, limits, machines, names, zones
from provision.spec import capacity
from provision.spec.capacity import Mode

if TYPE_CHECKING:
    from collections.abc import Iterator

    from provision.catalogue.gpu_networks import Network
    from provision.catalogue.machines import MachineType
    from provision.settings.model import Settings
    from provision.settings.pools import NodePool

_SYSTEM_DISK = "pd-balanced"
"""What GKE gives nodes whose pool names no disk type."""


@dataclass(frozen=True, kw_only=True)
class Size:
    """How many machines a pool has.

    Attributes:
        count: A fixed number; None where it scales.
        min: The fewest of one that scales.
        max: The most.
    """

    count: int | None = None
    min: int | None = None
    max: int | None = None

    @property
    def first(self) -> int:
        """How many there are from the start."""
        return self.count if self.count is not None else self.min or 0

    @property
    def most(self) -> int:
        """The most that there ever are."""
        return self.count if self.count is not None else self.max or 0


@dataclass(frozen=True, kw_only=True)
class Pool:
    """Equal machines in one zone, everything said.

    Attributes:
        name: As Google has it: of the managed instance group, or of the node pool.
        setting: The variable that says their type.
        zone_setting: The variable that says their zone.
        machine_type: As the API has it.
        zone: Of all machines.
        gpu_type: Each machine's GPUs, by the API's name; None where it has none, or where nobody
            said it of a machine type that the tool does not know.
        gpu_count: How many each has; None likewise.
        mode: How machines are got.
        reservation: Where from, for those of a reservation.
        max_run_seconds: When each machine ends; None: never, or as the request says.
        size: How many machines.
        disk_size_gb: Boot disk, in GiB.
        disk_type: Its type, by the API's name.
        compact: Whether machines stand close together.
        external_ip: Whether each has a public address; GKE's nodes never have.
    """

    name: str
    setting: str = "VM_TYPE"
    zone_setting: str = "ZONE"
    machine_type: str
    zone: str
    gpu_type: str | None = None
    gpu_count: int | None = None
    mode: Mode = Mode.STANDARD
    reservation: str | None = None
    max_run_seconds: int | None = None
    size: Size
    disk_size_gb: int
    disk_type: str
    compact: bool = False
    external_ip: bool = False

    @property
    def region(self) -> str:
        """The zone's region."""
        return zones.region_of(self.zone)

    @property
    def machine(self) -> MachineType | None:
        """What the tool knows of the machine type."""
        return machines.lookup(self.machine_type)

    @property
    def gpus(self) -> int:
        """How many GPUs each machine has, as far as that is known."""
        return self.gpu_count or 0

    @property
    def attached(self) -> bool:
        """Whether its GPUs are attached, and not part of the machine type."""
        return self.gpu_type is not None and machines.takes_gpus(self.machine_type)

    @property
    def local_ssds(self) -> int:
        """The local SSDs that are part of each machine."""
        return self.machine.local_ssds if self.machine else 0

    @property
    def networks(self) -> tuple[Network, ...]:
        """The networks of each machine's interfaces after the first that its GPUs need."""
        machine = self.machine
        if machine is None or machine.gpu_network is None:
            return ()
        return gpu_networks.beside_the_first(machine)


def group(settings: Settings) -> Pool:
    """The VMs of a managed instance group."""
    mode = Mode.asked({name: getattr(settings, name) for name in capacity.ASKING})
    return Pool(
        name=names.GROUP.of(settings.name_prefix),
        machine_type=settings.vm_type,
        zone=settings.zone,
        gpu_type=settings.accelerator_type,
        gpu_count=settings.gpu_count,
        mode=mode,
        reservation=settings.reservation_name,
        max_run_seconds=settings.max_run_duration,
        size=Size(count=settings.instance_count),
        disk_size_gb=settings.disk_size_gb,
        disk_type=settings.disk_type.value,
        compact=settings.enable_compact_placement,
        external_ip=settings.enable_external_ip,
    )


def of(settings: Settings) -> tuple[Pool, ...]:
    """All GPU pools of a GKE cluster, in the order in which they were written."""
    if settings.gke_node_pools is not None:
        return tuple(_written(pool, settings) for pool in settings.gke_node_pools)
    return tuple(_equal(number, settings) for number in range(1, settings.gke_node_pool_count + 1))


def system(settings: Settings) -> Pool:
    """The pool of a GKE cluster for system pods."""
    return Pool(
        name=names.SYSTEM_POOL.of(settings.name_prefix),
        setting="SYSTEM_NODE_POOL_VM_TYPE",
        zone_setting="SYSTEM_NODE_POOL_ZONE",
        machine_type=settings.system_node_pool_vm_type,
        zone=settings.system_node_pool_zone,
        mode=Mode.SPOT if settings.system_node_pool_spot else Mode.STANDARD,
        size=Size(min=settings.system_node_pool_min, max=settings.system_node_pool_max),
        disk_size_gb=settings.system_node_pool_disk_size_gb,
        disk_type=_SYSTEM_DISK,
    )


def _equal(number: int, settings: Settings) -> Pool:
    mode = Mode.asked({name: getattr(settings, name) for name in capacity.ASKING})
    return Pool(
        name=names.node_pool(settings.name_prefix, f"nodepool-{number}"),
        machine_type=settings.vm_type,
        zone=settings.zone,
        gpu_type=settings.accelerator_type,
        gpu_count=settings.gpu_count,
        mode=mode,
        reservation=settings.reservation_name,
        max_run_seconds=_run(None, mode, settings),
        size=_cluster_wide_size(mode, settings),
        disk_size_gb=settings.disk_size_gb,
        disk_type=settings.disk_type.value,
        compact=settings.enable_compact_placement,
    )


def _written(pool: NodePool, settings: Settings) -> Pool:
    machine = machines.lookup(pool.vm_type)
    built_in = (machine.accelerator, machine.gpus) if machine else (None, None)
    wanted = dict(asking(pool, settings))
    mode = Mode.asked(wanted)
    return Pool(
        name=names.node_pool(settings.name_prefix, pool.name),
        setting="GKE_NODE_POOLS",
        zone_setting="GKE_NODE_POOLS",
        machine_type=pool.vm_type,
        zone=pool.zone or settings.zone,
        gpu_type=pool.accelerator_type or built_in[0],
        gpu_count=pool.gpu_count or built_in[1],
        mode=mode,
        reservation=settings.reservation_name if pool.reservation is None else pool.reservation,
        max_run_seconds=_run(pool.max_run_duration, mode, settings),
        size=_size(pool, mode, settings),
        disk_size_gb=pool.disk_size_gb or settings.disk_size_gb,
        disk_type=_disk_type(pool, settings),
        compact=settings.enable_compact_placement,
    )


def asking(pool: NodePool, settings: Settings) -> Iterator[tuple[str, object]]:
    """What one written pool asks for, by the cluster-wide settings that it leaves open."""
    for name, key in capacity.POOL_KEYS.items():
        own = getattr(pool, key)
        yield name, getattr(settings, name) if own is None else own


def _run(own: int | None, mode: Mode, settings: Settings) -> int | None:
    """The seconds that each node runs at most.

    The cluster-wide value may be a default for flex start alone, of which other pools have none.
    """
    asked = settings.max_run_duration if "max_run_duration" in settings.model_fields_set else None
    return own or asked or (limits.LONGEST_RUN if mode.means.limited else None)


def _cluster_wide_size(mode: Mode, settings: Settings) -> Size:
    """The size of a pool that says nothing of its own.

    The cluster-wide limits may be defaults for flex start and queueing alone.
    """
    asked = {"gke_min_node_count", "gke_max_node_count"} & settings.model_fields_set
    if not asked and not mode.means.requested:
        return Size(count=settings.instance_count)
    most = settings.gke_max_node_count
    return Size(
        min=settings.gke_min_node_count or 0, max=settings.instance_count if most is None else most
    )


def _size(pool: NodePool, mode: Mode, settings: Settings) -> Size:
    if pool.count is not None and pool.min is None and pool.max is None:
        return Size(count=pool.count)
    if pool.min is None and pool.max is None:
        return _cluster_wide_size(mode, settings)
    most = pool.max or settings.gke_max_node_count or settings.instance_count
    return Size(min=pool.min or 0, max=most)


def _disk_type(pool: NodePool, settings: Settings) -> str:
    if pool.disk_type is not None:
        return pool.disk_type.value
    family = machines.family(pool.vm_type)
    if "disk_type" not in settings.model_fields_set and family is not None:
        return family.boot_disks[0]
    return settings.disk_type.value
