"""Published bandwidth between two machines, by machine type: what Test judges by.

All figures are NCCL's bus bandwidth in GB/s between two machines with eight GPUs each. Nothing is
published for more machines; NCCL's rings keep the bus bandwidth about the same there.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from provision.catalogue import machines
from provision.catalogue.machines import GpuNetwork

if TYPE_CHECKING:
    from collections.abc import Sequence

KIB: Final = 2**10
MIB: Final = 2**20
GIB: Final = 2**30

MACHINES: Final = 2
"""The number of machines that all figures are of."""

_WITHOUT_LOCAL_SSDS: Final = "-nolssd"
_TOLERANCE: Final = 0.9  # two good runs differ by a few percent
_TOLERANCE_FOR_A_REPORT: Final = 0.75
"""What one outsider measured once may have been a good day, or other settings."""


class Collective(enum.StrEnum):
    """What the GPUs do together; for both, bus bandwidth is what each of them sends."""

    ALL_GATHER = "all_gather"
    ALL_REDUCE = "all_reduce"

    def factor(self, ranks: int) -> float:
        """The bus bandwidth as a multiple of size by time (nccl-tests, PERFORMANCE.md)."""
        times = 2 if self is Collective.ALL_REDUCE else 1
        return times * (ranks - 1) / ranks


@dataclass(frozen=True, kw_only=True)
class Reference:
    """The published figures for one machine type and network."""

    machine_type: str
    network: GpuNetwork | None  # the network between the GPUs; None for NCCL over TCP sockets
    collective: Collective = Collective.ALL_GATHER
    size: int = 8 * GIB  # the size of message of the two figures, in bytes
    out_of_place: float  # in GB/s, with the results in another buffer
    # in GB/s, with the results in the same buffer; None if not published
    in_place: float | None = None
    average: float | None = None  # the average over all sizes, in GB/s; None if not published
    # the smallest and the largest of these sizes, each double the one before
    averaged: tuple[int, int] | None = None
    tolerance: float = _TOLERANCE  # the fraction of the figures that is enough
    source: str  # where they are from

    @property
    def peak(self) -> float:
        """The better of the two figures, in GB/s."""
        return max(self.out_of_place, self.in_place or 0.0)

    @property
    def least(self) -> float:
        """The peak that is enough, in GB/s."""
        return self.tolerance * self.peak


REFERENCES: Final[Sequence[Reference]] = (
    Reference(
        machine_type="a3-highgpu-8g",
        network=GpuNetwork.TCPX,
        size=512 * MIB,
        out_of_place=70.90,
        in_place=71.35,
        average=30.96,
        averaged=(MIB, 512 * MIB),
        source="Cluster Toolkit, examples/gke-a3-highgpu/multi-node-test-plan.md (v1.95.0)",
    ),
    Reference(
        machine_type="a3-highgpu-8g",
        network=None,
        collective=Collective.ALL_REDUCE,
        size=2 * GIB,
        out_of_place=23.7,
        tolerance=_TOLERANCE_FOR_A_REPORT,
        source="a user's report of two nodes on plain gVNIC, GKE 1.35 (2026)",
    ),
    Reference(
        machine_type="a3-megagpu-8g",
        network=GpuNetwork.TCPXO,
        out_of_place=188.73,
        in_place=188.90,
        # Of the table's rows from 1 KiB on; its own average begins at 8 bytes.
        average=69.61,
        averaged=(KIB, 8 * GIB),
        source="Cluster Toolkit, examples/gke-a3-megagpu/README.md (v1.95.0)",
    ),
    Reference(
        machine_type="a3-ultragpu-8g",
        network=GpuNetwork.RDMA,
        out_of_place=328.85,
        in_place=335.67,
        average=120.248,
        averaged=(KIB, 8 * GIB),
        source="Cluster Toolkit, examples/gke-a3-ultragpu/README.md (v1.95.0)",
    ),
    Reference(
        machine_type="a4-highgpu-8g",
        network=GpuNetwork.RDMA,
        out_of_place=375.72,
        in_place=375.95,
        source="Google, AI Hypercomputer, nccl/test-vms (2026-04-06)",
    ),
)


def find(machine_type: str, network: GpuNetwork | None) -> Reference | None:
    """The published figures of a type and network (None: TCP sockets); None if there are none."""
    known = machine_type.removesuffix(_WITHOUT_LOCAL_SSDS)
    return next(
        (it for it in REFERENCES if it.machine_type == known and it.network is network), None
    )


def of_machine(machine_type: str) -> Reference | None:
    """The figures for a machine type with the whole of its GPU network; None if there are none."""
    machine = machines.lookup(machine_type)
    if machine is None or machine.gpu_network is None:
        return None
    return find(machine_type, machine.gpu_network)
