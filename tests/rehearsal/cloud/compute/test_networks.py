from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rehearsal.cloud.facts import places

if TYPE_CHECKING:
    from tests.rehearsal.cloud.compute.conftest import Compute

PROJECT = "projects/proj-a1"
NETWORKS = f"{PROJECT}/global/networks"
REGION = f"{PROJECT}/regions/us-central1"


def test_a_new_project_has_the_default_network_with_a_subnetwork_in_each_region(
    api: Compute,
) -> None:
    network = api.get(f"{NETWORKS}/default")
    assert network["autoCreateSubnetworks"] is True
    assert len(network["subnetworks"]) == len(places.REGIONS)
    assert api.get(f"{REGION}/subnetworks/default")["ipCidrRange"] == "10.128.0.0/20"
    rules = api.get(f"{PROJECT}/global/firewalls")["items"]
    assert [rule["name"] for rule in rules] == [
        "default-allow-icmp",
        "default-allow-internal",
        "default-allow-rdp",
        "default-allow-ssh",
    ]


def test_automatic_subnetworks_do_not_overlap(api: Compute) -> None:
    ranges = [
        api.get(f"{PROJECT}/regions/{region}/subnetworks/default")["ipCidrRange"]
        for region in places.REGIONS
    ]
    assert len(set(ranges)) == len(ranges)


def test_the_default_network_stays_deleted_once_its_rules_are_gone(api: Compute) -> None:
    error = api.refusal("DELETE", f"{NETWORKS}/default")
    assert error["errors"][0]["reason"] == "resourceInUseByAnotherResource"
    for rule in api.get(f"{PROJECT}/global/firewalls")["items"]:
        api.delete(f"{PROJECT}/global/firewalls/{rule['name']}")
    api.delete(f"{NETWORKS}/default")
    assert api.refusal("GET", f"{NETWORKS}/default")["code"] == 404
    assert "items" not in api.get(f"{REGION}/subnetworks")


def test_a_subnetwork_of_a_network_of_auto_mode_can_not_be_deleted(api: Compute) -> None:
    error = api.refusal("DELETE", f"{REGION}/subnetworks/default")
    assert error["errors"][0]["reason"] == "invalidResourceUsage"


def test_a_name_that_is_taken_is_refused(api: Compute) -> None:
    api.network()
    error = api.refusal("POST", NETWORKS, {"name": "net", "autoCreateSubnetworks": False})
    assert error["code"] == 409
    assert error["message"] == f"The resource '{NETWORKS}/net' already exists"
    assert error["errors"][0]["reason"] == "alreadyExists"


def test_a_name_is_free_again_after_deletion(api: Compute) -> None:
    api.network()
    api.delete(f"{NETWORKS}/net")
    assert api.network()["operationType"] == "insert"


def test_an_unknown_network_is_not_found(api: Compute) -> None:
    error = api.refusal("GET", f"{NETWORKS}/nowhere")
    assert error["code"] == 404
    assert error["message"] == f"The resource '{NETWORKS}/nowhere' was not found"
    assert error["errors"][0]["reason"] == "notFound"


@pytest.mark.parametrize("mtu", [1299, 8897])
def test_an_mtu_out_of_range_is_refused(api: Compute, mtu: int) -> None:
    body = {"name": "net", "autoCreateSubnetworks": False, "mtu": mtu}
    error = api.refusal("POST", NETWORKS, body)
    assert error["message"].startswith(f"Invalid value for field 'resource.mtu': '{mtu}'.")


@pytest.mark.parametrize("mtu", [1300, 8896])
def test_an_mtu_at_the_limit_is_kept(api: Compute, mtu: int) -> None:
    api.network(mtu=mtu)
    assert api.get(f"{NETWORKS}/net")["mtu"] == mtu


def test_the_switch_that_the_provider_sends_with_a_routing_mode_is_taken(api: Compute) -> None:
    routing = {"routingMode": "GLOBAL", "deleteBgpAlwaysCompareMed": False}
    api.network(routingConfig=routing)
    kept = api.get(f"{PROJECT}/global/networks/net")["routingConfig"]
    assert kept == {"routingMode": "GLOBAL", "bgpBestPathSelectionMode": "LEGACY"}


def test_legacy_networks_are_refused(api: Compute) -> None:
    assert "Legacy" in api.refusal("POST", NETWORKS, {"name": "net"})["message"]


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
    api.post(f"{PROJECT}/{collection}", {"name": "user", "network": f"{NETWORKS}/net", **body})
    error = api.refusal("DELETE", f"{NETWORKS}/net")
    assert error["code"] == 400
    assert error["message"] == (
        f"The network resource '{NETWORKS}/net' is already being used by "
        f"'{PROJECT}/{collection}/user'"
    )
    api.delete(f"{PROJECT}/{collection}/user")
    assert api.delete(f"{NETWORKS}/net")["status"] == "DONE"


def test_a_network_tells_its_subnetworks(wired: Compute) -> None:
    link = f"https://www.googleapis.com/compute/v1/{REGION}/subnetworks/sub"
    assert wired.get(f"{NETWORKS}/net")["subnetworks"] == [link]


