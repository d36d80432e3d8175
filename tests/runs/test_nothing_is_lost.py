"""What a killed run leaves behind is found again: adopted by Create, removed by Destroy."""

from typing import Any

import pytest
import requests

from provision.catalogue import names
from provision.google import resources
from tests.runs import state_file
from tests.runs.conftest import Rehearsal, Rehearse

EVERYTHING = {
    "NETWORK_CONFIG": "new_network",
    "NFS_FILESHARE_LIST": "/mnt/nfs:BASIC_SSD",
    "ENABLE_COMPACT_PLACEMENT": "yes",
}
OF_OTHER_CLUSTERS = {
    "google_compute_resize_request",
    "google_container_cluster",
    "google_container_node_pool",
}
ADOPTED = {row.type for row in resources.ALL if row.lookup}
LOSABLE = sorted(ADOPTED - OF_OTHER_CLUSTERS | {"google_project_iam_member"})
NETWORK = names.NETWORK.at("np", "us-central1")
RULE = names.FIREWALL_INTERNAL.at("np", NETWORK)
NOTHING = {"add": 0, "change": 0, "destroy": 0}


def _left(rehearsal: Rehearsal) -> list[str]:
    return [line for line in rehearsal.resources() if not line.startswith("storage/")]


def _send(rehearsal: Rehearsal, path: str, body: dict[str, Any]) -> None:
    answer = requests.post(
        rehearsal.environ["GOOGLE_COMPUTE_CUSTOM_ENDPOINT"] + f"projects/my-project/{path}",
        json=body,
        headers={"Authorization": "Bearer test"},
        timeout=600,
    )
    assert answer.ok, answer.text


def test_create_adopts_all_of_it_and_changes_nothing_that_runs(standing: Rehearse) -> None:
    rehearsal = standing({"NETWORK_CONFIG": "new_network"})
    before = sorted(_left(rehearsal))
    state_file.forget(rehearsal, lambda _: True)

    again = rehearsal.run("Create", NETWORK_CONFIG="new_network")
    assert again.code == 0, again.said
    assert "exists already" in again.said
    assert again.document["changes"]["destroy"] == 0
    assert sorted(_left(rehearsal)) == before
    third = rehearsal.run("Create", NETWORK_CONFIG="new_network")
    assert third.document["changes"] == NOTHING
    (vm,) = third.document["connection"]["vms"]
    assert vm["external_ip"] is None
    assert vm["ssh"].endswith("--tunnel-through-iap")
    assert rehearsal.run("Destroy").code == 0
    assert _left(rehearsal) == []


@pytest.mark.parametrize("kinds", [LOSABLE[::2], LOSABLE[1::2]], ids=["one half", "the other"])
def test_destroy_removes_what_the_state_does_not_know(standing: Rehearse, kinds: list[str]) -> None:
    rehearsal = standing(EVERYTHING)
    assert {resource["type"] for resource in state_file.resources(rehearsal)} >= set(kinds)
    state_file.forget(rehearsal, lambda resource: resource["type"] in kinds)
    destroyed = rehearsal.run("Destroy")
    assert destroyed.code == 0, destroyed.said
    assert _left(rehearsal) == []


@pytest.mark.slow(sibling="::test_create_adopts_all_of_it_and_changes_nothing_that_runs")
def test_an_orphaned_template_takes_the_place_of_the_one_that_the_state_has(
    standing: Rehearse,
) -> None:
    rehearsal = standing()
    kept = state_file.resources(rehearsal)
    assert rehearsal.run("Create", "--yes", LABELS="team=a").code == 0
    # The run that made the new template and gave it to the group never wrote that down.
    old = next(r for r in kept if r["type"] == "google_compute_instance_template")
    _swap_in_state(rehearsal, old)
    again = rehearsal.run("Create", "--yes", LABELS="team=a")
    assert again.code == 0, again.said
    assert rehearsal.run("Create", LABELS="team=a").document["changes"] == NOTHING
    assert rehearsal.run("Destroy").code == 0
    assert _left(rehearsal) == []


def _swap_in_state(rehearsal: Rehearsal, resource: dict[str, Any]) -> None:
    present = state_file.resources(rehearsal)
    for it in present:
        if it["type"] == resource["type"]:
            it["instances"] = resource["instances"]
    state_file.write(rehearsal, present)


@pytest.mark.parametrize("action", ["Create", "Plan"])
def test_somebody_elses_network_of_that_name_is_never_touched(
    rehearsal: Rehearsal, action: str
) -> None:
    _send(rehearsal, "global/networks", {"name": NETWORK, "autoCreateSubnetworks": False})
    _send(
        rehearsal,
        "global/firewalls",
        {
            "name": RULE,
            "network": f"projects/my-project/global/networks/{NETWORK}",
            "sourceRanges": ["10.0.0.0/8"],
            "allowed": [{"IPProtocol": "tcp"}],
        },
    )
    before = _left(rehearsal)
    ended = rehearsal.run(action, NETWORK_CONFIG="new_network")
    assert ended.code == 5
    problems = ended.document["problems"]
    assert {p["what"].split(" ")[0] for p in problems} == {
        f"projects/my-project/global/networks/{NETWORK}",
        f"projects/my-project/global/firewalls/{RULE}",
    }
    assert all("choose another NAME_PREFIX" in p["fix"] for p in problems)
    assert _left(rehearsal) == before


@pytest.mark.slow(sibling="::test_destroy_removes_what_the_state_does_not_know")
def test_a_plan_tells_of_orphans_and_leaves_them_where_they_are(standing: Rehearse) -> None:
    rehearsal = standing()
    state_file.forget(rehearsal, lambda resource: "service_account" in resource["type"])
    asked = len(rehearsal.requests())
    planned = rehearsal.run("Plan")
    assert planned.code == 0, planned.said
    assert "np-nodes@" in planned.said
    assert "exists already" in planned.said
    (log,) = rehearsal.writes(since=asked)
    assert "/upload/storage/" in log["path"]


def test_destroy_waits_for_nobody_who_is_at_work(standing: Rehearse) -> None:
    rehearsal = standing()
    state_file.forget(rehearsal, lambda resource: resource["type"] == "google_service_account")
    state_file.hold_lock(rehearsal)
    before = _left(rehearsal)
    ended = rehearsal.run("Destroy")
    assert ended.code == 5
    assert "ann@laptop" in ended.problem["what"]
    assert _left(rehearsal) == before
