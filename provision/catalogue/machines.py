"""What Google Cloud's GPU machine types are made of.

The one place for such facts: Terraform gets the values, not a copy of the table. They were
gathered from public blueprints, price catalogues and the provider's own tests; the online check
has the last word on a type that is not here.
"""

from __future__ import annotations

import difflib
import enum
import re
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping


class GpuNetwork(enum.Enum):
    """How the GPUs of several machines reach each other, apart from the first interface.

    Attributes:
        vpcs: VPC networks for the GPU interfaces.
        subnets: Subnetworks in each of them.
        mtu: Their MTU, in bytes.
        nic_type: The interfaces' type, by the API's name.
        second_gvnic: Whether the machine has a second gVNIC before the GPU interfaces.
        profile: The network profile of the VPC networks, without the zone that its name begins
            with; None where they are networks like others.
    """

    TCPX = ("tcpx", 4, 1, 8244, "GVNIC", False, None)
    TCPXO = ("tcpxo", 8, 1, 8244, "GVNIC", False, None)
    RDMA = ("rdma", 1, 8, 8896, "MRDMA", True, "vpc-roce")

    def __init__(  # noqa: PLR0913, PLR0917 - one value per column of the table above
        self,
        label: str,
        vpcs: int,
        subnets: int,
        mtu: int,
        nic_type: str,
        second_gvnic: bool,  # noqa: FBT001 - a column of the table above
        profile: str | None,
    ) -> None:
        self.label = label
        self.vpcs = vpcs
        self.subnets = subnets
        self.mtu = mtu
        self.nic_type = nic_type
        self.second_gvnic = second_gvnic
        self.profile = profile


class Consumption(enum.StrEnum):
    """A way to get machines."""

    ON_DEMAND = "on-demand"
    SPOT = "spot"
    FLEX_START = "flex start"
    RESERVATION = "reservation"


@dataclass(frozen=True, kw_only=True)
class Family:
    """What all machine types of one family have in common.

    Attributes:
        name: The types' name without the last part, such as "a2-highgpu".
        accelerator: The GPU that is part of the machine; None where GPUs are attached (N1).
        boot_disks: Disk types that work for booting, the preferred one first.
        gpu_network: How the GPUs of the family's full-size type are networked.
        flex_compact: Whether compact placement works together with flex start.
        arm: Whether the processors are Arm, which takes an Arm image.
        consumption: The ways to get a machine of this family.
    """

    name: str
    accelerator: str | None
    boot_disks: tuple[str, ...]
    gpu_network: GpuNetwork | None = None
    flex_compact: bool = False
    arm: bool = False
    consumption: frozenset[Consumption] = frozenset(Consumption)

    @property
    def series(self) -> str:
        """The first part of the names, such as "a2"."""
        return self.name.partition("-")[0]


@dataclass(frozen=True, kw_only=True)
class MachineType:
    """One machine type.

    Attributes:
        name: As the API has it, such as "a2-highgpu-2g".
        family: What it has in common with its kin.
        vcpus: Virtual processors.
        gpus: GPUs that are part of the machine; None where they are attached (N1).
        nics: All interfaces in the recommended set-up: the first, a second gVNIC where the family
            has one, then those of the GPUs.
        gpu_network: How the GPUs are networked; None where the first interface carries all.
        local_ssds: Local SSDs that are part of the machine.
        consumption: The ways to get one.
    """

    name: str
    family: Family
    vcpus: int
    gpus: int | None
    nics: int
    gpu_network: GpuNetwork | None
    local_ssds: int
    consumption: frozenset[Consumption]

    @property
    def accelerator(self) -> str | None:
        """The GPU that is part of the machine, by the API's name; None where it is attached."""
        return self.family.accelerator

    @property
    def boot_disks(self) -> tuple[str, ...]:
        """Disk types that work for booting, the preferred one first."""
        return self.family.boot_disks

    @property
    def max_nics(self) -> int:
        """The most interfaces: 2 for up to two vCPUs, else one per vCPU up to 8, or all of `nics`.

        Google's rule for all types; those with a GPU network have exactly their own number.
        """
        return self.nics if self.gpu_network else min(max(2, self.vcpus), 8)


