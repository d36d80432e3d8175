from typing import Any

import pytest

from tests.rehearsal.cloud.services.conftest import (
    BODY,
    CLUSTER,
    CLUSTERS,
    PLACE,
    POOLS,
    ZONE,
    Api,
    Json,
)


def _update(api: Api, **changes: Any) -> None:
    api.gke("PUT", CLUSTER, {"update": changes})


def _update_refused(api: Api, **changes: Any) -> str:
    return api.gke_refused("PUT", CLUSTER, {"update": changes})


def _get(api: Api, path: str = CLUSTER) -> Json:
    return api.gke("GET", path)


def test_a_cluster_is_made_in_its_time_and_is_not_touched_before(api: Api) -> None:
    api.rate = 1.0
    operation = api.cluster()
    assert (operation["operationType"], operation["status"]) == ("CREATE_CLUSTER", "RUNNING")
    assert _get(api)["status"] == "PROVISIONING"
    busy = f"400 Cluster is running incompatible operation {operation['name']}."
    assert api.gke_refused("DELETE", CLUSTER) == busy
    assert _update_refused(api, desiredEnableFqdnNetworkPolicy=True) == busy
    assert api.gke_refused("POST", POOLS, {"nodePool": {"name": "p"}}) == busy
    path = f"{PLACE}/operations/{operation['name']}"
    api.now += 240
    steps = {it["name"]: it.get("intValue") for it in _get(api, path)["progress"]["metrics"]}
    assert steps["CLUSTER_CONFIGURING"] == steps["CLUSTER_CONFIGURING_TOTAL"]
    assert steps["CLUSTER_HEALTHCHECKING"] == "0"
    api.now += 241
    assert (_get(api, path)["status"], _get(api)["status"]) == ("DONE", "RUNNING")
    listed = _get(api, f"{PLACE}/operations")["operations"]
    assert [it["name"] for it in listed] == [operation["name"]]
    assert _get(api, "projects/proj-a1/locations/-/operations")["operations"] == listed
    assert api.gke_refused("GET", f"{PLACE}/operations/operation-1-x").startswith("404 ")


def test_a_new_cluster_has_a_default_pool_of_its_locations(api: Api) -> None:
    zones = ["us-central1-a", "us-central1-b"]
    api.cluster(initialNodeCount=2, locations=zones)
    cluster = _get(api)
    (pool,) = cluster["nodePools"]
    assert (pool["name"], pool["initialNodeCount"]) == ("default-pool", 2)
    assert (pool["locations"], cluster["currentNodeCount"]) == (zones, 4)
    assert cluster["instanceGroupUrls"] == pool["instanceGroupUrls"]
    api.gke("DELETE", f"{POOLS}/default-pool")
    assert _get(api).keys().isdisjoint({"nodePools", "instanceGroupUrls", "currentNodeCount"})


def test_what_a_block_leaves_out_is_not_filled_in(api: Api) -> None:
    api.cluster(addonsConfig={"gcsFuseCsiDriverConfig": {"enabled": True}}, shieldedNodes={})
    cluster = _get(api)
    assert cluster["shieldedNodes"] == {}
    assert cluster["addonsConfig"]["gcsFuseCsiDriverConfig"] == {"enabled": True}
    assert cluster["addonsConfig"]["httpLoadBalancing"] == {}


def test_the_control_plane_has_a_dns_name_and_by_ip_only_what_is_wanted(api: Api) -> None:
    dns = {"dnsEndpointConfig": {"allowExternalTraffic": True}}
    api.cluster(controlPlaneEndpointsConfig=dns | {"ipEndpointsConfig": {"enabled": False}})
    cluster = _get(api)
    endpoints = cluster["controlPlaneEndpointsConfig"]
    assert endpoints["dnsEndpointConfig"]["endpoint"].endswith(".us-central1.gke.goog")
    assert endpoints["ipEndpointsConfig"] == {"enabled": False}
    assert "endpoint" not in cluster
    by_ip = {"ipEndpointsConfig": {"enabled": True, "enablePublicEndpoint": True}}
    _update(api, desiredControlPlaneEndpointsConfig=by_ip)
    cluster = _get(api)
    endpoints = cluster["controlPlaneEndpointsConfig"]
    assert cluster["endpoint"] == endpoints["ipEndpointsConfig"]["publicEndpoint"]


