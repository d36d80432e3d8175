"""Equal machines in one zone: a group of VMs, or a node pool of a GKE cluster."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from provision.catalogue import fabrics, gke_versions, limits, machines, names, zones
from provision.catalogue.machines import Binding
from provision.google.resources import GROUP
from provision.settings.resource_paths import ReservationPath
from provision.spec import capacity
from provision.spec.capacity import Mode

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import Self

    from provision.catalogue.fabrics import Network
    from provision.catalogue.gke_versions import Floor
    from provision.catalogue.machines import MachineType
    from provision.settings.gke import NodePool
    from provision.settings.model import Settings

_SYSTEM_DISK = "pd-balanced"  # GKE's default disk type for nodes
_H200 = "nvidia-h200-141gb"
_DEFAULT_DRIVER = "DEFAULT"


@dataclass(frozen=True, kw_only=True)
class Size:
    """The number of machines of a pool."""

    count: int | None = None  # the fixed number; None with autoscaling
    min: int | None = None  # the minimum with autoscaling
    max: int | None = None  # the maximum with autoscaling

    @property
    def first(self) -> int:
        """The number of machines at the start."""
        return self.count if self.count is not None else self.min or 0

    @property
    def most(self) -> int:
        """The largest number of machines."""
        return self.count if self.count is not None else self.max or 0


@dataclass(frozen=True, kw_only=True)
class Pool:
    """Equal machines in one zone, with every default resolved."""

    name: str  # the name of the managed instance group or of the node pool
    setting: str = "VM_TYPE"  # the setting that has their machine type
    zone_setting: str = "ZONE"
    machine_type: str
    zone: str
    # the GPU type of each machine, by its name in the API; None if it has no GPUs, or if it is not
    # set for a machine type that the tool does not know
    gpu_type: str | None = None
    gpu_count: int | None = None  # the number of GPUs of each machine; None in the same cases
    mode: Mode = Mode.STANDARD
    reservation: str | None = None  # the name or path of the reservation, if they come from one
    # whether Google's answer about the reservation decided how they come from it, now or in an
    # earlier run; otherwise their family did
    reservation_read: bool = False
    # the placement policies of the reservation itself, which its machines share
    policies: tuple[str, ...] = ()
    # the run duration of each machine, in seconds; None for no limit, or if the request has it
    max_run_seconds: int | None = None
    size: Size  # the number of machines
    disk_size_gb: int  # the size of the boot disk, in GiB
    disk_type: str  # the type of the boot disk, by its name in the API
    compact: bool = False  # whether the machines are placed close together
    # whether each machine has an external IP address; GKE's nodes never do
    external_ip: bool = False

    @property
    def region(self) -> str:
        """The zone's region."""
        return zones.region_of(self.zone)

    @property
    def machine(self) -> MachineType | None:
        """The catalogue's row for the machine type; None if the tool does not know it."""
        return machines.lookup(self.machine_type)

    @property
    def gpus(self) -> int:
        """The number of GPUs of each machine; 0 if it is not known."""
        return self.gpu_count or 0

    @property
    def attached(self) -> bool:
        """Whether the GPUs are attached, instead of included in the machine type."""
        return self.gpu_type is not None and machines.takes_gpus(self.machine_type)

    @property
    def gpu_part(self) -> str:
        """The part of a GPU that each machine has, such as "1/8"; "" for whole GPUs."""
        return self.machine.part if self.machine else ""

    @property
    def local_ssds(self) -> int:
        """The number of local SSDs that the machine type includes."""
        return self.machine.local_ssds if self.machine else 0

    @property
    def reservation_path(self) -> ReservationPath | None:
        """The parts of the reservation's name; None if they come from none."""
        return ReservationPath.parse(self.reservation) if self.reservation else None

    @property
    def topology(self) -> str | None:
        """The accelerator topology that the machines need to work together; None for none."""
        return self.machine.family.topology if self.machine and self.size.most > 1 else None

    def reserved(self, *, bound: bool, policies: tuple[str, ...] = (), read: bool = False) -> Self:
        """The same machines, with what is known of their reservation."""
        mode = Mode.RESERVATION_BOUND if bound else Mode.RESERVATION
        # Its own placement takes the place of ours.
        compact = self.compact and not policies
        return replace(self, mode=mode, policies=policies, compact=compact, reservation_read=read)

    @property
    def network_kind(self) -> str | None:
        """The kind of the network between the GPUs of several machines; None for none."""
        network = self.machine.gpu_network if self.machine else None
        return network.label if network else None

    @property
    def is_manageable(self) -> bool:
        """Whether GKE can give its nodes and pods the GPU network (ADR 87).

        Not in a queue: the autoscaler makes no claims for the pods of a ProvisioningRequest, which
        then fit nowhere (kubernetes/autoscaler#10065, open on 2026-08-03).
        """
        return self.machine_type in fabrics.STRATEGY and not self.mode.means.queued

    @property
    def networks(self) -> tuple[Network, ...]:
        """The networks of the additional interfaces that the GPUs need."""
        machine = self.machine
        if machine is None or machine.gpu_network is None:
            return ()
        return fabrics.beside_the_first(machine)


