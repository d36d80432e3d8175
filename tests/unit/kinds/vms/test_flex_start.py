"""Flex start: what a Create asks for, how it waits for that, and what Destroy cancels."""

import datetime as dt
from typing import Any, cast

import pytest

from provision.codes import Code
from provision.deployment.deployment import ResizeRequestSpec
from provision.errors import (
    CapacityError,
    ClusterError,
    ExitCode,
    SettingsError,
    StillWaiting,
)
from provision.google.api import GoogleApi, GoogleApiError
from provision.google.owner import Owner
from provision.kinds.vms import flex_start
from provision.kinds.vms.flex_start import ResizeRequest
from provision.lifecycle import ownership
from provision.report import Report
from provision.spec.pools import Group
from provision.state.location import StateLocation
from provision.time import deadline
from provision.time.clock import Clock
from provision.time.stages import Progress
from provision.words import duration
from tests.table import cases
from tests.unit.kinds.cases import having, problem_of, unheard

HERE, NEAR = "us-central1-a", "us-central1-c"
RUN = 86400


def _group(size: int) -> Group:
    return Group(project="p", zone=HERE, name="np-mig", size=size, machine_type="a3-highgpu-8g")


GROUP = _group(2)


def _document(
    state: str, *errors: dict[str, str], name: str = "np-1", count: int = 2
) -> dict[str, Any]:
    failure = {"error": {"errors": list(errors)}}
    created = dt.datetime.now(dt.UTC) - dt.timedelta(minutes=7)
    return {
        "name": name,
        "resizeBy": count,
        "requestedRunDuration": {"seconds": str(RUN)},
        "state": state,
        "creationTimestamp": created.isoformat(),
        "status": failure if state == "FAILED" else {"lastAttempt": failure},
    }


def _request(number: int, count: int, state: str) -> ResizeRequest:
    return ResizeRequest.of(_document(state, name=f"np-{number}", count=count))


Plan = tuple[dict[str, ResizeRequestSpec], int, int]


def _decide(size: int, vms: int, *requests: ResizeRequest, last: int = 0) -> Plan:
    return flex_start.decide(
        _group(size), vms=vms, requests=requests, prefix="np", last=last, run_seconds=RUN
    )


def test_a_request_is_open_until_google_has_decided_and_who_may_not_look_is_told() -> None:
    states = ("CREATING", "ACCEPTED", "SUCCEEDED", "FAILED", "CANCELLED")
    assert [it for it in states if _request(1, 1, it).is_open] == ["CREATING", "ACCEPTED"]
    with pytest.raises(ClusterError, match="was created"):
        _wait(GoogleApiError(403, "no", "url"))


DONE, OPEN = _request(1, 2, "SUCCEEDED"), _request(1, 2, "ACCEPTED")


def _plan(last: int, postponed: int = 0, **asked: int) -> Plan:
    """The plan that asks for so many VMs each."""
    specs = {
        name.replace("_", "-"): ResizeRequestSpec(count=count, run_seconds=RUN)
        for name, count in asked.items()
    }
    return specs, last, postponed


@cases("""
size | vms | states    | last | found
4    | 0   | -         | 0    | {last: 1, np_1: 4}  # first: all at once
4    | 2   | SUCCEEDED | 1    | {last: 2, np_2: 2}  # the difference only
2    | 2   | SUCCEEDED | 1    | {last: 1}  # nothing is missing
2    | 0   | SUCCEEDED | 1    | {last: 2, np_2: 2}  # their run duration is over
2    | 0   | FAILED    | 0    | {last: 2, np_2: 2}
2    | 0   | CANCELLED | 0    | {last: 2, np_2: 2}
1    | 0   | -         | 7    | {last: 8, np_8: 1}  # a number that Google has forgotten
2    | 0   | ACCEPTED  | 0    | {last: 1, np_1: 2}  # m7: open, kept as it is
5    | 0   | ACCEPTED  | 0    | {last: 1, postponed: 3, np_1: 2}  # m7: open, no other is made
5    | 0   | CREATING  | 0    | {last: 1, postponed: 3, np_1: 2}
1    | 0   | by-hand-9 | 0    | {last: 1, np_1: 1}  # another name moves no number
""")
def test_a_create_asks_once_for_what_is_missing_under_a_name_of_its_own(
    size: int, vms: int, states: str, last: int, found: dict[str, int]
) -> None:
    other = ResizeRequest.of(_document("SUCCEEDED", name="by-hand-9"))
    requests = [other if "by" in it else _request(1, 2, it) for it in states.split()]
    assert _decide(size, vms, *requests, last=last) == _plan(**found)


