from typing import Any

import pytest

from tests.rehearsal.cloud.services.conftest import (
    CLUSTER,
    L4,
    NO_RESERVATION,
    PLACE,
    POOLS,
    ZONE,
    Api,
    Json,
)

POOL = f"{POOLS}/p"
GROUPS = f"{ZONE}/instanceGroupManagers"
TEMPLATES = "projects/proj-a1/global/instanceTemplates"


@pytest.fixture(autouse=True)
def cluster(api: Api) -> None:
    """A cluster without nodes."""
    api.cluster()
    api.gke("DELETE", f"{POOLS}/default-pool")


def _get(api: Api, path: str = POOL) -> Json:
    return api.gke("GET", path)


def _sizes(api: Api, groups: str = GROUPS) -> list[int]:
    return [group["targetSize"] for group in api.compute(groups)]


def _vms(api: Api) -> list[Json]:
    return api.compute(f"{ZONE}/instances")


def _ended(api: Api, operation: Json) -> Json:
    return _get(api, f"{PLACE}/operations/{operation['name']}")


def test_a_pool_is_made_and_deleted_in_its_time_and_not_touched_before(api: Api) -> None:
    api.rate = 1.0
    operation = api.pool(initialNodeCount=1)
    assert operation["targetLink"].endswith("/clusters/loom/nodePools/p")
    assert _get(api)["status"] == "PROVISIONING"
    assert _get(api, CLUSTER)["status"] == "RUNNING"
    busy = f"400 Node pool is running incompatible operation {operation['name']}."
    assert api.gke_refused("DELETE", POOL) == busy
    assert api.gke_refused("POST", f"{POOL}:setSize", {"nodeCount": 1}) == busy
    api.now += 121
    assert (_ended(api, operation)["status"], _get(api)["status"]) == ("DONE", "RUNNING")

    operation = api.gke("DELETE", POOL)
    assert _get(api)["status"] == "STOPPING"
    api.now += 121
    assert _ended(api, operation)["status"] == "DONE"
    assert api.refused("container", "GET", POOL)[:2] == (404, "notFound")
    assert (_sizes(api), _vms(api)) == ([], [])


def test_pools_are_made_side_by_side_in_the_zones_of_their_cluster(api: Api) -> None:
    api.rate = 1.0
    for name in ("a", "b", "c"):
        api.pool(name=name)
    pools = _get(api, POOLS)["nodePools"]
    assert [it["name"] for it in pools] == ["a", "b", "c"]
    assert pools[0]["locations"] == ["us-central1-a"]


def test_a_pool_has_a_managed_group_in_each_of_its_zones(api: Api) -> None:
    zones = ["us-central1-a", "us-central1-b"]
    api.pool(initialNodeCount=2, locations=zones)
    urls = _get(api)["instanceGroupUrls"]
    assert [url.split("/zones/")[1].split("/")[0] for url in urls] == zones
    assert all("/instanceGroupManagers/gke-loom-p-" in url for url in urls)
    (group,) = api.compute(GROUPS)
    assert (group["name"], group["targetSize"]) == (urls[0].rpartition("/")[2], 2)
    assert [vm["name"].startswith(group["baseInstanceName"]) for vm in _vms(api)] == [True, True]
    assert _get(api, CLUSTER)["currentNodeCount"] == 4


def test_a_pool_that_changes_keeps_its_nodes_and_makes_new_ones_as_it_is_then(api: Api) -> None:
    before = api.compute(TEMPLATES)
    api.pool(initialNodeCount=1, config=L4 | NO_RESERVATION | {"diskSizeGb": 200})
    api.gke("PUT", POOL, {"diskSizeGb": "250"})
    api.gke("POST", f"{POOL}:setSize", {"nodeCount": 2})
    assert sorted(vm["disks"][0]["diskSizeGb"] for vm in _vms(api)) == ["200", "250"]
    api.gke("DELETE", POOL)
    assert api.compute(TEMPLATES) == before


def test_a_pool_that_moves_gets_as_many_nodes_in_its_new_zone(api: Api) -> None:
    api.pool(initialNodeCount=2)
    api.gke("PUT", POOL, {"locations": ["us-central1-b"]})
    (url,) = _get(api)["instanceGroupUrls"]
    assert "/zones/us-central1-b/" in url
    assert (_sizes(api), _sizes(api, GROUPS.replace("l1-a", "l1-b"))) == ([], [2])


