"""Kubernetes Engine upgrades clusters by itself, unless a maintenance exclusion forbids it."""

import pytest

from tests.rehearsal.cloud.services.conftest import CLUSTER, POOLS, Api

OLD, PATCH, NEWEST = "1.35.6-gke.1250000", "1.35.7-gke.1222000", "1.36.4-gke.1082000"


def _versions(api: Api) -> tuple[str, str]:
    """Those of the control plane and of the only pool."""
    cluster = api.gke("GET", CLUSTER)
    return cluster["currentMasterVersion"], api.gke("GET", POOLS)["nodePools"][0]["version"]


@pytest.mark.parametrize(
    ("scope", "expected"),
    [
        ("", (NEWEST, NEWEST)),
        ("NO_MINOR_UPGRADES", (PATCH, PATCH)),
        ("NO_MINOR_OR_NODE_UPGRADES", (PATCH, OLD)),
        ("NO_UPGRADES", (OLD, OLD)),
    ],
)
def test_an_exclusion_keeps_what_it_names_as_it_is(
    api: Api, scope: str, expected: tuple[str, str]
) -> None:
    options = {"scope": scope, "endTimeBehavior": "UNTIL_END_OF_SUPPORT"}
    exclusion = {"startTime": "2026-01-01T00:00:00Z", "maintenanceExclusionOptions": options}
    policy = {"window": {"maintenanceExclusions": {"hold": exclusion}}}
    held = {"maintenancePolicy": policy} if scope else {}
    api.cluster(initialClusterVersion=OLD, **held)
    assert _versions(api) == (OLD, OLD)
    api.scenarios = frozenset({"upgrades"})
    _versions(api)
    assert _versions(api) == expected


def test_a_cluster_is_busy_while_it_is_upgraded(api: Api) -> None:
    api.cluster(initialClusterVersion=OLD)
    api.rate, api.scenarios = 1.0, frozenset({"upgrades"})
    assert api.gke("GET", CLUSTER)["status"] == "RECONCILING"
    refused = api.gke_refused("PUT", CLUSTER, {"update": {"desiredLoggingService": "none"}})
    assert refused.startswith("400 ")
    assert "running incompatible operation" in refused
    api.now += 601
    # Now its nodes are replaced, and then all is over.
    api.gke("GET", CLUSTER)
    api.now += 61
    assert api.gke("GET", CLUSTER)["status"] == "RUNNING"
    assert _versions(api) == (NEWEST, NEWEST)
