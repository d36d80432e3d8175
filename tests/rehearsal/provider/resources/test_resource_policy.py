"""Resource policies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from rehearsal.provider.resources import RESOURCES

if TYPE_CHECKING:
    from rehearsal.provider.api import Api
    from tests.rehearsal.provider.resources.conftest import Google

pytestmark = pytest.mark.loopback

POLICY = RESOURCES["google_compute_resource_policy"]
ALL = "/compute/v1/projects/p/regions/us-central1/resourcePolicies"
REGION = {"region": "projects/p/global/regions/us-central1"}
DONE = {"name": "o", "status": "DONE"}

BLOCKS: list[tuple[dict[str, Any], dict[str, Any]]] = [
    (
        {"group_placement_policy": [{"vm_count": 2, "collocation": "COLLOCATED"}]},
        {"groupPlacementPolicy": {"vmCount": 2, "collocation": "COLLOCATED"}},
    ),
    (
        {"workload_policy": [{"type": "HIGH_THROUGHPUT", "accelerator_topology": "1x72"}]},
        {"workloadPolicy": {"type": "HIGH_THROUGHPUT", "acceleratorTopology": "1x72"}},
    ),
    (
        {
            "instance_schedule_policy": [
                {"time_zone": "UTC", "vm_stop_schedule": [{"schedule": "0 1 * * *"}]}
            ]
        },
        {
            "instanceSchedulePolicy": {
                "timeZone": "UTC",
                "vmStopSchedule": {"schedule": "0 1 * * *"},
            }
        },
    ),
    (
        {
            "snapshot_schedule_policy": [
                {
                    "schedule": [{"daily_schedule": [{"days_in_cycle": 1, "start_time": "04:00"}]}],
                    "retention_policy": [{"max_retention_days": 7}],
                }
            ]
        },
        {
            "snapshotSchedulePolicy": {
                "schedule": {"dailySchedule": {"daysInCycle": 1, "startTime": "04:00"}},
                "retentionPolicy": {"maxRetentionDays": 7},
            }
        },
    ),
]


@pytest.mark.parametrize(("block", "sent"), BLOCKS)
def test_each_kind_of_policy_is_sent_and_read(
    google: Google, api: Api, block: dict[str, Any], sent: dict[str, Any]
) -> None:
    google.on(f"POST {ALL}", DONE).on(f"GET {ALL}/x", {"name": "x", **sent})
    state = POLICY.create(api, {"name": "x", **block})
    body = google.body(f"POST {ALL}")
    assert body == {"name": "x", "diskConsistencyGroupPolicy": None, **REGION, **sent}
    (name,) = block
    assert len(state[name]) == 1
    assert state["region"] == "us-central1"


def test_a_consistency_group_is_an_empty_object(google: Google, api: Api) -> None:
    there = {"name": "x", "diskConsistencyGroupPolicy": {}}
    google.on(f"POST {ALL}", DONE).on(f"GET {ALL}/x", there)
    block = {"disk_consistency_group_policy": [{"enabled": True}]}
    state = POLICY.create(api, {"name": "x", **block})
    assert google.body(f"POST {ALL}")["diskConsistencyGroupPolicy"] == {}
    assert state["disk_consistency_group_policy"] == [{"enabled": True}]


def test_a_change_is_one_patch_of_all_that_can_change(google: Google, api: Api) -> None:
    google.on(f"PATCH {ALL}/x", DONE).on(f"GET {ALL}/x", {"name": "x"})
    prior = {"name": "x", "group_placement_policy": [{"vm_count": 2}]}
    POLICY.update(api, prior, {**prior, "description": "new"})
    assert google.asked[0].body == {
        "name": "x",
        "description": "new",
        "groupPlacementPolicy": {"vmCount": 2},
        "diskConsistencyGroupPolicy": None,
    }


def test_it_is_imported_by_its_path(api: Api) -> None:
    path = ALL.removeprefix("/compute/v1/") + "/x"
    assert POLICY.import_state(api, path)["id"] == path
