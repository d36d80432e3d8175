"""Networks, what is in them, and how VMs are placed."""

from __future__ import annotations

from typing import Any

import pytest

from rehearsal.cloud.facts import places
from tests.rehearsal.cloud.compute.conftest import PROJECT, REGION, Compute

NETWORKS, FIREWALLS = f"{PROJECT}/global/networks", f"{PROJECT}/global/firewalls"
NETWORK = f"{NETWORKS}/net"
SUBNETWORKS, ROUTERS = f"{REGION}/subnetworks", f"{REGION}/routers"
POLICIES = f"{REGION}/resourcePolicies"
PROFILE = f"{PROJECT}/global/networkProfiles/us-central1-a-vpc-roce"
ROOT = "https://www.googleapis.com/compute/v1/"
SUB: dict[str, Any] = {"name": "sub", "network": NETWORK, "ipCidrRange": "10.0.0.0/16"}
RULE: dict[str, Any] = {"name": "rule", "network": NETWORK, "allowed": [{"IPProtocol": "tcp"}]}
CUSTOM: dict[str, Any] = {"name": "net", "autoCreateSubnetworks": False}
CLOSE: dict[str, Any] = {"name": "close", "groupPlacementPolicy": {"collocation": "COLLOCATED"}}
THROUGHPUT: dict[str, Any] = {"name": "work", "workloadPolicy": {"type": "HIGH_THROUGHPUT"}}


def test_a_new_project_has_the_default_network_with_a_subnetwork_in_each_region(
    api: Compute,
) -> None:
    network = api.get(f"{NETWORKS}/default")
    assert network["autoCreateSubnetworks"] is True
    assert len(network["subnetworks"]) == len(places.REGIONS)
    assert api.get(f"{REGION}/subnetworks/default")["ipCidrRange"] == "10.128.0.0/20"
    rules = [it["name"].removeprefix("default-allow-") for it in api.get(FIREWALLS)["items"]]
    assert rules == ["icmp", "internal", "rdp", "ssh"]
    ranges = {
        api.get(f"{PROJECT}/regions/{region}/subnetworks/default")["ipCidrRange"]
        for region in places.REGIONS
    }
    assert len(ranges) == len(places.REGIONS)


@pytest.mark.parametrize(
    ("path", "body", "code", "words"),
    [
        (NETWORKS, CUSTOM | {"mtu": 1299}, 400, "field 'resource.mtu': '1299'"),
        (NETWORKS, CUSTOM | {"mtu": 8897}, 400, "field 'resource.mtu': '8897'"),
        (
            NETWORKS,
            {"name": "n", "autoCreateSubnetworks": True, "networkProfile": PROFILE},
            400,
            "autoCreateSubnetworks",
        ),
        (NETWORKS, CUSTOM | {"networkProfile": f"{PROFILE}x"}, 404, "vpc-rocex' was not found"),
        (SUBNETWORKS, SUB, 404, f"The resource '{NETWORK}' was not found"),
        (SUBNETWORKS, SUB | {"network": "net"}, 400, "'resource.network': 'net'. The URL is mal"),
        (SUBNETWORKS, SUB | {"network": "global/firewalls/n"}, 400, "collection 'firewalls'."),
        (FIREWALLS, RULE, 404, f"The resource '{NETWORK}' was not found"),
        (
            f"{PROJECT}/regions/us-mars1/subnetworks",
            SUB,
            400,
            "Invalid value for field 'region': 'us-mars1'. Unknown region.",
        ),
        (POLICIES, {"name": "p"}, 501, "not part of the simulated cloud"),
        (POLICIES, CLOSE | {"groupPlacementPolicy": {"collocation": "CLOSE"}}, 400, "collocation"),
    ],
)
def test_what_can_not_be_made_is_refused(
    api: Compute, path: str, body: dict[str, Any], code: int, words: str
) -> None:
    error = api.refusal("POST", path, body)
    assert error["code"] == code
    assert words in error["message"]


