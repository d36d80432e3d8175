"""What Google does to VMs of its own accord: Create is not done without them, Status says why."""

import time

import pytest

from tests.runs.conftest import Rehearse

SPOT = {"ENABLE_SPOT": "yes", "VM_TYPE": "g2-standard-24", "INSTANCE_COUNT": "2"}


@pytest.mark.slow(
    sibling="tests/runs/test_scenarios.py"
    "::test_a_create_fails_with_its_code_says_what_to_do_and_goes_on_when_the_trouble_is_over"
)
def test_a_create_is_not_done_while_a_preempted_vm_is_missing(rehearse: Rehearse) -> None:
    rehearsal = rehearse(rate=0.02, scenario="preempted")
    rehearsal.settings |= SPOT

    refused = rehearsal.run("Create")
    assert refused.code == 7, refused.said
    assert "1 of 2 VMs run" in refused.problem["what"]
    notes = [note["what"] for note in refused.document["notes"]]
    assert any("was preempted; it " in note for note in notes), notes
    assert len(refused.document["connection"]["vms"]) == 1

    looked = rehearsal.run("Status")
    assert looked.code == 0, looked.said
    status = looked.document["status"]
    assert (status["running"], status["wanted"]) == (1, 2)
    (down,) = status["down"]
    assert (down["action"], down["interruption"]["event"]) == ("RECREATING", "preempted")
    assert "does not have enough resources" in down["reasons"][0]

    # The group makes it again by itself: the next Create has only to wait.
    again = rehearsal.run("Create")
    while again.code == 7:
        again = rehearsal.run("Create")
    assert again.code == 0, again.said
    assert again.document["changes"] == {"add": 0, "change": 0, "destroy": 0}
    vms = {vm["name"] for vm in again.document["connection"]["vms"]}
    assert len(vms) == 2
    assert down["name"] in vms


def test_a_plan_says_which_vms_come_in_place_of_those_that_are_gone(standing: Rehearse) -> None:
    rehearsal = standing()
    zone = "compute/v1/projects/my-project/zones/us-central1-a"
    (vm,) = rehearsal.google("GET", f"{zone}/instances")["items"]
    names = [f"{zone.removeprefix('compute/v1/')}/instances/{vm['name']}"]
    group = f"{zone}/instanceGroupManagers/np-mig/deleteInstances"
    rehearsal.google("POST", group, {"instances": names})

    planned = rehearsal.run("Plan", "--detailed-exitcode")

    assert planned.code == 2, planned.said
    assert planned.document["plan"]["again"] == 1
    assert "machines   1 VM comes in place of one that has ended (MAX_RUN_DURATION)" in planned.said


@pytest.mark.slow(
    sibling="tests/rehearsal/cloud/compute/test_host_events.py::test_a_vm_whose_group_does_nothing_is_gone_for_good_or_stays_down"
)
def test_a_create_makes_the_spot_vm_that_a_group_which_repairs_nothing_has_lost(
    rehearse: Rehearse,
) -> None:
    rehearsal = rehearse(rate=0.02)
    rehearsal.settings |= SPOT | {"IDLE_TIMEOUT": "2h"}
    created = rehearsal.run("Create")
    assert created.code == 0, created.said
    vm = created.document["connection"]["vms"][0]["name"]
    zone = "compute/v1/projects/my-project/zones/us-central1-a"
    rehearsal.google("POST", f"{zone}/instances/{vm}/simulateMaintenanceEvent")
    assert rehearsal.cloud is not None
    time.sleep(60 * 0.02)
    assert rehearsal.run("Status").document["status"]["running"] == 1

    again = rehearsal.run("Create")
    assert again.code == 0, again.said
    assert again.document["connection"]["vms"]
    assert rehearsal.run("Status").document["status"]["running"] == 2


@pytest.mark.slow(
    sibling="tests/unit/kinds/vms/test_after_apply.py"
    "::test_a_vm_that_is_lost_after_its_start_up_is_waited_for"
)
def test_a_create_waits_for_a_vm_whose_host_fails_and_for_its_start_up(rehearse: Rehearse) -> None:
    rehearsal = rehearse(rate=0.02, scenario="host-error")

    created = rehearsal.run("Create")
    assert created.code == 0, created.said
    notes = [note["what"] for note in created.document["notes"]]
    assert any("lost its host, which failed; it is REPAIRING" in note for note in notes), notes
    status = rehearsal.run("Status").document["status"]
    (vm,) = status["vms"]
    assert (vm["status"], vm["startup"]["state"]) == ("RUNNING", "done")
    assert vm["interruption"]["event"] == "host-error"
    assert status["down"] == []


@pytest.mark.slow(
    sibling="tests/unit/kinds/vms/test_after_apply.py::test_flex_start_makes_no_vm_again"
)
def test_a_vm_of_flex_start_that_is_down_is_an_error_with_the_way_out(rehearse: Rehearse) -> None:
    rehearsal = rehearse(rate=0.02, scenario="host-error")
    rehearsal.settings |= {"ENABLE_FLEX_START": "yes", "MAX_RUN_DURATION": "1h"}

    failed = rehearsal.run("Create")
    assert failed.code == 8, failed.said
    assert "lost its host, which failed" in failed.problem["what"]
    assert "managed delete-instances np-mig" in failed.problem["fix"]


@pytest.mark.slow(
    sibling="tests/rehearsal/cloud/compute/test_capacity_scenarios.py"
    "::test_vms_do_not_come_with_an_account_that_is_not_there"
)
def test_a_service_account_that_is_missing_ends_a_create_at_once(rehearse: Rehearse) -> None:
    rehearsal = rehearse()
    email = "trainer@my-project.iam.gserviceaccount.com"
    rehearsal.settings |= {"SERVICE_ACCOUNT": email}
    assert rehearsal.run("Validate").problem["setting"] == "SERVICE_ACCOUNT"

    refused = rehearsal.run("Create", SKIP_CHECKS="permissions")
    # Before any VM is asked for: it is to have a role in the state's bucket.
    assert refused.code == 6, refused.said
    assert f"Service account {email} does not exist" in refused.problem["why"]

    assert rehearsal.presume() == (f"the service account {email}",)
    assert rehearsal.run("Create").code == 0


@pytest.mark.slow(
    sibling="tests/unit/kinds/vms/test_after_apply.py"
    "::test_a_vm_that_started_up_long_ago_and_says_nothing_ends_a_create"
)
def test_vms_that_are_heard_of_no_more_are_broken(rehearse: Rehearse) -> None:
    rehearsal = rehearse(rate=0.005)
    assert rehearsal.run("Create", INSTANCE_COUNT="2").code == 0
    assert rehearsal.run("Status", "--detailed-exitcode").code == 0

    # Its tokens die with it; who may not read the account knows no more than that they are silent.
    account = "np-nodes@my-project.iam.gserviceaccount.com"
    rehearsal.google("DELETE", f"iam/v1/projects/my-project/serviceAccounts/{account}")
    assert rehearsal.cloud is not None
    rehearsal.cloud.faults.add("GET /iam/**/serviceAccounts/**: refuse 403")
    time.sleep(300 * 0.005)

    looked = rehearsal.run("Status", "--detailed-exitcode")
    assert looked.code == 2, looked.said
    status = looked.document["status"]
    assert (status["counts"]["ready"], status["counts"]["silent"]) == (0, 2)
    assert "has not been heard of for" in status["trouble"][0]["what"]