def test_a_patch_merges_and_null_clears(api: Compute) -> None:
    api.network(description="before")
    api.patch(f"{NETWORKS}/net", {"routingConfig": {"routingMode": "GLOBAL"}, "description": None})
    network = api.get(f"{NETWORKS}/net")
    assert network["routingConfig"] == {
        "routingMode": "GLOBAL",
        "bgpBestPathSelectionMode": "LEGACY",
    }
    assert "description" not in network


def test_a_network_is_visible_but_not_ready_while_it_is_made(api: Compute) -> None:
    api.get(f"{NETWORKS}/default")
    api.rate = 1
    assert api.network()["status"] == "RUNNING"
    assert api.get(f"{NETWORKS}/net")["name"] == "net"
    body = {"name": "sub", "network": f"{NETWORKS}/net", "ipCidrRange": "10.0.0.0/16"}
    error = api.refusal("POST", f"{REGION}/subnetworks", body)
    assert error["errors"][0]["reason"] == "resourceNotReady"
    api.now += 12
    assert api.post(f"{REGION}/subnetworks", body)["status"] == "RUNNING"


def test_a_deleted_network_is_gone_when_its_operation_is_done(api: Compute) -> None:
    api.network()
    api.rate = 1
    assert api.delete(f"{NETWORKS}/net")["status"] == "RUNNING"
    assert api.get(f"{NETWORKS}/net")["name"] == "net"
    assert api.refusal("DELETE", f"{NETWORKS}/net")["errors"][0]["reason"] == "resourceNotReady"
    api.now += 22
    assert api.refusal("GET", f"{NETWORKS}/net")["code"] == 404
    assert api.refusal("DELETE", f"{NETWORKS}/net")["code"] == 404


def test_projects_do_not_see_each_other(api: Compute) -> None:
    api.network()
    assert api.refusal("GET", "projects/other-a1/global/networks/net")["code"] == 404


@pytest.mark.parametrize(("project", "code"), [("missing-a1", 404), ("foreign-a1", 403)])
def test_a_project_that_is_not_ours_is_refused(api: Compute, project: str, code: int) -> None:
    assert api.refusal("GET", f"projects/{project}/global/networks")["code"] == code


def test_a_project_answers_to_its_number_too(api: Compute) -> None:
    api.network()
    assert api.get("projects/123456789012/global/networks/net")["name"] == "net"
    assert api.get("projects/123456789012")["name"] == "proj-a1"
    assert api.get(PROJECT)["id"] == "123456789012"


def test_a_region_that_does_not_exist_is_unknown(api: Compute) -> None:
    error = api.refusal("GET", f"{PROJECT}/regions/us-mars1/subnetworks")
    assert error["message"] == "Invalid value for field 'region': 'us-mars1'. Unknown region."


def test_a_network_for_rdma_is_of_custom_mode(api: Compute) -> None:
    profile = f"{PROJECT}/global/networkProfiles/us-central1-a-vpc-roce"
    body = {"name": "net", "autoCreateSubnetworks": True, "networkProfile": profile}
    error = api.refusal("POST", NETWORKS, body)
    assert error["code"] == 400
    assert "autoCreateSubnetworks" in error["message"]


def test_a_subnetwork_for_rdma_is_in_the_region_of_its_networks_profile(api: Compute) -> None:
    api.network(networkProfile=f"{PROJECT}/global/networkProfiles/us-central1-a-vpc-roce")
    body = {"name": "sub", "network": f"{NETWORKS}/net", "ipCidrRange": "10.0.0.0/16"}
    error = api.refusal("POST", f"{PROJECT}/regions/us-east1/subnetworks", body)
    assert error["code"] == 400
    assert "us-central1-a-vpc-roce is not that of a zone in us-east1" in error["message"]
    api.subnetwork()


def test_the_mtu_of_a_network_changes_only_while_no_vm_runs_in_it(wired: Compute) -> None:
    network = f"{NETWORKS}/net"
    wired.patch(network, {"mtu": 8896})
    wired.template()
    wired.group(size=1)
    error = wired.refusal("PATCH", network, {"mtu": 1460})
    assert error["code"] == 400
    assert "while VMs in the network are running" in error["message"]
    wired.patch(network, {"mtu": 8896})
    assert wired.get(network)["mtu"] == 8896


def test_a_network_profile_must_exist(api: Compute) -> None:
    profile = f"{PROJECT}/global/networkProfiles/us-central1-a-vpc-roce"
    api.network(networkProfile=profile)
    network = api.get(f"{NETWORKS}/net")
    assert network["networkProfile"].endswith(profile)
    assert network["mtu"] == 8896
    assert api.get(profile)["profileType"]["networkType"] == "RDMA"
    wrong = {"name": "n", "autoCreateSubnetworks": False, "networkProfile": f"{profile}x"}
    assert api.refusal("POST", NETWORKS, wrong)["code"] == 404
