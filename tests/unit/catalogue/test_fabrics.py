from pathlib import Path

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


def test_images_without_a_digest_are_listed_where_the_beliefs_stand() -> None:
    gotchas = (Path(__file__).parents[3] / "docs" / "development" / "gotchas.md").read_text(
        encoding="utf-8"
    )
    stacks = [*STACKS.values(), fabrics.on_gke(Fabric.TCPX, "1.33")]
    parts = (it for stack in stacks for it in (stack.plugin, stack.daemon, stack.test))
    images = {*filter(None, parts), fabrics.DEVICE_INJECTOR}
    by_tag = {it for it in images if not it.digest}
    listed = {it for it in images if f"`{it.name}:{it.version}`" in gotchas}
    assert by_tag == listed
    assert by_tag


@pytest.mark.parametrize(
    ("version", "pair"),
    [
        ("", ("v3.1.12", "v2.0.15")),
        ("1.33.5-gke.1125000", ("v3.1.9", "v2.0.12")),
        ("1.34.1-gke.3899000", ("v3.1.12", "v2.0.15")),
    ],
)
def test_plugin_and_daemon_of_tcpx_change_together(version: str, pair: tuple[str, str]) -> None:
    stack = fabrics.on_gke(Fabric.TCPX, version)
    assert stack.daemon is not None
    assert (stack.plugin.version, stack.daemon.version) == pair
    assert stack.test == stack.plugin


@pytest.mark.parametrize("fabric", [Fabric.TCPXO, Fabric.GIB])
def test_the_others_are_the_same_on_all_versions(fabric: Fabric) -> None:
    assert fabrics.on_gke(fabric, "1.30.1-gke.1") == STACKS[fabric]
