"""Filestore: shares of NFS, each on a network."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.rehearsal.cloud.services.conftest import Api

ZONE = "projects/proj-a1/locations/us-central1-c"
REGION = "projects/proj-a1/locations/us-central1"
ONE = f"{ZONE}/instances/fs"
BODY: dict[str, Any] = {
    "tier": "BASIC_SSD",
    "fileShares": [{"name": "share", "capacityGb": 2560}],
    "networks": [{"network": "default", "modes": ["MODE_IPV4"]}],
}


def _make(api: Api, place: str = ZONE, **changes: Any) -> dict[str, Any]:
    return api.json("file", "POST", f"{place}/instances?instanceId=fs", BODY | changes)


def _refusal(api: Api, method: str, target: str, body: Any = None) -> dict[str, Any]:
    reply = api("file", method, target, body)
    assert isinstance(reply.body, dict)
    error: dict[str, Any] = reply.body["error"]
    return error


def test_an_instance_is_made_in_its_time_and_has_an_address(api: Api) -> None:
    api.rate = 1.0
    operation = _make(api, labels={"a": "b"})
    assert operation["done"] is False
    assert api.json("file", "GET", ONE)["state"] == "CREATING"
    api.now += 200
    ended = api.json("file", "GET", operation["name"])
    made = api.json("file", "GET", ONE)
    assert ended["done"] is True
    kind = "type.googleapis.com/google.cloud.filestore.v1.Instance"
    assert ended["response"] == {"@type": kind, **made}
    (network,) = made["networks"]
    assert (made["state"], made["protocol"], made["labels"]) == ("READY", "NFS_V3", {"a": "b"})
    assert network["ipAddresses"] == ["10.99.0.2"]
    assert network["reservedIpRange"] == "10.99.0.0/29"
    assert made["fileShares"] == [{"name": "share", "capacityGb": "2560"}]


def test_each_instance_has_a_range_of_its_own(api: Api) -> None:
    _make(api)
    api.json("file", "POST", f"{ZONE}/instances?instanceId=other", BODY)
    listed = api.json("file", "GET", f"{ZONE}/instances")["instances"]
    ranges = {it["networks"][0]["reservedIpRange"] for it in listed}
    assert len(ranges) == 2
    assert api.json("file", "GET", "projects/proj-a1/locations/-/instances")["instances"] == listed


def test_a_range_that_is_given_is_kept(api: Api) -> None:
    networks = [{"network": "default", "reservedIpRange": "10.5.0.0/29"}]
    _make(api, networks=networks)
    (network,) = api.json("file", "GET", ONE)["networks"]
    assert (network["reservedIpRange"], network["ipAddresses"]) == ("10.5.0.0/29", ["10.5.0.2"])


@pytest.mark.parametrize(
    ("place", "changes", "words"),
    [
        (ZONE, {"tier": "BASIC_FAST"}, "tier"),
        (ZONE, {"fileShares": [{"name": "s", "capacityGb": 1024}]}, "2560 to"),
        (ZONE, {"fileShares": [{"name": "much-too-long-for-it", "capacityGb": 2560}]}, "share"),
        (ZONE, {"networks": [{"network": "none"}]}, "'none' does not exist"),
        (ZONE, {"protocol": "NFS_V4_1"}, "NFS_V4_1"),
        (REGION, {}, "a zone is required"),
        (ZONE, {"tier": "ENTERPRISE"}, "a region is required"),
        (ZONE, {"tier": "REGIONAL"}, "a region is required"),
        (ZONE, {"shares": []}, "shares"),
    ],
)
def test_what_filestore_has_not_is_refused(
    api: Api, place: str, changes: dict[str, Any], words: str
) -> None:
    error = _refusal(api, "POST", f"{place}/instances?instanceId=fs", BODY | changes)
    assert error["code"] == 400
    assert words in error["message"]


def test_an_unknown_place_is_not_found(api: Api) -> None:
    place = "projects/proj-a1/locations/mars-north1-a"
    assert _refusal(api, "POST", f"{place}/instances?instanceId=fs", BODY)["code"] == 404


def test_a_name_is_given_once(api: Api) -> None:
    _make(api)
    error = _refusal(api, "POST", f"{ZONE}/instances?instanceId=fs", BODY)
    assert (error["code"], error["status"]) == (409, "ALREADY_EXISTS")


def test_what_the_mask_names_is_changed_and_nothing_else(api: Api) -> None:
    _make(api, labels={"a": "b"})
    before = api.json("file", "GET", ONE)
    shares = [{"name": "share", "capacityGb": 3000}]
    body = {"fileShares": shares, "labels": {"a": "c"}, "description": "new"}
    api.json("file", "PATCH", f"{ONE}?updateMask=fileShares,description", body)
    after = api.json("file", "GET", ONE)
    assert after["fileShares"] == [{"name": "share", "capacityGb": "3000"}]
    assert (after["labels"], after["description"]) == ({"a": "b"}, "new")
    assert after["etag"] != before["etag"]


def test_a_basic_share_only_grows_and_its_tier_stays(api: Api) -> None:
    _make(api, fileShares=[{"name": "share", "capacityGb": 4000}])
    smaller = {"fileShares": [{"name": "share", "capacityGb": 3000}]}
    assert "decreased" in _refusal(api, "PATCH", f"{ONE}?updateMask=fileShares", smaller)["message"]
    tier = {"tier": "BASIC_HDD"}
    assert "tier" in _refusal(api, "PATCH", f"{ONE}?updateMask=tier", tier)["message"]


def test_a_protected_instance_can_not_be_deleted(api: Api) -> None:
    _make(api, deletionProtectionEnabled=True)
    assert "protected" in _refusal(api, "DELETE", ONE)["message"]
    body = {"deletionProtectionEnabled": False}
    api.json("file", "PATCH", f"{ONE}?updateMask=deletion_protection_enabled", body)
    gone = api.json("file", "DELETE", ONE)
    assert gone["response"] == {"@type": "type.googleapis.com/google.protobuf.Empty"}
    assert _refusal(api, "GET", ONE)["code"] == 404
    _make(api)


def test_an_instance_that_is_being_made_can_not_be_changed(api: Api) -> None:
    api.rate = 1.0
    _make(api)
    error = _refusal(api, "DELETE", ONE)
    assert (error["code"], error["status"]) == (409, "ABORTED")
    api.now += 200
    api.json("file", "DELETE", ONE)
    assert api.json("file", "GET", ONE)["state"] == "DELETING"


def test_an_operation_that_never_was_is_not_found(api: Api) -> None:
    assert _refusal(api, "GET", f"{ZONE}/operations/operation-1")["code"] == 404
