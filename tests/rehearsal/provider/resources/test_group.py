"""Managed groups of VMs and their resize requests, beyond what the recorded traffic has."""

from collections.abc import Callable
from typing import Any

import pytest

from rehearsal.provider.api import Api
from rehearsal.provider.failures import OperationError, ProviderError
from rehearsal.provider.resource import UNKNOWN, PartialError
from rehearsal.provider.resources import RESOURCES
from tests.rehearsal.provider.resources.conftest import Google
from tests.table import cases

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
    **dict.fromkeys(("update_policy", "instance_lifecycle_policy", "standby_policy"), UNKNOWN),
    "list_managed_instances_results": "PAGELESS",
}
REQUEST = RESOURCES["google_compute_resize_request"]
REQUESTS = f"{GROUPS}/g/resizeRequests"
REQUESTED: dict[str, Any] = {
    "name": "r",
    "zone": "us-central1-a",
    "instance_group_manager": "g",
    "resize_by": 2,
    "requested_run_duration": [{"seconds": "600", "nanos": None}],
}
BUSY = {**DONE, "error": {"errors": [{"message": "busy"}]}}


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


def test_an_update_sends_only_what_changed_even_an_empty_value(google: Google, api: Api) -> None:
    google.on("(PATCH|POST) .*", DONE).on("GET .*", {"name": "m"})
    prior = {**PLAN, "fingerprint": "f", "target_size": 2}
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


@cases(
    """
prior | wanted | same
@t | projects/p/global/instanceTemplates/t | true
@t | @t?uniqueId=7 | true
@t?uniqueId=8 | @t?uniqueId=7 | false
@t | @other | false
@t | t | false
""",
    t=TEMPLATE,
    other=f"{TEMPLATE}2",
)
def test_a_template_is_compared_by_its_path(prior: str, wanted: str, *, same: bool) -> None:
    assert GROUP.suppress["version.instance_template"](prior, wanted, {}) is same


def test_a_request_is_read_once_it_is_made_and_not_waited_for(google: Google, api: Api) -> None:
    google.on(f"POST {REQUESTS}", DONE).on(f"GET {REQUESTS}/r", {"name": "r", "state": "ACCEPTED"})
    state = REQUEST.create(api, REQUESTED)
    assert google.lines == [f"POST {REQUESTS}", f"GET {REQUESTS}/r"]
    assert (state["state"], state["zone"]) == ("ACCEPTED", "us-central1-a")


@pytest.mark.parametrize("state", ["CREATING", "ACCEPTED", "SUCCEEDED", "FAILED", "CANCELLED"])
def test_one_that_has_not_ended_is_cancelled_first(google: Google, api: Api, state: str) -> None:
    google.on(".*", DONE)
    REQUEST.delete(api, {**REQUESTED, "state": state})
    first = [f"POST {REQUESTS}/r/cancel"] if state in {"CREATING", "ACCEPTED"} else []
    assert google.lines == [*first, f"DELETE {REQUESTS}/r"]


def test_one_is_destroyed_if_it_is_gone_and_not_if_its_cancellation_fails(
    google: Google, api: Api, refuse: Callable[..., Any]
) -> None:
    requested = {**REQUESTED, "state": "ACCEPTED"}
    REQUEST.delete(api, requested)
    assert REQUEST.read(api, REQUESTED) is None
    words = "Cancelling resize request that has reached a final state is not possible."
    google.on(f"POST {REQUESTS}/r/cancel", refuse(400, words), BUSY)
    with pytest.raises(ProviderError, match="final state is not possible"):
        REQUEST.delete(api, requested)
    with pytest.raises(OperationError, match="busy"):
        REQUEST.delete(api, requested)
    asked = [it for it in google.lines if not it.startswith("GET")]
    assert asked == [f"POST {REQUESTS}/r/cancel"] * 3
