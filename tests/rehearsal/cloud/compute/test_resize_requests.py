"""Resize requests and flex start."""

from __future__ import annotations

from typing import Any

import pytest

from tests.rehearsal.cloud.compute.conftest import REGION, ZONE, Compute

GROUP = f"{ZONE}/instanceGroupManagers/grp"
REQUESTS = f"{GROUP}/resizeRequests"
FLEX: dict[str, Any] = {
    "machineType": "a3-highgpu-8g",
    "scheduling": {
        "provisioningModel": "FLEX_START",
        "automaticRestart": False,
        "instanceTerminationAction": "DELETE",
        "onHostMaintenance": "TERMINATE",
        "maxRunDuration": {"seconds": "86400"},
    },
    "reservationAffinity": {"consumeReservationType": "NO_RESERVATION"},
}
NO_REPAIR: dict[str, Any] = {"instanceLifecyclePolicy": {"defaultActionOnFailure": "DO_NOTHING"}}
DAY = 86_400.0


@pytest.fixture
def flex(wired: Compute) -> Compute:
    """An empty group for flex start."""
    wired.template(**FLEX)
    wired.group(size=0, **NO_REPAIR)
    wired.now += 60
    wired.rate = 1.0
    return wired


def _ask(api: Compute, name: str = "r1", count: int = 2, **fields: Any) -> dict[str, Any]:
    return api.post(REQUESTS, {"name": name, "resizeBy": count, **fields})


def _state(api: Compute, name: str = "r1") -> str:
    return str(api.get(f"{REQUESTS}/{name}")["state"])


def test_a_request_is_created_accepted_and_granted_and_the_group_grows(flex: Compute) -> None:
    operation = _ask(flex, requestedRunDuration={"seconds": "3600"})
    assert operation["operationType"] == "createResizeRequest"
    assert operation["targetLink"].endswith("/instanceGroupManagers/grp")
    assert _state(flex) == "CREATING"
    flex.now += 6
    assert (_state(flex), flex.vms()) == ("ACCEPTED", [])
    flex.now += 60
    assert _state(flex) == "SUCCEEDED"
    assert flex.get_group()["targetSize"] == 2
    assert [it["scheduling"]["maxRunDuration"] for it in flex.vms()] == [{"seconds": "3600"}] * 2


def test_where_no_time_passes_a_request_is_granted_at_once(flex: Compute) -> None:
    flex.rate = 0.0
    _ask(flex)
    assert _state(flex) == "SUCCEEDED"
    assert len(flex.vms()) == 2


def test_each_request_adds_to_the_group(flex: Compute) -> None:
    flex.rate = 0.0
    _ask(flex, "r1", 2)
    _ask(flex, "r2", 3)
    assert flex.get_group()["targetSize"] == 5
    assert [it["name"] for it in flex.get(REQUESTS)["items"]] == ["r1", "r2"]


def test_a_name_is_taken_as_long_as_its_request_is_there(flex: Compute) -> None:
    _ask(flex)
    body = {"name": "r1", "resizeBy": 1}
    assert flex.refusal("POST", REQUESTS, body)["code"] == 409


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"resizeBy": 0}, "resizeBy"),
        ({"resizeBy": 1001}, "resizeBy"),
        ({"resizeBy": 1, "requestedRunDuration": {"seconds": "599"}}, "is equal to 10 minutes"),
        ({"resizeBy": 1, "requestedRunDuration": {"seconds": "604801"}}, "requestedRunDuration"),
    ],
)
def test_count_and_duration_have_limits(flex: Compute, body: dict[str, Any], words: str) -> None:
    refusal = flex.refusal("POST", REQUESTS, {"name": "r1", **body})
    assert refusal["code"] == 400
    assert words in refusal["message"]


def test_the_group_itself_has_at_most_a_thousand_vms(flex: Compute) -> None:
    flex.rate = 0.0
    _ask(flex, count=2)
    refusal = flex.refusal("POST", REQUESTS, {"name": "r2", "resizeBy": 999})
    assert "at most 1000" in refusal["message"]


