"""What NCCL uses between the VMs of a group, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provision.catalogue import fabrics
from provision.catalogue.fabrics import STACKS, Fabric

if TYPE_CHECKING:
    from provision.catalogue.fabrics import Stack
    from provision.spec.cluster import VmSpec


def words(spec: VmSpec) -> str:
    """What NCCL uses, and where it is less than the machines could: why, and what would bring it.

    Returns:
        A few words, such as "GPUDirect-TCPXO 1.0.15"; "" for machines without a GPU network, or of
        which nothing is known.
    """
    machine = spec.group.machine
    built_for = fabrics.of_machine(machine)
    if built_for is None:
        return ""
    stack = STACKS[built_for]
    if spec.fabric is built_for:
        return f"{stack.title} {stack.version}"
    return f"TCP over one interface{_cost(stack)}: {_why(spec, built_for)}"


def _cost(stack: Stack) -> str:
    if stack.measured is None:
        return ""
    return f", about {stack.measured.tcp:g} GB/s instead of {stack.measured.fabric:g}"


def _why(spec: VmSpec, built_for: Fabric) -> str:
    title = STACKS[built_for].title
    if spec.fabric is None and fabrics.on_vms(spec.group.machine) is built_for:
        return f"NETWORK_CONFIG=multi_nic_network has {title}"
    if spec.group.machine is not None and spec.group.machine.family.arm:
        return f"{title} is not set up on Arm"
    return f"{title} needs Container-Optimized OS, as on GKE, or a private kernel"