@pytest.mark.parametrize(
    ("path", "body", "words"),
    [
        (SUBNETWORKS, {"ipCidrRange": "10.0.0.1/16"}, "'resource.ipCidrRange'"),
        (SUBNETWORKS, {"ipCidrRange": "10.0.0.0/30"}, "'resource.ipCidrRange'"),
        (SUBNETWORKS, {"ipCidrRange": "word"}, "'resource.ipCidrRange'"),
        (SUBNETWORKS, {"ipCidrRange": "127.0.0.0/24"}, "reserved"),
        (
            f"{PROJECT}/regions/us-east4/subnetworks",
            {"ipCidrRange": "10.0.128.0/20"},
            "10.0.128.0/20 conflicts with existing subnetwork 'sub' in region 'us-central1'.",
        ),
        (
            SUBNETWORKS,
            {"secondaryIpRanges": [{"rangeName": "pods", "ipCidrRange": "10.0.0.0/20"}]},
            "resource.secondaryIpRanges[0].ipCidrRange",
        ),
        (
            SUBNETWORKS,
            {"secondaryIpRanges": [{"rangeName": "pods", "ipCidrRange": "10.1.4.0/24"}]},
            "another range of it",
        ),
        (f"{SUBNETWORKS}/sub/expandIpCidrRange", {"ipCidrRange": "10.0.0.0/20"}, "must contain"),
    ],
)
def test_a_range_that_no_subnetwork_can_have_is_refused(
    wired: Compute, path: str, body: dict[str, Any], words: str
) -> None:
    if not path.endswith("expandIpCidrRange"):
        body = {**SUB, "name": "more", "ipCidrRange": "10.1.0.0/16", **body}
    error = wired.refusal("POST", path, body)
    assert error["code"] == 400
    assert words in error["message"]


def test_a_range_grows_unless_another_is_there(wired: Compute) -> None:
    expand = f"{SUBNETWORKS}/sub/expandIpCidrRange"
    wired.post(expand, {"ipCidrRange": "10.0.0.0/15"})
    assert wired.get(f"{SUBNETWORKS}/sub")["ipCidrRange"] == "10.0.0.0/15"
    wired.subnetwork("next", ipCidrRange="10.2.0.0/16")
    error = wired.refusal("POST", expand, {"ipCidrRange": "10.0.0.0/14"})
    assert "conflicts with existing subnetwork 'next'" in error["message"]
    wired.network("other")
    assert wired.subnetwork("twin", network="other")["status"] == "DONE"


def test_the_default_network_goes_once_its_rules_are_gone(api: Compute) -> None:
    assert "already being used" in api.refusal("DELETE", f"{NETWORKS}/default")["message"]
    for rule in api.get(FIREWALLS)["items"]:
        api.delete(f"{FIREWALLS}/{rule['name']}")
    api.delete(f"{NETWORKS}/default")
    assert api.refusal("GET", f"{NETWORKS}/default")["code"] == 404
    assert "items" not in api.get(SUBNETWORKS)


def test_names_are_taken_until_what_has_them_is_deleted(wired: Compute) -> None:
    error = wired.refusal("POST", NETWORKS, CUSTOM)
    assert (error["code"], error["errors"][0]["reason"]) == (409, "alreadyExists")
    assert error["message"] == f"The resource '{NETWORK}' already exists"
    taken = wired.refusal("POST", SUBNETWORKS, SUB)  # not the range, which is its own
    assert taken["code"] == 409
    wired.delete(f"{SUBNETWORKS}/sub")
    wired.delete(NETWORK)
    assert wired.network()["operationType"] == "insert"
    error = wired.refusal("GET", f"{NETWORKS}/nowhere")
    assert (error["code"], error["errors"][0]["reason"]) == (404, "notFound")
    assert error["message"] == f"The resource '{NETWORKS}/nowhere' was not found"


@pytest.mark.parametrize(
    "reference",
    [
        "global/networks/net",
        f"{ROOT}{NETWORK}",
        f"https://compute.googleapis.com/compute/beta/{NETWORK}",
        f"http://127.0.0.1:8080/compute/v1/{NETWORK}",
        NETWORK.replace("proj-a1", "123456789012"),
    ],
)
def test_any_form_of_link_means_the_same_network(api: Compute, reference: str) -> None:
    api.network()
    api.post(SUBNETWORKS, SUB | {"network": reference})
    assert api.get(f"{SUBNETWORKS}/sub")["network"] == f"{ROOT}{NETWORK}"
    assert api.get(NETWORK)["subnetworks"] == [f"{ROOT}{SUBNETWORKS}/sub"]


