import re
from typing import Any

import pytest

from rehearsal.cloud.facts import places
from tests.rehearsal.cloud.compute.conftest import (
    CLOSE,
    GROUP,
    NETWORKS,
    PROJECT,
    REGION,
    ROOT,
    STANDARD,
    SUBNETWORKS,
    ZONE,
    Compute,
)

FIREWALLS, ROUTERS = f"{PROJECT}/global/firewalls", f"{REGION}/routers"
NETWORK = f"{NETWORKS}/net"
POLICIES = f"{REGION}/resourcePolicies"
PROFILE = f"{PROJECT}/global/networkProfiles/us-central1-a-vpc-roce"
SUB: dict[str, Any] = {"name": "sub", "network": NETWORK, "ipCidrRange": "10.0.0.0/16"}


RULE: dict[str, Any] = {"name": "rule", "network": NETWORK, "allowed": [{"IPProtocol": "tcp"}]}
CUSTOM: dict[str, Any] = {"name": "net", "autoCreateSubnetworks": False}
THROUGHPUT: dict[str, Any] = {"name": "work", "workloadPolicy": {"type": "HIGH_THROUGHPUT"}}


AUTO = {"name": "n", "autoCreateSubnetworks": True, "networkProfile": PROFILE}
MARS = f"{PROJECT}/regions/us-mars1/subnetworks"
REFUSED = {
    "400 .* 'resource.mtu': '1299'": (NETWORKS, CUSTOM | {"mtu": 1299}),
    "400 .* 'resource.mtu': '8897'": (NETWORKS, CUSTOM | {"mtu": 8897}),
    "400 .*autoCreateSubnetworks": (NETWORKS, AUTO),
    "404 .*vpc-rocex' was not found": (NETWORKS, CUSTOM | {"networkProfile": f"{PROFILE}x"}),
    f"404 The resource '{NETWORK}' was not found": (SUBNETWORKS, SUB),
    "400 .*'resource.network': 'net'. The URL is mal": (SUBNETWORKS, SUB | {"network": "net"}),
    "400 .*collection 'firewalls'.": (SUBNETWORKS, SUB | {"network": "global/firewalls/n"}),
    f"404 The resource '{NETWORK}' was not": (FIREWALLS, RULE),
    "400 Invalid value for field 'region': 'us-mars1'. Unknown region.": (MARS, SUB),
    "501 .*not part of the simulated cloud": (POLICIES, {"name": "p"}),
    "400 .*collocation": (POLICIES, CLOSE | {"groupPlacementPolicy": {"collocation": "CLOSE"}}),
}


@pytest.mark.parametrize("words", REFUSED)
def test_what_can_not_be_made_is_refused(api: Compute, words: str) -> None:
    assert re.match(words, api.refused("POST", *REFUSED[words]))


def _pods(pods: str) -> dict[str, Any]:
    return {"secondaryIpRanges": [{"rangeName": "pods", "ipCidrRange": pods}]}


RANGES = [
    (SUBNETWORKS, {"ipCidrRange": "10.0.0.1/16"}, "'resource.ipCidrRange'"),
    (SUBNETWORKS, {"ipCidrRange": "10.0.0.0/30"}, "'resource.ipCidrRange'"),
    (SUBNETWORKS, {"ipCidrRange": "word"}, "'resource.ipCidrRange'"),
    (SUBNETWORKS, {"ipCidrRange": "127.0.0.0/24"}, "reserved"),
    (
        f"{PROJECT}/regions/us-east4/subnetworks",
        {"ipCidrRange": "10.0.128.0/20"},
        "10.0.128.0/20 conflicts with existing subnetwork 'sub' in region 'us-central1'.",
    ),
    (SUBNETWORKS, _pods("10.0.0.0/20"), "resource.secondaryIpRanges[0].ipCidrRange"),
    (SUBNETWORKS, _pods("10.1.4.0/24"), "another range of it"),
]


@pytest.mark.parametrize(("path", "body", "words"), RANGES)
def test_a_range_that_no_subnetwork_can_have_is_refused(
    wired: Compute, path: str, body: dict[str, Any], words: str
) -> None:
    body = {**SUB, "name": "more", "ipCidrRange": "10.1.0.0/16", **body}
    error = wired.refused("POST", path, body)
    assert error.startswith("400 ")
    assert words in error


def test_a_range_grows_unless_another_is_there(wired: Compute) -> None:
    expand = f"{SUBNETWORKS}/sub/expandIpCidrRange"
    assert "must contain" in wired.refused("POST", expand, {"ipCidrRange": "10.0.0.0/20"})
    wired.post(expand, {"ipCidrRange": "10.0.0.0/15"})
    assert wired.get(f"{SUBNETWORKS}/sub")["ipCidrRange"] == "10.0.0.0/15"
    wired.subnetwork("next", ipCidrRange="10.2.0.0/16")
    error = wired.refused("POST", expand, {"ipCidrRange": "10.0.0.0/14"})
    assert "conflicts with existing subnetwork 'next'" in error
    wired.network("other")
    assert wired.subnetwork("twin", network="other")["status"] == "DONE"