@dataclass(frozen=True)
class Attachment:
    """A GPU that is attached to an N1 machine.

    Attributes:
        name: As the API has it, such as "nvidia-tesla-t4".
        max_vcpus: How many GPUs -> the most vCPUs that the machine may then have.
    """

    name: str
    max_vcpus: Mapping[int, int]


_PD: Final = ("pd-ssd", "pd-balanced", "pd-standard")
_PD_SSD: Final = ("pd-ssd", "pd-balanced")
_PD_OR_HYPERDISK: Final = ("pd-ssd", "pd-balanced", "hyperdisk-balanced")
_HYPERDISK: Final = ("hyperdisk-balanced",)
_NOT_ON_DEMAND: Final = frozenset(Consumption) - {Consumption.ON_DEMAND}
_A100: Final = "nvidia-tesla-a100"
_A100_80GB: Final = "nvidia-a100-80gb"

_G2 = Family(name="g2-standard", accelerator="nvidia-l4", boot_disks=_PD_SSD)
_G4 = Family(name="g4-standard", accelerator="nvidia-rtx-pro-6000", boot_disks=_HYPERDISK)
_A2_HIGH = Family(name="a2-highgpu", accelerator=_A100, boot_disks=_PD)
_A2_MEGA = Family(name="a2-megagpu", accelerator=_A100, boot_disks=_PD)
_A2_ULTRA = Family(name="a2-ultragpu", accelerator=_A100_80GB, boot_disks=_PD)
_A3_HIGH = Family(
    name="a3-highgpu",
    accelerator="nvidia-h100-80gb",
    boot_disks=_PD_OR_HYPERDISK,
    gpu_network=GpuNetwork.TCPX,
)
_A3_MEGA = Family(
    name="a3-megagpu",
    accelerator="nvidia-h100-mega-80gb",
    boot_disks=_PD_OR_HYPERDISK,
    gpu_network=GpuNetwork.TCPXO,
)
_A3_ULTRA = Family(
    name="a3-ultragpu",
    accelerator="nvidia-h200-141gb",
    boot_disks=_HYPERDISK,
    gpu_network=GpuNetwork.RDMA,
    flex_compact=True,
)
_A4 = Family(
    name="a4-highgpu",
    accelerator="nvidia-b200",
    boot_disks=_HYPERDISK,
    gpu_network=GpuNetwork.RDMA,
    flex_compact=True,
    consumption=_NOT_ON_DEMAND,
)
_A4X = Family(
    name="a4x-highgpu",
    accelerator="nvidia-gb200",
    boot_disks=_HYPERDISK,
    gpu_network=GpuNetwork.RDMA,
    arm=True,
    consumption=frozenset(Consumption) - {Consumption.FLEX_START},
)
_N1 = tuple(
    Family(name=f"n1-{kind}", accelerator=None, boot_disks=_PD)
    for kind in ("standard", "highmem", "highcpu")
)

