"""VMs whose service account somebody deletes: told by each action, and mended by what it says."""

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from tests.runs.conftest import Ended, Rehearsal, Rehearse
from tests.runs.job_lines import GKE

OURS: Final = "np-nodes@my-project.iam.gserviceaccount.com"
IAM: Final = f"iam/v1/projects/my-project/serviceAccounts/{OURS}"
SLOW = pytest.mark.slow(
    sibling="tests/unit/kinds/vms/test_lost_accounts.py"
    "::test_vms_whose_account_is_gone_are_out_of_date_though_of_the_newest_template"
)


def _trouble(rehearsal: Rehearsal) -> list[str]:
    status = rehearsal.run("Status").document["status"]
    return [f"{it['what']}\n{it['fix']}" for it in status["trouble"]]


def _notes(ended: Ended) -> str:
    return "\n".join(f"{it['what']} {it['why']} {it['fix']}" for it in ended.document["notes"])


@SLOW
def test_an_account_that_is_deleted_under_vms_is_told_until_it_is_back_or_they_are_replaced(
    rehearse: Rehearse, tmp_path: Path
) -> None:
    rehearsal = rehearse()
    (tmp_path / "code").mkdir()
    rehearsal.settings |= {"INSTANCE_COUNT": "2"}
    assert rehearsal.run("Create").code == 0
    number = rehearsal.google("GET", IAM)["uniqueId"]
    assert _trouble(rehearsal) == []

    rehearsal.google("DELETE", IAM)
    (told,) = _trouble(rehearsal)
    assert "a service account that was deleted\n" in told
    assert f"gcloud iam service-accounts undelete {number} --project my-project" in told
    assert rehearsal.run("Test").problem["code"] == "account-gone"
    copied = f"--copy={tmp_path / 'code'}"
    assert rehearsal.run("Run", "--detach", copied, behind=["--", "true"]).code == 0
    assert f"undelete {number}" in rehearsal.run("Jobs").document["jobs"][0]["why"]
    planned = rehearsal.run("Plan")
    assert "2 VMs are not what Create would make now" in _notes(planned)
    assert f"undelete {number}" in _notes(planned)

    # Terraform makes another one, which is no help.
    made = rehearsal.run("Create", "--yes")
    assert (made.code, made.problem["code"]) == (8, "account-gone"), made.said
    assert "Ready" not in made.said
    assert made.said.index(f"undelete {number}") < made.said.index("done  Terraform")
    (told,) = _trouble(rehearsal)
    assert "was deleted; the one that has its address now is another\n" in told

    # What the fix says: the second goes, and the first comes back.
    delete, undelete = (line for line in told.splitlines() if line.startswith("gcloud"))
    assert delete == f"gcloud iam service-accounts delete {OURS} --project my-project"
    assert undelete == f"gcloud iam service-accounts undelete {number} --project my-project"
    second = rehearsal.google("GET", IAM)["uniqueId"]
    rehearsal.google("DELETE", IAM)
    rehearsal.google("POST", f"iam/v1/projects/-/serviceAccounts/{number}:undelete", {})
    assert _trouble(rehearsal) == []
    assert rehearsal.run("Create").code == 0
    assert second != number

    rehearsal.google("DELETE", IAM)
    replaced = rehearsal.run("Create", "--yes", "--replace-vms")
    assert replaced.code == 0, replaced.said
    assert _trouble(rehearsal) == []
    assert "deleted" not in rehearsal.run("Jobs").document["jobs"][0]["why"]


@pytest.mark.slow(
    sibling="tests/unit/kinds/vms/test_lost_accounts.py"
    "::test_vms_that_say_nothing_for_lack_of_a_role_are_told_what_gives_it"
)
def test_a_role_that_somebody_took_away_is_told_and_given_again_by_create(
    rehearse: Rehearse,
) -> None:
    rehearsal = rehearse(rate=0.005)
    rehearsal.settings |= {"INSTANCE_COUNT": "2"}
    assert rehearsal.run("Create").code == 0
    path = "storage/v1/b/aiinfra-terraform-my-project/iam"
    policy = rehearsal.google("GET", f"{path}?optionsRequestedPolicyVersion=3")
    taken = [it for it in policy["bindings"] if "/vms/" not in json.dumps(it)]
    assert len(taken) < len(policy["bindings"])
    rehearsal.google("PUT", path, {**policy, "bindings": taken})
    time.sleep(300 * 0.005)

    (told,) = _trouble(rehearsal)

    assert f"act as {OURS}, which has no role on vms/\nrun Create: it gives" in told
    assert rehearsal.run("Create").code == 0
    assert _trouble(rehearsal) == []


@pytest.mark.slow(
    sibling="tests/unit/kinds/gke/test_identities.py"
    "::test_one_that_is_gone_or_disabled_is_told_with_what_brings_it_back"
)
def test_a_cluster_whose_nodes_have_lost_their_account_gets_no_other_of_its_address(
    standing: Callable[..., Rehearsal],
) -> None:
    rehearsal = standing(GKE)
    rehearsal.settings |= GKE
    rehearsal.google("DELETE", IAM)

    (told,) = _trouble(rehearsal)
    assert told.startswith(f"the nodes act as {OURS}, a service account that was deleted\n")
    for action in ("Validate", "Plan", "Create"):
        refused = rehearsal.run(action)
        assert (refused.code, refused.problem["code"]) == (4, "account-gone"), refused.said
        assert "gcloud iam service-accounts undelete" in refused.said
    assert rehearsal.run("Run", "--detach", behind=["--", "true"]).problem["code"] == "account-gone"
