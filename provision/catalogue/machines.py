"""Facts about Google Cloud's GPU machine types: one row for each family, and one for each GPU.

This is the only place for these facts: all code reads the rows, and Terraform gets values, not a
copy of the table. They were collected from public blueprints, price catalogues and the provider's
own tests. For a type that is not in the table, the online check decides.
"""

from __future__ import annotations

import enum
import json
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from provision.catalogue import images

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Iterable, Mapping


@dataclass(frozen=True, eq=False)
class _GpuNetwork:
    label: str
    vpcs: int  # the number of VPC networks for the GPU interfaces
    subnets: int  # the number of subnetworks in each of them
    mtu: int  # their MTU, in bytes
    nic_type: str  # the type of the interfaces, by its name in the API
    second_gvnic: bool  # whether the machine has a second gVNIC before the GPU interfaces
    # the network profile of the VPC networks, without the zone at the beginning of its name; None
    # for ordinary networks
    profile: str | None


class GpuNetwork(_GpuNetwork, enum.Enum):
    """The network between the GPUs of several machines, besides the first interface."""

    TCPX = ("tcpx", 4, 1, 8244, "GVNIC", False, None)
    TCPXO = ("tcpxo", 8, 1, 8244, "GVNIC", False, None)
    RDMA = ("rdma", 1, 8, 8896, "MRDMA", True, "vpc-roce")


class Consumption(enum.StrEnum):
    """A consumption option: a way to get machines.

    Which machine types have which is told by Google's pages on consumption models (AI
    Hypercomputer, 2026-04-10), on the accelerator-optimized machine family (2026-04), and on
    reservation-bound instances. The three kinds of reservation are asked for by a reservation's
    name.
    """

    ON_DEMAND = "on-demand"
    SPOT = "spot"
    FLEX_START = "flex start"
    RESERVATION = "reservation"
    CALENDAR = "reservation in calendar mode"
    BOUND = "future reservation of AI Hypercomputer"


RESERVED: Final = frozenset({Consumption.RESERVATION, Consumption.CALENDAR, Consumption.BOUND})
"""The consumption options that a reservation's name asks for."""


class Offered(enum.Enum):
    """Whether Google offers a machine type in some way.

    `YES`: A source says so, and none denies it. `DOUBTFUL`: The sources disagree, or none says
    anything. `NO`: A source says so, and none denies it.
    """

    YES = enum.auto()
    DOUBTFUL = enum.auto()
    NO = enum.auto()


class Binding(enum.Enum):
    """Whether machines from a reservation are bound to it, and end when it ends.

    Sources: Google's page on reservation-bound instances; Cluster Toolkit v1.95.0 (resume.py).
    `NEVER`: The reservations of such machines are plain ones. `SOMETIMES`: Those of dense capacity
    and of calendar mode are; the reservation tells. `ALWAYS`: There are no others.
    """

    NEVER = enum.auto()
    SOMETIMES = enum.auto()
    ALWAYS = enum.auto()


class GpuQuota(enum.Enum):
    """The quota for GPUs that are not preemptible; preemptible GPUs always have their own quota.

    `OWN`: A quota for this GPU type, and one for all GPU types in all regions. `SHARED`:
    GPUS_PER_GPU_FAMILY, which has the GPU type as a dimension.
    """

    OWN = enum.auto()
    SHARED = enum.auto()


@dataclass(frozen=True, kw_only=True)
class Gpu:
    """One GPU type."""

    name: str  # its name in the API, such as "nvidia-tesla-t4"
    model: str  # the driver's name for it (nvidia-smi), or the distinctive part of that
    quota_word: str  # the middle part of the names of its quotas, such as "A100_80GB"
    quota: GpuQuota
    # the day, as YYYY-MM-DD, from which no machine with it can be created or started; "" if Google
    # has announced none
    supported_until: str = ""
    # for a GPU that is attached to a machine: the number of GPUs -> the maximum number of vCPUs of
    # the machine
    max_vcpus: Mapping[int, int] = field(default_factory=lambda: MappingProxyType({}), hash=False)
    # whether NVIDIA's open kernel module supports it, the only one that Google's current images
    # have: it needs a GPU System Processor, which came with Turing
    open_module: bool = True

    def is_over(self, today: dt.date) -> bool:
        """Whether Google has ended its support, so that no machine with it can be made."""
        return bool(self.supported_until) and self.supported_until <= today.isoformat()


