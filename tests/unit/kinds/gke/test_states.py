"""What a cluster's and a node pool's state says of them."""

from __future__ import annotations

import pytest

from provision.errors import ClusterError
from provision.kinds.gke import states
from provision.kinds.gke.states import State


def _cluster(status: str = "RUNNING", **pools: str) -> dict[str, object]:
    return {
        "status": status,
        "nodePools": [{"name": name, "status": pool} for name, pool in pools.items()],
    }


def test_a_cluster_and_pools_that_run_are_worth_no_word() -> None:
    assert states.require(_cluster(one="RUNNING", two="RUNNING"), ["one", "two"]) == []


def test_a_pool_that_is_gone_and_one_that_failed_are_told_together() -> None:
    cluster = _cluster(one="RUNNING")
    cluster["nodePools"] = [{"name": "two", "status": "ERROR", "statusMessage": "no subnetwork"}]

    with pytest.raises(ClusterError) as caught:
        states.require(cluster, ["one", "two"])

    gone, failed = caught.value.problems
    assert gone.what == "The node pool one does not exist"
    assert failed.why == "its state is ERROR: no subnetwork"


@pytest.mark.parametrize("state", ["STOPPING", "ERROR"])
def test_a_cluster_that_goes_or_failed_is_not_done(state: str) -> None:
    with pytest.raises(ClusterError, match="The cluster is not in order"):
        states.require(_cluster(state), [])


def test_a_cluster_that_does_not_exist_is_not_done() -> None:
    with pytest.raises(ClusterError, match="The cluster does not exist"):
        states.require({}, [])


@pytest.mark.parametrize(
    ("state", "what"),
    [
        ("RUNNING_WITH_ERROR", "The node pool one is not in order"),
        ("RECONCILING", "The node pool one is being changed by GKE"),
        ("A_STATE_OF_NEXT_YEAR", "The node pool one is not in order"),
    ],
)
def test_what_runs_but_not_in_order_is_a_note(state: str, what: str) -> None:
    (note,) = states.require(_cluster(one=state), ["one"])
    assert note.what == what
    assert state in note.why


def test_a_state_that_nobody_knows_yet_is_none() -> None:
    assert State.of({"status": "A_STATE_OF_NEXT_YEAR"}) is State.UNSPECIFIED
