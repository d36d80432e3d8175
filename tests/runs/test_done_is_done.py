"""Whether it is really done: what Create and Test say of what the cloud has (rows 1, 5, 6)."""

import pytest

from tests.runs.conftest import Rehearsal, Rehearse

GROUP = "projects/my-project/zones/us-central1-a/instanceGroupManagers/np-mig"
FOUR = {"INSTANCE_COUNT": "4"}


def test_row_1_vms_that_somebody_added_by_hand_are_not_deleted_unasked(standing: Rehearse) -> None:
    rehearsal = standing()
    rehearsal.google("POST", f"compute/v1/{GROUP}/resize?size=4")

    asked = rehearsal.run("Create")
    assert asked.code == 2, asked.said
    assert asked.problem["why"] == "3 of 4 VMs end; Google chooses which"
    assert "--yes" in asked.problem["fix"]
    kept = rehearsal.google("GET", f"compute/v1/{GROUP}")
    assert kept["targetSize"] == 4

    assert rehearsal.run("Create", "--yes").code == 0
    assert rehearsal.google("GET", f"compute/v1/{GROUP}")["targetSize"] == 1


def test_row_6_a_group_that_somebody_shrank_does_not_pass_the_test(standing: Rehearse) -> None:
    rehearsal = standing(FOUR)
    rehearsal.google("POST", f"compute/v1/{GROUP}/resize?size=0")

    ended = rehearsal.run("Test")

    assert ended.code == 8, ended.said
    assert "0 of 4 VMs" in ended.problem["what"]
    assert "Create" in ended.problem["fix"]


def test_row_6_vms_without_labels_are_still_the_groups(standing: Rehearse) -> None:
    rehearsal = standing(FOUR)
    rehearsal.rewrite(lambda text: text.replace('"aiinfra-cluster": "', '"taken-off": "'))

    ended = rehearsal.run("Test")

    assert ended.code == 0, ended.said
    assert len(ended.document["checks"]) == 4 + 1  # the VMs, and the bandwidth between them


@pytest.mark.slow(
    sibling="tests/runs/test_changes.py::test_a_change_does_what_the_plan_says_and_no_more"
)
def test_row_5_vms_that_are_older_than_the_settings_are_named_until_they_are_replaced(
    standing: Rehearse,
) -> None:
    change = {"VM_TYPE": "a2-highgpu-1g"}
    rehearsal = standing()

    created = rehearsal.run("Create", "--yes", **change)
    assert created.code == 0, created.said
    (older,) = created.document["out_of_date"]
    assert any("a2-highgpu-2g instead of a2-highgpu-1g" in one for one in older["differences"])
    assert "--replace-vms" in created.said

    again = rehearsal.run("Create", **change)
    assert again.code == 0, again.said
    assert "what exists is what the settings describe" not in again.said
    assert again.document["out_of_date"] == [older]
    assert rehearsal.run("Plan", "--detailed-exitcode", **change).code == 2
    tested = rehearsal.run("Test", **change)
    assert tested.code == 8, tested.said

    replaced = rehearsal.run("Create", "--replace-vms", **change)
    assert replaced.code == 0, replaced.said
    assert replaced.document["out_of_date"] == []
    assert rehearsal.run("Plan", "--detailed-exitcode", **change).code == 0
    assert rehearsal.run("Test", **change).code == 0


@pytest.mark.slow(
    sibling="tests/runs/test_changes.py::test_a_change_does_what_the_plan_says_and_no_more"
)
def test_row_5_labels_and_metadata_are_changed_on_running_vms(standing: Rehearse) -> None:
    rehearsal = standing()
    instances = "compute/v1/projects/my-project/zones/us-central1-a/instances"
    (vm,) = rehearsal.google("GET", instances)["items"]
    path = f"{instances}/{vm['name']}"
    by_hand = {"key": "ssh-keys", "value": "me:ssh-ed25519 AAAA"}
    body = {**vm["metadata"], "items": [*vm["metadata"]["items"], by_hand]}
    rehearsal.google("POST", f"{path}/setMetadata", body)

    def create(**change: str) -> tuple[str, dict[str, str], dict[str, str]]:
        created = rehearsal.run("Create", "--yes", **change)
        assert created.code == 0, created.said
        assert created.document["out_of_date"] == []
        vm = rehearsal.google("GET", path)
        keys = {one["key"]: one["value"] for one in vm["metadata"]["items"]}
        return created.said, vm["labels"], keys

    said, labels, keys = create(LABELS='{ team = "ml" }', METADATA="purpose=rl,token=t")
    assert "Changing labels team; metadata purpose, token of np-vm-" in said
    assert labels["team"] == "ml"
    assert (keys["purpose"], keys["token"]) == ("rl", "t")
    assert keys["ssh-keys"] == by_hand["value"]

    _, labels, keys = create(METADATA="purpose=llm")
    assert "team" not in labels
    assert keys["purpose"] == "llm"
    assert "token" not in keys
    assert keys["ssh-keys"] == by_hand["value"]
    assert rehearsal.run("Plan", "--detailed-exitcode", METADATA="purpose=llm").code == 0
    restarted = [one for one in rehearsal.requests() if "recreateInstances" in one["path"]]
    assert restarted == []
    assert rehearsal.google("GET", path)["id"] == vm["id"]


@pytest.mark.slow(
    sibling="tests/runs/test_nothing_is_lost.py"
    "::test_create_adopts_all_of_it_and_changes_nothing_that_runs"
)
def test_row_16_what_google_made_and_answered_with_an_error_is_adopted_by_the_same_create(
    rehearse: Rehearse,
) -> None:
    rehearsal = rehearse(scenario="lost-answer")

    created = rehearsal.run("Create", NETWORK_CONFIG="new_network")

    assert created.code == 0, created.said
    assert "looking up whose it is" in created.said
    again = rehearsal.run("Plan", "--detailed-exitcode", NETWORK_CONFIG="new_network")
    assert again.code == 0, again.said


def test_flex_start_vms_are_not_replaced(rehearsal: Rehearsal) -> None:
    flex = {"ENABLE_FLEX_START": "true", "MAX_RUN_DURATION": "1d"}

    ended = rehearsal.run("Create", "--replace-vms", **flex)

    assert ended.code == 2, ended.said
    assert "flex start" in ended.problem["what"]
