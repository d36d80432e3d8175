from typing import Any

import pytest

from tests.rehearsal.cloud.compute.conftest import CLOSE, GROUP, REGION, SPOT, ZONE, Compute, Json

REQUESTS = f"{GROUP}/resizeRequests"
SCHEDULING = {
    "provisioningModel": "FLEX_START",
    "automaticRestart": False,
    "instanceTerminationAction": "DELETE",
    "onHostMaintenance": "TERMINATE",
    "maxRunDuration": {"seconds": "86400"},
}
FLEX: Json = {
    "machineType": "a3-highgpu-8g",
    "scheduling": SCHEDULING,
    "reservationAffinity": {"consumeReservationType": "NO_RESERVATION"},
}
NO_REPAIR: Json = {"instanceLifecyclePolicy": {"defaultActionOnFailure": "DO_NOTHING"}}
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


def test_where_no_time_passes_a_request_is_granted_at_once_and_adds_to_the_group(
    flex: Compute,
) -> None:
    flex.rate = 0.0
    _ask(flex)
    assert _state(flex) == "SUCCEEDED"
    assert flex.refused("POST", f"{REQUESTS}/r1/cancel") == (
        "400 Cancelling resize request that has reached a final state is not possible."
    )
    assert len(flex.vms()) == 2
    _ask(flex, "r2", 3)
    assert flex.get_group()["targetSize"] == 5
    assert flex.names(REQUESTS) == ["r1", "r2"]
    assert flex.refusal("POST", REQUESTS, {"name": "r1", "resizeBy": 1})["code"] == 409
    assert "at most 1000" in flex.refused("POST", REQUESTS, {"name": "r3", "resizeBy": 999})


@pytest.mark.parametrize(
    ("count", "seconds", "words"),
    [
        (0, "3600", "resizeBy"),
        (1001, "3600", "resizeBy"),
        (1, "599", "is equal to 10 minutes"),
        (1, "604801", "requestedRunDuration"),
    ],
)
def test_count_and_duration_have_limits(
    flex: Compute, count: int, seconds: str, words: str
) -> None:
    body = {"name": "r1", "resizeBy": count, "requestedRunDuration": {"seconds": seconds}}
    refused = flex.refused("POST", REQUESTS, body)
    assert refused.startswith("400 ")
    assert words in refused


ROLLED = {"allInstancesConfig": {"properties": {"labels": {"a": "b"}}}}
UNFIT: dict[str, tuple[Json, Json]] = {
    "default action on failure": (FLEX, {}),
    "all-instances configuration": (FLEX, NO_REPAIR | ROLLED),
    "SPOT": ({"scheduling": SPOT}, NO_REPAIR),
    "placement policy": ({**FLEX, "resourcePolicies": ["close"]}, NO_REPAIR),
}


@pytest.mark.parametrize("words", UNFIT)
def test_groups_that_repair_or_roll_spot_vms_and_placement_have_no_requests(
    wired: Compute, words: str
) -> None:
    properties, group = UNFIT[words]
    wired.post(f"{REGION}/resourcePolicies", CLOSE)
    wired.template(**properties)
    wired.group(size=0, **group)
    assert words in wired.refused("POST", REQUESTS, {"name": "r1", "resizeBy": 1})


NO_FLEX: dict[str, list[Json]] = {
    "automaticRestart": [{"scheduling": SCHEDULING | {"automaticRestart": True}}],
    "instanceTerminationAction": [
        {"scheduling": SCHEDULING | {"instanceTerminationAction": "STOP"}}
    ],
    "onHostMaintenance": [{"scheduling": SCHEDULING | {"onHostMaintenance": "MIGRATE"}}],
    "maxRunDuration": [{"scheduling": SCHEDULING | {"maxRunDuration": {"seconds": "300"}}}],
    "NO_RESERVATION": [{"reservationAffinity": None}],
    "FLEX_START": [{"machineType": "a4x-highgpu-4g"}, {"machineType": "e2-standard-4"}],
}


@pytest.mark.parametrize("words", NO_FLEX)
def test_flex_start_needs_its_scheduling_its_machines_and_no_reservation(
    wired: Compute, words: str
) -> None:
    for changes in NO_FLEX[words]:
        with pytest.raises(Exception, match=words):
            wired.template(**FLEX | changes)


def test_a_waiting_request_keeps_the_size_and_is_cancelled_before_it_is_deleted(
    flex: Compute,
) -> None:
    _ask(flex)
    flex.now += 6
    assert "Cancel it first" in flex.refused("POST", f"{GROUP}/resize", None, size="4")
    assert "Cancel it first" in flex.refused("DELETE", f"{REQUESTS}/r1")
    flex.post(f"{REQUESTS}/r1/cancel")
    flex.now += 60
    assert (_state(flex), flex.vms()) == ("CANCELLED", [])
    flex.delete(f"{REQUESTS}/r1")
    flex.now += 60
    assert flex.gone(f"{REQUESTS}/r1")


def test_without_flex_start_in_the_template_vms_come_as_standard_ones(wired: Compute) -> None:
    wired.of_one()
    _ask(wired)
    assert [it["scheduling"]["provisioningModel"] for it in wired.vms()] == ["STANDARD"] * 3


def test_an_ended_request_is_forgotten_after_two_weeks(flex: Compute) -> None:
    _ask(flex)
    flex.now += 60
    flex.get(f"{REQUESTS}/r1")
    flex.now += 13.9 * DAY
    assert _state(flex) == "SUCCEEDED"
    flex.now += DAY
    assert flex.gone(f"{REQUESTS}/r1")
    assert flex.names(REQUESTS) == []


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
    [("stockout", "QUEUING_INFEASIBLE_NO_CAPACITY"), ("quota", "QUOTA_EXCEEDED")],
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
    wired.rate = 1.0
    limit = {"maxRunDuration": {"seconds": "600"}, "instanceTerminationAction": "STOP"}
    wired.of_one(scheduling=limit)
    wired.now += 700
    assert wired.vm()["status"] == "TERMINATED"
