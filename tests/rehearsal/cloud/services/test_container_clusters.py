"""Kubernetes Engine: clusters, their operations, and the versions on offer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.rehearsal.cloud.services.conftest import Api

PLACE = "projects/proj-a1/locations/us-central1"
ONE = f"{PLACE}/clusters/loom"
BODY: dict[str, Any] = {
    "name": "loom",
    "initialNodeCount": 1,
    "locations": ["us-central1-a"],
    "networkConfig": {"datapathProvider": "ADVANCED_DATAPATH", "enableMultiNetworking": True},
    "ipAllocationPolicy": {"useIpAliases": True, "stackType": "IPV4"},
    "releaseChannel": {"channel": "REGULAR"},
}


def _make(api: Api, **changes: Any) -> dict[str, Any]:
    return api.json("container", "POST", f"{PLACE}/clusters", {"cluster": BODY | changes})


def _refused(api: Api, **changes: Any) -> tuple[int, str, str]:
    return api.refused("container", "POST", f"{PLACE}/clusters", {"cluster": BODY | changes})


def _update(api: Api, **changes: Any) -> None:
    api.json("container", "PUT", ONE, {"update": changes})


def _get(api: Api, path: str = ONE) -> dict[str, Any]:
    return api.json("container", "GET", path)


def test_a_cluster_is_made_in_its_time(api: Api) -> None:
    api.rate = 1.0
    operation = _make(api)
    assert (operation["operationType"], operation["status"]) == ("CREATE_CLUSTER", "RUNNING")
    assert _get(api)["status"] == "PROVISIONING"
    api.now += 240
    under_way = _get(api, f"{PLACE}/operations/{operation['name']}")
    steps = {it["name"]: it.get("intValue") for it in under_way["progress"]["metrics"]}
    assert steps["CLUSTER_CONFIGURING"] == steps["CLUSTER_CONFIGURING_TOTAL"]
    assert steps["CLUSTER_HEALTHCHECKING"] == "0"
    api.now += 241
    assert _get(api, f"{PLACE}/operations/{operation['name']}")["status"] == "DONE"
    assert _get(api)["status"] == "RUNNING"


def test_all_operations_of_a_place_can_be_listed(api: Api) -> None:
    operation = _make(api)
    listed = _get(api, f"{PLACE}/operations")["operations"]
    assert [it["name"] for it in listed] == [operation["name"]]
    assert _get(api, "projects/proj-a1/locations/-/operations")["operations"] == listed
    assert api.refused("container", "GET", f"{PLACE}/operations/operation-1-x")[0] == 404


def test_a_new_cluster_has_a_default_pool_of_its_locations(api: Api) -> None:
    _make(api, initialNodeCount=2, locations=["us-central1-a", "us-central1-b"])
    cluster = _get(api)
    (pool,) = cluster["nodePools"]
    assert (pool["name"], pool["initialNodeCount"]) == ("default-pool", 2)
    assert pool["locations"] == ["us-central1-a", "us-central1-b"]
    assert cluster["currentNodeCount"] == 4
    assert cluster["instanceGroupUrls"] == pool["instanceGroupUrls"]


def test_a_cluster_without_pools_says_nothing_of_nodes(api: Api) -> None:
    _make(api)
    api.json("container", "DELETE", f"{ONE}/nodePools/default-pool")
    assert _get(api).keys().isdisjoint({"nodePools", "instanceGroupUrls", "currentNodeCount"})


def test_what_a_block_leaves_out_is_not_filled_in(api: Api) -> None:
    _make(api, addonsConfig={"gcsFuseCsiDriverConfig": {"enabled": True}}, shieldedNodes={})
    cluster = _get(api)
    assert cluster["shieldedNodes"] == {}
    assert cluster["addonsConfig"]["gcsFuseCsiDriverConfig"] == {"enabled": True}
    assert cluster["addonsConfig"]["httpLoadBalancing"] == {}


def test_the_control_plane_has_a_dns_name_and_by_ip_only_what_is_wanted(api: Api) -> None:
    by_dns = {
        "dnsEndpointConfig": {"allowExternalTraffic": True},
        "ipEndpointsConfig": {"enabled": False},
    }
    _make(api, controlPlaneEndpointsConfig=by_dns)
    cluster = _get(api)
    endpoints = cluster["controlPlaneEndpointsConfig"]
    assert endpoints["dnsEndpointConfig"]["endpoint"].endswith(".us-central1.gke.goog")
    assert endpoints["ipEndpointsConfig"] == {"enabled": False}
    assert "endpoint" not in cluster
    by_ip = {"ipEndpointsConfig": {"enabled": True, "enablePublicEndpoint": True}}
    _update(api, desiredControlPlaneEndpointsConfig=by_ip)
    cluster = _get(api)
    assert (
        cluster["endpoint"]
        == (cluster["controlPlaneEndpointsConfig"]["ipEndpointsConfig"]["publicEndpoint"])
    )


def test_a_second_cluster_of_a_name_is_refused(api: Api) -> None:
    _make(api)
    assert _refused(api) == (409, "alreadyExists", f"Already exists: {ONE}.")
    other = "projects/proj-a1/locations/us-east4/clusters"
    body = {"cluster": BODY | {"locations": ["us-east4-a"]}}
    api.json("container", "POST", other, body)
    everywhere = _get(api, "projects/proj-a1/locations/-/clusters")["clusters"]
    assert [it["location"] for it in everywhere] == ["us-central1", "us-east4"]


def test_a_cluster_that_is_being_made_can_be_neither_changed_nor_deleted(api: Api) -> None:
    api.rate = 1.0
    busy = _make(api)["name"]
    refused = (400, "failedPrecondition", f"Cluster is running incompatible operation {busy}.")
    assert api.refused("container", "DELETE", ONE) == refused
    update = {"update": {"desiredEnableFqdnNetworkPolicy": True}}
    assert api.refused("container", "PUT", ONE, update) == refused
    pool = {"nodePool": {"name": "p"}}
    assert api.refused("container", "POST", f"{ONE}/nodePools", pool) == refused


def test_a_cluster_one_of_whose_pools_is_being_made_cannot_be_deleted(api: Api) -> None:
    _make(api)
    api.rate = 1.0
    made = api.json("container", "POST", f"{ONE}/nodePools", {"nodePool": {"name": "p"}})
    assert api.refused("container", "DELETE", ONE) == (
        400,
        "failedPrecondition",
        f"Cluster is running incompatible operation {made['name']}.",
    )
    api.now += 121
    api.json("container", "DELETE", ONE)


def test_a_deleted_cluster_takes_its_time_and_its_nodes_along(api: Api) -> None:
    _make(api)
    api.rate = 1.0
    operation = api.json("container", "DELETE", ONE)
    assert _get(api)["status"] == "STOPPING"
    api.now += 241
    assert _get(api, f"{PLACE}/operations/{operation['name']}")["status"] == "DONE"
    assert api.refused("container", "GET", ONE) == (404, "notFound", f"Not found: {ONE}.")
    zone = "projects/proj-a1/zones/us-central1-a"
    assert "items" not in api.json("compute", "GET", f"{zone}/instanceGroupManagers")
    assert "items" not in api.json("compute", "GET", f"{zone}/instances")
    templates = api.json("compute", "GET", "projects/proj-a1/global/instanceTemplates")
    assert "items" not in templates


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"name": "Loom"}, 'Invalid value for field "cluster.name"'),
        ({"name": "l" * 41}, 'Invalid value for field "cluster.name"'),
        ({"initialNodeCount": 0}, "initial_node_count must be greater than zero"),
        ({"network": "none"}, 'Network "none" does not exist.'),
        ({"subnetwork": "none"}, 'Subnetwork "none" does not exist.'),
        ({"initialClusterVersion": "1.19"}, 'Master version "1.19" is unsupported.'),
        ({"networkConfig": {"enableMultiNetworking": True}}, "requires GKE Dataplane V2"),
        (
            {"ipAllocationPolicy": {"clusterSecondaryRangeName": "pods"}},
            'Pod secondary range "pods" does not exist in subnetwork "default".',
        ),
    ],
)
def test_what_no_cluster_may_be_is_refused(api: Api, changes: dict[str, Any], words: str) -> None:
    code, _, message = _refused(api, **changes)
    assert code == 400
    assert words in message
    assert api.json("container", "GET", f"{PLACE}/clusters") == {}


def test_a_place_that_does_not_exist_is_refused(api: Api) -> None:
    for what in ("clusters", "operations", "serverConfig"):
        answer = api.refused("container", "GET", f"projects/proj-a1/locations/mars-1/{what}")
        assert answer[::2] == (400, 'Location "mars-1" does not exist.')


def _with_ranges(api: Api, pods: str, services: str) -> dict[str, Any]:
    """Make a subnetwork with ranges; what a cluster says to be in it."""
    network = {"name": "net", "autoCreateSubnetworks": False}
    api.json("compute", "POST", "projects/proj-a1/global/networks", network)
    subnetwork = {
        "name": "sub",
        "network": "projects/proj-a1/global/networks/net",
        "ipCidrRange": "10.0.0.0/20",
        "secondaryIpRanges": [
            {"rangeName": "pods", "ipCidrRange": pods},
            {"rangeName": "services", "ipCidrRange": services},
        ],
    }
    api.json("compute", "POST", "projects/proj-a1/regions/us-central1/subnetworks", subnetwork)
    policy = {
        "useIpAliases": True,
        "clusterSecondaryRangeName": "pods",
        "servicesSecondaryRangeName": "services",
    }
    return {"network": "net", "subnetwork": "sub", "ipAllocationPolicy": policy}


def test_ranges_are_those_of_the_subnetwork(api: Api) -> None:
    _make(api, **_with_ranges(api, "10.64.0.0/14", "10.96.0.0/20"))
    cluster = _get(api)
    assert (cluster["network"], cluster["subnetwork"]) == ("net", "sub")
    assert cluster["clusterIpv4Cidr"] == "10.64.0.0/14"
    assert cluster["servicesIpv4Cidr"] == "10.96.0.0/20"
    assert cluster["networkConfig"]["network"] == "projects/proj-a1/global/networks/net"


@pytest.mark.parametrize(
    ("pods", "services", "least"),
    [("10.64.0.0/25", "10.96.0.0/20", "/24"), ("10.64.0.0/14", "10.96.0.0/28", "/27")],
)
def test_a_range_is_not_too_small(api: Api, pods: str, services: str, least: str) -> None:
    where = _with_ranges(api, pods, services)
    refused = _refused(api, **where)
    assert refused[0] == 400
    assert f"must have a CIDR block larger or equal to {least}" in refused[2]


def test_nodes_beyond_the_range_of_pods_do_not_come(api: Api) -> None:
    _make(api, **_with_ranges(api, "10.64.0.0/23", "10.96.0.0/20"), locations=["us-central1-a"])
    made = {"initialNodeCount": 1, "locations": ["us-central1-a"]}
    pools = f"{ONE}/nodePools"
    api.json("container", "POST", pools, {"nodePool": {"name": "second", **made}})
    # With the first pool's node, two /24 are taken: a /25 has no room beside them.
    few = {"name": "third", "maxPodsConstraint": {"maxPodsPerNode": "64"}, **made}
    ended = api.json("container", "POST", pools, {"nodePool": few})
    operation = f"{ONE.rpartition('/clusters')[0]}/operations/{ended['name']}"
    error = api.json("container", "GET", operation)["error"]
    assert "[IP_SPACE_EXHAUSTED]" in error["message"]
    assert api.json("container", "GET", f"{pools}/third")["podIpv4CidrSize"] == 25


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
    _make(api, initialClusterVersion=asked, releaseChannel={"channel": channel})
    assert _get(api)["currentMasterVersion"] == version


def test_a_place_says_which_versions_it_offers(api: Api) -> None:
    config = _get(api, f"{PLACE}/serverConfig")
    assert config["validMasterVersions"][0] == "1.36.4-gke.1082000"
    assert {it["channel"] for it in config["channels"]} >= {"RAPID", "REGULAR", "STABLE"}


def test_an_update_changes_one_field_and_leaves_the_rest_of_its_block(api: Api) -> None:
    _make(api)
    _update(api, desiredEnableFqdnNetworkPolicy=True)
    _update(api, desiredIntraNodeVisibilityConfig={"enabled": True})
    encrypted = {"state": "ENCRYPTED", "keyName": "k"}
    refused = api.refused(
        "container", "PUT", ONE, {"update": {"desiredDatabaseEncryption": encrypted}}
    )
    assert "cryptoKeyVersions.useToEncrypt' denied" in refused[2]
    _update(api, desiredShieldedNodes={"enabled": False})
    cluster = _get(api)
    assert cluster["networkConfig"]["enableFqdnNetworkPolicy"] is True
    assert cluster["networkConfig"]["enableIntraNodeVisibility"] is True
    assert cluster["networkConfig"]["datapathProvider"] == "ADVANCED_DATAPATH"
    assert cluster["shieldedNodes"] == {"enabled": False}
    assert api.refused("container", "PUT", ONE, {"update": {}})[2] == (
        "Must specify a field to update."
    )


def test_multi_networking_is_turned_on_when_a_cluster_is_made_or_never(api: Api) -> None:
    _make(api)
    _update(api, desiredEnableMultiNetworking=True)
    change = {"update": {"desiredEnableMultiNetworking": False}}
    code, _, message = api.refused("container", "PUT", ONE, change)
    assert (code, "creation only" in message) == (400, True)


def test_an_update_replaces_what_it_names_and_addons_one_by_one(api: Api) -> None:
    _make(api, addonsConfig={"gcsFuseCsiDriverConfig": {"enabled": True}})
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
    _make(api)
    api.rate = 1.0
    _update(api, desiredMasterVersion="1.36")
    assert _get(api)["status"] == "RECONCILING"
    api.now += 599
    assert _get(api)["status"] == "RECONCILING"
    api.now += 2
    assert _get(api)["currentMasterVersion"] == "1.36.4-gke.1082000"
    assert _get(api)["status"] == "RUNNING"


def test_labels_are_set_with_the_fingerprint_of_those_before(api: Api) -> None:
    _make(api, resourceLabels={"team": "ml"})
    body = {"resourceLabels": {"team": "x"}, "labelFingerprint": "old"}
    refused = api.refused("container", "POST", f"{ONE}:setResourceLabels", body)
    assert refused[:2] == (400, "failedPrecondition")
    body["labelFingerprint"] = before = _get(api)["labelFingerprint"]
    api.json("container", "POST", f"{ONE}:setResourceLabels", body)
    assert _get(api)["resourceLabels"] == {"team": "x"}
    assert _get(api)["labelFingerprint"] != before


def test_a_maintenance_policy_has_a_version(api: Api) -> None:
    _make(api)
    before = _get(api)["maintenancePolicy"]["resourceVersion"]
    window = {"dailyMaintenanceWindow": {"startTime": "03:00"}}
    body = {"maintenancePolicy": {"window": window, "resourceVersion": before}}
    api.json("container", "POST", f"{ONE}:setMaintenancePolicy", body)
    policy = _get(api)["maintenancePolicy"]
    assert policy["window"] == window
    assert policy["resourceVersion"] != before


@pytest.mark.parametrize(
    ("method", "body", "field", "value"),
    [
        ("setLegacyAbac", {"enabled": True}, "legacyAbac", {"enabled": True}),
        (
            "setNetworkPolicy",
            {"networkPolicy": {"enabled": True}},
            "networkPolicy",
            {"enabled": True},
        ),
        ("setLogging", {"loggingService": "none"}, "loggingService", "none"),
        ("setMonitoring", {"monitoringService": "none"}, "monitoringService", "none"),
        ("setLocations", {"locations": ["us-central1-b"]}, "locations", ["us-central1-b"]),
    ],
)
def test_some_fields_have_a_method_of_their_own(
    api: Api, method: str, body: dict[str, Any], field: str, value: Any
) -> None:
    _make(api)
    api.json("container", "POST", f"{ONE}:{method}", body)
    assert _get(api)[field] == value