# family, last part of the name, GPUs, vCPUs, interfaces, local SSDs
_SHAPES: Final = (
    (_G2, "4", 1, 4, 1, 0),
    (_G2, "8", 1, 8, 1, 0),
    (_G2, "12", 1, 12, 1, 0),
    (_G2, "16", 1, 16, 1, 0),
    (_G2, "24", 2, 24, 1, 0),
    (_G2, "32", 1, 32, 1, 0),
    (_G2, "48", 4, 48, 1, 0),
    (_G2, "96", 8, 96, 1, 0),
    (_G4, "48", 1, 48, 1, 0),
    (_G4, "96", 2, 96, 1, 0),
    (_G4, "192", 4, 192, 1, 0),
    (_G4, "384", 8, 384, 1, 0),
    (_A2_HIGH, "1g", 1, 12, 1, 0),
    (_A2_HIGH, "2g", 2, 24, 1, 0),
    (_A2_HIGH, "4g", 4, 48, 1, 0),
    (_A2_HIGH, "8g", 8, 96, 1, 0),
    (_A2_MEGA, "16g", 16, 96, 1, 0),
    (_A2_ULTRA, "1g", 1, 12, 1, 1),
    (_A2_ULTRA, "2g", 2, 24, 1, 2),
    (_A2_ULTRA, "4g", 4, 48, 1, 4),
    (_A2_ULTRA, "8g", 8, 96, 1, 8),
    (_A3_HIGH, "1g", 1, 26, 1, 2),
    (_A3_HIGH, "2g", 2, 52, 1, 4),
    (_A3_HIGH, "4g", 4, 104, 1, 8),
    (_A3_HIGH, "8g", 8, 208, 5, 16),
    (_A3_MEGA, "8g", 8, 208, 9, 16),
    (_A3_ULTRA, "8g", 8, 224, 10, 32),
    (_A4, "8g", 8, 224, 10, 32),
    (_A4X, "4g", 4, 140, 6, 4),
    (_N1[0], "1", None, 1, 1, 0),
    *(
        (family, str(size), None, size, 1, 0)
        for family in _N1
        for size in (2, 4, 8, 16, 32, 64, 96)
    ),
)

# Parts of an A3 High machine come as Spot or by flex start alone.
_FRACTION_CONSUMPTION: Final = frozenset({Consumption.SPOT, Consumption.FLEX_START})


def _machine(  # noqa: PLR0913, PLR0917 - one argument per column of the table above
    family: Family, last: str, gpus: int | None, vcpus: int, nics: int, local_ssds: int
) -> MachineType:
    # The GPUs of a machine that has the first interface alone are not networked by themselves.
    fraction = family.gpu_network is not None and nics == 1
    return MachineType(
        name=f"{family.name}-{last}",
        family=family,
        vcpus=vcpus,
        gpus=gpus,
        nics=nics,
        gpu_network=None if fraction else family.gpu_network,
        local_ssds=local_ssds,
        consumption=_FRACTION_CONSUMPTION if fraction else family.consumption,
    )


MACHINE_TYPES: Final[Mapping[str, MachineType]] = MappingProxyType(
    {machine.name: machine for machine in (_machine(*shape) for shape in _SHAPES)},
)
"""Name -> machine type, for all types that the tool knows."""

FAMILIES: Final[Mapping[str, Family]] = MappingProxyType(
    {machine.family.name: machine.family for machine in MACHINE_TYPES.values()},
)
"""Name -> family, for all families that the tool knows."""

ATTACHMENTS: Final[Mapping[str, Attachment]] = MappingProxyType(
    {
        gpu.name: gpu
        for gpu in (
            Attachment("nvidia-tesla-t4", MappingProxyType({1: 48, 2: 48, 4: 96})),
            Attachment("nvidia-tesla-v100", MappingProxyType({1: 12, 2: 24, 4: 48, 8: 96})),
            Attachment("nvidia-tesla-p4", MappingProxyType({1: 24, 2: 48, 4: 96})),
            Attachment("nvidia-tesla-p100", MappingProxyType({1: 16, 2: 32, 4: 96})),
        )
    },
)
"""Name -> GPU that can be attached to an N1 machine."""

ACCELERATORS: Final = tuple(
    dict.fromkeys(
        [
            *(machine.accelerator for machine in MACHINE_TYPES.values() if machine.accelerator),
            *ATTACHMENTS,
        ],
    ),
)
"""The names of all GPUs that the tool knows."""

