"""DWS flex start: asked for once, waited for in the open, and given up without a trace."""

import re
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from rehearsal.inventory import stays
from tests.conftest import Golden
from tests.runs.conftest import Rehearsal, Rehearse
from tests.runs.reading import normal

FLEX = {
    "VM_TYPE": "a3-highgpu-8g",
    "ENABLE_FLEX_START": "yes",
    "MAX_RUN_DURATION": "2d",
    "INSTANCE_COUNT": "2",
    "CAPACITY_TIMEOUT": "10m",
}

AGAIN = pytest.mark.slow(sibling="::test_create_waits_in_the_queue_and_says_so")


@pytest.fixture
def flex(rehearse: Rehearse) -> Rehearse:
    """Make a rehearsal whose VMs come by flex start."""

    def make(**options: Any) -> Rehearsal:
        rehearsal = rehearse(**options)
        rehearsal.settings |= FLEX
        return rehearsal

    return make


def _asked(rehearsal: Rehearsal) -> list[str]:
    """The names of all requests that were ever made."""
    return [
        request["body"]["name"]
        for request in rehearsal.requests()
        if request["method"] == "POST" and request["path"].endswith("/resizeRequests")
    ]


def test_create_waits_in_the_queue_and_says_so(flex: Rehearse) -> None:
    created = flex(scenario="queue", rate=0.01).run("Create")
    assert created.code == 0, created.said
    assert "the request np-1 for 2 VMs is waiting in" in created.said
    assert re.search(r"us-central1-\w has none now", created.said)
    assert len(created.document["connection"]["vms"]) == 2


@pytest.mark.slow(sibling="::test_create_waits_in_the_queue_and_says_so")
def test_a_request_outlives_the_create_that_gave_up_and_the_next_one_goes_on_waiting(
    flex: Rehearse, golden: Golden, goldens: Path
) -> None:
    never = flex(scenario="never")
    waiting = never.run("Create")
    assert waiting.code == 75
    golden.check(goldens / "never.txt", normal(waiting.said))
    (request,) = never.run("Status").document["status"]["requests"]
    assert (request["name"], request["state"]) == ("np-1", "ACCEPTED")
    assert request["reasons"]

    # Rule M7: no other change of size while it is open, be it for more or for less.
    more = never.run("Create", INSTANCE_COUNT="3")
    assert more.code == 75
    fewer = never.run("Create", INSTANCE_COUNT="1")
    assert fewer.code == 2
    assert "resize-requests cancel" in fewer.problem["fix"]
    assert _asked(never) == ["np-1"]

    granted = flex().run("Create", INSTANCE_COUNT="3")
    assert granted.code == 0, granted.said
    assert len(granted.document["connection"]["vms"]) == 3


@AGAIN
def test_m8_destroy_cancels_what_is_open_and_leaves_nothing(flex: Rehearse) -> None:
    rehearsal = flex(scenario="never")
    assert rehearsal.run("Create").code == 75

    watch = rehearsal.start("Status", "--watch")
    while "is waiting in Google's queue (ACCEPTED)" not in rehearsal.said(watch):
        time.sleep(0.05)
    watch.send_signal(signal.SIGINT)
    watched = rehearsal.finish(watch)
    assert (watched.code, watched.document["problems"]) == (0, [])
    (waits,) = watched.document["status"]["waiting"]
    assert waits["names"] == ["np-1"]
    assert "does not have enough resources" in waits["why"][0]

    destroyed = rehearsal.run("Destroy")
    assert destroyed.code == 0, destroyed.said
    assert "Cancelling: the request np-1" in destroyed.said
    assert [line for line in rehearsal.resources() if not stays(line)] == []


@pytest.mark.slow(sibling="::test_create_waits_in_the_queue_and_says_so")
def test_m14_m15_a_request_that_ended_behind_terraforms_back_is_no_trouble(flex: Rehearse) -> None:
    waiting = flex(scenario="never")
    # The apply ends with the request's insertion, not with its grant.
    assert waiting.run("Create").code == 75
    granting = flex()
    granting.run("Status")
    destroyed = granting.run("Destroy")
    assert destroyed.code == 0, destroyed.said
    assert [line for line in granting.resources() if not stays(line)] == []


