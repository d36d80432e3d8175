"""The networks that a machine type's interfaces after the first are in."""

import pytest

from provision.catalogue import fabrics, machines
from provision.catalogue.fabrics import Network

PLAIN = Network(mtu=8896, nic_type="GVNIC")
GPU_DIRECT = Network(mtu=8244, nic_type="GVNIC")


def _rdma(subnets: int) -> Network:
    return Network(mtu=8896, nic_type="MRDMA", subnets=subnets, profile="vpc-roce")


@pytest.mark.parametrize(
    ("name", "networks"),
    [
        ("a3-highgpu-8g", 4 * (GPU_DIRECT,)),
        ("a3-megagpu-8g", 8 * (GPU_DIRECT,)),
        ("a3-ultragpu-8g", (PLAIN, _rdma(8))),
        ("a4-highgpu-8g", (PLAIN, _rdma(8))),
        ("a4x-highgpu-4g", (PLAIN, _rdma(4))),
        ("a2-highgpu-2g", 4 * (PLAIN,)),
        ("a3-highgpu-1g", 4 * (PLAIN,)),
        ("n1-standard-8", 4 * (PLAIN,)),
    ],
)
def test_a_machine_type_has_the_networks_that_its_gpus_want(
    name: str, networks: tuple[Network, ...]
) -> None:
    assert fabrics.beside_the_first(machines.MACHINE_TYPES[name]) == networks


def test_a_type_that_is_not_known_has_the_usual_number() -> None:
    assert fabrics.beside_the_first(None) == 4 * (PLAIN,)


@pytest.mark.parametrize(
    "machine",
    [machine for machine in machines.MACHINE_TYPES.values() if machine.gpu_network],
    ids=lambda machine: machine.name,
)
def test_with_the_first_there_are_as_many_interfaces_as_the_table_says(
    machine: machines.MachineType,
) -> None:
    networks = fabrics.beside_the_first(machine)

    assert 1 + sum(network.subnets for network in networks) == machine.nics
    # One digit is in the names of networks and subnetworks.
    assert machine.nics - 1 <= 9