def test_an_autoscaled_pool_begins_at_the_size_it_is_given(api: Api) -> None:
    api.pool(autoscaling={"enabled": True, "totalMinNodeCount": 0, "totalMaxNodeCount": 8})
    assert _get(api)["initialNodeCount"] == 0
    assert (_sizes(api), _vms(api)) == ([0], [])


def test_nodes_are_the_machines_that_the_pool_describes(api: Api) -> None:
    own = {"spot": True, "diskSizeGb": 200, "resourceLabels": {"team": "ml"}}
    api.pool(initialNodeCount=1, config=L4 | NO_RESERVATION | own)
    (vm,) = _vms(api)
    assert vm["machineType"].endswith("/g2-standard-4")
    assert vm["scheduling"]["provisioningModel"] == "SPOT"
    assert vm["disks"][0]["diskSizeGb"] == "200"
    assert vm["labels"]["team"] == "ml"
    assert vm["labels"]["goog-gke-node-pool-provisioning-model"] == "spot"
    assert [it["acceleratorCount"] for it in vm["guestAccelerators"]] == [1]


def test_nodes_of_flex_start_end_after_their_run(api: Api) -> None:
    config = L4 | NO_RESERVATION | {"flexStart": True, "maxRunDuration": "3600s"}
    limits = {"enabled": True, "totalMaxNodeCount": 8, "locationPolicy": "ANY"}
    api.pool(config=config, autoscaling=limits)
    templates = api.compute("projects/proj-a1/global/instanceTemplates")
    (scheduling,) = [it["properties"]["scheduling"] for it in templates if "-p-" in it["name"]]
    assert scheduling["provisioningModel"] == "FLEX_START"
    assert scheduling["maxRunDuration"] == {"seconds": "3600"}
    assert scheduling["instanceTerminationAction"] == "DELETE"
    assert _get(api)["management"] == {"autoUpgrade": True, "autoRepair": False}


def test_more_networks_are_more_interfaces_in_their_order(api: Api) -> None:
    api.network("one", "192.168.0.0/24")
    api.network("two", "192.168.1.0/24")
    more = [{"network": name, "subnetwork": f"{name}-sub"} for name in ("one", "two")]
    networks = {"additionalNodeNetworkConfigs": more}
    api.pool(initialNodeCount=1, config={"machineType": "n1-standard-8"}, networkConfig=networks)
    (vm,) = _vms(api)
    found = [it["network"].rpartition("/")[2] for it in vm["networkInterfaces"]]
    assert found == ["default", "one", "two"]


def test_a_pool_has_a_name_as_google_wants_it_and_of_its_own(api: Api) -> None:
    for name in ("", "P", "1p", "p-", "p" * 41):
        refused = api.gke_refused("POST", POOLS, {"nodePool": {"name": name}})
        assert refused == f'400 Invalid value for field "node_pool.name": "{name}".'
    api.pool()
    refused = api.gke_refused("POST", POOLS, {"nodePool": {"name": "p"}})
    assert refused == f"409 Already exists: {POOL}."
    other = CLUSTER.replace("loom", "none")
    for method in ("GET", "POST"):
        refused = api.gke_refused(method, f"{other}/nodePools", {"nodePool": {}})
        assert refused == f"404 Not found: {other}."


WORDS = {"quota": "[GCE_QUOTA_EXCEEDED]", "stockout": "[GCE_STOCKOUT]"}


@pytest.mark.parametrize("scenario", WORDS)
def test_a_pool_whose_nodes_do_not_come_is_there_with_an_error_until_they_do(
    api: Api, scenario: str
) -> None:
    api.scenarios = frozenset({scenario})
    error = api.pool(initialNodeCount=2, config=L4)["error"]
    assert error["code"] == 8
    assert WORDS[scenario] in error["message"]
    pool = _get(api)
    assert pool["status"] == "RUNNING_WITH_ERROR"
    assert pool["statusMessage"] == error["message"]
    assert _sizes(api) == [2]
    api.scenarios = frozenset()
    assert "error" not in api.gke("POST", f"{POOL}:setSize", {"nodeCount": 2})
    assert _get(api)["status"] == "RUNNING"
    assert len(_vms(api)) == 2


def test_no_zone_runs_out_of_machines_without_gpus(api: Api) -> None:
    api.scenarios = frozenset({"stockout"})
    assert "error" not in api.pool(initialNodeCount=1)
    assert "error" not in api.gke("POST", f"{POOL}:setSize", {"nodeCount": 2})
    assert "error" in api.pool(name="gpus", initialNodeCount=1, config=L4)


