from typing import Any

import pytest

from tests.rehearsal.cloud.services.conftest import PLACE, Api, Json

ZONE = "projects/proj-a1/locations/us-central1-c"
NEW = f"{ZONE}/instances?instanceId=fs"

ONE = f"{ZONE}/instances/fs"
BODY: dict[str, Any] = {
    "tier": "BASIC_SSD",
    "fileShares": [{"name": "share", "capacityGb": 2560}],
    "networks": [{"network": "default", "modes": ["MODE_IPV4"]}],
}


def _make(api: Api, **changes: Any) -> Json:
    return api.json("file", "POST", NEW, BODY | changes)


def _get(api: Api, target: str = ONE) -> Json:
    return api.json("file", "GET", target)


def _refused(api: Api, method: str, target: str, body: Any = None) -> str:
    reply = api("file", method, target, body)
    assert isinstance(reply.body, dict)
    error = reply.body["error"]
    return f"{error['code']} {error['status']} {error['message']}"


def test_an_instance_is_made_in_its_time_and_has_an_address(api: Api) -> None:
    api.rate = 1.0
    operation = _make(api, labels={"a": "b"})
    assert operation["done"] is False
    assert _get(api)["state"] == "CREATING"
    assert _refused(api, "DELETE", ONE).startswith("409 ABORTED ")
    api.now += 200
    ended, made = _get(api, operation["name"]), _get(api)
    assert ended["done"] is True
    kind = "type.googleapis.com/google.cloud.filestore.v1.Instance"
    assert ended["response"] == {"@type": kind, **made}
    (network,) = made["networks"]
    assert (made["state"], made["protocol"], made["labels"]) == ("READY", "NFS_V3", {"a": "b"})
    assert network["ipAddresses"] == ["10.99.0.2"]
    assert network["reservedIpRange"] == "10.99.0.0/29"
    assert made["fileShares"] == [{"name": "share", "capacityGb": "2560"}]
    api.json("file", "DELETE", ONE)
    assert _get(api)["state"] == "DELETING"
    assert _refused(api, "GET", f"{ZONE}/operations/operation-1").startswith("404 ")


def test_each_instance_has_a_name_and_a_range_of_its_own_or_the_one_that_is_given(api: Api) -> None:
    _make(api, networks=[{"network": "default", "reservedIpRange": "10.5.0.0/29"}])
    (network,) = _get(api)["networks"]
    assert (network["reservedIpRange"], network["ipAddresses"]) == ("10.5.0.0/29", ["10.5.0.2"])
    assert _refused(api, "POST", NEW, BODY).startswith("409 ALREADY_EXISTS ")
    for name in ("other", "third"):
        api.json("file", "POST", f"{ZONE}/instances?instanceId={name}", BODY)
    listed = _get(api, f"{ZONE}/instances")["instances"]
    assert len({it["networks"][0]["reservedIpRange"] for it in listed}) == 3
    assert _get(api, "projects/proj-a1/locations/-/instances")["instances"] == listed


@pytest.mark.parametrize(
    ("place", "changes", "words"),
    [
        (ZONE, {"tier": "BASIC_FAST"}, "tier"),
        (ZONE, {"fileShares": [{"name": "s", "capacityGb": 1024}]}, "2560 to"),
        (ZONE, {"fileShares": [{"name": "much-too-long-for-it", "capacityGb": 2560}]}, "share"),
        (ZONE, {"networks": [{"network": "none"}]}, "'none' does not exist"),
        (ZONE, {"protocol": "NFS_V4_1"}, "NFS_V4_1"),
        (PLACE, {}, "a zone is required"),
        (ZONE, {"tier": "ENTERPRISE"}, "a region is required"),
        (ZONE, {"tier": "REGIONAL"}, "a region is required"),
        (ZONE, {"shares": []}, "shares"),
    ],
)
def test_what_filestore_has_not_is_refused(api: Api, place: str, changes: Json, words: str) -> None:
    error = _refused(api, "POST", f"{place}/instances?instanceId=fs", BODY | changes)
    assert error.startswith("400 ")
    assert words in error
    nowhere = NEW.replace("us-central1-c", "mars-north1-a")
    assert _refused(api, "POST", nowhere, BODY).startswith("404 ")


def test_what_the_mask_names_is_changed_and_nothing_else(api: Api) -> None:
    _make(api, labels={"a": "b"})
    before = _get(api)
    shares = [{"name": "share", "capacityGb": 3000}]
    body = {"fileShares": shares, "labels": {"a": "c"}, "description": "new"}
    api.json("file", "PATCH", f"{ONE}?updateMask=fileShares,description", body)
    after = _get(api)
    assert after["fileShares"] == [{"name": "share", "capacityGb": "3000"}]
    assert (after["labels"], after["description"]) == ({"a": "b"}, "new")
    assert after["etag"] != before["etag"]
    # A basic share only grows, and its tier stays.
    smaller = {"fileShares": [{"name": "share", "capacityGb": 2600}]}
    assert "decreased" in _refused(api, "PATCH", f"{ONE}?updateMask=fileShares", smaller)
    assert "tier" in _refused(api, "PATCH", f"{ONE}?updateMask=tier", {"tier": "BASIC_HDD"})


def test_a_protected_instance_can_not_be_deleted(api: Api) -> None:
    _make(api, deletionProtectionEnabled=True)
    assert "protected" in _refused(api, "DELETE", ONE)
    body = {"deletionProtectionEnabled": False}
    api.json("file", "PATCH", f"{ONE}?updateMask=deletion_protection_enabled", body)
    gone = api.json("file", "DELETE", ONE)
    assert gone["response"] == {"@type": "type.googleapis.com/google.protobuf.Empty"}
    assert _refused(api, "GET", ONE).startswith("404 ")
    _make(api)
