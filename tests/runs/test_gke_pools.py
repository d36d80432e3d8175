"""What a plan leaves as it is of the pools and networks of a GKE cluster that stands."""

import pytest

from rehearsal.inventory import stays
from tests.runs import cluster_side
from tests.runs.conftest import Rehearsal, Rehearse

GKE = {"ORCHESTRATOR_TYPE": "gke", "ZONE": "us-central1-b"}
MEGA = "name=mega,vm_type=a3-megagpu-8g,spot=yes,count=1"
HIGH = "name=high,vm_type=a3-highgpu-8g,spot=yes,count=1"
ULTRA = "name=ultra,vm_type=a3-ultragpu-8g,flex_start=yes,queued=yes,max=2"
QUEUED = GKE | {"GKE_NODE_POOLS": ULTRA, "MAX_RUN_DURATION": "12h"}
NOTHING = {"add": 0, "change": 0, "destroy": 0}
CLUSTER = "container/v1/projects/my-project/locations/us-central1/clusters/np-gke"
SLOW = pytest.mark.slow(
    sibling="tests/unit/kinds/gke/test_pools.py::test_a_kind_that_exists_keeps_its_names"
)


def _networks(rehearsal: Rehearsal) -> set[str]:
    parts = ("/networks/", "/subnetworks/", "/nodePools/")
    return {line for line in rehearsal.resources() if any(part in line for part in parts)}


@SLOW
def test_another_kind_of_gpu_network_leaves_those_that_stand_as_they_are(
    standing: Rehearse,
) -> None:
    rehearsal = standing(GKE | {"GKE_NODE_POOLS": MEGA})
    before = _networks(rehearsal)
    wanted = GKE | {"GKE_NODE_POOLS": f"{HIGH};{ULTRA};{MEGA}"}

    created = rehearsal.run("Create", **wanted)
    assert created.code == 0, created.said
    assert created.document["changes"]["destroy"] == 0
    assert before < _networks(rehearsal)

    cluster = cluster_side.kubectl(rehearsal, created.document["connection"])
    made = {it["metadata"]["name"] for it in cluster.all("networking.gke.io/v1", "Network")}
    vpcs = {f"vpc{number}" for number in range(1, 9)}
    others = {f"tcpx-vpc{number}" for number in range(1, 5)}
    assert made == vpcs | others | {"gvnic-1"} | {f"rdma-{number}" for number in range(8)}
    facts = cluster_side.facts(rehearsal, created.document["connection"])
    names = {pool.name: len(pool.networks) for pool in facts.pools}
    assert names == {"np-high": 4, "np-ultra": 9, "np-mega": 8}

    again = rehearsal.run("Plan", **wanted)
    assert (again.code, again.document["changes"]) == (0, NOTHING), again.said
    without = GKE | {"GKE_NODE_POOLS": f"{HIGH};{ULTRA}"}
    fewer = rehearsal.run("Create", "--yes", **without)
    assert fewer.code == 0, fewer.said
    assert fewer.document["changes"]["add"] == 0
    assert rehearsal.run("Destroy", **without).code == 0
    assert [line for line in rehearsal.resources() if not stays(line)] == []


@SLOW
def test_a_queued_pool_says_no_run_of_its_nodes_and_one_that_does_goes_on_saying_it(
    standing: Rehearse,
) -> None:
    rehearsal = standing(QUEUED)
    pool = f"{CLUSTER}/nodePools/np-ultra"
    assert "maxRunDuration" not in rehearsal.google("GET", pool)["config"]

    # As an earlier version made it, or as Google may complete it.
    rehearsal.rewrite(
        lambda text: text.replace(
            '"flexStart": true', '"flexStart": true, "maxRunDuration": "43200s"'
        )
    )
    assert rehearsal.google("GET", pool)["config"]["maxRunDuration"] == "43200s"
    for settings in (QUEUED, QUEUED | {"MAX_RUN_DURATION": "1d"}):
        planned = rehearsal.run("Plan", **settings)
        assert (planned.code, planned.document["changes"]) == (0, NOTHING), planned.said
