from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.rehearsal.cloud.compute.conftest import Compute

PROJECT = "projects/proj-a1"
NETWORK = f"{PROJECT}/global/networks/net"
SUBNETWORKS = f"{PROJECT}/regions/us-central1/subnetworks"


def test_the_network_must_exist(api: Compute) -> None:
    body = {"name": "sub", "network": NETWORK, "ipCidrRange": "10.0.0.0/16"}
    error = api.refusal("POST", SUBNETWORKS, body)
    assert error["code"] == 404
    assert error["message"] == f"The resource '{NETWORK}' was not found"


@pytest.mark.parametrize(
    "reference",
    [
        NETWORK,
        "global/networks/net",
        f"https://www.googleapis.com/compute/v1/{NETWORK}",
        f"https://compute.googleapis.com/compute/beta/{NETWORK}",
        f"http://127.0.0.1:8080/compute/v1/{NETWORK}",
        NETWORK.replace("proj-a1", "123456789012"),
    ],
)
def test_any_form_of_link_means_the_same_network(api: Compute, reference: str) -> None:
    api.network()
    body = {"name": "sub", "network": reference, "ipCidrRange": "10.0.0.0/16"}
    api.post(SUBNETWORKS, body)
    link = f"https://www.googleapis.com/compute/v1/{NETWORK}"
    assert api.get(f"{SUBNETWORKS}/sub")["network"] == link


@pytest.mark.parametrize(
    ("reference", "reason"),
    [
        ("net", "The URL is malformed."),
        (f"{PROJECT}/global/firewalls/net", "Unexpected resource collection 'firewalls'."),
    ],
)
def test_what_is_no_link_to_a_network_is_refused(api: Compute, reference: str, reason: str) -> None:
    body = {"name": "sub", "network": reference, "ipCidrRange": "10.0.0.0/16"}
    error = api.refusal("POST", SUBNETWORKS, body)
    assert error["message"] == (
        f"Invalid value for field 'resource.network': '{reference}'. {reason}"
    )


@pytest.mark.parametrize(
    "cidr", ["10.0.0.1/16", "10.0.0.0", "10.0.0.0/30", "word", "127.0.0.0/24", "224.0.0.0/24"]
)
def test_a_range_that_no_subnetwork_can_have_is_refused(api: Compute, cidr: str) -> None:
    api.network()
    body = {"name": "sub", "network": NETWORK, "ipCidrRange": cidr}
    error = api.refusal("POST", SUBNETWORKS, body)
    assert error["code"] == 400
    assert "Invalid value for field 'resource.ipCidrRange'" in error["message"]


def test_overlapping_ranges_in_one_network_are_refused(wired: Compute) -> None:
    body = {"name": "more", "network": NETWORK, "ipCidrRange": "10.0.128.0/20"}
    error = wired.refusal("POST", f"{PROJECT}/regions/us-east4/subnetworks", body)
    assert error["message"] == (
        "Invalid value for field 'resource.ipCidrRange': '10.0.128.0/20'. Invalid IPCidrRange: "
        "10.0.128.0/20 conflicts with existing subnetwork 'sub' in region 'us-central1'."
    )


def test_secondary_ranges_may_not_overlap_either(wired: Compute) -> None:
    body = {
        "name": "more",
        "network": NETWORK,
        "ipCidrRange": "10.1.0.0/16",
        "secondaryIpRanges": [{"rangeName": "pods", "ipCidrRange": "10.0.0.0/20"}],
    }
    error = wired.refusal("POST", SUBNETWORKS, body)
    assert "resource.secondaryIpRanges[0].ipCidrRange" in error["message"]
    body["secondaryIpRanges"] = [{"rangeName": "pods", "ipCidrRange": "10.1.4.0/24"}]
    assert wired.refusal("POST", SUBNETWORKS, body)["code"] == 400


def test_networks_may_use_the_same_range(wired: Compute) -> None:
    wired.network("other")
    assert wired.subnetwork("twin", network="other")["status"] == "DONE"


def test_a_taken_name_is_refused_before_its_range(wired: Compute) -> None:
    body = {"name": "sub", "network": NETWORK, "ipCidrRange": "10.0.0.0/16"}
    assert wired.refusal("POST", SUBNETWORKS, body)["code"] == 409


def test_a_range_can_only_grow(wired: Compute) -> None:
    wired.post(f"{SUBNETWORKS}/sub/expandIpCidrRange", {"ipCidrRange": "10.0.0.0/15"})
    assert wired.get(f"{SUBNETWORKS}/sub")["ipCidrRange"] == "10.0.0.0/15"
    smaller = {"ipCidrRange": "10.0.0.0/20"}
    error = wired.refusal("POST", f"{SUBNETWORKS}/sub/expandIpCidrRange", smaller)
    assert error["code"] == 400


def test_a_range_does_not_grow_into_another(wired: Compute) -> None:
    wired.subnetwork("next", ipCidrRange="10.1.0.0/16")
    wider = {"ipCidrRange": "10.0.0.0/15"}
    error = wired.refusal("POST", f"{SUBNETWORKS}/sub/expandIpCidrRange", wider)
    assert "conflicts with existing subnetwork 'next'" in error["message"]


def test_a_subnetwork_is_changed_by_who_has_seen_it_as_it_is(wired: Compute) -> None:
    path = f"{SUBNETWORKS}/sub"
    seen = wired.get(path)["fingerprint"]
    wired.patch(path, {"fingerprint": seen, "description": "new"})
    for stale in ({"fingerprint": seen}, {}):
        error = wired.refusal("PATCH", path, {**stale, "description": "newer"})
        assert (error["code"], error["errors"][0]["reason"]) == (412, "conditionNotMet")
    assert wired.get(path)["description"] == "new"


def test_a_subnetwork_with_vms_can_not_be_deleted(wired: Compute) -> None:
    wired.template()
    wired.group(size=1)
    error = wired.refusal("DELETE", f"{SUBNETWORKS}/sub")
    (vm,) = wired.vms()
    assert error["message"] == (
        f"The subnetwork resource '{SUBNETWORKS}/sub' is already being used by "
        f"'{PROJECT}/zones/us-central1-a/instances/{vm['name']}'"
    )


def test_missing_fields_are_named(api: Compute) -> None:
    error = api.refusal("POST", SUBNETWORKS, {"name": "sub"})
    assert error["message"] == "Required field 'resource.network' not specified"
    assert error["errors"][0]["reason"] == "required"