@dataclass(frozen=True, kw_only=True)
class Group:
    """A managed instance group and its intended size and machines."""

    project: str
    zone: str
    name: str
    size: int  # the intended number of VMs
    machine_type: str
    # the type of GPUs that are attached to each; None if the machine type includes them
    gpu: str | None = None
    gpus: int = 0  # the number of GPUs that are attached to each
    pool: str | None = None  # the node pool that the group belongs to; None for a group of VMs
    zone_setting: str = "ZONE"

    @classmethod
    def of(cls, project: str, pool: Pool, name: str = "") -> Self:
        """The group of a pool with a fixed size.

        `name`: the name of the group, for a node pool of GKE; "" for a group of VMs.
        """
        return cls(
            project=project,
            zone=pool.zone,
            name=name or pool.name,
            size=pool.size.first,
            machine_type=pool.machine_type,
            gpu=pool.gpu_type if pool.attached else None,
            gpus=pool.gpus if pool.attached else 0,
            pool=pool.name if name else None,
            zone_setting=pool.zone_setting,
        )

    @property
    def members(self) -> str:
        """What to call its VMs in messages."""
        return f"nodes of {self.pool}" if self.pool else "VMs"

    def that_run(self, count: int) -> str:
        """How many of its VMs run: "0 of 1 VM runs"."""
        one = f"node of {self.pool} runs" if self.pool else "VM runs"
        return f"{count} of {self.size} {one if self.size == 1 else f'{self.members} run'}"

    @property
    def called(self) -> str:
        """What to call the group itself in messages."""
        return "node pool" if self.pool else "group"

    def in_zone(self, zone: str) -> str:
        """What the user has to write to move it to another zone."""
        if self.zone_setting == "ZONE":
            return f"set ZONE={zone}"
        return f"set its zone={zone} in {self.zone_setting}"

    @property
    def region(self) -> str:
        """The zone's region."""
        return zones.region_of(self.zone)

    @property
    def path(self) -> str:
        """Its path in Google's API."""
        return GROUP.path(project=self.project, zone=self.zone, name=self.name)

    @property
    def machine(self) -> str:
        """What to call one of its machines in messages."""
        attached = f" with {self.gpus} {self.gpu}" if self.gpu else ""
        return self.machine_type + attached

    @property
    def all_gpus(self) -> int:
        """The number of GPUs of all its VMs together; 0 if it is not known."""
        known = machines.lookup(self.machine_type)
        own = known.gpus if known is not None else None
        return self.size * (own or self.gpus)


