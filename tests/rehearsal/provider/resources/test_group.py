"""Managed groups of VMs and their resize requests, beyond what the recorded traffic has."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from rehearsal.provider.failures import OperationError, ProviderError
from rehearsal.provider.resource import UNKNOWN, PartialError
from rehearsal.provider.resources import RESOURCES

if TYPE_CHECKING:
    from collections.abc import Callable

    from rehearsal.provider.api import Api
    from tests.rehearsal.provider.resources.conftest import Google

pytestmark = pytest.mark.loopback

GROUP = RESOURCES["google_compute_instance_group_manager"]
ZONE = "/compute/v1/projects/p/zones/us-central1-a"
GROUPS = f"{ZONE}/instanceGroupManagers"
TEMPLATE = "https://www.googleapis.com/compute/v1/projects/p/global/instanceTemplates/t"
DONE = {"name": "o", "status": "DONE", "zone": "https://x/projects/p/zones/us-central1-a"}
RUNNING = {**DONE, "status": "RUNNING"}

PLAN: dict[str, Any] = {
    "name": "m",
    "base_instance_name": "m",
    "zone": "us-central1-a",
    "target_size": None,
    "version": [{"name": None, "instance_template": TEMPLATE, "target_size": []}],
    "update_policy": UNKNOWN,
    "instance_lifecycle_policy": UNKNOWN,
    "standby_policy": UNKNOWN,
    "list_managed_instances_results": "PAGELESS",
}


def created(google: Google, api: Api, **more: Any) -> Any:
    google.on("POST .*", DONE).on("GET .*", {"name": "m"})
    GROUP.create(api, {**PLAN, **more})
    return google.body(f"POST {GROUPS}")


def test_the_smallest_group_is_sent_as_recorded(google: Google, api: Api) -> None:
    assert created(google, api) == {
        "baseInstanceName": "m",
        "description": "",
        "instanceLifecyclePolicy": {},
        "listManagedInstancesResults": "PAGELESS",
        "name": "m",
        "resourcePolicies": {"workloadPolicy": None},
        "standbyPolicy": {},
        "statefulPolicy": {"preservedState": {}},
        "targetSize": 0,
        "updatePolicy": {},
        "versions": [{"instanceTemplate": TEMPLATE, "targetSize": {}}],
    }


def test_blocks_are_sent_with_their_zeroes_and_nulls(google: Google, api: Api) -> None:
    policy: dict[str, Any] = {
        "type": "PROACTIVE",
        "minimal_action": "REPLACE",
        "replacement_method": "RECREATE",
    }
    policy |= {"max_surge_fixed": 0, "max_unavailable_percent": 20}
    lifecycle = {"default_action_on_failure": "DO_NOTHING", "force_update_on_repair": "NO"}
    sent = created(
        google,
        api,
        update_policy=[policy],
        instance_lifecycle_policy=[{**lifecycle, "on_repair": UNKNOWN}],
        standby_policy=[{"initial_delay_sec": UNKNOWN, "mode": "MANUAL"}],
    )
    assert sent["updatePolicy"] == {
        "maxSurge": {"fixed": 0, "percent": None},
        "maxUnavailable": {"percent": 20, "fixed": None},
        "minimalAction": "REPLACE",
        "mostDisruptiveAllowedAction": None,
        "replacementMethod": "RECREATE",
        "type": "PROACTIVE",
    }
    assert sent["instanceLifecyclePolicy"] == {
        "defaultActionOnFailure": "DO_NOTHING",
        "forceUpdateOnRepair": "NO",
        "onRepair": {},
    }
    assert sent["standbyPolicy"] == {"initialDelaySec": 0, "mode": "MANUAL"}


def test_a_template_with_a_number_is_sent_by_its_number(google: Google, api: Api) -> None:
    version = {"name": "v", "instance_template": f"{TEMPLATE}?uniqueId=7", "target_size": []}
    sent = created(google, api, version=[version])["versions"]
    assert sent[0]["instanceTemplate"] == TEMPLATE.replace("/t", "/7")


def test_an_interrupted_create_is_resumed_by_the_next_read(google: Google, api: Api) -> None:
    google.on("POST .*", RUNNING).on("GET .*/operations/o", RUNNING, DONE)
    google.on("GET .*", {"name": "m", "zone": "x/zones/us-central1-a"})
    api.cancel.set()
    state = GROUP.create(api, PLAN)
    assert state["operation"] == "o"
    assert UNKNOWN not in state.values()
    api.cancel.clear()
    found = GROUP.read(api, state)
    assert found is not None
    assert found["operation"] == ""
    assert google.lines[-2:] == [f"GET {ZONE}/operations/o", f"GET {GROUPS}/m"]


def test_a_resumed_operation_that_failed_means_no_group(google: Google, api: Api) -> None:
    google.on("GET .*/operations/o", {**DONE, "error": {"errors": [{"message": "no"}]}})
    assert GROUP.read(api, {**PLAN, "operation": "o"}) is None
    assert len(google.asked) == 1


def test_a_failed_create_leaves_the_group_tainted_in_the_state(google: Google, api: Api) -> None:
    google.on("POST .*", {**DONE, "error": {"errors": [{"message": "stock-out"}]}})
    with pytest.raises(PartialError, match="stock-out") as caught:
        GROUP.create(api, PLAN)
    assert caught.value.state["id"] == "projects/p/zones/us-central1-a/instanceGroupManagers/m"


def test_instances_are_waited_for_in_spite_of_an_interrupt(google: Google, api: Api) -> None:
    unstable, stable = ({"name": "m", "status": {"isStable": it}} for it in (False, True))
    google.on("POST .*", DONE).on("GET .*", unstable, unstable, stable)
    api.cancel.set()
    GROUP.create(api, {**PLAN, "wait_for_instances": True})
    assert google.lines.count(f"GET {GROUPS}/m") == 4


def test_an_update_sends_only_what_changed_even_an_empty_value(google: Google, api: Api) -> None:
    google.on("(PATCH|POST) .*", DONE).on("GET .*", {"name": "m"})
    prior = {**PLAN, "fingerprint": "f", "target_size": 2}
    prior["resource_policies"] = [{"workload_policy": "w"}]
    version = {"name": "v", "instance_template": f"{TEMPLATE}2", "target_size": []}
    GROUP.update(api, prior, {**prior, "version": [version], "target_size": 0})
    assert google.lines[:2] == [f"PATCH {GROUPS}/m", f"POST {GROUPS}/m/resize"]
    assert google.asked[0].body == {
        "fingerprint": "f",
        "versions": [{"instanceTemplate": f"{TEMPLATE}2", "name": "v", "targetSize": {}}],
    }
    assert google.asked[1].query == {"alt": "json", "size": "0"}
    assert google.asked[1].body is None


def test_any_refusal_to_delete_is_tried_again_for_forty_seconds(
    google: Google, api: Api, refuse: Callable[..., Any]
) -> None:
    google.on("DELETE .*", refuse(403, "Required permission", "forbidden"))
    with pytest.raises(ProviderError, match="Error deleting instance group manager: googleapi"):
        GROUP.delete(api, PLAN)
    assert len(google.asked) == 21


@pytest.mark.parametrize(
    ("prior", "wanted", "same"),
    [
        (TEMPLATE, "projects/p/global/instanceTemplates/t", True),
        (TEMPLATE, f"{TEMPLATE}?uniqueId=7", True),
        (f"{TEMPLATE}?uniqueId=8", f"{TEMPLATE}?uniqueId=7", False),
        (TEMPLATE, f"{TEMPLATE}2", False),
        (TEMPLATE, "t", False),
    ],
)
def test_a_template_is_compared_by_its_path(prior: str, wanted: str, *, same: bool) -> None:
    assert GROUP.suppress["version.instance_template"](prior, wanted, {}) is same


REQUEST = RESOURCES["google_compute_resize_request"]
REQUESTS = f"{GROUPS}/g/resizeRequests"
REQUESTED: dict[str, Any] = {
    "name": "r",
    "zone": "us-central1-a",
    "instance_group_manager": "g",
    "resize_by": 2,
    "requested_run_duration": [{"seconds": "600", "nanos": None}],
}
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
    google.on(f"POST {REQUESTS}", DONE).on(
        f"GET {REQUESTS}/r", _there("ACCEPTED", lastAttempt=attempt)
    )
    state = REQUEST.create(api, REQUESTED)
    assert google.body(f"POST {REQUESTS}") == {
        "name": "r",
        "resizeBy": 2,
        "requestedRunDuration": {"seconds": "600"},
        "zone": "projects/p/global/zones/us-central1-a",
    }
    assert google.lines == [f"POST {REQUESTS}", f"GET {REQUESTS}/r"]
    assert (state["state"], state["zone"]) == ("ACCEPTED", "us-central1-a")
    (error,) = state["status"][0]["last_attempt"][0]["error"][0]["errors"]
    assert error["code"] == "QUOTA_EXCEEDED"
    quota, link = error["error_details"]
    assert quota["quota_info"][0]["limit"] == 0
    assert link["help"][0]["links"] == [{"url": "u", "description": "d"}]


@pytest.mark.parametrize("state", ["CREATING", "ACCEPTED"])
def test_one_that_has_not_ended_is_cancelled_first(google: Google, api: Api, state: str) -> None:
    google.on(".*", DONE)
    REQUEST.delete(api, {**REQUESTED, "state": state})
    assert google.lines == [f"POST {REQUESTS}/r/cancel", f"DELETE {REQUESTS}/r"]


@pytest.mark.parametrize("state", ["SUCCEEDED", "FAILED", "CANCELLED"])
def test_one_that_has_ended_is_only_deleted(google: Google, api: Api, state: str) -> None:
    google.on(".*", DONE)
    REQUEST.delete(api, {**REQUESTED, "state": state})
    assert google.lines == [f"DELETE {REQUESTS}/r"]


def test_one_that_ended_unseen_can_not_be_destroyed(
    google: Google, api: Api, refuse: Callable[..., Any]
) -> None:
    words = "Cancelling resize request that has reached a final state is not possible."
    google.on(f"POST {REQUESTS}/r/cancel", refuse(400, words))
    with pytest.raises(ProviderError, match="final state is not possible"):
        REQUEST.delete(api, {**REQUESTED, "state": "ACCEPTED"})
    assert google.lines == [f"POST {REQUESTS}/r/cancel"]


def test_one_that_is_gone_is_destroyed_already(google: Google, api: Api) -> None:
    REQUEST.delete(api, {**REQUESTED, "state": "ACCEPTED"})
    assert google.lines == [f"POST {REQUESTS}/r/cancel"]
    assert REQUEST.read(api, REQUESTED) is None


def test_a_failed_cancellation_keeps_it(google: Google, api: Api) -> None:
    failed = {**DONE, "error": {"errors": [{"message": "busy"}]}}
    google.on(".*", failed)
    with pytest.raises(OperationError, match="busy"):
        REQUEST.delete(api, {**REQUESTED, "state": "ACCEPTED"})


@pytest.mark.parametrize(
    "given", [REQUESTS.removeprefix("/compute/v1/") + "/r", "p/us-central1-a/g/r", "g/r"]
)
def test_it_is_imported_by_path_or_by_its_last_parts(api: Api, given: str) -> None:
    found = REQUEST.import_state(api, given)
    assert found["id"] == f"{REQUESTS.removeprefix('/compute/v1/')}/r"
    assert (found["instance_group_manager"], found["name"]) == ("g", "r")
