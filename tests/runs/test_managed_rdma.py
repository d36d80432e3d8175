"""Clusters whose RDMA GKE manages: made, tested, worked with and removed; what stands stays."""

from pathlib import Path

import pytest

from rehearsal.inventory import stays
from tests.runs.conftest import Rehearsal, Rehearse

ULTRA = "name=ultra,vm_type=a3-ultragpu-8g,spot=yes,count=2"
QUEUED = "name=queued,vm_type=a3-ultragpu-8g,flex_start=yes,queued=yes,max=2"
OURS = {"ORCHESTRATOR_TYPE": "gke", "ZONE": "us-central1-b", "GKE_NODE_POOLS": ULTRA}
BY_GKE = OURS | {"GKE_VERSION": "1.36."}
NOTHING = {"add": 0, "change": 0, "destroy": 0}
POOLS = "container/v1/projects/my-project/locations/us-central1/clusters/np-gke/nodePools"
SLOW = pytest.mark.slow(
    sibling="tests/unit/kinds/gke/test_pools.py::test_gke_manages_rdma_where_nothing_of_ours_stands"
)


def _networks(rehearsal: Rehearsal) -> list[str]:
    return [line for line in rehearsal.resources() if "/networks/" in line]


def test_a_cluster_whose_rdma_gke_manages_has_nothing_of_ours_for_it_and_works(
    standing: Rehearse, tmp_path: Path
) -> None:
    rehearsal = standing(BY_GKE)
    assert len(_networks(rehearsal)) == 1
    pool = rehearsal.google("GET", f"{POOLS}/np-ultra")
    assert pool["config"]["gpuDirectConfig"] == {"gpuDirectStrategy": "RDMA"}
    assert pool["networkConfig"]["acceleratorNetworkProfile"] == "auto"
    planned = rehearsal.run("Plan", **BY_GKE)
    assert (planned.code, planned.document["changes"]) == (0, NOTHING), planned.said

    tested = rehearsal.run("Test", "--nodes=2", **BY_GKE)
    assert tested.code == 0, tested.said
    found = tested.document["checks"]["np-ultra"]
    assert found["networks"] == ["gIB"]
    assert set(found["interfaces"].values()) == {9}
    # By the queue, which has to take pods that claim.
    (tmp_path / "empty").mkdir()
    copied = f"--copy={tmp_path / 'empty'}"
    ran = rehearsal.run("Run", "--nodes=2", copied, behind=["--", "true"], **BY_GKE)
    assert ran.code == 0, ran.said

    assert rehearsal.run("Destroy", **BY_GKE).code == 0
    assert [line for line in rehearsal.resources() if not stays(line)] == []


@SLOW
def test_networks_of_ours_that_stand_stay_at_a_version_that_manages_rdma(
    standing: Rehearse,
) -> None:
    rehearsal = standing(OURS)
    before = _networks(rehearsal)
    assert len(before) == 3
    created = rehearsal.run("Create", **BY_GKE)
    assert created.code == 0, created.said
    assert created.document["changes"]["destroy"] == 0
    assert _networks(rehearsal) == before
    planned = rehearsal.run("Plan", **BY_GKE)
    assert (planned.code, planned.document["changes"]) == (0, NOTHING), planned.said


@pytest.mark.slow(
    sibling="tests/unit/terraform/test_moves.py::"
    "test_a_cluster_without_multi_networking_is_replaced_for_a_pool_with_networks"
)
def test_a_cluster_without_more_networks_gets_a_pool_of_gkes_and_stays(standing: Rehearse) -> None:
    l4 = "name=l4,vm_type=g2-standard-4,count=1"
    rehearsal = standing(BY_GKE | {"GKE_NODE_POOLS": l4})
    wanted = BY_GKE | {"GKE_NODE_POOLS": f"{l4};{ULTRA}"}
    created = rehearsal.run("Create", **wanted)
    assert (created.code, created.document["changes"]["add"]) == (0, 1), created.said
    # Google tells of the networks that it has made, for which a pool of ours needs another cluster.
    planned = rehearsal.run("Plan", **wanted)
    assert (planned.code, planned.document["changes"]) == (0, NOTHING), planned.said


@SLOW
def test_a_pool_that_needs_networks_of_ours_replaces_those_of_gke_once_a_person_agrees(
    standing: Rehearse,
) -> None:
    rehearsal = standing(BY_GKE)
    wanted = BY_GKE | {"GKE_NODE_POOLS": f"{ULTRA};{QUEUED}"}
    refused = rehearsal.run("Create", **wanted)
    assert refused.code != 0
    assert "np-ultra" in refused.said
    assert len(_networks(rehearsal)) == 1
    agreed = rehearsal.run("Create", "--yes", **wanted)
    assert agreed.code == 0, agreed.said
    assert len(_networks(rehearsal)) == 3
