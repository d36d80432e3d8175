"""Google does not know a new account everywhere at once: that passes, and nothing fails by it."""

import pytest

from tests.runs.conftest import Rehearse

GKE = {"ORCHESTRATOR_TYPE": "gke", "VM_TYPE": "g2-standard-24", "INSTANCE_COUNT": "1"}
TEAM = "team-nodes@my-project.iam.gserviceaccount.com"


@pytest.mark.slow(
    sibling="tests/runs/test_row_12_secrets.py"
    "::test_the_vms_account_gets_access_to_exactly_the_secrets_that_are_named"
)
def test_vms_come_once_google_knows_the_account_that_this_run_has_made(rehearse: Rehearse) -> None:
    rehearsal = rehearse(scenario="young-account", rate="0.05")
    created = rehearsal.run("Create", ENABLE_OPS_AGENT="no", ENABLE_NOTEBOOK="no")
    assert created.code == 0, created.said
    assert "of type 'serviceAccount' was not found" in " ".join(created.said.split())


@pytest.mark.slow(
    sibling="tests/runs/test_row_12_secrets.py"
    "::test_the_vms_account_gets_access_to_exactly_the_secrets_that_are_named"
)
def test_a_pool_with_a_new_account_is_asked_for_again(rehearse: Rehearse) -> None:
    rehearsal = rehearse(scenario="young-account", rate="0.05")
    rehearsal.settings |= GKE
    body = {"accountId": "team-nodes", "serviceAccount": {}}
    rehearsal.google("POST", "iam/v1/projects/my-project/serviceAccounts", body)
    made = rehearsal.run("Create", SERVICE_ACCOUNT=TEAM)
    assert made.code == 0, made.said
    changed = rehearsal.run("Create", "--yes")
    assert changed.code == 0, changed.said
    assert "Google does not know the new account everywhere yet" in changed.said
    assert rehearsal.run("Create").document["changes"] == {"add": 0, "change": 0, "destroy": 0}
