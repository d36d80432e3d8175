"""What a job can have of a node: vCPUs, memory and shared memory, by the machine type."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from provision.catalogue import machine_sizes, machines

# GKE's own pods run on each node too, and the containers that mount buckets. A published Ray
# cluster on A3 Ultra asks for 220 of its 224 vCPUs and 2800 of its 2952 GiB (seed 001).
_SYSTEM_CPUS: Final = 3.0
_SYSTEM_GIB: Final = 1.0
_SYSTEM_SHARE: Final = 1 / 32

_MIB: Final = 1024  # in a GiB
_MOST_SHARED_GIB: Final = 250
"""What Google's recipes give a job (container-engine-accelerators, GPU recipes)."""


@dataclass(frozen=True, kw_only=True)
class Room:
    """What one pod can ask for that has a node for itself."""

    milli_cpus: int  # thousandths of a vCPU
    mib: int

    @property
    def cpu(self) -> str:
        """The vCPUs as a quantity of Kubernetes."""
        return f"{self.milli_cpus}m" if self.milli_cpus % 1000 else str(self.milli_cpus // 1000)

    @property
    def memory(self) -> str:
        """The memory as a quantity of Kubernetes."""
        return _quantity(self.mib)

    @property
    def shared_memory(self) -> str:
        """The size of /dev/shm, which counts as the pod's memory, as a quantity of Kubernetes."""
        return _quantity(min(_MOST_SHARED_GIB * _MIB, self.mib // 2))


def room(machine_type: str) -> Room | None:
    """What a pod can ask for on a node of a machine type; None if its size is not known."""
    machine, memory = machines.lookup(machine_type), machine_sizes.memory(machine_type)
    if machine is None or memory is None:
        return None
    cpus, gib = machine_sizes.allocatable(machine.vcpus, float(memory))
    cpus -= min(_SYSTEM_CPUS, cpus / 2)
    gib -= min(_SYSTEM_GIB, gib / 2) + gib * _SYSTEM_SHARE
    return Room(
        milli_cpus=math.floor(cpus) * 1000 if cpus >= 1 else math.floor(cpus * 1000),
        mib=math.floor(gib * _MIB),
    )


def _quantity(mib: int) -> str:
    """Whole GiB where it is that much, as a quantity of Kubernetes."""
    return f"{mib // _MIB}Gi" if mib >= _MIB else f"{mib}Mi"
