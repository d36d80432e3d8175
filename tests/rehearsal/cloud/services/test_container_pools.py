"""Kubernetes Engine: node pools, and the machines that they are made of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.rehearsal.cloud.services.conftest import Api

CLUSTER = "projects/proj-a1/locations/us-central1/clusters/loom"
POOLS = f"{CLUSTER}/nodePools"
POOL = f"{POOLS}/p"
GROUPS = "projects/proj-a1/zones/us-central1-a/instanceGroupManagers"
L4 = {
    "machineType": "g2-standard-4",
    "accelerators": [{"acceleratorType": "nvidia-l4", "acceleratorCount": "1"}],
}


@pytest.fixture(autouse=True)
def cluster(api: Api) -> None:
    """A cluster without nodes."""
    body = {
        "name": "loom",
        "initialNodeCount": 1,
        "locations": ["us-central1-a"],
        "networkConfig": {"datapathProvider": "ADVANCED_DATAPATH", "enableMultiNetworking": True},
        "ipAllocationPolicy": {"useIpAliases": True},
        "releaseChannel": {"channel": "REGULAR"},
    }
    api.json("container", "POST", CLUSTER.removesuffix("/loom"), {"cluster": body})
    api.json("container", "DELETE", f"{POOLS}/default-pool")


def _make(api: Api, **pool: Any) -> dict[str, Any]:
    return api.json("container", "POST", POOLS, {"nodePool": {"name": "p", **pool}})


def _get(api: Api, path: str = POOL) -> dict[str, Any]:
    return api.json("container", "GET", path)


def _groups(api: Api) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = api.json("compute", "GET", GROUPS).get("items", [])
    return found


def _vms(api: Api) -> list[dict[str, Any]]:
    path = "projects/proj-a1/zones/us-central1-a/instances"
    found: list[dict[str, Any]] = api.json("compute", "GET", path).get("items", [])
    return found


def _ended(api: Api, operation: dict[str, Any]) -> dict[str, Any]:
    return _get(api, f"{CLUSTER.rpartition('/clusters')[0]}/operations/{operation['name']}")


def test_a_pool_is_made_in_its_time(api: Api) -> None:
    api.rate = 1.0
    operation = _make(api, initialNodeCount=1)
    assert operation["targetLink"].endswith("/clusters/loom/nodePools/p")
    assert _get(api)["status"] == "PROVISIONING"
    assert _get(api, CLUSTER)["status"] == "RUNNING"
    api.now += 121
    assert _ended(api, operation)["status"] == "DONE"
    assert _get(api)["status"] == "RUNNING"


def test_pools_are_made_side_by_side(api: Api) -> None:
    api.rate = 1.0
    for name in ("a", "b", "c"):
        _make(api, name=name)
    assert [it["name"] for it in _get(api, POOLS)["nodePools"]] == ["a", "b", "c"]


def test_a_pool_has_a_managed_group_in_each_of_its_zones(api: Api) -> None:
    zones = ["us-central1-a", "us-central1-b"]
    _make(api, initialNodeCount=2, locations=zones)
    urls = _get(api)["instanceGroupUrls"]
    assert [url.split("/zones/")[1].split("/")[0] for url in urls] == zones
    assert all("/instanceGroupManagers/gke-loom-p-" in url for url in urls)
    (group,) = _groups(api)
    assert (group["name"], group["targetSize"]) == (urls[0].rpartition("/")[2], 2)
    assert [vm["name"].startswith(group["baseInstanceName"]) for vm in _vms(api)] == [True, True]
    assert _get(api, CLUSTER)["currentNodeCount"] == 4


def test_a_pool_that_moves_gets_as_many_nodes_in_its_new_zone(api: Api) -> None:
    _make(api, initialNodeCount=2)
    api.json("container", "PUT", POOL, {"locations": ["us-central1-b"]})
    (url,) = _get(api)["instanceGroupUrls"]
    assert "/zones/us-central1-b/" in url
    assert _groups(api) == []
    moved = api.json("compute", "GET", GROUPS.replace("us-central1-a", "us-central1-b"))["items"]
    assert [group["targetSize"] for group in moved] == [2]


def test_a_pool_without_zones_has_the_cluster_s(api: Api) -> None:
    _make(api)
    assert _get(api)["locations"] == ["us-central1-a"]


def test_an_autoscaled_pool_begins_at_the_size_it_is_given(api: Api) -> None:
    limits = {"enabled": True, "totalMinNodeCount": 0, "totalMaxNodeCount": 8}
    _make(api, autoscaling=limits)
    assert _get(api)["initialNodeCount"] == 0
    assert [group["targetSize"] for group in _groups(api)] == [0]
    assert _vms(api) == []


def test_nodes_are_the_machines_that_the_pool_describes(api: Api) -> None:
    config = {
        **L4,
        "spot": True,
        "diskSizeGb": 200,
        "reservationAffinity": {"consumeReservationType": "NO_RESERVATION"},
        "resourceLabels": {"team": "ml"},
    }
    _make(api, initialNodeCount=1, config=config)
    (vm,) = _vms(api)
    assert vm["machineType"].endswith("/g2-standard-4")
    assert vm["scheduling"]["provisioningModel"] == "SPOT"
    assert vm["disks"][0]["diskSizeGb"] == "200"
    assert vm["labels"]["team"] == "ml"
    assert vm["labels"]["goog-gke-node-pool-provisioning-model"] == "spot"
    assert [it["acceleratorCount"] for it in vm["guestAccelerators"]] == [1]


def test_nodes_of_flex_start_end_after_their_run(api: Api) -> None:
    config = {
        **L4,
        "flexStart": True,
        "maxRunDuration": "3600s",
        "reservationAffinity": {"consumeReservationType": "NO_RESERVATION"},
    }
    _make(
        api,
        config=config,
        autoscaling={"enabled": True, "totalMaxNodeCount": 8, "locationPolicy": "ANY"},
    )
    templates = api.json("compute", "GET", "projects/proj-a1/global/instanceTemplates")["items"]
    (scheduling,) = [it["properties"]["scheduling"] for it in templates if "-p-" in it["name"]]
    assert scheduling["provisioningModel"] == "FLEX_START"
    assert scheduling["maxRunDuration"] == {"seconds": "3600"}
    assert scheduling["instanceTerminationAction"] == "DELETE"
    assert _get(api)["management"] == {"autoUpgrade": True, "autoRepair": False}


def test_more_networks_are_more_interfaces_in_their_order(api: Api) -> None:
    names = ("one", "two")
    for index, name in enumerate(names):
        network = {"name": name, "autoCreateSubnetworks": False}
        api.json("compute", "POST", "projects/proj-a1/global/networks", network)
        subnetwork = {
            "name": f"{name}-sub",
            "network": f"projects/proj-a1/global/networks/{name}",
            "ipCidrRange": f"192.168.{index}.0/24",
        }
        api.json("compute", "POST", "projects/proj-a1/regions/us-central1/subnetworks", subnetwork)
    more = [{"network": name, "subnetwork": f"{name}-sub"} for name in names]
    config = {"machineType": "n1-standard-8"}
    networks = {"additionalNodeNetworkConfigs": more}
    _make(api, initialNodeCount=1, config=config, networkConfig=networks)
    (vm,) = _vms(api)
    found = [it["network"].rpartition("/")[2] for it in vm["networkInterfaces"]]
    assert found == ["default", "one", "two"]


def test_a_second_pool_of_a_name_is_refused(api: Api) -> None:
    _make(api)
    refused = api.refused("container", "POST", POOLS, {"nodePool": {"name": "p"}})
    assert refused == (409, "alreadyExists", f"Already exists: {POOL}.")


def test_a_pool_of_a_cluster_that_does_not_exist_is_refused(api: Api) -> None:
    other = CLUSTER.replace("loom", "none")
    for method in ("GET", "POST"):
        refused = api.refused("container", method, f"{other}/nodePools", {"nodePool": {}})
        assert refused == (404, "notFound", f"Not found: {other}.")


@pytest.mark.parametrize("name", ["", "P", "1p", "p-", "p" * 41])
def test_a_pool_has_a_name_as_google_wants_it(api: Api, name: str) -> None:
    refused = api.refused("container", "POST", POOLS, {"nodePool": {"name": name}})
    assert refused[0] == 400
    assert refused[2] == f'Invalid value for field "node_pool.name": "{name}".'


def test_a_pool_that_is_being_made_can_be_neither_changed_nor_deleted(api: Api) -> None:
    api.rate = 1.0
    busy = _make(api)["name"]
    refused = (400, "failedPrecondition", f"Node pool is running incompatible operation {busy}.")
    assert api.refused("container", "DELETE", POOL) == refused
    assert api.refused("container", "POST", f"{POOL}:setSize", {"nodeCount": 1}) == refused


def test_a_deleted_pool_is_there_until_its_operation_ends(api: Api) -> None:
    _make(api, initialNodeCount=1)
    api.rate = 1.0
    operation = api.json("container", "DELETE", POOL)
    assert _get(api)["status"] == "STOPPING"
    api.now += 121
    assert _ended(api, operation)["status"] == "DONE"
    assert api.refused("container", "GET", POOL)[:2] == (404, "notFound")
    assert (_groups(api), _vms(api)) == ([], [])


@pytest.mark.parametrize("scenario", ["quota", "stockout"])
def test_a_pool_whose_nodes_do_not_come_is_there_with_an_error(api: Api, scenario: str) -> None:
    api.scenarios = frozenset({scenario})
    operation = _make(api, initialNodeCount=2, config=L4)
    words = {"quota": "[GCE_QUOTA_EXCEEDED]", "stockout": "[GCE_STOCKOUT]"}[scenario]
    assert operation["error"]["code"] == 8
    assert words in operation["error"]["message"]
    pool = _get(api)
    assert pool["status"] == "RUNNING_WITH_ERROR"
    assert pool["statusMessage"] == operation["error"]["message"]
    assert [group["targetSize"] for group in _groups(api)] == [2]


def test_no_zone_runs_out_of_machines_without_gpus(api: Api) -> None:
    api.scenarios = frozenset({"stockout"})
    assert "error" not in _make(api, initialNodeCount=1)
    assert "error" not in api.json("container", "POST", f"{POOL}:setSize", {"nodeCount": 2})
    assert "error" in _make(api, name="gpus", initialNodeCount=1, config=L4)


@pytest.mark.parametrize("scenario", ["quota", "stockout", "queue", "never"])
def test_a_pool_that_begins_without_nodes_meets_no_shortage(api: Api, scenario: str) -> None:
    api.scenarios = frozenset({scenario})
    assert "error" not in _make(api, config=L4)
    assert _get(api)["status"] == "RUNNING"


def test_a_machine_that_the_zone_has_not_is_refused_in_compute_engine_s_words(api: Api) -> None:
    config = {"machineType": "a3-ultragpu-9g"}
    refused = api.refused("container", "POST", POOLS, {"nodePool": {"name": "p", "config": config}})
    assert refused[0] == 400
    assert refused[2].startswith("Google Compute Engine: ")
    assert api.refused("container", "GET", POOL)[0] == 404
    assert _groups(api) == []


def test_another_size_comes_to_each_zone(api: Api) -> None:
    _make(api, initialNodeCount=1)
    operation = api.json("container", "POST", f"{POOL}:setSize", {"nodeCount": 3})
    assert operation["operationType"] == "SET_NODE_POOL_SIZE"
    assert [group["targetSize"] for group in _groups(api)] == [3]
    assert _get(api)["initialNodeCount"] == 1


def test_a_size_that_comes_at_last_ends_the_pool_s_error(api: Api) -> None:
    api.scenarios = frozenset({"quota"})
    _make(api, initialNodeCount=1, config=L4)
    api.scenarios = frozenset()
    assert "error" not in api.json("container", "POST", f"{POOL}:setSize", {"nodeCount": 2})
    assert _get(api)["status"] == "RUNNING"
    assert len(_vms(api)) == 2


def test_limits_are_changed_by_way_of_the_cluster(api: Api) -> None:
    _make(api)
    limits = {"enabled": True, "totalMinNodeCount": 0, "totalMaxNodeCount": 4}
    update = {"desiredNodePoolId": "p", "desiredNodePoolAutoscaling": limits}
    api.json("container", "PUT", CLUSTER, {"update": update})
    assert _get(api)["autoscaling"] == limits
    worse = {**update, "desiredNodePoolAutoscaling": {"enabled": True}}
    refused = api.refused("container", "PUT", CLUSTER, {"update": worse})
    assert refused[2] == "Autoscaling limits are invalid: minimum 0, maximum 0."


@pytest.mark.parametrize(
    ("body", "where", "value"),
    [
        ({"labels": {"labels": {"role": "x"}}}, ("config", "labels"), {"role": "x"}),
        ({"tags": {"tags": ["t"]}}, ("config", "tags"), ["t"]),
        ({"taints": {"taints": []}}, ("config", "taints"), []),
        ({"machineType": "e2-standard-8"}, ("config", "machineType"), "e2-standard-8"),
        ({"diskSizeGb": "250"}, ("config", "diskSizeGb"), 250),
        ({"gvnic": {"enabled": True}}, ("config", "gvnic"), {"enabled": True}),
        ({"locations": ["us-central1-b"]}, ("locations",), ["us-central1-b"]),
        ({"upgradeSettings": {"maxSurge": 2}}, ("upgradeSettings",), {"maxSurge": 2}),
        ({"nodeVersion": "1.35.6-gke.1250000"}, ("version",), "1.35.6-gke.1250000"),
    ],
)
def test_an_update_changes_what_it_names(
    api: Api, body: dict[str, Any], where: tuple[str, ...], value: Any
) -> None:
    _make(api, config={"labels": {"role": "old"}})
    api.json("container", "PUT", POOL, {**body, "name": "p"})
    found: Any = _get(api)
    for key in where:
        found = found[key]
    assert found == value


def test_image_and_version_are_changed_by_way_of_the_cluster(api: Api) -> None:
    _make(api)
    image, version = "UBUNTU_CONTAINERD", "1.35.6-gke.1250000"
    for changes in ({"desiredImageType": image}, {"desiredNodeVersion": version}):
        update = {"desiredNodePoolId": "p", **changes}
        api.json("container", "PUT", CLUSTER, {"update": update})
    assert (_get(api)["config"]["imageType"], _get(api)["version"]) == (image, version)
    other = {"desiredNodePoolId": "q", "desiredImageType": image}
    assert api.refused("container", "PUT", CLUSTER, {"update": other})[0] == 404


def test_management_and_limits_have_methods_of_their_own(api: Api) -> None:
    _make(api)
    management = {"autoUpgrade": True}
    api.json("container", "POST", f"{POOL}:setManagement", {"management": management})
    limits = {"enabled": True, "maxNodeCount": 3}
    api.json("container", "POST", f"{POOL}:setAutoscaling", {"autoscaling": limits})
    assert (_get(api)["management"], _get(api)["autoscaling"]) == (management, limits)


def test_nodes_of_a_newer_minor_version_than_their_control_plane_are_refused(api: Api) -> None:
    _make(api)
    newer = {"name": "p", "nodeVersion": "1.36.4-gke.1082000"}
    code, _, words = api.refused("container", "PUT", POOL, newer)
    assert code == 400
    assert "must not have a greater minor version than master version" in words
