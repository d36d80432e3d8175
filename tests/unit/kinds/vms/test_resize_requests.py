"""What a Create asks for with flex start: the difference, once, under a name of its own."""

from __future__ import annotations

from typing import Any

import pytest

from provision.deployment.deployment import ResizeRequestSpec
from provision.errors import SettingsError
from provision.kinds.vms import resize_requests
from provision.kinds.vms.resize_requests import ResizePlan, ResizeRequest
from provision.spec.pools import Group

RUN = 86400
RUNNING = {"instanceStatus": "RUNNING", "currentAction": "NONE"}


def _group(size: int) -> Group:
    return Group(
        project="p", zone="us-central1-a", name="np-mig", size=size, machine_type="a3-highgpu-8g"
    )


def _request(number: int, count: int, state: str) -> ResizeRequest:
    return ResizeRequest.of(
        {
            "name": f"np-{number}",
            "resizeBy": count,
            "requestedRunDuration": {"seconds": str(RUN)},
            "state": state,
            "creationTimestamp": "2026-11-21T10:00:00.000-08:00",
        }
    )


def _decide(size: int, vms: int, *requests: ResizeRequest, last: int = 0) -> ResizePlan:
    return resize_requests.decide(
        _group(size), vms=vms, requests=requests, prefix="np", last=last, run_seconds=RUN
    )


def _asked(count: int) -> ResizeRequestSpec:
    return ResizeRequestSpec(count=count, run_seconds=RUN)


@pytest.mark.parametrize(
    ("state", "is_open"),
    [
        ("CREATING", True),
        ("ACCEPTED", True),
        ("SUCCEEDED", False),
        ("FAILED", False),
        ("CANCELLED", False),
    ],
)
def test_m10_a_request_is_open_until_google_has_decided(state: str, *, is_open: bool) -> None:
    assert _request(1, 1, state).is_open is is_open


def test_the_first_create_asks_for_all_at_once() -> None:
    assert _decide(4, 0) == ResizePlan(requests={"np-1": _asked(4)}, last=1)


def test_a_create_asks_for_the_difference_only() -> None:
    done = _request(1, 3, "SUCCEEDED")
    assert _decide(4, 3, done, last=1) == ResizePlan(requests={"np-2": _asked(1)}, last=2)


def test_nothing_is_asked_for_when_nothing_is_missing() -> None:
    assert _decide(2, 2, _request(1, 2, "SUCCEEDED"), last=1) == ResizePlan(requests={}, last=1)


def test_vms_whose_run_duration_is_over_are_asked_for_anew() -> None:
    assert _decide(2, 0, _request(1, 2, "SUCCEEDED"), last=1).requests == {"np-2": _asked(2)}


@pytest.mark.parametrize("state", ["FAILED", "CANCELLED"])
def test_a_request_that_ended_without_vms_is_asked_anew_under_another_name(state: str) -> None:
    assert _decide(2, 0, _request(1, 2, state)).requests == {"np-2": _asked(2)}


def test_a_number_that_google_has_forgotten_is_not_used_again() -> None:
    assert _decide(1, 0, last=7).requests == {"np-8": _asked(1)}


@pytest.mark.parametrize("state", ["CREATING", "ACCEPTED"])
def test_m7_an_open_request_is_kept_as_it_is_and_no_other_is_made(state: str) -> None:
    open_one = _request(1, 2, state)
    assert _decide(2, 0, open_one) == ResizePlan(requests={"np-1": _asked(2)}, last=1)
    assert _decide(5, 0, open_one) == ResizePlan(requests={"np-1": _asked(2)}, last=1, postponed=3)


def test_fewer_vms_are_refused_with_the_command_that_removes_some() -> None:
    with pytest.raises(SettingsError) as caught:
        _decide(1, 2)
    (problem,) = caught.value.problems
    assert problem.setting == "INSTANCE_COUNT"
    assert "delete-instances np-mig --zone us-central1-a --project p" in problem.fix
    assert "set INSTANCE_COUNT to 2 or more" in problem.fix


def test_m7_fewer_than_an_open_request_asks_for_are_refused_with_how_to_cancel_it() -> None:
    with pytest.raises(SettingsError) as caught:
        _decide(1, 0, _request(3, 2, "ACCEPTED"))
    (problem,) = caught.value.problems
    assert "the request np-3 for 2 VMs is waiting in Google's queue (ACCEPTED)" in problem.what
    assert "resize-requests cancel np-mig" in problem.fix
    assert "--resize-requests=np-3" in problem.fix


def test_requests_of_other_names_do_not_move_the_numbers() -> None:
    other = {"name": "by-hand-9", "resizeBy": 1, "state": "SUCCEEDED"}
    assert _decide(1, 0, ResizeRequest.of(other)).requests == {"np-1": _asked(1)}


def test_vms_that_leave_do_not_count() -> None:
    leaving: dict[str, Any] = {"instanceStatus": "STOPPING", "currentAction": "DELETING"}
    assert resize_requests.present([RUNNING, leaving], []) == 1


def test_vms_that_an_open_request_is_bringing_are_not_counted_twice() -> None:
    coming = {"instanceStatus": "STAGING", "currentAction": "CREATING"}
    instances = [RUNNING, coming]
    assert resize_requests.present(instances, [_request(1, 1, "ACCEPTED")]) == 1
    assert resize_requests.present(instances, [_request(1, 1, "SUCCEEDED")]) == 2
