"""Filestore instances."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from rehearsal.provider.failures import ProviderError
from rehearsal.provider.resources import RESOURCES

if TYPE_CHECKING:
    from collections.abc import Callable

    from rehearsal.provider.api import Api
    from tests.rehearsal.provider.resources.conftest import Google

pytestmark = pytest.mark.loopback

INSTANCE = RESOURCES["google_filestore_instance"]
ALL = "/file/v1/projects/p/locations/us-central1-c/instances"
OPERATION = "projects/p/locations/us-central1-c/operations/o"
PLAN: dict[str, Any] = {
    "name": "f",
    "location": "us-central1-c",
    "tier": "BASIC_SSD",
    "protocol": "NFS_V3",
    "file_shares": [{"name": "s", "capacity_gb": 2560, "nfs_export_options": []}],
    "networks": [{"network": "n", "modes": ["MODE_IPV4"], "connect_mode": "DIRECT_PEERING"}],
    "effective_labels": {"a": "b"},
    "terraform_labels": {"a": "b"},
    "labels": {"a": "b"},
}
THERE = {
    "tier": "BASIC_SSD",
    "fileShares": [{"name": "s", "capacityGb": "2560"}],
    "networks": [
        {
            "network": "n",
            "modes": ["MODE_IPV4"],
            "reservedIpRange": "10.0.0.0/29",
            "ipAddresses": ["10.0.0.2"],
        }
    ],
    "labels": {"a": "b", "other": "x"},
}


def test_it_is_made_waited_for_and_read(google: Google, api: Api) -> None:
    google.on(f"POST {ALL}", {"name": OPERATION})
    google.on(f"GET /file/v1/{OPERATION}", {"name": OPERATION}, {"name": OPERATION, "done": True})
    google.on(f"GET {ALL}/f", THERE)
    state = INSTANCE.create(api, PLAN)
    assert google.asked[0].query == {"alt": "json", "instanceId": "f"}
    assert google.asked[0].body == {
        "tier": "BASIC_SSD",
        "protocol": "NFS_V3",
        "fileShares": [{"name": "s", "capacityGb": 2560}],
        "networks": [{"network": "n", "modes": ["MODE_IPV4"], "connectMode": "DIRECT_PEERING"}],
        "labels": {"a": "b"},
    }
    assert state["id"] == "projects/p/locations/us-central1-c/instances/f"
    assert state["file_shares"][0]["capacity_gb"] == 2560
    assert state["networks"][0]["ip_addresses"] == ["10.0.0.2"]
    assert state["labels"] == {"a": "b"}
    assert state["effective_labels"] == {"a": "b", "other": "x"}


def test_an_operation_that_fails_leaves_nothing_in_the_state(google: Google, api: Api) -> None:
    error = {"code": 8, "message": "quota exceeded"}
    google.on(f"POST {ALL}", {"name": OPERATION, "done": True, "error": error})
    with pytest.raises(ProviderError) as caught:
        INSTANCE.create(api, PLAN)
    assert str(caught.value) == (
        "Error waiting to create Instance: Error code 8, message: quota exceeded"
    )


def test_an_update_sends_what_can_change_and_says_what_does(google: Google, api: Api) -> None:
    google.on(f"PATCH {ALL}/f", {"name": OPERATION, "done": True}).on(f"GET {ALL}/f", THERE)
    shares = [{"name": "s", "capacity_gb": 3000, "nfs_export_options": []}]
    changes = {"file_shares": shares, "description": "new"}
    INSTANCE.update(api, PLAN, PLAN | changes)
    assert google.asked[0].query["updateMask"] == "description,fileShares"
    assert google.asked[0].body == {
        "description": "new",
        "fileShares": [{"name": "s", "capacityGb": 3000}],
        "labels": {"a": "b"},
    }


def test_what_only_the_provider_knows_is_changed_without_a_request(
    google: Google, api: Api
) -> None:
    google.on(f"GET {ALL}/f", THERE)
    state = INSTANCE.update(api, PLAN, PLAN | {"deletion_policy": "PREVENT"})
    assert google.lines == [f"GET {ALL}/f"]
    assert state["deletion_policy"] == "PREVENT"
    with pytest.raises(ProviderError, match="deletion_policy"):
        INSTANCE.delete(api, PLAN | {"deletion_policy": "PREVENT"})


def test_one_that_is_gone_is_read_as_such_and_deleted_already(google: Google, api: Api) -> None:
    assert INSTANCE.read(api, PLAN) is None
    INSTANCE.delete(api, PLAN)
    assert google.lines == [f"GET {ALL}/f", f"DELETE {ALL}/f"]


def test_googles_refusals_are_told(google: Google, api: Api, refuse: Callable[..., Any]) -> None:
    google.on(".*", refuse(400, "wrong"))
    attempts: list[Callable[[], object]] = [
        lambda: INSTANCE.create(api, PLAN),
        lambda: INSTANCE.read(api, PLAN),
        lambda: INSTANCE.update(api, PLAN, PLAN | {"description": "x"}),
        lambda: INSTANCE.delete(api, PLAN),
    ]
    for attempt in attempts:
        with pytest.raises(ProviderError, match="wrong"):
            attempt()


def test_its_place_is_the_old_attribute_or_the_providers_zone(google: Google, api: Api) -> None:
    unplaced = {key: value for key, value in PLAN.items() if key != "location"}
    INSTANCE.read(api, unplaced | {"zone": "us-east1-b"})
    INSTANCE.read(api, unplaced)
    assert [line.split("/")[6] for line in google.lines] == ["us-east1-b", "us-central1-a"]


@pytest.mark.parametrize("given", ["projects/p/locations/l/instances/f", "p/l/f", "l/f"])
def test_it_is_imported_by_path_or_by_its_last_parts(api: Api, given: str) -> None:
    found = INSTANCE.import_state(api, given)
    assert found["id"] == "projects/p/locations/l/instances/f"
