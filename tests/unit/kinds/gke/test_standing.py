"""Which kind of GPU network keeps the names that do not say their kind."""

from __future__ import annotations

from typing import Any

import pytest

from provision.catalogue import gpu_networks, machines
from provision.kinds.gke import standing

NETWORKS = {
    kind.label: gpu_networks.beside_the_first(machines.lookup(name))
    for kind, name in (
        (machines.GpuNetwork.TCPX, "a3-highgpu-8g"),
        (machines.GpuNetwork.TCPXO, "a3-megagpu-8g"),
        (machines.GpuNetwork.RDMA, "a4-highgpu-8g"),
    )
}


def _state(first: str = "", *more: str, parts: int = 8) -> dict[str, dict[str, Any]]:
    """The networks of a state: those of the first kind, or a part of them, and of others."""
    at = "google_compute_network.gpu"
    places = {f'module.more_gpu_networks["{kind}"].{at}': NETWORKS[kind] for kind in more}
    if first:
        places[f"module.gpu_networks.{at}"] = NETWORKS[first][:parts]
    first_of_all = {"module.network.google_compute_network.new[0]": {"mtu": 8896}}
    return first_of_all | {
        f'{place}["{number}"]': {
            "mtu": one.mtu,
            "network_profile": f"projects/p/global/networkProfiles/z-{one.profile}"
            if one.profile
            else "",
        }
        for place, networks in places.items()
        for number, one in enumerate(networks, start=1)
    }


@pytest.mark.parametrize(
    ("asked", "state", "first"),
    [
        pytest.param(["tcpxo"], {}, None, id="nothing-stands"),
        pytest.param(["tcpxo", "rdma"], _state("tcpxo"), "tcpxo", id="one-more-kind"),
        pytest.param(["rdma", "tcpxo"], _state("tcpxo"), "tcpxo", id="one-more-before-it"),
        pytest.param(["tcpx", "tcpxo"], _state("tcpxo"), "tcpxo", id="more-of-the-same-make"),
        pytest.param(["tcpxo", "tcpx"], _state("tcpx"), "tcpx", id="fewer-of-the-same-make"),
        pytest.param(["tcpxo", "rdma"], _state("rdma", "tcpxo"), "rdma", id="both-stand"),
        pytest.param(["rdma"], _state("tcpxo", "rdma"), "", id="the-first-goes"),
        pytest.param(["rdma", "tcpx"], _state("tcpxo", "rdma"), "tcpx", id="the-first-is-another"),
        pytest.param(["rdma"], _state("tcpxo"), None, id="the-only-one-is-another"),
        pytest.param(["rdma", "tcpxo"], _state("tcpxo", parts=3), "tcpxo", id="a-killed-run"),
    ],
)
def test_a_kind_that_stands_keeps_its_names(
    asked: list[str], state: dict[str, dict[str, Any]], first: str | None
) -> None:
    assert standing.first_kind({kind: NETWORKS[kind] for kind in asked}, state) == first


def test_machines_of_one_kind_of_network_have_the_same_networks() -> None:
    """So that a cluster has one set of networks for each kind."""
    found = {
        (machine.gpu_network, gpu_networks.beside_the_first(machine))
        for machine in machines.MACHINE_TYPES.values()
        if machine.gpu_network and not machine.family.arm
    }
    assert len(found) == len({kind for kind, _ in found})


def test_a_cluster_that_was_made_with_the_shared_account_keeps_it() -> None:
    member = "serviceAccount:p.svc.id.goog[default/{}]".format
    assert standing.has_shared({"a": {"member": member("workload-identity-k8s-sa")}})
    assert not standing.has_shared({"a": {"member": member("np-workload")}})
    assert not standing.has_shared({})