@pytest.mark.parametrize(
    ("group", "words"),
    [
        ({}, "default action on failure"),
        (
            NO_REPAIR | {"allInstancesConfig": {"properties": {"labels": {"a": "b"}}}},
            "all-instances configuration",
        ),
    ],
)
def test_groups_that_repair_or_roll_have_no_flex_start(
    wired: Compute, group: dict[str, Any], words: str
) -> None:
    wired.template(**FLEX)
    wired.group(size=0, **group)
    refusal = wired.refusal("POST", REQUESTS, {"name": "r1", "resizeBy": 1})
    assert words in refusal["message"]


def test_spot_vms_do_not_come_by_requests(wired: Compute) -> None:
    spot = {"provisioningModel": "SPOT", "automaticRestart": False}
    wired.template(scheduling={**spot, "onHostMaintenance": "TERMINATE"})
    wired.group(size=0, **NO_REPAIR)
    refusal = wired.refusal("POST", REQUESTS, {"name": "r1", "resizeBy": 1})
    assert "SPOT" in refusal["message"]


def test_a_placement_policy_does_not_go_with_flex_start(wired: Compute) -> None:
    placement = {"name": "close", "groupPlacementPolicy": {"collocation": "COLLOCATED"}}
    wired.post(f"{REGION}/resourcePolicies", placement)
    wired.template(**FLEX, resourcePolicies=["close"])
    wired.group(size=0, **NO_REPAIR)
    refusal = wired.refusal("POST", REQUESTS, {"name": "r1", "resizeBy": 1})
    assert "placement policy" in refusal["message"]


def test_without_flex_start_in_the_template_vms_come_as_standard_ones(wired: Compute) -> None:
    wired.template()
    wired.group(size=1)
    _ask(wired)
    assert {it["scheduling"]["provisioningModel"] for it in wired.vms()} == {"STANDARD"}
    assert len(wired.vms()) == 3


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("automaticRestart", True),
        ("instanceTerminationAction", "STOP"),
        ("onHostMaintenance", "MIGRATE"),
        ("maxRunDuration", {"seconds": "300"}),
    ],
)
def test_flex_start_needs_its_scheduling(wired: Compute, field: str, value: Any) -> None:
    scheduling = {**FLEX["scheduling"], field: value}
    with pytest.raises(Exception, match=field):
        wired.template(**FLEX | {"scheduling": scheduling})


def test_flex_start_needs_no_reservation(wired: Compute) -> None:
    with pytest.raises(Exception, match="NO_RESERVATION"):
        wired.template(**FLEX | {"reservationAffinity": None})


@pytest.mark.parametrize("machine", ["a4x-highgpu-4g", "e2-standard-4"])
def test_flex_start_is_for_certain_machines(wired: Compute, machine: str) -> None:
    with pytest.raises(Exception, match="FLEX_START"):
        wired.template(**FLEX | {"machineType": machine})


def test_the_size_stays_while_a_request_waits(flex: Compute) -> None:
    _ask(flex)
    flex.now += 6
    refusal = flex.refusal("POST", f"{GROUP}/resize", None, size="4")
    assert "Cancel it first" in refusal["message"]


def test_a_waiting_request_is_cancelled_before_it_is_deleted(flex: Compute) -> None:
    _ask(flex)
    flex.now += 6
    assert "Cancel it first" in flex.refusal("DELETE", f"{REQUESTS}/r1")["message"]
    flex.post(f"{REQUESTS}/r1/cancel")
    flex.now += 60
    assert (_state(flex), flex.vms()) == ("CANCELLED", [])
    flex.delete(f"{REQUESTS}/r1")
    flex.now += 60
    assert flex.refusal("GET", f"{REQUESTS}/r1")["code"] == 404


def test_what_has_ended_can_not_be_cancelled(flex: Compute) -> None:
    flex.rate = 0.0
    _ask(flex)
    refusal = flex.refusal("POST", f"{REQUESTS}/r1/cancel")
    assert refusal["message"] == (
        "Cancelling resize request that has reached a final state is not possible."
    )


