"""Resource policies: placement and workload."""

from __future__ import annotations

from typing import Any

import pytest

from tests.rehearsal.cloud.compute.conftest import REGION, Compute

POLICIES = f"{REGION}/resourcePolicies"
CLOSE: dict[str, Any] = {"name": "close", "groupPlacementPolicy": {"collocation": "COLLOCATED"}}
THROUGHPUT: dict[str, Any] = {"name": "work", "workloadPolicy": {"type": "HIGH_THROUGHPUT"}}


def test_a_policy_is_made_read_listed_and_deleted(api: Compute) -> None:
    api.post(POLICIES, {**CLOSE, "diskConsistencyGroupPolicy": None})
    made = api.get(f"{POLICIES}/close")
    assert made["groupPlacementPolicy"] == {"collocation": "COLLOCATED"}
    assert made["region"].endswith("/regions/us-central1")
    assert [it["name"] for it in api.get(POLICIES)["items"]] == ["close"]
    api.delete(f"{POLICIES}/close")
    assert api.refusal("GET", f"{POLICIES}/close")["code"] == 404


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"name": "p"}, "found none"),
        (CLOSE | THROUGHPUT, "groupPlacementPolicy, workloadPolicy"),
        ({"name": "p", "workloadPolicy": {"maxTopologyDistance": "BLOCK"}}, "type"),
        ({"name": "p", "groupPlacementPolicy": {"vmCount": 0}}, "vmCount"),
        ({"name": "p", "groupPlacementPolicy": {"collocation": "CLOSE"}}, "collocation"),
    ],
)
def test_a_policy_has_one_kind_and_valid_fields(
    api: Compute, body: dict[str, Any], words: str
) -> None:
    assert words in api.refusal("POST", POLICIES, body)["message"]


def test_a_description_can_be_changed(api: Compute) -> None:
    api.post(POLICIES, CLOSE)
    api.patch(f"{POLICIES}/close", {"description": "side by side"})
    assert api.get(f"{POLICIES}/close")["description"] == "side by side"


def test_vms_have_the_policies_of_their_template_and_keep_them_from_deletion(
    wired: Compute,
) -> None:
    wired.post(POLICIES, CLOSE)
    wired.template(machineType="n2-standard-4", resourcePolicies=["close"])
    wired.group(size=1)
    (vm,) = wired.vms()
    assert vm["resourcePolicies"] == [wired.get(f"{POLICIES}/close")["selfLink"]]
    assert "already being used" in wired.refusal("DELETE", f"{POLICIES}/close")["message"]


def test_a_group_can_not_be_made_with_a_policy_that_is_not_there(wired: Compute) -> None:
    wired.template(resourcePolicies=["none"])
    with pytest.raises(Exception, match="resourcePolicies/none"):
        wired.group()


def test_a_group_has_a_workload_policy_of_its_region(wired: Compute) -> None:
    wired.post(POLICIES, THROUGHPUT)
    wired.post(POLICIES, CLOSE)
    gpus: dict[str, Any] = {
        "machineType": "a3-megagpu-8g",
        "scheduling": {"onHostMaintenance": "TERMINATE"},
    }
    wired.template(**gpus)
    wired.group(resourcePolicies={"workloadPolicy": f"{POLICIES}/work"})
    link = wired.get(f"{POLICIES}/work")["selfLink"]
    assert wired.get_group()["resourcePolicies"] == {"workloadPolicy": link}
    assert "already being used" in wired.refusal("DELETE", f"{POLICIES}/work")["message"]
    with pytest.raises(Exception, match="not a workload policy"):
        wired.group("other", resourcePolicies={"workloadPolicy": f"{POLICIES}/close"})
