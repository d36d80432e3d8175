"""Kubernetes Engine upgrades clusters by itself, unless a maintenance exclusion forbids it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.rehearsal.cloud.services.test_container_clusters import BODY, ONE, PLACE

if TYPE_CHECKING:
    from tests.rehearsal.cloud.services.conftest import Api

OLD, PATCH, NEWEST = "1.35.6-gke.1250000", "1.35.7-gke.1222000", "1.36.4-gke.1082000"


def _versions(api: Api) -> tuple[str, str]:
    """Those of the control plane and of the only pool."""
    cluster = api.json("container", "GET", ONE)
    pools = api.json("container", "GET", f"{ONE}/nodePools")["nodePools"]
    return cluster["currentMasterVersion"], pools[0]["version"]


def _exclusion(scope: str) -> dict[str, Any]:
    options = {"scope": scope, "endTimeBehavior": "UNTIL_END_OF_SUPPORT"}
    exclusion = {"startTime": "2026-01-01T00:00:00Z", "maintenanceExclusionOptions": options}
    return {"window": {"maintenanceExclusions": {"hold": exclusion}}}


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
    held = {"maintenancePolicy": _exclusion(scope)} if scope else {}
    body = BODY | held | {"initialClusterVersion": OLD}
    api.json("container", "POST", f"{PLACE}/clusters", {"cluster": body})
    assert _versions(api) == (OLD, OLD)
    api.scenarios = frozenset({"upgrades"})
    _versions(api)
    assert _versions(api) == expected


def test_a_cluster_is_busy_while_it_is_upgraded(api: Api) -> None:
    api.json(
        "container", "POST", f"{PLACE}/clusters", {"cluster": BODY | {"initialClusterVersion": OLD}}
    )
    api.rate, api.scenarios = 1.0, frozenset({"upgrades"})
    assert api.json("container", "GET", ONE)["status"] == "RECONCILING"
    code, _, words = api.refused(
        "container", "PUT", ONE, {"update": {"desiredLoggingService": "none"}}
    )
    assert code == 400
    assert "running incompatible operation" in words
    api.now += 601
    # Now its nodes are replaced, and then all is over.
    api.json("container", "GET", ONE)
    api.now += 61
    assert api.json("container", "GET", ONE)["status"] == "RUNNING"
    assert _versions(api) == (NEWEST, NEWEST)
