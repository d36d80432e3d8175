"""Whoever agrees to a change of a cluster sees what it opens, and nobody opens it by a slip."""

from collections.abc import Callable

from tests.runs.conftest import Rehearsal


def test_public_addresses_for_a_cluster_that_is_there_are_said_and_take_a_yes(
    standing: Callable[..., Rehearsal],
) -> None:
    rehearsal = standing({"NETWORK_CONFIG": "new_network"})
    opened = {"NETWORK_CONFIG": "new_network", "ENABLE_EXTERNAL_IP": "yes"}

    plan = rehearsal.run("Plan", **opened)
    assert "opens" in plan.said
    assert plan.document["plan"]["opens"] == [
        {
            "setting": "ENABLE_EXTERNAL_IP",
            "words": "VMs get public addresses: ssh from IAP alone comes in",
            "outside": True,
        }
    ]
    refused = rehearsal.run("Create", **opened)
    assert refused.code == 2
    assert refused.problem["code"] == "approval-needed"
    assert refused.problem["what"].startswith("This Create would open the cluster to others;")
    assert rehearsal.run("Create", "--yes", **opened).code == 0
    assert rehearsal.run("Plan", **opened).document["plan"]["opens"] == []
