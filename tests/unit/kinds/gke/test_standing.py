"""What a plan keeps of a cluster that stands, and which pools it brings to its version."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from provision.catalogue import gpu_networks, machines
from provision.google.api import GoogleApiError, Service
from provision.kinds.gke import standing
from provision.spec.pools import Size

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


OLD, MASTER, NEWER = "1.34.9-gke.1655001", "1.35.7-gke.1222000", "1.36.4-gke.1082000"
GROUPS = "projects/p/zones/z/instanceGroupManagers/"
SCALES, FIXED = Size(min=0, max=4), Size(count=2)


@pytest.mark.parametrize(
    ("asked", "size", "version", "nodes", "given"),
    [
        pytest.param(None, SCALES, OLD, 0, MASTER, id="empty"),
        pytest.param(NEWER, SCALES, OLD, 0, NEWER, id="with_its_control_plane"),
        pytest.param(OLD, SCALES, OLD, 0, MASTER, id="google_has_upgraded_it"),
        pytest.param(None, SCALES, OLD, 1, None, id="has_a_node"),
        pytest.param(None, SCALES, OLD, None, None, id="nobody_says"),
        pytest.param(None, SCALES, MASTER, 0, None, id="is_there_already"),
        pytest.param(None, FIXED, OLD, 0, None, id="waits_for_nodes"),
    ],
)
def test_a_pool_without_nodes_gets_the_version_of_its_control_plane(
    asked: str | None, size: Size, version: str, nodes: int | None, given: str | None
) -> None:
    def find(service: Service, path: str) -> dict[str, Any]:
        assert (service, path) == (Service.COMPUTE, f"{GROUPS}g")
        if nodes is None:
            raise GoogleApiError(403, "forbidden", path)
        return {"targetSize": nodes}

    pool = {
        "name": "np-nodepool-1",
        "version": version,
        "instanceGroupUrls": [f"https://www.googleapis.com/compute/v1/{GROUPS}g"],
    }
    system = {**pool, "name": "np-system", "version": OLD}
    spec = SimpleNamespace(
        version=asked, gpu_pools=[SimpleNamespace(name="np-nodepool-1", size=size)]
    )
    cloud = SimpleNamespace(api=SimpleNamespace(find=find))
    cluster = {"currentMasterVersion": MASTER, "nodePools": [pool, system]}
    found = standing.behind(cast("Any", cloud), cast("Any", spec), cluster)
    assert found == ({"np-nodepool-1": given} if given else {})