@dataclass(frozen=True, kw_only=True)
class Shape:
    """One size of a family's machines.

    The memory is that of price lists of 2026-07 (the type lists of Cyclenerd/google-cloud-pricing-
    cost-calculator); where those have none, of Compute Engine's "Accelerator-optimized machine
    family" and, for A4X, "Arm VMs on Compute", read 2026-11-23 (parts of a G4: by what others
    copied of that page, #59472778636 and #61959670744).
    """

    suffix: str  # the last part of the name, such as "8g"
    gpus: int | None  # the number of GPUs that it includes; None if GPUs are attached (N1)
    vcpus: int
    gib: float | None = None  # the memory in GiB; None where the number of vCPUs tells it (N1)
    # The part of a GPU that it includes, such as "1/8"; "" for whole GPUs. The API, the quotas and
    # GKE count it as one GPU.
    part: str = ""
    # the number of interfaces in the recommended set-up: the first, a second gVNIC if the family
    # has one, and those of the GPUs
    nics: int = 1
    local_ssds: int = 0  # the number of local SSDs that it includes
    # its consumption options, if they differ from those of the family
    own_ways: frozenset[Consumption] | None = None
    # the options of which that is not certain, if it has options of its own
    own_doubtful: frozenset[Consumption] = frozenset()


@dataclass(frozen=True)
class Family:
    """A family of machine types: all facts about it and its sizes."""

    name: str  # the name of its types without the last part, such as "a2-highgpu"
    title: str  # its name in Google's documentation, such as "A2 High"
    gpu: Gpu | None  # the GPU that its machines include; None if GPUs are attached (N1)
    boot_disks: tuple[str, ...]  # the disk types that it can boot from, the preferred one first
    # the GPU network of its largest type, which also determines the NCCL installer; None if the
    # GPUs use the first interface
    gpu_network: GpuNetwork | None
    consumption: frozenset[Consumption]
    shapes: tuple[Shape, ...]  # its sizes, the smallest first
    # more options, of which it is not certain that Google offers them
    doubtful: frozenset[Consumption] = frozenset()
    compact: bool = True  # whether compact placement supports it at all
    flex_compact: bool = False  # whether flex start supports compact placement for it
    binding: Binding = Binding.NEVER  # whether its machines are bound to their reservation
    # the accelerator topology that several of its machines need to work together, by its name in
    # the API; None if they need none
    topology: str | None = None
    in_topology: int = 0  # the number of machines in one such topology; 0 if there is none
    arm: bool = False  # whether its processors are Arm, which need an Arm image
    # the line of images that its VMs boot from if the settings name none (ADR 14 and 31)
    image_line: images.Line = images.DEEP_LEARNING
    local_ssd_gb: int = 375
    # the days within which Google recommends a reset of its GPUs; 0 for no such advice
    reset_days: int = 0

    @property
    def accelerator(self) -> str | None:
        """The GPU that its machines include, by its name in the API; None if GPUs are attached."""
        return self.gpu.name if self.gpu else None

    @property
    def series(self) -> str:
        """The first part of the names, such as "a2"."""
        return self.name.partition("-")[0]


@dataclass(frozen=True, kw_only=True)
class Series:
    """A series of machine types without GPUs."""

    name: str  # the first part of its types' names, such as "e2"
    cpu_quota: str
    flex_start: bool = False  # whether flex start supports it
    flex_compact: bool = False  # whether flex start supports compact placement for it


