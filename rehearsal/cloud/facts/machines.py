"""Machine types, and the GPUs that are part of them or can be attached."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rehearsal.cloud import facts

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_PLAIN: Final = facts.read("plain_machines")
# H4D has none either, but comes by flex start.
_SERIES_WITHOUT_GPUS: Final = frozenset(_PLAIN["series_without_gpus"].split())
_ARM: Final = ("a4x", "c4a", "n4a", "t2a")
_WITHOUT_LOCAL_SSDS: Final = "-nolssd"
# A local SSD has 375 GiB, but on A4X 3,000 (Compute Engine, "About Local SSD disks").
_LOCAL_SSD_GIB: Final = 375
_LOCAL_SSD_GIB_OF_A4X: Final = 3000
# The most interfaces: one per vCPU, but no fewer than two and no more than eight.
_FEWEST_NICS: Final = 2
USUAL_NICS: Final = 8


class GpuNetwork(enum.StrEnum):
    """How the GPUs of several machines reach each other, apart from the first interface."""

    TCPX = "tcpx"
    TCPXO = "tcpxo"
    RDMA = "rdma"


@dataclass(frozen=True, kw_only=True)
class Machine:
    """A machine type."""

    name: str  # such as "a2-highgpu-8g"
    vcpus: int  # virtual processors
    memory_mb: int
    is_shared: bool = False  # whether the processors are shared with others
    gpu: str = ""  # the GPU that is part of it, by the API's name; "" for none
    gpus: int = 0  # how many
    attachable: bool = False  # whether GPUs can be attached
    local_ssds: int = 0
    # how the GPUs are networked; None where the first interface carries all
    gpu_network: GpuNetwork | None = None
    most_nics: int = USUAL_NICS  # the most network interfaces
    boot_disks: tuple[str, ...] = ()  # disk types that it boots from; empty where that is not known

    @property
    def is_arm(self) -> bool:
        """Whether its processors are Arm, which takes an Arm image."""
        return is_arm(self.name)


_SHARED: Final = facts.read("shared_with_the_program")

RDMA_PROFILE: Final = f"-{_SHARED['rdma_profile']}"
"""What follows a zone's name in that of its network profile for RDMA over converged Ethernet."""

MOST_VCPUS: Final[Mapping[str, Mapping[int, int]]] = {
    gpu: {int(count): vcpus for count, vcpus in limits.items()}
    for gpu, limits in _SHARED["most_vcpus_by_attached_gpus"].items()
}
"""GPU that can be attached -> how many -> the most vCPUs that the machine may then have."""


def _with_gpus() -> Iterator[Machine]:
    for name, it in facts.read("gpu_machines")["machines"].items():
        size = _LOCAL_SSD_GIB_OF_A4X if name.startswith("a4x-") else _LOCAL_SSD_GIB
        # The one without local SSDs is the same machine in all else.
        network = _SHARED["gpu_networks"].get(name.removesuffix(_WITHOUT_LOCAL_SSDS))
        yield Machine(
            name=name,
            vcpus=it["vcpus"],
            memory_mb=it["memory_gib"] * 1024,
            gpu=it["gpu"],
            gpus=it["gpus"],
            local_ssds=it["local_ssd_gib"] // size,
            gpu_network=GpuNetwork(network["kind"]) if network else None,
            most_nics=network["nics"] if network else _most_nics(it["vcpus"]),
            boot_disks=boot_disks(name),
        )


def _plain() -> Iterator[Machine]:
    for family, it in _PLAIN["families"].items():
        for vcpus in it["vcpus"]:
            yield Machine(
                name=f"{family}-{vcpus}",
                vcpus=vcpus,
                memory_mb=round(it["memory_gib_per_vcpu"] * vcpus * 1024),
                attachable=family in _PLAIN["attachable"],
                most_nics=_most_nics(vcpus),
                boot_disks=boot_disks(f"{family}-{vcpus}"),
            )
    for name, it in _PLAIN["shared_cores"].items():
        memory_mb = it["memory_gib"] * 1024
        yield Machine(name=name, vcpus=it["vcpus"], memory_mb=memory_mb, is_shared=True)


def _most_nics(vcpus: int) -> int:
    return min(max(_FEWEST_NICS, vcpus), USUAL_NICS)


def boot_disks(name: str) -> tuple[str, ...]:
    """The disk types that a machine of that name boots from; empty where that is not known."""
    found = (it for family, it in _SHARED["boot_disks"].items() if name.startswith(f"{family}-"))
    return tuple(next(found, ()))


MACHINES: Final[dict[str, Machine]] = {
    it.name: it for it in sorted((*_with_gpus(), *_plain()), key=lambda it: it.name)
}
"""Name -> machine type, in the order of the names."""


def find(name: str) -> Machine | None:
    """The machine type of that name; None for one that is not known: it may be a new one."""
    return MACHINES.get(name)


def is_arm(name: str) -> bool:
    """Whether the processors of a machine of that name, known or not, are Arm."""
    return name.startswith(_ARM)


def gpus() -> tuple[str, ...]:
    """The names of all GPUs."""
    built_in = (it.gpu for it in MACHINES.values() if it.gpu)
    return tuple(dict.fromkeys((*built_in, *MOST_VCPUS)))


def most_cards(gpu: str) -> int:
    """How many GPUs of a kind one machine has at most."""
    attached = MOST_VCPUS.get(gpu, {})
    return max(*attached, *(it.gpus for it in MACHINES.values() if it.gpu == gpu), 0)


def may_flex_start(name: str) -> bool:
    """Whether a machine comes by flex start: one with GPUs, and H4D; A4X does not.

    A machine that is not known may be a new one with GPUs. Source: Compute Engine, "About
    flex-start VMs".
    """
    found = find(name)
    if name.startswith("a4x-"):
        return False
    if found is not None:
        return bool(found.gpu) or found.attachable
    return name.partition("-")[0] not in _SERIES_WITHOUT_GPUS
