"""GKE upgrades a cluster by itself: that is no change of the settings, and holds nobody up."""

from typing import Any

import pytest

from tests.runs.conftest import Rehearsal, Rehearse

GKE = {"ORCHESTRATOR_TYPE": "gke", "VM_TYPE": "g2-standard-24", "GKE_VERSION": "1.35."}
WINDOW = {**GKE, "GKE_MAINTENANCE": "Sat,Sun 02:00-08:00"}
QUEUED = {**GKE, "ENABLE_FLEX_START": "yes", "ENABLE_QUEUED_PROVISIONING": "yes"}
NOTHING = {"add": 0, "change": 0, "destroy": 0}
CLUSTER = "container/v1/projects/my-project/locations/us-central1/clusters/np-gke"


def _versions(rehearsal: Rehearsal) -> dict[str, str]:
    """The minor versions of the control plane and of each pool."""
    cluster: dict[str, Any] = rehearsal.google("GET", CLUSTER)
    pools = {pool["name"]: pool["version"] for pool in cluster["nodePools"]}
    found = {"": cluster["currentMasterVersion"], **pools}
    return {name: version[: len("1.35")] for name, version in found.items()}


@pytest.mark.slow(
    sibling="tests/rehearsal/cloud/services/test_container_upgrades.py::test_an_exclusion_keeps_what_it_names_as_it_is"
)
@pytest.mark.parametrize(
    ("settings", "control_plane", "nodes"),
    [
        pytest.param(WINDOW, "1.36", "1.36", id="in-a-window"),
        pytest.param(GKE, "1.35", "1.35", id="held"),
        pytest.param(QUEUED, "1.35", "1.35", id="queued-nodes-are-held"),
    ],
)
def test_an_upgraded_cluster_is_as_the_settings_want_it(
    standing: Rehearse, settings: dict[str, str], control_plane: str, nodes: str
) -> None:
    rehearsal = standing(settings, scenario="upgrades")
    for _ in range(3):
        found = _versions(rehearsal)
    assert found.pop("") == control_plane
    assert set(found.values()) == {nodes}

    planned = rehearsal.run("Plan", **settings)
    assert planned.code == 0, planned.said
    assert planned.document["changes"] == NOTHING
    again = rehearsal.run("Create", **settings)
    assert again.code == 0, again.said
    assert again.document["changes"] == NOTHING


@pytest.mark.slow(sibling="tests/runs/test_gke_examples.py::test_a_gke_story_comes_works_and_goes")
def test_a_pool_without_nodes_follows_its_control_plane(standing: Rehearse) -> None:
    rehearsal = standing(QUEUED)
    newer = {**QUEUED, "GKE_VERSION": "1.36."}
    upgraded = rehearsal.run("Create", **newer)
    assert upgraded.code == 0, upgraded.said
    # The cluster and the queued pool; the system pool has nodes.
    assert upgraded.document["changes"] == {"add": 0, "change": 2, "destroy": 0}
    found = _versions(rehearsal)
    assert found == {"": "1.36", "np-system": "1.35", "np-nodepool-1": "1.36"}
    assert rehearsal.run("Plan", **newer).document["changes"] == NOTHING