@pytest.mark.parametrize(
    ("collection", "body"),
    [
        ("global/firewalls", {"allowed": [{"IPProtocol": "tcp"}]}),
        ("regions/us-central1/routers", {}),
        ("regions/us-central1/subnetworks", {"ipCidrRange": "10.0.0.0/16"}),
    ],
)
def test_a_network_in_use_can_not_be_deleted(
    api: Compute, collection: str, body: dict[str, object]
) -> None:
    api.network()
    api.post(f"{PROJECT}/{collection}", {"name": "user", "network": NETWORK, **body})
    error = api.refusal("DELETE", NETWORK)
    assert error["errors"][0]["reason"] == "resourceInUseByAnotherResource"
    user = f"{PROJECT}/{collection}/user"
    assert error["message"] == (
        f"The network resource '{NETWORK}' is already being used by '{user}'"
    )
    api.delete(user)
    assert api.delete(NETWORK)["status"] == "DONE"


def test_a_patch_merges_and_null_clears(api: Compute) -> None:
    routing = {"routingMode": "REGIONAL", "deleteBgpAlwaysCompareMed": False}
    api.network(description="before", mtu=1300, routingConfig=routing)
    api.patch(NETWORK, {"routingConfig": {"routingMode": "GLOBAL"}, "description": None})
    network = api.get(NETWORK)
    kept = {"routingMode": "GLOBAL", "bgpBestPathSelectionMode": "LEGACY"}
    assert (network["routingConfig"], network["mtu"]) == (kept, 1300)
    assert "description" not in network


def test_a_network_is_visible_but_not_ready_while_it_is_made_or_deleted(api: Compute) -> None:
    api.get(f"{NETWORKS}/default")
    api.rate = 1
    assert api.network()["status"] == "RUNNING"
    assert api.get(NETWORK)["name"] == "net"
    error = api.refusal("POST", SUBNETWORKS, SUB)
    assert error["errors"][0]["reason"] == "resourceNotReady"
    api.now += 12
    assert api.delete(NETWORK)["status"] == "RUNNING"
    assert api.get(NETWORK)["name"] == "net"
    assert api.refusal("DELETE", NETWORK)["errors"][0]["reason"] == "resourceNotReady"
    api.now += 22
    assert api.refusal("GET", NETWORK)["code"] == 404
    assert api.refusal("DELETE", NETWORK)["code"] == 404


def test_projects_are_told_apart_and_answer_to_their_numbers(api: Compute) -> None:
    api.network()
    assert api.refusal("GET", "projects/other-a1/global/networks/net")["code"] == 404
    assert api.get("projects/123456789012/global/networks/net")["name"] == "net"
    assert api.get("projects/123456789012")["name"] == "proj-a1"
    assert api.get(PROJECT)["id"] == "123456789012"
    for project, code in (("missing-a1", 404), ("foreign-a1", 403)):
        assert api.refusal("GET", f"projects/{project}/global/networks")["code"] == code


def test_a_network_for_rdma_is_for_one_zone_and_takes_no_rules(api: Compute) -> None:
    api.network(networkProfile=PROFILE)
    network = api.get(NETWORK)
    assert (network["networkProfile"], network["mtu"]) == (f"{ROOT}{PROFILE}", 8896)
    assert api.get(PROFILE)["profileType"]["networkType"] == "RDMA"
    error = api.refusal("POST", f"{PROJECT}/regions/us-east1/subnetworks", SUB)
    assert "us-central1-a-vpc-roce is not that of a zone in us-east1" in error["message"]
    api.subnetwork()
    assert "RDMA network profile" in api.refusal("POST", FIREWALLS, RULE)["message"]


def test_what_vms_are_in_neither_goes_nor_gets_another_mtu(wired: Compute) -> None:
    wired.patch(NETWORK, {"mtu": 8896})
    wired.template()
    wired.group(size=1)
    (vm,) = wired.vms()
    error = wired.refusal("PATCH", NETWORK, {"mtu": 1460})
    assert "while VMs in the network are running" in error["message"]
    wired.patch(NETWORK, {"mtu": 8896})
    assert wired.refusal("DELETE", f"{SUBNETWORKS}/sub")["message"] == (
        f"The subnetwork resource '{SUBNETWORKS}/sub' is already being used by "
        f"'{PROJECT}/zones/us-central1-a/instances/{vm['name']}'"
    )


def test_a_subnetwork_is_changed_by_who_has_seen_it_as_it_is(wired: Compute) -> None:
    path = f"{SUBNETWORKS}/sub"
    seen = wired.get(path)["fingerprint"]
    wired.patch(path, {"fingerprint": seen, "description": "new"})
    for stale in ({"fingerprint": seen}, {}):
        error = wired.refusal("PATCH", path, {**stale, "description": "newer"})
        assert (error["code"], error["errors"][0]["reason"]) == (412, "conditionNotMet")
    assert wired.get(path)["description"] == "new"