@dataclass(frozen=True, kw_only=True)
class MachineType(Shape):
    """One machine type: a size of a family."""

    name: str  # its name in the API, such as "a2-highgpu-2g"
    family: Family

    @property
    def local_ssd_gb(self) -> int:
        """The size of all its local SSDs together, in GB, as quotas count it."""
        return self.local_ssds * self.family.local_ssd_gb

    @property
    def accelerator(self) -> str | None:
        """The GPU that it includes, by its name in the API; None if GPUs are attached."""
        return self.family.accelerator

    @property
    def gpu_network(self) -> GpuNetwork | None:
        """The GPU network; None where GPUs use the first interface, as of a size with no other."""
        return self.family.gpu_network if self.nics > 1 else None

    @property
    def consumption(self) -> frozenset[Consumption]:
        """The consumption options."""
        return self.family.consumption if self.own_ways is None else self.own_ways

    @property
    def doubtful(self) -> frozenset[Consumption]:
        """More options, of which it is not certain that Google offers them."""
        return self.family.doubtful if self.own_ways is None else self.own_doubtful

    def offered(self, way: Consumption) -> Offered:
        """Whether Google offers it in some way; a plain reservation stands for all three kinds."""
        ways = RESERVED if way is Consumption.RESERVATION else frozenset({way})
        if ways & self.consumption:
            return Offered.YES
        return Offered.DOUBTFUL if ways & self.doubtful else Offered.NO

    @property
    def max_nics(self) -> int:
        """The maximum number of interfaces: 2 for up to 2 vCPUs, otherwise one per vCPU, up to 8.

        That is Google's rule; machine types with a GPU network have exactly `nics`.
        """
        return self.nics if self.gpu_network else min(max(2, self.vcpus), 8)


SIZES_FILE: Final = Path(__file__).with_name("sizes.json")
SIZES: Final[Mapping[str, Mapping[str, Any]]] = json.loads(SIZES_FILE.read_text("utf-8"))
"""Machine type with GPUs -> vCPUs, memory in GiB, GPUs and local SSDs, the smallest first."""
_PD: Final = ("pd-ssd", "pd-balanced", "pd-standard")
_PD_SSD: Final = ("pd-ssd", "pd-balanced")
_PD_OR_HYPERDISK: Final = ("pd-ssd", "pd-balanced", "hyperdisk-balanced")
_HYPERDISK: Final = ("hyperdisk-balanced",)
_ALL_WAYS: Final = frozenset(Consumption)
# Calendar mode and AI Hypercomputer's reservations are for machines with 8 GPUs of A3 and later.
_USUAL_WAYS: Final = _ALL_WAYS - {Consumption.CALENDAR, Consumption.BOUND}
# A3 High machines with fewer than 8 GPUs are only available as Spot VMs or with flex start.
_OF_A_PART: Final = frozenset({Consumption.SPOT, Consumption.FLEX_START})
# Their future reservations are dense; whether there are plain ones is not told.
_NOT_ON_DEMAND: Final = _ALL_WAYS - {Consumption.ON_DEMAND, Consumption.RESERVATION}

_L4: Final = Gpu(name="nvidia-l4", model="L4", quota_word="L4", quota=GpuQuota.OWN)
_RTX_PRO_6000: Final = Gpu(
    name="nvidia-rtx-pro-6000",
    model="RTX PRO 6000",
    quota_word="RTX_PRO_6000",
    quota=GpuQuota.SHARED,
)
_A100: Final = Gpu(name="nvidia-tesla-a100", model="A100", quota_word="A100", quota=GpuQuota.OWN)
_A100_80GB: Final = Gpu(
    name="nvidia-a100-80gb", model="A100", quota_word="A100_80GB", quota=GpuQuota.OWN
)
_H100: Final = Gpu(name="nvidia-h100-80gb", model="H100", quota_word="H100", quota=GpuQuota.SHARED)
_H100_MEGA: Final = Gpu(
    name="nvidia-h100-mega-80gb", model="H100", quota_word="H100_MEGA", quota=GpuQuota.SHARED
)
_H200: Final = Gpu(name="nvidia-h200-141gb", model="H200", quota_word="H200", quota=GpuQuota.SHARED)
_B200: Final = Gpu(name="nvidia-b200", model="B200", quota_word="B200", quota=GpuQuota.SHARED)
_GB200: Final = Gpu(name="nvidia-gb200", model="GB200", quota_word="GB200", quota=GpuQuota.SHARED)
_GB300: Final = Gpu(name="nvidia-gb300", model="GB300", quota_word="GB300", quota=GpuQuota.SHARED)


def _attached(model: str, max_vcpus: Mapping[int, int], **facts: Any) -> Gpu:
    return Gpu(
        name=f"nvidia-tesla-{model.lower()}",
        model=model,
        quota_word=model,
        quota=GpuQuota.OWN,
        max_vcpus=MappingProxyType(max_vcpus),
        **facts,
    )