def test_a_second_cluster_of_a_name_is_refused(api: Api) -> None:
    api.cluster()
    body = {"cluster": BODY | {"locations": ["us-east4-a"]}}
    assert api.gke_refused("POST", CLUSTERS, body) == f"409 Already exists: {CLUSTER}."
    api.gke("POST", "projects/proj-a1/locations/us-east4/clusters", body)
    everywhere = _get(api, "projects/proj-a1/locations/-/clusters")["clusters"]
    assert [it["location"] for it in everywhere] == ["us-central1", "us-east4"]


def test_a_cluster_one_of_whose_pools_is_being_made_cannot_be_deleted(api: Api) -> None:
    api.cluster()
    api.rate = 1.0
    made = api.pool()
    busy = f"400 Cluster is running incompatible operation {made['name']}."
    assert api.gke_refused("DELETE", CLUSTER) == busy
    api.now += 121
    api.gke("DELETE", CLUSTER)


def test_a_deleted_cluster_takes_its_time_and_its_nodes_along(api: Api) -> None:
    api.cluster()
    api.rate = 1.0
    operation = api.gke("DELETE", CLUSTER)
    assert _get(api)["status"] == "STOPPING"
    api.now += 241
    assert _get(api, f"{PLACE}/operations/{operation['name']}")["status"] == "DONE"
    assert api.gke_refused("GET", CLUSTER) == f"404 Not found: {CLUSTER}."
    assert api.compute(f"{ZONE}/instanceGroupManagers") == []
    assert api.compute(f"{ZONE}/instances") == []
    assert api.compute("projects/proj-a1/global/instanceTemplates") == []


REFUSED: dict[str, Json] = {
    'Invalid value for field "cluster.name": "Loom"': {"name": "Loom"},
    'Invalid value for field "cluster.name"': {"name": "l" * 41},
    "initial_node_count must be greater than zero": {"initialNodeCount": 0},
    'Network "none" does not exist.': {"network": "none"},
    'Subnetwork "none" does not exist.': {"subnetwork": "none"},
    'Master version "1.19" is unsupported.': {"initialClusterVersion": "1.19"},
    "requires GKE Dataplane V2": {"networkConfig": {"enableMultiNetworking": True}},
    'Pod secondary range "pods" does not exist in subnetwork "default".': {
        "ipAllocationPolicy": {"clusterSecondaryRangeName": "pods"}
    },
}


@pytest.mark.parametrize("words", REFUSED)
def test_what_no_cluster_may_be_is_refused(api: Api, words: str) -> None:
    refused = api.gke_refused("POST", CLUSTERS, {"cluster": BODY | REFUSED[words]})
    assert refused.startswith("400 ")
    assert words in refused
    assert api.gke("GET", CLUSTERS) == {}


def test_a_place_that_does_not_exist_is_refused(api: Api) -> None:
    for what in ("clusters", "operations", "serverConfig"):
        answer = api.gke_refused("GET", f"projects/proj-a1/locations/mars-1/{what}")
        assert answer == '400 Location "mars-1" does not exist.'


def _with_ranges(api: Api, pods: str, services: str) -> Json:
    """Make a subnetwork with ranges; what a cluster says to be in it."""
    ranges = {"pods": pods, "services": services}
    secondary = [{"rangeName": name, "ipCidrRange": it} for name, it in ranges.items()]
    api.network("net", "10.0.0.0/20", secondaryIpRanges=secondary)
    policy = {"clusterSecondaryRangeName": "pods", "servicesSecondaryRangeName": "services"}
    policy_of_ips = {"useIpAliases": True, **policy}
    return {"network": "net", "subnetwork": "net-sub", "ipAllocationPolicy": policy_of_ips}


