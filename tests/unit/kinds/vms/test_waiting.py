"""Waiting in Google's queue and for notebooks: what is told, what ends it, what it costs."""

from __future__ import annotations

import datetime as dt
from typing import Any, cast

import pytest

from provision.codes import Code
from provision.errors import CapacityError, ClusterError, ExitCode, StillWaiting
from provision.google.api import GoogleApi, GoogleApiError
from provision.kinds.vms import waiting as waits
from provision.spec.pools import Group
from provision.time import deadline
from provision.time.clock import Clock
from provision.time.progress import Progress
from provision.words import duration

HERE, NEAR = "us-central1-a", "us-central1-c"
GROUP = Group(project="p", zone=HERE, name="np-mig", size=2, machine_type="a3-highgpu-8g")
AT_ONCE = Clock(0)
STOCKOUT = {
    "code": "ZONE_RESOURCE_POOL_EXHAUSTED",
    "message": "The zone 'projects/p/zones/us-central1-a' does not have enough resources available"
    " to fulfill the request. '(resource type:compute)'.",
}
QUOTA = {
    "code": "QUOTA_EXCEEDED",
    "message": "Quota 'PREEMPTIBLE_NVIDIA_H100_GPUS' exceeded.  Limit: 8.0 in region us-central1.",
}


def _request(state: str, *errors: dict[str, str], name: str = "np-1") -> dict[str, Any]:
    failure = {"error": {"errors": list(errors)}}
    created = dt.datetime.now(dt.UTC) - dt.timedelta(minutes=7)
    return {
        "name": name,
        "resizeBy": 2,
        "requestedRunDuration": {"seconds": "86400"},
        "state": state,
        "creationTimestamp": created.isoformat(),
        "status": failure if state == "FAILED" else {"lastAttempt": failure},
    }


GRANTED = "1 of 1 requests granted"


class FakeApi:
    """A Google that answers each look at the requests with the next of these."""

    def __init__(self, *looks: list[dict[str, Any]] | GoogleApiError) -> None:
        self.looks = list(looks)

    def resize_requests(self, group: str) -> list[dict[str, Any]]:
        assert group == f"projects/p/zones/{HERE}/instanceGroupManagers/np-mig"
        look = self.looks.pop(0) if len(self.looks) > 1 else self.looks[0]
        if isinstance(look, GoogleApiError):
            raise look
        return look

    def zones_with(self, *_: str) -> set[str]:
        return {HERE, NEAR}


def _wait(*looks: list[dict[str, Any]] | GoogleApiError) -> list[str]:
    told: list[str] = []
    waits.for_requests(
        cast("GoogleApi", FakeApi(*looks)),
        GROUP,
        {"np-1"},
        timeout=1800,
        progress=Progress(AT_ONCE, told.append),
    )
    return told


def test_the_wait_tells_state_age_and_reason_and_ends_with_the_grant() -> None:
    waiting = [_request("ACCEPTED", STOCKOUT)]
    told, granted = _wait(waiting, waiting, waiting, [_request("SUCCEEDED")])
    assert granted == GRANTED
    assert told.startswith("For 7 min: the request np-1 for 2 VMs is waiting in Google's queue")
    assert told.endswith(f"(ACCEPTED); {HERE} has none now")


def test_news_are_told_and_nothing_twice() -> None:
    told = _wait(
        [_request("CREATING")],
        [_request("ACCEPTED")],
        [_request("ACCEPTED", QUOTA)],
        [_request("ACCEPTED", QUOTA)],
        [_request("SUCCEEDED")],
    )
    assert len(told) == 3 + 1
    assert told[-1] == GRANTED


def test_requests_of_others_are_not_waited_for() -> None:
    assert _wait([_request("SUCCEEDED"), _request("ACCEPTED", name="by-hand")]) == [GRANTED]


def test_a_failed_request_is_a_refusal_with_a_way_out() -> None:
    with pytest.raises(CapacityError) as caught:
        _wait([_request("FAILED", STOCKOUT)])
    (problem,) = caught.value.problems
    assert "the request np-1 for 2 VMs has failed (FAILED)" in problem.what
    assert problem.why == STOCKOUT["message"]
    assert NEAR in problem.fix


def test_a_request_that_somebody_cancelled_is_one_too() -> None:
    with pytest.raises(CapacityError) as caught:
        _wait([_request("CANCELLED")])
    (problem,) = caught.value.problems
    assert problem.what == "The request np-1 for 2 VMs was cancelled (CANCELLED)"
    assert "run Create again" in problem.fix


@pytest.mark.parametrize(
    ("error", "advice", "code"),
    [
        (STOCKOUT, f"zones of us-central1 that have the machine type: {NEAR}", Code.WAITING),
        # No waiting mends that, so a program must not take it for a wait.
        (QUOTA, "filter by PREEMPTIBLE_NVIDIA_H100_GPUS and us-central1", Code.QUOTA_EXCEEDED),
    ],
)
def test_the_end_of_the_time_keeps_the_request_and_says_why_it_waits(
    monkeypatch: pytest.MonkeyPatch, error: dict[str, str], advice: str, code: Code
) -> None:
    monkeypatch.setattr(deadline, "_SHORTEST", 0.0)
    with pytest.raises(StillWaiting) as caught:
        _wait([_request("ACCEPTED", error)])
    assert caught.value.exit_code is ExitCode.WAITING
    (problem,) = caught.value.problems
    assert problem.setting == "CAPACITY_TIMEOUT"
    assert problem.what.startswith("After 30 minutes, the request np-1 for 2 VMs is waiting")
    assert problem.what.endswith("for 7 min in total")
    assert problem.why == " ".join(error["message"].split())
    assert "the request stays in Google's queue" in problem.fix
    assert advice in problem.fix
    assert problem.code is code
    assert (NEAR in problem.alternatives.zones) == (code is Code.WAITING)


def test_requests_that_can_not_be_looked_at_are_no_failed_check_of_the_beginning() -> None:
    with pytest.raises(ClusterError, match="was created"):
        _wait(GoogleApiError(403, "no", "url"))


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(5, "5 s"), (65, "1 min"), (3700, "1 h 1 min"), (90000, "1 d 1 h")],
)
def test_spans_of_time_have_two_units(seconds: float, words: str) -> None:
    assert duration(seconds) == words


class Notebooks:
    """Looks at all VMs: each gets its URL at a look of its own."""

    def __init__(self, appears: dict[str, int]) -> None:
        self.appears = appears
        self.looks = 0

    def __call__(self) -> dict[str, str | None]:
        self.looks += 1
        return {
            name: f"https://{name}" if look <= self.looks else None
            for name, look in self.appears.items()
        }


def _urls(notebooks: Notebooks, wanted: set[str]) -> dict[str, str]:
    return waits.for_urls(notebooks, wanted, progress=Progress(AT_ONCE, lambda _: None))


def test_urls_are_looked_for_at_all_vms_at_once() -> None:
    notebooks = Notebooks({f"vm{number}": 1 + number % 3 for number in range(1000)})
    assert len(_urls(notebooks, set(notebooks.appears))) == 1000
    assert notebooks.looks == 3


def test_a_vm_without_a_notebook_is_not_waited_for() -> None:
    notebooks = Notebooks({"a": 1, "b": 10**6})
    assert _urls(notebooks, {"a"}) == {"a": "https://a"}


def test_there_is_one_deadline_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deadline, "_SHORTEST", 0.2)
    notebooks = Notebooks({f"vm{number}": 10**6 for number in range(100)} | {"a": 1})
    assert _urls(notebooks, set(notebooks.appears)) == {"a": "https://a"}
    assert notebooks.looks < 10
