"""Machine types, the GPUs that they have or can get, and what their families take."""

import enum
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from rehearsal.cloud import facts

_FACTS: Final = facts.read("families")
_PLAIN: Final = facts.read("plain_machines")
# H4D has none either, but comes by flex start.
_SERIES_WITHOUT_GPUS: Final = frozenset(_PLAIN["series_without_gpus"].split())
_ARM: Final = ("a4x", "c4a", "n4a", "t2a")
_WITHOUT_LOCAL_SSDS: Final = "-nolssd"
_LOCAL_SSD_GIB: Final = 375
# The most interfaces: one per vCPU, but no fewer than two and no more than eight.
_FEWEST_NICS: Final = 2
USUAL_NICS: Final = 8

GPUS: Final[Mapping[str, Mapping[str, Any]]] = _FACTS["gpus"]
"""GPU -> its row: the word of its quota, and what nvidia-smi calls it."""


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
    local_ssd_gib: int = 0  # of all together
    # how the GPUs are networked; None where the first interface carries all
    gpu_network: GpuNetwork | None = None
    most_nics: int = USUAL_NICS  # the most network interfaces
    boot_disks: tuple[str, ...] = ()  # disk types that it boots from; empty where that is not known
    # the zones, and the regions of which no zone is known, that have it; None for all
    places: frozenset[str] | None = None

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
    for family in _FACTS["families"].values():
        size = family.get("gib_of_a_local_ssd", _LOCAL_SSD_GIB)
        for name, it in family.get("machines", {}).items():
            # The one without local SSDs is the same machine in all else.
            network = _SHARED["gpu_networks"].get(name.removesuffix(_WITHOUT_LOCAL_SSDS))
            yield Machine(
                name=name,
                vcpus=it["vcpus"],
                memory_mb=it["memory_gib"] * 1024,
                gpu=family["gpu"],
                gpus=it["gpus"],
                local_ssds=it["local_ssd_gib"] // size,
                local_ssd_gib=it["local_ssd_gib"],
                gpu_network=GpuNetwork(network["kind"]) if network else None,
                most_nics=network["nics"] if network else _most_nics(it["vcpus"]),
                boot_disks=boot_disks(name),
                places=frozenset(it["places"].split()),
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


# ------------------------------------------------------------------ families


def _family(name: str) -> Mapping[str, Any]:
    """The row of a machine's family; {} for one that is not known."""
    rows = _FACTS["families"]
    fitting = (beginning for beginning in rows if name.startswith(beginning))
    found: Mapping[str, Any] = rows.get(max(fitting, key=len, default=""), {})
    return found


def comes_by(name: str, model: str) -> bool:
    """Whether machines of a type come with a provisioning model; those that are not known may."""
    return name not in MACHINES or model not in _family(name).get("not_offered", ())


def may_flex_start(name: str) -> bool:
    """Whether a machine comes by flex start: one with GPUs, and H4D; A4X does not.

    A machine that is not known may be a new one with GPUs. Source: Compute Engine, "About
    flex-start VMs".
    """
    found = find(name)
    if found is not None:
        return (bool(found.gpu) or found.attachable) and comes_by(name, "FLEX_START")
    return name.partition("-")[0] not in _SERIES_WITHOUT_GPUS


def takes_compact(name: str) -> bool:
    """Whether machines of a type can be placed by a compact placement policy."""
    return bool(_family(name).get("compact"))


def takes_workload(name: str, model: str) -> bool:
    """Whether a group of machines that come by a provisioning model takes a workload policy."""
    way = "by flex start" if model == "FLEX_START" else "by spot or reservation"
    return way in _family(name).get("workload_policy", ())


def needs_policy(name: str) -> bool:
    """Whether several machines of a type need a policy, as they are parts of one (A4X)."""
    return bool(_family(name).get("several_need_a_policy"))


def tells_of_maintenance(name: str) -> bool:
    """Whether the API tells of coming maintenance of machines of that type."""
    return bool(_family(name).get("tells_of_maintenance"))


def never_reserved(name: str) -> bool:
    """Whether machines of that type cannot be reserved."""
    return name in _family(name).get("never_reserved", ())


def specific_only(name: str) -> bool:
    """Whether a reservation of that machine type must be one that VMs have to name."""
    return name in _family(name).get("specific_only", ())


def sold_by_calendar(name: str) -> bool:
    """Whether Google sells such VMs for a time to come, in calendar mode."""
    return name in _family(name).get("sold_by_calendar", ())


def always_bound(name: str) -> bool:
    """Whether VMs of that type are bound to their reservation, whatever it is."""
    return _family(name).get("bound") == "always"


def may_be_bound(name: str) -> bool:
    """Whether there are reservations to which VMs of that type are bound."""
    return "bound" in _family(name)


def of_a_block(name: str, count: int) -> int:
    """How many VMs one block has, of a reservation of so many."""
    return min(int(_family(name).get("instances_of_a_block", count)), count)


def of_a_sub_block(name: str, count: int) -> int:
    """How many VMs one sub-block has, of a block of so many."""
    return min(int(_family(name).get("instances_of_a_sub_block", count)), count)


def oldest_gke(name: str) -> tuple[str, ...]:
    """The oldest versions of GKE that have nodes of a type, by minor version; () for any."""
    return tuple(_family(name).get("oldest_gke", ()))