def test_ranges_are_those_of_the_subnetwork(api: Api) -> None:
    api.cluster(**_with_ranges(api, "10.64.0.0/14", "10.96.0.0/20"))
    cluster = _get(api)
    assert (cluster["network"], cluster["subnetwork"]) == ("net", "net-sub")
    assert cluster["clusterIpv4Cidr"] == "10.64.0.0/14"
    assert cluster["servicesIpv4Cidr"] == "10.96.0.0/20"
    assert cluster["networkConfig"]["network"] == "projects/proj-a1/global/networks/net"


@pytest.mark.parametrize(
    ("pods", "services", "least"),
    [("10.64.0.0/25", "10.96.0.0/20", "/24"), ("10.64.0.0/14", "10.96.0.0/28", "/27")],
)
def test_a_range_is_not_too_small(api: Api, pods: str, services: str, least: str) -> None:
    body = {"cluster": BODY | _with_ranges(api, pods, services)}
    refused = api.gke_refused("POST", CLUSTERS, body)
    assert refused.startswith("400 ")
    assert f"must have a CIDR block larger or equal to {least}" in refused


def test_nodes_beyond_the_range_of_pods_do_not_come(api: Api) -> None:
    api.cluster(**_with_ranges(api, "10.64.0.0/23", "10.96.0.0/20"))
    made = {"initialNodeCount": 1, "locations": ["us-central1-a"]}
    api.pool(name="second", **made)
    # With the first pool's node, two /24 are taken: a /25 has no room beside them.
    ended = api.pool(name="third", maxPodsConstraint={"maxPodsPerNode": "64"}, **made)
    error = _get(api, f"{PLACE}/operations/{ended['name']}")["error"]
    assert "[IP_SPACE_EXHAUSTED]" in error["message"]
    assert _get(api, f"{POOLS}/third")["podIpv4CidrSize"] == 25


@pytest.mark.parametrize(
    ("asked", "channel", "version"),
    [
        ("", "REGULAR", "1.35.7-gke.1222000"),
        ("-", "RAPID", "1.36.4-gke.1082000"),
        ("latest", "STABLE", "1.35.6-gke.1250000"),
        ("1.34", "REGULAR", "1.34.9-gke.1655001"),
        ("1.35.6-gke.1250000", "REGULAR", "1.35.6-gke.1250000"),
        ("1.31", "UNSPECIFIED", "1.31.14-gke.1986000"),
    ],
)
def test_a_version_is_settled_by_the_channel(
    api: Api, asked: str, channel: str, version: str
) -> None:
    api.cluster(initialClusterVersion=asked, releaseChannel={"channel": channel})
    assert _get(api)["currentMasterVersion"] == version


def test_a_place_says_which_versions_it_offers(api: Api) -> None:
    config = _get(api, f"{PLACE}/serverConfig")
    assert config["validMasterVersions"][0] == "1.36.4-gke.1082000"
    assert {it["channel"] for it in config["channels"]} >= {"RAPID", "REGULAR", "STABLE"}


def test_an_update_changes_one_field_and_leaves_the_rest_of_its_block(api: Api) -> None:
    api.cluster()
    _update(api, desiredEnableFqdnNetworkPolicy=True)
    _update(api, desiredIntraNodeVisibilityConfig={"enabled": True})
    encrypted = {"state": "ENCRYPTED", "keyName": "k"}
    refused = _update_refused(api, desiredDatabaseEncryption=encrypted)
    assert "cryptoKeyVersions.useToEncrypt' denied" in refused
    _update(api, desiredShieldedNodes={"enabled": False})
    cluster = _get(api)
    assert cluster["networkConfig"]["enableFqdnNetworkPolicy"] is True
    assert cluster["networkConfig"]["enableIntraNodeVisibility"] is True
    assert cluster["networkConfig"]["datapathProvider"] == "ADVANCED_DATAPATH"
    assert cluster["shieldedNodes"] == {"enabled": False}
    assert _update_refused(api) == "400 Must specify a field to update."
    # Multi-networking is turned on when a cluster is made, or never.
    _update(api, desiredEnableMultiNetworking=True)
    refused = _update_refused(api, desiredEnableMultiNetworking=False)
    assert (refused[:4], "creation only" in refused) == ("400 ", True)