def _mode(wanted: Mapping[str, object], machine_type: str) -> Mode:
    """The mode that settings select for machines of a type.

    Whether those of a reservation are bound to it, their family says as long as Google has not.
    """
    mode = Mode.asked(wanted)
    if mode is Mode.RESERVATION and machines.binding(machine_type) is Binding.ALWAYS:
        return Mode.RESERVATION_BOUND
    return mode


def group(settings: Settings) -> Pool:
    """The VMs of a managed instance group."""
    asked = {name: getattr(settings, name) for name in capacity.ASKING}
    mode = _mode(asked, settings.vm_type)
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
    """All GPU pools of a GKE cluster, in the order of the settings."""
    if settings.gke_node_pools is not None:
        return tuple(_written(pool, settings) for pool in settings.gke_node_pools)
    return tuple(_equal(number, settings) for number in range(1, settings.gke_node_pool_count + 1))


def system(settings: Settings) -> Pool:
    """The node pool of a GKE cluster for system pods."""
    asked = settings.system_node_pool
    return Pool(
        name=names.SYSTEM_POOL.of(settings.name_prefix),
        setting="SYSTEM_NODE_POOL",
        zone_setting="SYSTEM_NODE_POOL",
        machine_type=asked.vm_type,
        zone=asked.zone or settings.zone,
        mode=Mode.SPOT if asked.spot else Mode.STANDARD,
        size=Size(min=asked.min, max=asked.max),
        disk_size_gb=asked.disk_size_gb,
        disk_type=_SYSTEM_DISK,
    )


def _equal(number: int, settings: Settings) -> Pool:
    """One of several node pools of one machine type, which are as a group of VMs would be."""
    like = group(settings)
    return replace(
        like,
        name=names.node_pool(settings.name_prefix, f"nodepool-{number}"),
        max_run_seconds=_run(None, like.mode, settings),
        size=_cluster_wide_size(like.mode, settings),
        external_ip=False,
    )


def _written(pool: NodePool, settings: Settings) -> Pool:
    machine = machines.lookup(pool.vm_type)
    built_in = (machine.accelerator, machine.gpus) if machine else (None, None)
    mode = _mode(dict(asking(pool, settings)), pool.vm_type)
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
        compact=settings.enable_compact_placement if pool.compact is None else pool.compact,
    )


def asking(pool: NodePool, settings: Settings) -> Iterator[tuple[str, object]]:
    """How one pool in GKE_NODE_POOLS is got, completed with the cluster-wide settings."""
    for name, key in capacity.POOL_KEYS.items():
        own = getattr(pool, key)
        yield name, getattr(settings, name) if own is None else own


def _run(own: int | None, mode: Mode, settings: Settings) -> int | None:
    """The longest run time of a node, in seconds.

    If the cluster-wide value is only the default for flex start, other pools do not have it.
    """
    asked = settings.max_run_duration if "max_run_duration" in settings.model_fields_set else None
    return own or asked or (limits.LONGEST_RUN if mode.means.limited else None)


def _cluster_wide_size(mode: Mode, settings: Settings) -> Size:
    """The size of a pool without a size of its own.

    If the cluster-wide limits are only defaults for flex start and queued provisioning, other pools
    do not have them.
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


def floors(pools: Iterable[Pool], *, driver: str, ray_operator: bool) -> list[Floor]:
    """The least versions of GKE of all that a cluster uses, the newest first."""
    found = []
    for pool in pools:
        mode, machine = pool.mode.means, gke_versions.of_machine(pool.machine_type)
        is_h200 = pool.gpu_type == _H200 and driver == _DEFAULT_DRIVER
        found += [gke_versions.FLEX_START] * mode.flex_start
        found += [gke_versions.QUEUED] * mode.queued
        found += [gke_versions.GPU_PARTS] * bool(pool.gpu_part)
        found += [gke_versions.DRIVER_OF_H200] * is_h200
        found += [machine] if machine is not None else []
    found += [gke_versions.RAY_OPERATOR] * ray_operator
    return gke_versions.highest_first(found)