ATTACHED_GPUS: Final = (
    _attached("T4", {1: 48, 2: 48, 4: 96}, supported_until="2027-08-01"),
    _attached("V100", {1: 12, 2: 24, 4: 48, 8: 96}, open_module=False),
    _attached("P4", {1: 24, 2: 48, 4: 96}, supported_until="2027-08-01", open_module=False),
    _attached("P100", {1: 16, 2: 32, 4: 96}, supported_until="2026-09-15", open_module=False),
)
"""The GPUs that can be attached to machines that include none (N1).

The ends of support are those of Compute Engine's release notes of 2026-09-22.
"""


def _n1(kind: str, *sizes: int) -> Family:
    shapes = tuple(Shape(suffix=str(size), gpus=None, vcpus=size) for size in sizes)
    return Family(f"n1-{kind}", "N1", None, _PD, None, _USUAL_WAYS, shapes, compact=False)


def _of(name: str, **unusual: Mapping[str, Any]) -> tuple[Shape, ...]:
    """The sizes that Google told of a family.

    `unusual`: field -> the last part of a name -> its value there, where it is not the usual one.
    """
    told = {
        it.removeprefix(f"{name}-"): size for it, size in SIZES.items() if it.startswith(f"{name}-")
    }
    return tuple(
        Shape(suffix=last, **size, **{it: of[last] for it, of in unusual.items() if last in of})
        for last, size in told.items()
    )


ROWS: Final = (
    Family("g2-standard", "G2", _L4, _PD_SSD, None, _USUAL_WAYS, _of("g2-standard")),
    Family(
        "g4-standard",
        "G4",
        _RTX_PRO_6000,
        _HYPERDISK,
        None,
        _USUAL_WAYS - {Consumption.RESERVATION},
        _of("g4-standard", part={"6": "1/8", "12": "1/4", "24": "1/2"}),
        doubtful=frozenset({Consumption.RESERVATION}),
    ),
    Family("a2-highgpu", "A2 High", _A100, _PD, None, _USUAL_WAYS, _of("a2-highgpu")),
    Family("a2-megagpu", "A2 Mega", _A100, _PD, None, _USUAL_WAYS, _of("a2-megagpu")),
    Family("a2-ultragpu", "A2 Ultra", _A100_80GB, _PD, None, _USUAL_WAYS, _of("a2-ultragpu")),
    Family(
        "a3-highgpu",
        "A3 High",
        _H100,
        _PD_OR_HYPERDISK,
        GpuNetwork.TCPX,
        _ALL_WAYS,
        _of("a3-highgpu", own_ways=dict.fromkeys(("1g", "2g", "4g"), _OF_A_PART), nics={"8g": 5}),
        binding=Binding.SOMETIMES,
    ),
    Family(
        "a3-edgegpu",
        "A3 Edge",
        _H100,
        _PD_OR_HYPERDISK,
        # Its network of GPUs is one that this tool does not set up.
        None,
        frozenset({Consumption.SPOT, Consumption.BOUND}),
        _of("a3-edgegpu"),
        # Google's table of consumption options has no row for it.
        doubtful=_USUAL_WAYS - {Consumption.SPOT},
        binding=Binding.SOMETIMES,
    ),
    Family(
        "a3-megagpu",
        "A3 Mega",
        _H100_MEGA,
        _PD_OR_HYPERDISK,
        GpuNetwork.TCPXO,
        _ALL_WAYS,
        _of("a3-megagpu", nics={"8g": 9}),
        binding=Binding.SOMETIMES,
        image_line=images.ACCELERATOR,
    ),
    Family(
        "a3-ultragpu",
        "A3 Ultra",
        _H200,
        _HYPERDISK,
        GpuNetwork.RDMA,
        _NOT_ON_DEMAND,
        _of("a3-ultragpu", nics={"8g": 10, "8g-nolssd": 10}),
        # It has a price on demand, but no tick for it in the table of consumption options.
        doubtful=frozenset({Consumption.ON_DEMAND, Consumption.RESERVATION}),
        flex_compact=True,
        binding=Binding.ALWAYS,
        image_line=images.ACCELERATOR,
    ),
    Family(
        "a4-highgpu",
        "A4",
        _B200,
        _HYPERDISK,
        GpuNetwork.RDMA,
        _NOT_ON_DEMAND,
        _of("a4-highgpu", nics={"8g": 10}),
        doubtful=frozenset({Consumption.RESERVATION}),
        flex_compact=True,
        binding=Binding.ALWAYS,
        image_line=images.ACCELERATOR,
        # A fault of B200's firmware interrupts work (Compute Engine's release notes, 2025-12-12).
        reset_days=60,
    ),
    Family(
        "a4x-highgpu",
        "A4X",
        _GB200,
        _HYPERDISK,
        GpuNetwork.RDMA,
        frozenset({Consumption.BOUND}),
        _of("a4x-highgpu", nics={"4g": 6}),
        binding=Binding.ALWAYS,
        topology="1x72",
        in_topology=18,
        arm=True,
        image_line=images.ACCELERATOR_ARM,
        local_ssd_gb=3000,
    ),
    Family(
        "a4x-maxgpu",
        "A4X Max",
        _GB300,
        _HYPERDISK,
        # Its network of GPUs is one that this tool does not set up.
        None,
        frozenset({Consumption.BOUND}),
        _of("a4x-maxgpu"),
        binding=Binding.ALWAYS,
        topology="1x72",
        in_topology=18,
        arm=True,
        image_line=images.ACCELERATOR_ARM,
    ),
    _n1("standard", 1, 2, 4, 8, 16, 32, 64, 96),
    _n1("highmem", 2, 4, 8, 16, 32, 64, 96),
    _n1("highcpu", 2, 4, 8, 16, 32, 64, 96),
)
"""All families that the tool knows, one row each."""