@pytest.mark.parametrize("scenario", ["quota", "stockout", "queue", "never"])
def test_a_pool_that_begins_without_nodes_meets_no_shortage(api: Api, scenario: str) -> None:
    api.scenarios = frozenset({scenario})
    assert "error" not in api.pool(config=L4)
    assert _get(api)["status"] == "RUNNING"


def test_a_machine_that_the_zone_has_not_is_refused_in_compute_engine_s_words(api: Api) -> None:
    pool = {"name": "p", "config": {"machineType": "a3-ultragpu-9g"}}
    refused = api.gke_refused("POST", POOLS, {"nodePool": pool})
    assert refused.startswith("400 Google Compute Engine: ")
    assert api.refused("container", "GET", POOL)[0] == 404
    assert _sizes(api) == []


def test_another_size_comes_to_each_zone(api: Api) -> None:
    api.pool(initialNodeCount=1)
    operation = api.gke("POST", f"{POOL}:setSize", {"nodeCount": 3})
    assert operation["operationType"] == "SET_NODE_POOL_SIZE"
    assert _sizes(api) == [3]
    assert _get(api)["initialNodeCount"] == 1


def test_limits_image_and_version_are_changed_by_way_of_the_cluster(api: Api) -> None:
    def update(method: Any, **changes: Any) -> Any:
        return method("PUT", CLUSTER, {"update": {"desiredNodePoolId": "p", **changes}})

    api.pool()
    limits = {"enabled": True, "totalMinNodeCount": 0, "totalMaxNodeCount": 4}
    image, version = "UBUNTU_CONTAINERD", "1.35.6-gke.1250000"
    update(api.gke, desiredNodePoolAutoscaling=limits)
    update(api.gke, desiredImageType=image)
    update(api.gke, desiredNodeVersion=version)
    pool = _get(api)
    found = pool["autoscaling"], pool["config"]["imageType"], pool["version"]
    assert found == (limits, image, version)
    refused = update(api.gke_refused, desiredNodePoolAutoscaling={"enabled": True})
    assert refused == "400 Autoscaling limits are invalid: minimum 0, maximum 0."
    refused = update(api.gke_refused, desiredNodePoolId="q", desiredImageType=image)
    assert refused.startswith("404 ")


CONFIG: Json = {
    "labels": {"labels": {"role": "x"}},
    "tags": {"tags": ["t"]},
    "taints": {"taints": []},
}


def test_an_update_changes_what_it_names(api: Api) -> None:
    api.pool(config={"labels": {"role": "old"}})
    for body, block, key, value in (
        *((({key: it}), "config", key, it[key]) for key, it in CONFIG.items()),
        ({"machineType": "e2-standard-8"}, "config", "machineType", "e2-standard-8"),
        ({"diskSizeGb": "250"}, "config", "diskSizeGb", 250),
        ({"gvnic": {"enabled": True}}, "config", "gvnic", {"enabled": True}),
        ({"locations": ["us-central1-b"]}, "", "locations", ["us-central1-b"]),
        ({"upgradeSettings": {"maxSurge": 2}}, "", "upgradeSettings", {"maxSurge": 2}),
        ({"nodeVersion": "1.35.6-gke.1250000"}, "", "version", "1.35.6-gke.1250000"),
    ):
        api.gke("PUT", POOL, {**body, "name": "p"})
        found = _get(api)
        assert (found[block] if block else found)[key] == value


def test_management_and_limits_have_methods_of_their_own(api: Api) -> None:
    api.pool()
    management, limits = {"autoUpgrade": True}, {"enabled": True, "maxNodeCount": 3}
    api.gke("POST", f"{POOL}:setManagement", {"management": management})
    api.gke("POST", f"{POOL}:setAutoscaling", {"autoscaling": limits})
    assert (_get(api)["management"], _get(api)["autoscaling"]) == (management, limits)


def test_nodes_of_a_newer_minor_version_than_their_control_plane_are_refused(api: Api) -> None:
    api.pool()
    newer = {"name": "p", "nodeVersion": "1.36.4-gke.1082000"}
    refused = api.gke_refused("PUT", POOL, newer)
    assert refused.startswith("400 ")
    assert "must not have a greater minor version than master version" in refused
