"""Machines with a network for their GPUs; A3 High and Mega also come and go as stories."""

import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from ipaddress import IPv4Network
from typing import Any

import pytest

from rehearsal import session
from rehearsal.cloud.store import Database
from tests.runs.conftest import Rehearsal, Rehearse


@dataclass(frozen=True)
class Machine:
    """A machine type and its interfaces after the first, as runs of one network each."""

    name: str
    # of each network in order: MTU, interfaces, and their type
    networks: tuple[tuple[int, int, str], ...]

    @property
    def mtus(self) -> dict[str, int]:
        """Network -> MTU, the first one's included."""
        gpus = {f"np-gpu-net-{n}": mtu for n, (mtu, _, _) in enumerate(self.networks, 1)}
        return {"np-net": 8896, **gpus}

    @property
    def interfaces(self) -> list[tuple[str, str, str, bool]]:
        """Network, subnetwork, type, and whether there is an external IP, in order."""
        gpus = [
            (f"np-gpu-net-{number}", kind)
            for number, (_, interfaces, kind) in enumerate(self.networks, 1)
            for _ in range(interfaces)
        ]
        first = ("np-net", "np-primary-subnet", "GVNIC", True)
        return [first] + [
            (network, f"np-gpu-subnet-{number}", kind, False)
            for number, (network, kind) in enumerate(gpus, 1)
        ]

    @property
    def gpu_rules(self) -> set[str]:
        """The firewall rules of the GPU networks; those for RDMA take none."""
        kinds = enumerate((kind for _, _, kind in self.networks), 1)
        return {f"np-gpu-internal-{number}" for number, kind in kinds if kind != "MRDMA"}


def _ours(rehearsal: Rehearsal, collection: str) -> Iterator[dict[str, Any]]:
    """What was made of a kind, as a GET would answer."""
    database = Database(rehearsal.folder / session.DATABASE)
    try:
        with database.transaction() as store:
            found = list(store.list(f"compute/{collection}"))
    finally:
        database.close()
    return (each for _, each in found if each["name"].startswith("np-"))


def _name(link: str) -> str:
    """A name without the hash of the place that it is bound to."""
    return re.sub(r"-[0-9a-f]{8}$", "", link.rpartition("/")[2])


def _interface(given: dict[str, Any]) -> tuple[str, str, str, bool]:
    network, subnetwork = (_name(given[key]) for key in ("network", "subnetwork"))
    return network, subnetwork, given["nicType"], bool(given.get("accessConfigs"))


def _settings(machine: str) -> dict[str, str]:
    return {
        "VM_TYPE": machine,
        "NETWORK_CONFIG": "multi_nic_network",
        "INSTANCE_COUNT": "2",
        "ENABLE_EXTERNAL_IP": "yes",
        # Where all of them are, in a way in which all of them come.
        "ZONE": "us-central1-b",
        "ENABLE_SPOT": "yes",
    }


@pytest.mark.parametrize(
    "machine",
    [
        Machine("a3-highgpu-8g", 4 * ((8244, 1, "GVNIC"),)),
        Machine("a3-megagpu-8g", 8 * ((8244, 1, "GVNIC"),)),
        Machine("a3-ultragpu-8g", ((8896, 1, "GVNIC"), (8896, 8, "MRDMA"))),
    ],
    ids=lambda machine: machine.name,
)
def test_vms_have_the_interfaces_of_their_machine_type(
    standing: Rehearse, machine: Machine
) -> None:
    rehearsal = standing(_settings(machine.name))
    assert {
        _name(each["name"]): each["mtu"] for each in _ours(rehearsal, "networks")
    } == machine.mtus
    rules = {_name(each["name"]) for each in _ours(rehearsal, "firewalls")}
    assert rules == {"np-internal", "np-iap-ssh"} | machine.gpu_rules
    ranges = [IPv4Network(each["ipCidrRange"]) for each in _ours(rehearsal, "subnetworks")]
    assert len(ranges) == len(machine.interfaces)
    assert not any(one.overlaps(other) for one, other in itertools.combinations(ranges, 2))
    vms = [each["networkInterfaces"] for each in _ours(rehearsal, "instances")]
    assert [list(map(_interface, interfaces)) for interfaces in vms] == 2 * [machine.interfaces]


@pytest.mark.slow(sibling="::test_vms_have_the_interfaces_of_their_machine_type")
def test_networks_for_rdma_are_found_unchanged_and_go_with_the_cluster(standing: Rehearse) -> None:
    settings = _settings("a3-ultragpu-8g")
    rehearsal = standing(settings)
    again = rehearsal.run("Create", **settings)
    assert again.code == 0, again.said
    assert again.document["changes"] == {"add": 0, "change": 0, "destroy": 0}
    destroyed = rehearsal.run("Destroy", **settings)
    assert destroyed.code == 0, destroyed.said
    assert [line for line in rehearsal.resources() if not line.startswith("storage/")] == []