CPUS_PER_VM_FAMILY: Final = "CPUS_PER_VM_FAMILY"
"""The quota of vCPUs of newer series, with a limit for each."""
# Those of which compute v1 lists a quota (discovery document of 2026-11-06, Quota.metric).
_LISTED: Final = frozenset({"c2", "c2d", "c3", "m1", "m2", "m3", "n2", "n2d", "t2a", "t2d"})


def _plain(names: str) -> Iterable[Series]:
    for name in names.split():
        own = f"{name.upper()}_CPUS" if name in _LISTED else CPUS_PER_VM_FAMILY
        yield Series(name=name, cpu_quota=own)


OTHER_SERIES: Final[Mapping[str, Series]] = {
    row.name: row
    for row in (
        *_plain("c2 c2d c3 c3d c4 c4a c4d h3 m1 m2 m3 m4 n2 n2d n4 n4a n4d t2a t2d x4 z3"),
        Series(name="h4d", cpu_quota=CPUS_PER_VM_FAMILY, flex_start=True, flex_compact=True),
        Series(name="e2", cpu_quota="CPUS"),
    )
}
"""Name -> series without GPUs.

Some names differ in one letter from those of machines with GPUs: n2-standard-8 is not a typo of
n1-standard-8.
"""

TWO_INTERFACES: Final = frozenset({"g4-standard-384"})
"""Machine types that fill their network by two gVNICs, without a network for GPUs.

Cluster Toolkit's gke-g4 (10470803) has the second; "required to fill 400 Gbps", as a user says.
"""
NOT_SET_UP: Final[Mapping[str, str]] = {"a5x": "A5X"}
"""Series with GPUs that Google has and this tool can make nothing of -> their titles.

A5X: Arm, bare metal, bound to a reservation, and a network of GPUs of a kind of its own (IRDMA, as
GKE's network driver has it, 2026); no public page has its sizes.
"""


@dataclass(frozen=True, kw_only=True)
class Tables:
    """Look-up tables by name, made from the rows."""

    families: Mapping[str, Family]  # name -> family
    machine_types: Mapping[str, MachineType]  # name -> machine type
    gpus: Mapping[str, Gpu]  # name -> GPU; those that machine types include come first
    attachments: Mapping[str, Gpu]  # name -> GPU that can be attached

    @classmethod
    def of(cls, rows: Iterable[Family], attached: Iterable[Gpu] = ATTACHED_GPUS) -> Tables:
        """Make the tables from rows."""
        families = {row.name: row for row in rows}
        types = [
            MachineType(name=f"{row.name}-{shape.suffix}", family=row, **vars(shape))
            for row in families.values()
            for shape in row.shapes
        ]
        attachments = {gpu.name: gpu for gpu in attached}
        built_in = {row.gpu.name: row.gpu for row in families.values() if row.gpu}
        return cls(
            families=MappingProxyType(families),
            machine_types=MappingProxyType({one.name: one for one in types}),
            gpus=MappingProxyType(built_in | attachments),
            attachments=MappingProxyType(attachments),
        )


