"""What zones have left, by way and time, and for how many GPUs regions have quota."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from rehearsal.cloud.compute import stock
from tests.rehearsal.cloud.compute.conftest import REGION, ZONE, Compute

if TYPE_CHECKING:
    from collections.abc import Callable

A100: dict[str, Any] = {
    "machineType": "a2-highgpu-2g",
    "scheduling": {"onHostMaintenance": "TERMINATE"},
}
HERE = "us-central1-a"


@pytest.fixture
def having(wired: Compute) -> Callable[..., Compute]:
    """Compute Engine with rows of stock."""

    def make(*rows: dict[str, Any]) -> Compute:
        with wired.database.transaction() as store:
            stock.put(store, rows)
        return wired

    return make


def _came(api: Compute, size: int = 3) -> list[str]:
    """For each VM of a new group, why it has not come; "" for those that come."""
    api.template(**A100)
    api.group(targetSize=size)
    found = api.post(f"{ZONE}/instanceGroupManagers/grp/listManagedInstances")["managedInstances"]
    errors = (it.get("lastAttempt", {}).get("errors", {}).get("errors", []) for it in found)
    return sorted(errors_of[0]["code"] if errors_of else "" for errors_of in errors)


NONE = "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS"


@pytest.mark.parametrize(
    ("rows", "came"),
    [
        ([], ["", "", ""]),
        ([{"zones": "us-*", "machines": 0}], [NONE, NONE, NONE]),
        ([{"zones": "us-*", "machines": 0, "way": "SPOT"}], ["", "", ""]),
        ([{"zones": "us-*", "machines": 0}, {"zones": HERE, "machines": 9}], ["", "", ""]),
        ([{"zones": HERE, "machines": 2}], ["", "", NONE]),
        ([{"zones": "us-*", "quota": 0}], 3 * ["QUOTA_EXCEEDED"]),
    ],
)
def test_vms_come_as_far_as_there_are_machines_and_quota(
    having: Callable[..., Compute], rows: list[dict[str, Any]], came: list[str]
) -> None:
    assert _came(having(*rows)) == came


def test_machines_come_once_there_are_some_again(having: Callable[..., Compute]) -> None:
    api = having({"zones": "*", "machines": 0, "until": 3600})
    api.rate = 1.0
    assert _came(api) == [NONE, NONE, NONE]
    api.now += 3601
    managed = api.post(f"{ZONE}/instanceGroupManagers/grp/listManagedInstances")
    assert not any("lastAttempt" in it for it in managed["managedInstances"])


def test_a_region_shows_the_quota_that_it_has(having: Callable[..., Compute]) -> None:
    api = having({"zones": "us-central1-*", "quota": 2})
    shown = {it["metric"]: it["limit"] for it in api.get(REGION)["quotas"]}
    assert shown["NVIDIA_A100_GPUS"] == 2