def test_a_rule_without_a_source_is_for_everybody(wired: Compute) -> None:
    wired.post(FIREWALLS, RULE)
    rule = wired.get(f"{FIREWALLS}/rule")
    found = rule["sourceRanges"], rule["direction"], rule["priority"]
    assert found == (["0.0.0.0/0"], "INGRESS", 1000)
    wired.patch(f"{FIREWALLS}/rule", {"sourceRanges": ["10.0.0.0/8"]})
    assert wired.get(f"{FIREWALLS}/rule")["sourceRanges"] == ["10.0.0.0/8"]
    wired.network("other")
    other = {"network": f"{NETWORKS}/other"}
    assert "can't be changed" in wired.refusal("PATCH", f"{FIREWALLS}/rule", other)["message"]
    accounts = {"sourceServiceAccounts": ["a@b"], "targetServiceAccounts": ["a@b"]}
    wired.post(FIREWALLS, RULE | {"name": "own"} | accounts)
    assert "sourceRanges" not in wired.get(f"{FIREWALLS}/own")


def test_a_nat_lives_in_its_router(wired: Compute) -> None:
    wired.post(ROUTERS, {"name": "router", "network": NETWORK})
    nat: dict[str, Any] = {
        "name": "nat",
        "natIpAllocateOption": "AUTO_ONLY",
        "sourceSubnetworkIpRangesToNat": "ALL_SUBNETWORKS_ALL_IP_RANGES",
    }
    wired.patch(f"{ROUTERS}/router", {"nats": [nat]})
    (kept,) = wired.get(f"{ROUTERS}/router")["nats"]
    assert kept["autoNetworkTier"] == "PREMIUM"
    assert kept["endpointTypes"] == ["ENDPOINT_TYPE_VM"]
    listed = {"nats": [nat | {"subnetworks": [{"name": f"{SUBNETWORKS}/sub"}]}]}
    assert wired.refusal("PATCH", f"{ROUTERS}/router", listed)["code"] == 501
    wired.patch(f"{ROUTERS}/router", {"nats": []})
    assert wired.get(f"{ROUTERS}/router")["nats"] == []


def test_a_policy_is_made_read_listed_and_deleted(api: Compute) -> None:
    api.post(POLICIES, {**CLOSE, "diskConsistencyGroupPolicy": None})
    made = api.get(f"{POLICIES}/close")
    assert made["groupPlacementPolicy"] == {"collocation": "COLLOCATED"}
    assert made["region"].endswith("/regions/us-central1")
    assert [it["name"] for it in api.get(POLICIES)["items"]] == ["close"]
    api.delete(f"{POLICIES}/close")
    assert api.refusal("GET", f"{POLICIES}/close")["code"] == 404


def test_vms_have_the_policies_of_their_template_and_keep_them_from_deletion(
    wired: Compute,
) -> None:
    wired.post(POLICIES, CLOSE)
    wired.template(machineType="n2-standard-4", resourcePolicies=["close"])
    wired.group(size=1)
    (vm,) = wired.vms()
    assert vm["resourcePolicies"] == [wired.get(f"{POLICIES}/close")["selfLink"]]
    assert "already being used" in wired.refusal("DELETE", f"{POLICIES}/close")["message"]
    wired.template("lost", resourcePolicies=["none"])
    with pytest.raises(Exception, match="resourcePolicies/none"):
        wired.group("other", template="lost")


def test_a_group_has_a_workload_policy_of_its_region(wired: Compute) -> None:
    wired.post(POLICIES, THROUGHPUT)
    wired.post(POLICIES, CLOSE)
    scheduling = {"onHostMaintenance": "TERMINATE"}
    wired.template(machineType="a3-megagpu-8g", scheduling=scheduling)
    wired.group(resourcePolicies={"workloadPolicy": f"{POLICIES}/work"})
    link = wired.get(f"{POLICIES}/work")["selfLink"]
    assert wired.get_group()["resourcePolicies"] == {"workloadPolicy": link}
    assert "already being used" in wired.refusal("DELETE", f"{POLICIES}/work")["message"]
    with pytest.raises(Exception, match="not a workload policy"):
        wired.group("other", resourcePolicies={"workloadPolicy": f"{POLICIES}/close"})