def test_an_update_replaces_what_it_names_and_addons_one_by_one(api: Api) -> None:
    api.cluster(addonsConfig={"gcsFuseCsiDriverConfig": {"enabled": True}})
    _update(api, desiredAddonsConfig={"rayOperatorConfig": {"enabled": True}})
    addons = _get(api)["addonsConfig"]
    assert addons["gcsFuseCsiDriverConfig"] == addons["rayOperatorConfig"] == {"enabled": True}
    authorized = {"enabled": True, "cidrBlocks": [{"cidrBlock": "10.0.0.0/8"}]}
    for networks in (authorized, {}):
        endpoints = {"ipEndpointsConfig": {"enabled": True, "authorizedNetworksConfig": networks}}
        _update(api, desiredControlPlaneEndpointsConfig=endpoints)
    by_ip = _get(api)["controlPlaneEndpointsConfig"]["ipEndpointsConfig"]
    assert "cidrBlocks" not in by_ip["authorizedNetworksConfig"]


def test_an_update_of_the_control_plane_takes_the_time_of_an_upgrade(api: Api) -> None:
    api.cluster()
    api.rate = 1.0
    _update(api, desiredMasterVersion="1.36")
    assert _get(api)["status"] == "RECONCILING"
    api.now += 599
    assert _get(api)["status"] == "RECONCILING"
    api.now += 2
    cluster = _get(api)
    now = cluster["currentMasterVersion"], cluster["status"]
    assert now == ("1.36.4-gke.1082000", "RUNNING")


def test_labels_and_the_maintenance_policy_are_set_by_who_knows_those_before(api: Api) -> None:
    api.cluster(resourceLabels={"team": "ml"})
    body = {"resourceLabels": {"team": "x"}, "labelFingerprint": "old"}
    refused = api.refused("container", "POST", f"{CLUSTER}:setResourceLabels", body)
    assert refused[:2] == (400, "failedPrecondition")
    body["labelFingerprint"] = before = _get(api)["labelFingerprint"]
    api.gke("POST", f"{CLUSTER}:setResourceLabels", body)
    cluster = _get(api)
    assert cluster["resourceLabels"] == {"team": "x"}
    assert cluster["labelFingerprint"] != before

    version = cluster["maintenancePolicy"]["resourceVersion"]
    window = {"dailyMaintenanceWindow": {"startTime": "03:00"}}
    wanted = {"maintenancePolicy": {"window": window, "resourceVersion": version}}
    api.gke("POST", f"{CLUSTER}:setMaintenancePolicy", wanted)
    policy = _get(api)["maintenancePolicy"]
    assert policy["window"] == window
    assert policy["resourceVersion"] != version


def test_some_fields_have_a_method_of_their_own(api: Api) -> None:
    api.cluster()
    for method, body in {
        "setLegacyAbac": {"enabled": True},
        "setNetworkPolicy": {"networkPolicy": {"enabled": True}},
        "setLogging": {"loggingService": "none"},
        "setMonitoring": {"monitoringService": "none"},
        "setLocations": {"locations": ["us-central1-b"]},
    }.items():
        api.gke("POST", f"{CLUSTER}:{method}", body)
    cluster = _get(api)
    assert cluster["legacyAbac"] == cluster["networkPolicy"] == {"enabled": True}
    assert cluster["loggingService"] == cluster["monitoringService"] == "none"
    assert cluster["locations"] == ["us-central1-b"]
