"""A GKE cluster that a killed run has left: adopted by Create, removed by Destroy."""

import pytest

from provision.kinds.gke.kubernetes import kueue
from rehearsal.inventory import stays
from tests.chaos import processes
from tests.runs import cluster_side, state_file
from tests.runs.conftest import Ended, Rehearsal, Rehearse

GKE = {
    "ORCHESTRATOR_TYPE": "gke",
    "VM_TYPE": "g2-standard-24",
    "ENABLE_QUEUED_PROVISIONING": "yes",
    "ENABLE_FLEX_START": "yes",
    "GKE_MAX_NODE_COUNT": "4",
}
COMPACT = {
    "ORCHESTRATOR_TYPE": "gke",
    "VM_TYPE": "a3-ultragpu-8g",
    "ZONE": "us-central1-b",
    "ENABLE_FLEX_START": "yes",
    "ENABLE_COMPACT_PLACEMENT": "yes",
    "GKE_MAX_NODE_COUNT": "2",
}
KINDS = {
    "google_compute_resource_policy",
    "google_container_cluster",
    "google_container_node_pool",
    "google_service_account",
}
NOTHING = {"add": 0, "change": 0, "destroy": 0}


def _ok(ended: Ended) -> Ended:
    assert ended.code == 0, ended.said
    return ended


def _lose(rehearsal: Rehearsal, kinds: set[str]) -> None:
    assert kinds <= {resource["type"] for resource in state_file.resources(rehearsal)}
    state_file.forget(rehearsal, lambda resource: resource["type"] in kinds)


def _left(rehearsal: Rehearsal) -> list[str]:
    return sorted(line for line in rehearsal.resources() if not line.startswith("storage/"))


@pytest.fixture
def copied(standing: Rehearse) -> Rehearsal:
    """A rehearsal in which a cluster with all that pools can have was made."""
    rehearsal = standing(COMPACT)
    rehearsal.settings |= COMPACT
    return rehearsal


@pytest.mark.slow(
    sibling="tests/runs/test_nothing_is_lost.py::test_create_adopts_all_of_it_and_changes_nothing_that_runs"
)
def test_create_adopts_all_of_it_and_changes_nothing_that_runs(copied: Rehearsal) -> None:
    before = _left(copied)
    _lose(copied, KINDS)
    again = _ok(copied.run("Create"))
    for name in ("np-gke", "np-nodepool-1", "np-system", "np-nodepool-1-compact", "np-workload@"):
        assert f"{name}" in again.said
    assert again.said.count("exists already") == len(KINDS) + 2  # two pools, two accounts
    assert again.document["changes"]["destroy"] == 0
    assert "Kubernetes: no changes" in again.said
    assert _left(copied) == before
    assert copied.run("Create").document["changes"] == NOTHING


@pytest.mark.parametrize(
    "kinds", [sorted(KINDS)[::2], sorted(KINDS)[1::2], sorted(KINDS)], ids=" ".join
)
def test_destroy_removes_what_the_state_does_not_know(copied: Rehearsal, kinds: list[str]) -> None:
    _lose(copied, set(kinds))
    _ok(copied.run("Destroy"))
    assert _left(copied) == []


@pytest.mark.slow(
    sibling="tests/unit/kinds/gke/kubernetes/test_parts.py"
    "::test_each_part_that_somebody_has_deleted_is_named_and_create_makes_it_again"
)
def test_what_somebody_deletes_in_kubernetes_is_the_first_that_status_says(
    copied: Rehearsal,
) -> None:
    made = _ok(copied.run("Create")).document["connection"]
    before = copied.run("Status", "--detailed-exitcode")
    assert before.code == 0, before.said
    cluster = cluster_side.kubectl(copied, made)
    cluster.delete(kueue.API, "ClusterQueue", kueue.CLUSTER_QUEUE)
    (node, *_) = [it["metadata"]["name"] for it in cluster.all("v1", "Node")]
    cluster.merge("v1", "Node", node, {"spec": {"unschedulable": True}})

    looked = copied.run("Status", "--detailed-exitcode")
    assert looked.code == 2, looked.said
    told = [it["what"] for it in looked.document["status"]["trouble"]]
    assert any("the ClusterQueue dws-cluster-queue is gone" in it for it in told), told
    assert any("cordoned: no pod is put there" in it for it in told), told

    _ok(copied.run("Create"))
    told = [it["what"] for it in copied.run("Status").document["status"]["trouble"]]
    assert not any("is gone" in it for it in told), told


def test_destroy_touches_nothing_while_somebody_is_at_work(copied: Rehearsal) -> None:
    _lose(copied, {"google_container_node_pool"})
    state_file.hold_lock(copied)
    before, asked = _left(copied), len(copied.requests())
    ended = copied.run("Destroy")
    assert ended.code == 5
    assert "ann@laptop" in ended.problem["what"]
    assert _left(copied) == before
    assert not [it for it in copied.writes(since=asked) if "/storage/" not in it["path"]]


@pytest.mark.slow(
    sibling="tests/runs/test_done_is_done.py"
    "::test_row_1_vms_that_somebody_added_by_hand_are_not_deleted_unasked"
)
def test_another_region_would_replace_the_cluster_and_is_asked_for(standing: Rehearse) -> None:
    rehearsal = standing(GKE)
    rehearsal.settings |= GKE
    before = _left(rehearsal)
    refused = rehearsal.run("Create", ZONE="us-east4-a")
    assert refused.code == 2
    lost = refused.problem["why"]
    assert "cluster np-gke is replaced: all that runs in it ends" in lost
    assert "node pool np-system: " in lost
    assert "begin in us-east4-a" in lost
    assert _left(rehearsal) == before
    agreed = _ok(rehearsal.run("Create", "--yes", ZONE="us-east4-a"))
    assert "Kubernetes: the queue" in agreed.said
    _ok(rehearsal.run("Destroy", ZONE="us-east4-a"))
    assert _left(rehearsal) == []


SLOW = pytest.mark.slow(
    sibling="tests/runs/test_nothing_is_lost.py::test_create_adopts_all_of_it_and_changes_nothing_that_runs"
)


def _kill(rehearsal: Rehearsal, method: str, path: str) -> None:
    """Kill a Create and all that it has started once the cloud has had a request."""
    started = rehearsal.start("Create")
    rehearsal.when_asked(method, path)
    rehearsal.kill(started)


@SLOW
@pytest.mark.skipif(not processes.PROC.is_dir(), reason="finds processes by /proc")
@pytest.mark.parametrize(
    ("method", "path", "action"),
    [
        ("POST", "/clusters", "Create"),
        ("POST", "/nodePools", "Destroy"),
        ("PATCH", "/resourceflavors", "Create"),
    ],
)
def test_a_create_that_is_killed_is_finished_or_undone(
    rehearse: Rehearse, method: str, path: str, action: str
) -> None:
    rehearsal = rehearse(real=True, rate=0.005)
    rehearsal.settings |= GKE
    _kill(rehearsal, method, path)
    _ok(rehearsal.run(action, "--yes"))
    if action == "Create":
        again = _ok(rehearsal.run("Create"))
        assert again.document["changes"] == NOTHING
        assert "Kubernetes: no changes" in again.said
        _ok(rehearsal.run("Destroy"))
    assert [line for line in rehearsal.resources() if not stays(line)] == []