def test_fewer_than_there_are_is_refused_with_the_command_that_removes_some() -> None:
    waits = "the request np-3 for 2 VMs is waiting in Google's queue (ACCEPTED)"
    cancel = ("resize-requests cancel np-mig", "--resize-requests=np-3")
    delete = "delete-instances np-mig --zone us-central1-a --project p"
    for vms, requests, words in (
        (2, (), (delete, "set INSTANCE_COUNT to 2 or more")),
        (0, (_request(3, 2, "ACCEPTED"),), (waits, *cancel)),
    ):
        problem = problem_of(SettingsError, _decide, 1, vms, *requests)
        assert problem.setting == "INSTANCE_COUNT"
        assert all(it in f"{problem.what} {problem.fix}" for it in words)


RUNNING = {"instanceStatus": "RUNNING", "currentAction": "NONE"}
LEAVING = {"instanceStatus": "STOPPING", "currentAction": "DELETING"}
COMING = {"instanceStatus": "STAGING", "currentAction": "CREATING"}


@pytest.mark.parametrize(
    ("other", "requests", "count"), [(LEAVING, [], 1), (COMING, [OPEN], 1), (COMING, [DONE], 2)]
)
def test_vms_that_leave_or_that_an_open_request_is_bringing_are_not_counted(
    other: dict[str, str], requests: list[ResizeRequest], count: int
) -> None:
    assert flex_start.present([RUNNING, other], requests) == count


STOCKOUT = {
    "code": "ZONE_RESOURCE_POOL_EXHAUSTED",
    "message": "The zone 'projects/p/zones/us-central1-a' does not have enough resources available"
    " to fulfill the request. '(resource type:compute)'.",
}
QUOTA = {
    "code": "QUOTA_EXCEEDED",
    "message": "Quota 'PREEMPTIBLE_NVIDIA_H100_GPUS' exceeded.  Limit: 8.0 in region us-central1.",
}
GRANTED = "1 of 1 request granted"


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
    flex_start.wait(
        cast("GoogleApi", FakeApi(*looks)),
        GROUP,
        {"np-1"},
        timeout=1800,
        progress=Progress(Clock(0), told.append),
    )
    return told


def test_the_wait_tells_state_age_and_reason_and_ends_with_the_grant() -> None:
    waiting = [_document("ACCEPTED", STOCKOUT)]
    told, granted = _wait(waiting, waiting, waiting, [_document("SUCCEEDED")])
    assert granted == GRANTED
    assert told.startswith("For 7 min: the request np-1 for 2 VMs is waiting in Google's queue")
    assert told.endswith(f"(ACCEPTED); {HERE} has none now")


def test_news_are_told_once_and_requests_of_others_are_not_waited_for() -> None:
    told = _wait(
        [_document("CREATING")],
        [_document("ACCEPTED")],
        [_document("ACCEPTED", QUOTA)],
        [_document("ACCEPTED", QUOTA)],
        [_document("SUCCEEDED")],
    )
    assert len(told) == 3 + 1
    assert told[-1] == GRANTED
    assert _wait([_document("SUCCEEDED"), _document("ACCEPTED", name="by-hand")]) == [GRANTED]


def test_a_request_that_ended_without_vms_is_a_refusal_with_a_way_out() -> None:
    failed = problem_of(CapacityError, _wait, [_document("FAILED", STOCKOUT)])
    assert "the request np-1 for 2 VMs has failed (FAILED)" in failed.what
    assert failed.why == STOCKOUT["message"]
    assert NEAR in failed.fix
    cancelled = problem_of(CapacityError, _wait, [_document("CANCELLED")])
    assert "The request np-1 for 2 VMs was cancelled (CANCELLED)" in cancelled.what
    assert cancelled.why == "Google gives no reason"
    assert "run Create again" in cancelled.fix


