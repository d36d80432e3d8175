"""NCCL's fabrics: what GKE's pods and VMs get of the same facts."""

from __future__ import annotations

import pytest

from provision.catalogue import fabrics, machines
from provision.catalogue.fabrics import STACKS, Fabric
from provision.catalogue.machines import GpuNetwork


def test_every_fabric_but_tcp_has_its_software_and_every_network_its_fabric() -> None:
    assert set(STACKS) == set(Fabric) - {Fabric.TCP}
    assert set(fabrics.OF_NETWORK) == set(GpuNetwork)
    assert set(fabrics.OF_NETWORK.values()) == set(STACKS)


@pytest.mark.parametrize(
    ("machine", "built_for", "on_vms"),
    [
        ("a3-highgpu-8g", Fabric.TCPX, Fabric.TCP),
        ("a3-highgpu-4g", None, None),
        ("a3-megagpu-8g", Fabric.TCPXO, Fabric.TCPXO),
        ("a3-ultragpu-8g", Fabric.GIB, Fabric.GIB),
        ("a4-highgpu-8g", Fabric.GIB, Fabric.GIB),
        ("a4x-highgpu-4g", Fabric.GIB, Fabric.TCP),
        ("a2-highgpu-8g", None, None),
    ],
)
def test_a_machine_type_has_the_fabric_of_its_network(
    machine: str, built_for: Fabric | None, on_vms: Fabric | None
) -> None:
    found = machines.MACHINE_TYPES[machine]

    assert fabrics.of_machine(found) is built_for
    assert fabrics.on_vms(found) is on_vms


def test_an_unknown_machine_type_has_none() -> None:
    assert fabrics.of_machine(None) is None
    assert fabrics.on_vms(None) is None


def test_what_vms_get_is_pinned() -> None:
    for stack in STACKS.values():
        if stack.on_vms and not stack.package:
            assert "@sha256:" in stack.plugin.pinned
            assert stack.daemon is not None
            assert "@sha256:" in stack.daemon.pinned
        elif stack.on_vms:
            assert stack.package.count("=") == 1
    assert STACKS[Fabric.GIB].version == "1.1.0"
    assert STACKS[Fabric.TCPXO].version == "1.0.15"