_TABLES: Final = Tables.of(ROWS)

MACHINE_TYPES: Final = _TABLES.machine_types
"""Name -> machine type, for all types that the tool knows."""

FAMILIES: Final = _TABLES.families
"""Name -> family, for all families that the tool knows."""

GPUS: Final = _TABLES.gpus
"""Name -> GPU, for all GPUs that the tool knows."""

ATTACHMENTS: Final = _TABLES.attachments
"""Name -> GPU that can be attached to an N1 machine."""

ACCELERATORS: Final = tuple(GPUS)
"""The names of all GPUs that the tool knows."""


def lookup(name: str) -> MachineType | None:
    """The machine type with a name; None if the tool does not know it."""
    return MACHINE_TYPES.get(name)


def family(name: str) -> Family | None:
    """The family of a machine type's name, whether the type exists or not; None if unknown."""
    return next((row for row in FAMILIES.values() if name.startswith(f"{row.name}-")), None)


def of_series(name: str) -> tuple[Family, ...]:
    """The families of the series of a machine type's name, whether the type exists or not.

    They are used for custom machine types and for families that are newer than the table.
    """
    series = name.partition("-")[0]
    return tuple(row for row in FAMILIES.values() if row.series == series)


def image_line(name: str) -> images.Line:
    """The line of images that VMs of a machine type boot from if the settings name none."""
    known = family(name)
    rows = (known,) if known is not None else of_series(name)
    return rows[0].image_line if rows else images.DEEP_LEARNING


def takes_gpus(name: str) -> bool:
    """Whether GPUs are attached to a machine type; the others include GPUs or have none."""
    return any(row.gpu is None for row in of_series(name))


def binding(name: str) -> Binding:
    """Whether machines of a type are bound to their reservation; of an unknown type it tells."""
    known = family(name)
    return known.binding if known is not None else Binding.SOMETIMES


def plain_series(name: str) -> Series | None:
    """The series without GPUs of a machine type's name; None if it is of none that is known."""
    return OTHER_SERIES.get(name.partition("-")[0])


def cpu_quota(name: str) -> str:
    """The quota for the vCPUs of a machine type; "" if it needs that of its GPUs alone.

    So it is of all that include GPUs: "You don't need to request CPU quotas" (Compute Engine,
    "Allocation quotas", of A2, A3, A4, A4X, A4X Max, G2 and G4, as quoted in September 2026).
    """
    rows = of_series(name)
    if rows:
        return "CPUS" if rows[0].gpu is None else ""
    other = plain_series(name)
    return other.cpu_quota if other else CPUS_PER_VM_FAMILY


def carrying(accelerator: str) -> tuple[str, ...]:
    """The names of the machine types that include this GPU."""
    return tuple(name for name, it in MACHINE_TYPES.items() if it.accelerator == accelerator)


def may_flex_start(name: str) -> bool:
    """Whether flex start may support a machine type.

    A name that the tool does not know may be a newer machine type with GPUs: the online check
    decides, unless flex start supports no machine type of its series.
    """
    known = lookup(name)
    if known is not None:
        return known.offered(Consumption.FLEX_START) is not Offered.NO
    other = plain_series(name)
    if other is not None:
        return other.flex_start
    kin = of_series(name)
    return not kin or any(Consumption.FLEX_START in row.consumption for row in kin)


def compact_with_flex_start() -> list[str]:
    """The titles of the families that support compact placement with flex start."""
    titles = [row.title for row in FAMILIES.values() if row.flex_compact]
    return titles + [row.name.upper() for row in OTHER_SERIES.values() if row.flex_compact]


def without_flex_start() -> list[str]:
    """The titles of the families that flex start does not support."""
    ways = {row.title: row.consumption | row.doubtful for row in FAMILIES.values()}
    return [title for title, its in ways.items() if Consumption.FLEX_START not in its]