def test_the_end_of_the_time_keeps_the_request(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deadline, "_SHORTEST", 0.0)
    # No waiting mends a lack of quota, so a program must not take it for a wait.
    for error, advice, code in (
        (STOCKOUT, f"zones of us-central1 that have the machine type: {NEAR}", Code.WAITING),
        (QUOTA, "by PREEMPTIBLE_NVIDIA_H100_GPUS and us-central1", Code.QUOTA_EXCEEDED),
    ):
        problem = problem_of(StillWaiting, _wait, [_document("ACCEPTED", error)])
        assert problem.setting == "CAPACITY_TIMEOUT"
        assert problem.what.startswith("After 30 minutes, the request np-1 for 2 VMs is waiting")
        assert problem.what.endswith("for 7 min in total")
        assert problem.why == " ".join(error["message"].split())
        assert "the request stays in Google's queue" in problem.fix
        assert advice in problem.fix
        assert problem.code is code
        assert (NEAR in problem.alternatives.zones) == (code is Code.WAITING)
    assert StillWaiting("x").exit_code is ExitCode.WAITING


@pytest.mark.parametrize(
    ("seconds", "words"), [(5, "5 s"), (65, "1 min"), (3700, "1 h 1 min"), (90000, "1 d 1 h")]
)
def test_spans_of_time_have_two_units(seconds: float, words: str) -> None:
    assert duration(seconds) == words


PATH = "projects/p/zones/z/instanceGroupManagers/np-mig"
FINAL = "Cancelling resize request that has reached a final state is not possible."
LOCATION = StateLocation("state", "np-deployment", is_default=False)
RECORD = having(project_id="p", name_prefix="np")
OWNER = ownership.ours(RECORD, LOCATION)


class Requests:
    """A Google with requests for VMs, whose cancelling ends so."""

    def __init__(self, *states: str, error: GoogleApiError | None = None) -> None:
        self.states = states
        self.error = error
        self.cancelled: list[str] = []
        self.is_ours = True

    def resize_requests(self, group: str) -> list[dict[str, Any]]:
        assert group == PATH
        return [
            {"name": f"np-{number}", "resizeBy": 1, "state": state}
            for number, state in enumerate(self.states, 1)
        ]

    def cancel_resize_request(self, group: str, name: str) -> None:
        assert group == PATH
        self.cancelled.append(name)
        if self.error:
            raise self.error

    def marked(self, _look: object, _project: str, owner: Owner) -> list[dict[str, str]]:
        return [{"selfLink": f"https://x/v1/{PATH}"}] if owner == OWNER and self.is_ours else []


def _cancel(api: Requests) -> list[str]:
    known = {PATH, f"{PATH}/resizeRequests/np-1", "projects/p/zones/z/instances/a", "np@p"}
    cloud = having(api=api, folder=having(known=lambda: known, location=LOCATION))
    progress = unheard()
    console = having(progress=progress.tell)
    run = having(console=console, progress=progress, report=Report())
    flex_start.release(run, cloud, RECORD)
    return api.cancelled


def test_m8_open_requests_of_our_group_are_cancelled_and_no_others_or_destroy_stops() -> None:
    states = ("SUCCEEDED", "ACCEPTED", "FAILED", "CREATING", "CANCELLED")
    assert _cancel(Requests(*states)) == ["np-2", "np-4"]
    api = Requests("ACCEPTED")
    api.is_ours = False
    assert _cancel(api) == []
    with pytest.raises(ClusterError, match="Could not cancel"):
        _cancel(Requests("ACCEPTED", error=GoogleApiError(403, "no", "url")))


@pytest.mark.parametrize(("code", "words"), [(400, FINAL), (404, "not found")])
def test_m15_a_request_that_has_ended_is_as_good_as_cancelled(code: int, words: str) -> None:
    api = Requests("ACCEPTED", "ACCEPTED", error=GoogleApiError(code, words, "url"))
    assert _cancel(api) == ["np-1", "np-2"]
