"""In which zone the machines are: the cloud knows better than a record of before a move."""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from provision.google import resources
from provision.lifecycle import marked
from provision.settings.choices import Way
from tests.unit.preflight.test_quotas import RECORD as ANY

if TYPE_CHECKING:
    from provision.google.resources import Look

RECORD = dataclasses.replace(ANY, project_id="p")
ZONES = "https://google/compute/v1/projects/p/zones/"


def _where(
    groups: list[str], clusters: list[dict[str, Any]], *, searching: bool = False
) -> tuple[str, str]:
    def listed(look: Look, project: str, _owner: object) -> list[dict[str, Any]]:
        assert project == "p"
        if look is resources.GROUP.look:
            return [{"zone": ZONES + zone} for zone in groups]
        assert look is resources.CLUSTER.look
        return clusters

    folder = SimpleNamespace(location=SimpleNamespace(url="gs://b/np-deployment"))
    cloud = SimpleNamespace(api=SimpleNamespace(marked=listed), folder=folder)
    record = dataclasses.replace(RECORD, searching=searching)
    found = marked.where(cast("Any", cloud), record)
    return found.region, found.zone


@pytest.mark.parametrize(
    ("groups", "place"),
    [
        ([], ("us-central1", "us-central1-a")),
        (["us-central1-a"], ("us-central1", "us-central1-a")),
        (["us-central1-b"], ("us-central1", "us-central1-b")),
        (["europe-west4-a"], ("europe-west4", "europe-west4-a")),
        (["us-central1-b", "us-central1-a"], ("us-central1", "us-central1-a")),
    ],
)
def test_a_group_is_where_the_cloud_has_it(groups: list[str], place: tuple[str, str]) -> None:
    assert _where(groups, []) == place


def test_a_cluster_is_where_the_cloud_has_it() -> None:
    here = {"location": "us-central1", "locations": ["us-central1-b"]}
    there = {"location": "europe-west4", "locations": ["europe-west4-a"]}

    assert _where([], [here]) == ("us-central1", "us-central1-a")
    assert _where([], [there]) == ("europe-west4", "europe-west4-a")


def test_a_search_of_a_cluster_is_where_its_gpu_pool_is() -> None:
    system = {"name": f"{RECORD.name_prefix}-system", "locations": ["us-central1-a"]}
    gpus = {"name": "gpus", "locations": ["us-central1-c"]}
    here = {"location": "us-central1", "locations": ["us-central1-a"]}

    with_pool = [here | {"nodePools": [system, gpus]}]
    without = [here | {"nodePools": [system]}]

    assert _where([], with_pool, searching=True) == ("us-central1", "us-central1-c")
    assert _where([], without, searching=True) == ("us-central1", "us-central1-a")
    assert _where([], with_pool) == ("us-central1", "us-central1-a")


def _bound(kind: str) -> dict[str, Any]:
    return {"reservationAffinity": {"consumeReservationType": kind}}


@pytest.mark.parametrize(
    ("config", "found"),
    [
        ({"spot": True}, Way.SPOT),
        ({"flexStart": True}, Way.FLEX_START),
        (_bound("SPECIFIC_RESERVATION"), Way.RESERVATION),
        (_bound("NO_RESERVATION"), Way.ON_DEMAND),
        ({}, Way.ON_DEMAND),
    ],
)
def test_the_nodes_of_a_cluster_are_got_as_its_gpu_pool_says(
    config: dict[str, Any], found: Way
) -> None:
    pools = [
        {"name": f"{RECORD.name_prefix}-system", "config": {"spot": True}},
        {"name": "gpus", "config": config},
    ]

    def listed(look: Look, *_: object) -> list[dict[str, Any]]:
        return [{"nodePools": pools}] if look is resources.CLUSTER.look else []

    folder = SimpleNamespace(location=SimpleNamespace(url="gs://b/np-deployment"))
    cloud = SimpleNamespace(api=SimpleNamespace(marked=listed), folder=folder)
    assert marked.way(cast("Any", cloud), RECORD) is found
