"""Resize requests of managed instance groups."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from rehearsal.provider.failures import OperationError, ProviderError
from rehearsal.provider.resources import RESOURCES

if TYPE_CHECKING:
    from collections.abc import Callable

    from rehearsal.provider.api import Api
    from tests.rehearsal.provider.resources.conftest import Google

pytestmark = pytest.mark.loopback

REQUEST = RESOURCES["google_compute_resize_request"]
ALL = "/compute/v1/projects/p/zones/us-central1-a/instanceGroupManagers/g/resizeRequests"
PLAN: dict[str, Any] = {
    "name": "r",
    "zone": "us-central1-a",
    "instance_group_manager": "g",
    "resize_by": 2,
    "requested_run_duration": [{"seconds": "600", "nanos": None}],
}
DONE = {"name": "o", "status": "DONE"}
ERROR = {
    "code": "QUOTA_EXCEEDED",
    "message": "no",
    "errorDetails": [
        {"quotaInfo": {"metricName": "m", "limit": 0.0, "dimensions": {"region": "r"}}},
        {"help": {"links": [{"url": "u", "description": "d"}]}},
    ],
}


def _there(state: str, **status: Any) -> dict[str, Any]:
    return {"name": "r", "resizeBy": 2, "state": state, "status": status}


def test_a_request_is_read_once_it_is_made_and_not_waited_for(google: Google, api: Api) -> None:
    attempt = {"error": {"errors": [ERROR]}}
    google.on(f"POST {ALL}", DONE).on(f"GET {ALL}/r", _there("ACCEPTED", lastAttempt=attempt))
    state = REQUEST.create(api, PLAN)
    assert google.body(f"POST {ALL}") == {
        "name": "r",
        "resizeBy": 2,
        "requestedRunDuration": {"seconds": "600"},
        "zone": "projects/p/global/zones/us-central1-a",
    }
    assert google.lines == [f"POST {ALL}", f"GET {ALL}/r"]
    assert (state["state"], state["zone"]) == ("ACCEPTED", "us-central1-a")
    (error,) = state["status"][0]["last_attempt"][0]["error"][0]["errors"]
    assert error["code"] == "QUOTA_EXCEEDED"
    quota, link = error["error_details"]
    assert quota["quota_info"][0]["limit"] == 0
    assert link["help"][0]["links"] == [{"url": "u", "description": "d"}]


@pytest.mark.parametrize("state", ["CREATING", "ACCEPTED"])
def test_one_that_has_not_ended_is_cancelled_first(google: Google, api: Api, state: str) -> None:
    google.on(".*", DONE)
    REQUEST.delete(api, {**PLAN, "state": state})
    assert google.lines == [f"POST {ALL}/r/cancel", f"DELETE {ALL}/r"]


@pytest.mark.parametrize("state", ["SUCCEEDED", "FAILED", "CANCELLED"])
def test_one_that_has_ended_is_only_deleted(google: Google, api: Api, state: str) -> None:
    google.on(".*", DONE)
    REQUEST.delete(api, {**PLAN, "state": state})
    assert google.lines == [f"DELETE {ALL}/r"]


def test_one_that_ended_unseen_can_not_be_destroyed(
    google: Google, api: Api, refuse: Callable[..., Any]
) -> None:
    words = "Cancelling resize request that has reached a final state is not possible."
    google.on(f"POST {ALL}/r/cancel", refuse(400, words))
    with pytest.raises(ProviderError, match="final state is not possible"):
        REQUEST.delete(api, {**PLAN, "state": "ACCEPTED"})
    assert google.lines == [f"POST {ALL}/r/cancel"]


def test_one_that_is_gone_is_destroyed_already(google: Google, api: Api) -> None:
    REQUEST.delete(api, {**PLAN, "state": "ACCEPTED"})
    assert google.lines == [f"POST {ALL}/r/cancel"]
    assert REQUEST.read(api, PLAN) is None


def test_a_failed_cancellation_keeps_it(google: Google, api: Api) -> None:
    failed = {**DONE, "error": {"errors": [{"message": "busy"}]}}
    google.on(".*", failed)
    with pytest.raises(OperationError, match="busy"):
        REQUEST.delete(api, {**PLAN, "state": "ACCEPTED"})


@pytest.mark.parametrize(
    "given", [ALL.removeprefix("/compute/v1/") + "/r", "p/us-central1-a/g/r", "g/r"]
)
def test_it_is_imported_by_path_or_by_its_last_parts(api: Api, given: str) -> None:
    found = REQUEST.import_state(api, given)
    assert found["id"] == f"{ALL.removeprefix('/compute/v1/')}/r"
    assert (found["instance_group_manager"], found["name"]) == ("g", "r")