@pytest.mark.slow(sibling="::test_create_waits_in_the_queue_and_says_so")
def test_a_create_asks_for_the_difference_and_never_for_what_it_has(standing: Rehearse) -> None:
    rehearsal = standing(FLEX)
    rehearsal.settings |= FLEX
    again = rehearsal.run("Create")
    assert again.code == 0, again.said
    assert again.document["changes"] == {"add": 0, "change": 0, "destroy": 0}
    assert rehearsal.run("Plan").document["changes"] == again.document["changes"]
    grown = rehearsal.run("Create", INSTANCE_COUNT="3")
    assert grown.code == 0, grown.said
    assert _asked(rehearsal) == ["np-2"]
    assert grown.document["tfvars"]["resize_requests"] == {
        "np-2": {"count": 1, "run_seconds": 172800}
    }
    shrunk = rehearsal.run("Create", INSTANCE_COUNT="1")
    assert shrunk.code == 2
    assert "delete-instances np-mig" in shrunk.problem["fix"]


@AGAIN
def test_a_request_that_fails_is_a_refusal_and_the_next_create_asks_anew(
    flex: Rehearse, golden: Golden, goldens: Path
) -> None:
    scarce = flex(scenario="quota")
    foreseen = scarce.run("Validate")
    assert (foreseen.code, foreseen.problem["code"]) == (4, "quota-exceeded"), foreseen.said
    refused = scarce.run("Create", SKIP_CHECKS="quota")
    assert refused.code == 7
    golden.check(goldens / "flex-quota.txt", normal(refused.said))
    rehearsal = flex()
    created = rehearsal.run("Create")
    assert "could not check" not in created.said
    assert created.code == 0, created.said
    assert _asked(rehearsal) == ["np-1", "np-2"]


@AGAIN
@pytest.mark.parametrize(
    ("ends", "zone"),
    [
        ("before the plan", "us-central1-a"),
        pytest.param("before the plan", "us-central1-c", marks=AGAIN),
        pytest.param("between the plan and its end", "us-central1-a", marks=AGAIN),
        pytest.param("between the plan and its end", "us-central1-c", marks=AGAIN),
    ],
)
def test_a_request_that_has_ended_by_itself_holds_no_other_way_up(
    flex: Rehearse, ends: str, zone: str
) -> None:
    rehearsal = flex(scenario="never")
    assert rehearsal.run("Create").code == 75
    assert rehearsal.cloud is not None
    if ends == "before the plan":
        group = "compute/v1/projects/my-project/zones/us-central1-a/instanceGroupManagers/np-mig"
        rehearsal.google("POST", f"{group}/resizeRequests/np-1/cancel")
    else:
        # The answer to the first cancellation is lost; the second finds a request that has ended.
        rehearsal.cloud.faults.add("POST **/cancel: repeat times=1")
    on_demand = {"ENABLE_FLEX_START": "", "MAX_RUN_DURATION": "", "VM_TYPE": "a2-highgpu-2g"}
    moved = rehearsal.run("Create", "--yes", **on_demand, ZONE=zone)
    assert moved.code == 0, moved.said
    gone = rehearsal.run("Destroy", ZONE=zone)
    assert gone.code == 0, gone.said
    assert [line for line in rehearsal.resources() if not stays(line)] == []


@AGAIN
def test_a_group_keeps_its_workload_policy_until_its_vms_are_replaced(flex: Rehearse) -> None:
    rehearsal = flex()
    rehearsal.settings |= {
        "VM_TYPE": "a3-ultragpu-8g",
        "ZONE": "us-central1-b",
        "NETWORK_CONFIG": "multi_nic_network",
        "MAX_RUN_DURATION": "4h",
    }
    created = rehearsal.run("Create", ENABLE_COMPACT_PLACEMENT="yes")
    assert created.code == 0, created.said
    there = rehearsal.resources()
    kept = rehearsal.run("Create")
    assert kept.code == 0, kept.said
    assert "placement policy np-workload stays" in kept.said
    assert set(rehearsal.resources()) >= {it for it in there if it.startswith("compute/")}

    spot = {"ENABLE_FLEX_START": "", "ENABLE_SPOT": "yes", "MAX_RUN_DURATION": ""}
    refused = rehearsal.run("Create", "--replace-vms", **spot)
    assert (refused.code, refused.problem["code"]) == (2, "approval-needed"), refused.said
    replaced = rehearsal.run("Create", "--replace-vms", "--yes", **spot)
    assert replaced.code == 0, replaced.said
    assert [it for it in rehearsal.resources() if "/resourcePolicies/" in it] == []
    again = rehearsal.run("Plan", **spot)
    assert again.document["changes"] == {"add": 0, "change": 0, "destroy": 0}, again.said
