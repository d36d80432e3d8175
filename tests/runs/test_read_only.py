"""An account that may only look plans and looks at a cluster, and creates none."""

import pytest

from tests.runs import rights
from tests.runs.conftest import Rehearse

GKE = {"ORCHESTRATOR_TYPE": "gke"}


@pytest.mark.slow(
    sibling="::test_an_account_that_may_only_look_plans_a_first_cluster_and_creates_none"
)
@pytest.mark.parametrize("settings", [{}, GKE], ids=["vms", "gke"])
def test_an_account_that_may_only_look_plans_a_cluster_that_stands(
    standing: Rehearse, settings: dict[str, str]
) -> None:
    rehearsal = standing(settings, scenario="read-only")
    rehearsal.settings |= settings

    planned = rehearsal.run("Plan")

    assert planned.code == 0, planned.said
    assert planned.document["changes"] == {"add": 0, "change": 0, "destroy": 0}
    assert "may change nothing in my-project" in planned.said
    more = rehearsal.run("Plan", DISK_SIZE_GB="300")
    assert more.code == 0, more.said
    assert sum(more.document["changes"].values()) > 0
    looked = rehearsal.run("Status")
    assert looked.code == 0, looked.said
    submits = rehearsal.run("Run", "--detach", behind=("--", "true"))
    assert submits.code == 5, submits.said
    assert "Jobs --role" in submits.problem["fix"]
    role = rehearsal.run("Plan", "--role").document["role"]
    assert rights.of(it for it in rehearsal.requests() if it["status"] < 400) <= set(role)
    assert set(role) < set(rehearsal.run("Validate", "--role").document["role"])


def test_an_account_that_may_only_look_plans_a_first_cluster_and_creates_none(
    rehearse: Rehearse,
) -> None:
    rehearsal = rehearse(scenario="read-only")

    planned = rehearsal.run("Plan")
    refused = rehearsal.run("Create")

    assert planned.code == 0, planned.said
    assert planned.document["changes"]["add"] > 3
    assert refused.code == 4, refused.said
    assert refused.problem["code"] == "may-only-look"
    assert rehearsal.objects() == set()