def test_a_new_project_has_the_default_network_which_goes_once_its_rules_are_gone(
    api: Compute,
) -> None:
    default = f"{NETWORKS}/default"
    network = api.get(default)
    assert network["autoCreateSubnetworks"] is True
    assert len(network["subnetworks"]) == len(places.REGIONS)
    assert api.get(f"{SUBNETWORKS}/default")["ipCidrRange"] == "10.128.0.0/20"
    rules = [f"default-allow-{name}" for name in ("icmp", "internal", "rdp", "ssh")]
    assert api.names(FIREWALLS) == rules
    theirs = (f"{PROJECT}/regions/{region}/subnetworks/default" for region in places.REGIONS)
    assert len({api.get(it)["ipCidrRange"] for it in theirs}) == len(places.REGIONS)

    assert "already being used" in api.refused("DELETE", default)
    for rule in rules:
        api.delete(f"{FIREWALLS}/{rule}")
    api.delete(default)
    assert api.gone(default)
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


def test_any_form_of_link_means_the_same_network(api: Compute) -> None:
    api.network()
    for reference in (
        "global/networks/net",
        f"{ROOT}{NETWORK}",
        f"https://compute.googleapis.com/compute/beta/{NETWORK}",
        f"http://127.0.0.1:8080/compute/v1/{NETWORK}",
        NETWORK.replace("proj-a1", "123456789012"),
    ):
        api.post(SUBNETWORKS, SUB | {"network": reference})
        assert api.get(f"{SUBNETWORKS}/sub")["network"] == f"{ROOT}{NETWORK}"
        assert api.get(NETWORK)["subnetworks"] == [f"{ROOT}{SUBNETWORKS}/sub"]
        api.delete(f"{SUBNETWORKS}/sub")


def test_a_network_in_use_can_not_be_deleted(api: Compute) -> None:
    api.network()
    for path, body in ((FIREWALLS, RULE), (ROUTERS, {"network": NETWORK}), (SUBNETWORKS, SUB)):
        api.post(path, {**body, "name": "user"})
        error = api.refusal("DELETE", NETWORK)
        assert error["errors"][0]["reason"] == "resourceInUseByAnotherResource"
        words = f"The network resource '{NETWORK}' is already being used by '{path}/user'"
        assert error["message"] == words
        api.delete(f"{path}/user")
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
    wired.of_one()
    error = wired.refused("PATCH", NETWORK, {"mtu": 1460})
    assert "while VMs in the network are running" in error
    wired.patch(NETWORK, {"mtu": 8896})
    assert wired.refusal("DELETE", f"{SUBNETWORKS}/sub")["message"] == (
        f"The subnetwork resource '{SUBNETWORKS}/sub' is already being used by "
        f"'{ZONE}/instances/{wired.vm()['name']}'"
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
    assert api.names(POLICIES) == ["close"]
    api.delete(f"{POLICIES}/close")
    assert api.gone(f"{POLICIES}/close")


def test_vms_have_the_policies_of_their_template_and_keep_them_from_deletion(
    wired: Compute,
) -> None:
    wired.post(POLICIES, CLOSE)
    wired.of_one(machineType="n2-standard-4", resourcePolicies=["close"])
    assert wired.vm()["resourcePolicies"] == [wired.get(f"{POLICIES}/close")["selfLink"]]
    assert "already being used" in wired.refused("DELETE", f"{POLICIES}/close")
    wired.template("lost", resourcePolicies=["none"])
    with pytest.raises(Exception, match="resourcePolicies/none"):
        wired.group("other", template="lost")


def test_a_group_has_a_workload_policy_of_its_region(wired: Compute) -> None:
    wired.post(POLICIES, THROUGHPUT)
    wired.post(POLICIES, CLOSE)
    wired.template(machineType="a3-megagpu-8g", scheduling=STANDARD)
    wired.group(resourcePolicies={"workloadPolicy": f"{POLICIES}/work"})
    link = wired.get(f"{POLICIES}/work")["selfLink"]
    assert wired.get_group()["resourcePolicies"] == {"workloadPolicy": link}
    assert "already being used" in wired.refused("DELETE", f"{POLICIES}/work")
    bare = {"resourcePolicies": {"workloadPolicy": None}}
    assert "neither replaced nor removed" in wired.refused("PATCH", GROUP, bare)
    with pytest.raises(Exception, match="not a workload policy"):
        wired.group("other", resourcePolicies={"workloadPolicy": f"{POLICIES}/close"})
