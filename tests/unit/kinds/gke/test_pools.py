"""What a plan keeps of a cluster that exists, and which pools it brings to its version."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from provision.catalogue import gpu_networks, machines
from provision.google.api import GoogleApiError, Service
from provision.kinds.gke import control_plane
from provision.spec.pools import Size
from provision.state import terraform_state
from provision.terraform.plan import Creation

if TYPE_CHECKING:
    from provision.context import Cloud

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
def test_a_kind_that_exists_keeps_its_names(
    asked: list[str], state: dict[str, dict[str, Any]], first: str | None
) -> None:
    assert control_plane.first_kind({kind: NETWORKS[kind] for kind in asked}, state) == first


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
    found = control_plane.behind(cast("Any", cloud), cast("Any", spec), cluster)
    assert found == ({"np-nodepool-1": given} if given else {})


TAINTED = Creation(
    address="module.pools.one",
    type="google_container_node_pool",
    values={"project": "p", "location": "us-central1", "cluster": "np-gke", "name": "np-one"},
)


@pytest.mark.parametrize(
    "status", ["RUNNING", "RUNNING_WITH_ERROR", "RECONCILING", "ERROR", "STOPPING", None]
)
def test_a_tainted_pool_is_kept_while_google_goes_on_with_it(status: str | None) -> None:
    def find(_service: object, path: str) -> dict[str, Any] | None:
        assert path == "projects/p/locations/us-central1/clusters/np-gke"
        return {"nodePools": [{"name": "np-one", "status": status}]} if status else None

    cloud = cast("Cloud", SimpleNamespace(api=SimpleNamespace(find=find)))
    is_kept = status in {"RUNNING", "RUNNING_WITH_ERROR", "RECONCILING"}
    assert control_plane.to_untaint(cloud, [TAINTED]) == ([TAINTED.address] if is_kept else [])


@pytest.mark.parametrize(
    ("index", "address"),
    [
        ({}, "module.pools.google_container_node_pool.gpu"),
        ({"index_key": 0}, "module.pools.google_container_node_pool.gpu[0]"),
        ({"index_key": "np-one"}, 'module.pools.google_container_node_pool.gpu["np-one"]'),
    ],
)
def test_a_plan_is_made_as_if_nobody_had_given_a_pool_up(
    index: dict[str, Any], address: str
) -> None:
    kind = "google_container_node_pool"
    kept = {**index, "status": "tainted", "attributes": {"name": "np-one"}}
    other = {"status": "tainted", "attributes": {}}
    one = {"mode": "managed", "type": kind, "name": "gpu"}
    state = {
        "serial": 7,
        "resources": [
            {"module": "module.pools", **one, "instances": [kept]},
            {**one, "instances": [other]},
        ],
    }
    found = terraform_state.untainted(state, [address])
    assert [it["instances"][0].get("status") for it in found["resources"]] == [None, "tainted"]
    assert kept["status"] == "tainted"