# Series without GPUs whose names are a letter away from ones with: n2-standard-8 is no misspelt
# n1-standard-8.
_OTHER_SERIES: Final = re.compile(r"c2d?|c[34]d?|c4a|e2|h3|h4d|m[1-4]|n2d?|n4[ad]?|t2[ad]|x4|z3")
_ALIKE: Final = 0.75
_LONGEST_NAME: Final = 63


def lookup(name: str) -> MachineType | None:
    """The machine type of that name; None when the tool does not know it."""
    return MACHINE_TYPES.get(name)


def family(name: str) -> Family | None:
    """The family that a machine type of that name is of, whether the type exists or not."""
    return FAMILIES.get(name.rpartition("-")[0])


def takes_gpus(name: str) -> bool:
    """Whether GPUs are attached to machines of that name; the others bring theirs, or have none.

    That is so for a whole series, whose names of custom machines are not in the table.
    """
    series = name.partition("-")[0]
    return any(it.accelerator is None and it.series == series for it in FAMILIES.values())


def carrying(accelerator: str) -> tuple[str, ...]:
    """The names of the machine types that have this GPU built in."""
    return tuple(name for name, it in MACHINE_TYPES.items() if it.accelerator == accelerator)


def may_flex_start(name: str) -> bool:
    """Whether a machine of that name may come by flex start.

    That is all types with GPUs but A4X and A4X Max, and H4D of those without. A name that the
    tool does not know may be a newer machine with GPUs; its own check decides.
    """
    known = lookup(name)
    if known is not None:
        return Consumption.FLEX_START in known.consumption
    series = name.partition("-")[0]
    return series == "h4d" or not (series == "a4x" or _OTHER_SERIES.fullmatch(series))


def misspelt(name: str) -> str | None:
    """The machine type that was surely meant by a name that the tool does not know.

    That is so for a name in a known family, and for one that is a letter off a known type. None
    for a name of an unknown family: it may be newer than the table.
    """
    if name in MACHINE_TYPES or len(name) > _LONGEST_NAME:
        return None
    kin = tuple(known for known in MACHINE_TYPES if family(known) == family(name))
    if family(name) is not None:
        return _closest(name, kin) or kin[0]
    if _OTHER_SERIES.fullmatch(name.partition("-")[0]):
        return None
    return next((known for known in MACHINE_TYPES if _is_slip(name, known)), None)


def did_you_mean(name: str) -> str | None:
    """The known machine type that looks most like the name, if any does."""
    return _closest(name, tuple(MACHINE_TYPES))


def did_you_mean_accelerator(name: str) -> str | None:
    """The known GPU that looks most like the name, if any does."""
    return _closest(name, ACCELERATORS)


def _closest(name: str, known: tuple[str, ...]) -> str | None:
    # No such name is that long; difflib's time grows with the product of the lengths.
    found = difflib.get_close_matches(name.lower()[:_LONGEST_NAME], known, n=1, cutoff=_ALIKE)
    return found[0] if found else None


def _is_slip(name: str, known: str) -> bool:
    """Whether the name is the known one but for its case, or for one letter.

    A different digit of the series (a5-highgpu-8g) is a newer machine, not a slip.
    """
    if name.lower() == known:
        return True
    if re.sub(r"\d", "0", name) == re.sub(r"\d", "0", known):
        return False
    return _one_edit_apart(name, known)


def _one_edit_apart(one: str, other: str) -> bool:
    """Whether one letter more, less, changed, or two neighbours swapped make both equal."""
    short, long = sorted((one, other), key=len)
    if len(long) - len(short) > 1:
        return False
    start = next(
        (i for i, (a, b) in enumerate(zip(short, long, strict=False)) if a != b), len(short)
    )
    if len(short) < len(long):
        return short[start:] == long[start + 1 :]
    swapped = short[start + 1 : start + 2] + short[start : start + 1] + short[start + 2 :]
    return short[start + 1 :] == long[start + 1 :] or swapped == long[start:]