def test_an_ended_request_is_forgotten_after_two_weeks(flex: Compute) -> None:
    _ask(flex)
    flex.now += 60
    flex.get(f"{REQUESTS}/r1")
    flex.now += 13.9 * DAY
    assert _state(flex) == "SUCCEEDED"
    flex.now += DAY
    assert flex.refusal("GET", f"{REQUESTS}/r1")["code"] == 404
    assert "items" not in flex.get(REQUESTS)


def test_a_groups_deletion_waits_for_its_request(flex: Compute) -> None:
    flex.scenarios = frozenset({"never"})
    _ask(flex)
    flex.now += 6
    operation = flex.delete(GROUP)
    flex.now += 3600
    path = f"{ZONE}/operations/{operation['name']}"
    assert flex.get(path)["status"] == "RUNNING"
    flex.post(f"{REQUESTS}/r1/cancel")
    flex.now += 60
    assert flex.get(path)["status"] == "DONE"
    assert flex.refusal("GET", GROUP)["code"] == 404


def test_a_request_in_the_queue_says_why_and_is_granted_later(flex: Compute) -> None:
    flex.scenarios = frozenset({"queue"})
    _ask(flex)
    flex.now += 200
    request = flex.get(f"{REQUESTS}/r1")
    (error,) = request["status"]["lastAttempt"]["error"]["errors"]
    assert request["state"] == "ACCEPTED"
    assert error["code"] == "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS"
    flex.now += 200
    request = flex.get(f"{REQUESTS}/r1")
    assert (request["state"], request["status"]) == ("SUCCEEDED", {})


def test_what_is_never_granted_comes_once_the_scenario_is_over(flex: Compute) -> None:
    flex.scenarios = frozenset({"never"})
    _ask(flex)
    flex.now += 10 * DAY
    assert _state(flex) == "ACCEPTED"
    flex.scenarios = frozenset()
    assert _state(flex) == "SUCCEEDED"
    assert len(flex.vms()) == 2


@pytest.mark.parametrize(
    ("scenario", "code"),
    [
        ("stockout", "QUEUING_INFEASIBLE_NO_CAPACITY"),
        ("quota", "QUOTA_EXCEEDED"),
    ],
)
def test_a_request_that_can_not_be_fulfilled_fails(flex: Compute, scenario: str, code: str) -> None:
    flex.scenarios = frozenset({scenario})
    _ask(flex)
    flex.now += 60
    request = flex.get(f"{REQUESTS}/r1")
    assert request["state"] == "FAILED"
    assert [it["code"] for it in request["status"]["error"]["errors"]] == [code]
    assert flex.get_group()["targetSize"] == 0


def test_vms_tell_when_their_run_ends_and_are_deleted_then(flex: Compute) -> None:
    _ask(flex, requestedRunDuration={"seconds": "3600"})
    flex.now += 120
    ends = {it["resourceStatus"]["scheduling"]["terminationTimestamp"] for it in flex.vms()}
    # Granted 25 s after the request, running 25 s later.
    assert ends == {"2027-01-15T09:01:50.000Z"}
    flex.now += 3540
    assert [it["status"] for it in flex.vms()] == ["STOPPING"] * 2
    assert flex.get_group()["targetSize"] == 0
    flex.now += 60
    assert flex.vms() == []


def test_an_hour_of_the_cloud_is_shorter_when_its_clock_is_faster(flex: Compute) -> None:
    flex.rate = 0.01
    _ask(flex, requestedRunDuration={"seconds": "3600"})
    flex.now += 30
    assert len(flex.vms()) == 2
    flex.now += 10
    assert flex.vms() == []


def test_a_template_may_limit_the_run_of_ordinary_vms(wired: Compute) -> None:
    scheduling = {"maxRunDuration": {"seconds": "600"}, "instanceTerminationAction": "STOP"}
    wired.template(scheduling=scheduling)
    wired.rate = 1.0
    wired.group(size=1)
    wired.now += 700
    assert [it["status"] for it in wired.vms()] == ["TERMINATED"]
