"""Kubernetes Engine: node pools whose nodes come from a reservation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.rehearsal.cloud.services.conftest import Api

ZONE = "projects/proj-a1/zones/us-central1-a"
CLUSTERS = "projects/proj-a1/locations/us-central1/clusters"
POOLS = f"{CLUSTERS}/loom/nodePools"
SPECIFIC = {
    "consumeReservationType": "SPECIFIC_RESERVATION",
    "key": "compute.googleapis.com/reservation-name",
    "values": ["mine"],
}
L4 = {
    "machineType": "g2-standard-4",
    "accelerators": [{"acceleratorType": "nvidia-l4", "acceleratorCount": "1"}],
    "reservationAffinity": SPECIFIC,
}
MEGA = {
    "machineType": "a3-megagpu-8g",
    "accelerators": [{"acceleratorType": "nvidia-h100-mega-80gb", "acceleratorCount": "8"}],
    "reservationAffinity": SPECIFIC,
}


@pytest.fixture(autouse=True)
def cluster(api: Api) -> None:
    body = {
        "name": "loom",
        "initialNodeCount": 1,
        "locations": ["us-central1-a"],
        "ipAllocationPolicy": {"useIpAliases": True},
    }
    api.json("container", "POST", CLUSTERS, {"cluster": body})


def _reserve(api: Api, machine: str = "g2-standard-4", count: int = 2, **more: Any) -> None:
    body = {
        "name": "mine",
        "specificReservation": {
            "count": str(count),
            "instanceProperties": {"machineType": machine},
        },
        "specificReservationRequired": True,
        **more,
    }
    api.json("compute", "POST", f"{ZONE}/reservations", body)


def _pool(count: int = 2, **more: Any) -> dict[str, Any]:
    pool = {"name": "np", "initialNodeCount": count, "config": L4, "locations": ["us-central1-a"]}
    return {"nodePool": {**pool, **more}}


def _nodes(api: Api) -> list[dict[str, Any]]:
    every = api.json("compute", "GET", f"{ZONE}/instances").get("items", [])
    return [it for it in every if it.get("reservationAffinity")]


def test_nodes_use_the_reservation_of_their_pool(api: Api) -> None:
    _reserve(api)
    api.json("container", "POST", POOLS, _pool())
    nodes = _nodes(api)
    assert len(nodes) == 2
    assert {it["scheduling"]["provisioningModel"] for it in nodes} == {"STANDARD"}
    found = api.json("compute", "GET", f"{ZONE}/reservations/mine")["specificReservation"]
    assert found["inUseCount"] == "2"


def test_a_pool_that_is_larger_than_its_reservation_is_refused(api: Api) -> None:
    _reserve(api)
    code, _, words = api.refused("container", "POST", POOLS, _pool(5))
    assert code == 429
    assert words == (
        "Reservation does not have enough resources for the request: specific reservation"
        ' "mine" is insufficient for node pool "np" at zone "us-central1-a": required 5 and short'
        " of 3 VM count of machine type g2-standard-4"
    )


@pytest.mark.parametrize(
    ("reserved", "pool", "words"),
    [
        (None, {}, "Specified reservations [mine] do not exist."),
        ({"machine": "g2-standard-8"}, {}, "is incorrect for the requested resources"),
        ({"specificReservationRequired": False}, {}, "can not be targeted"),
        ({}, {"config": {**L4, "spot": True}}, "consume no reservation"),
        ({}, {"placementPolicy": {"type": "COMPACT"}}, "placement policy"),
    ],
)
def test_a_pool_that_its_reservation_does_not_fit_is_refused(
    api: Api, reserved: dict[str, Any] | None, pool: dict[str, Any], words: str
) -> None:
    if reserved is not None:
        _reserve(api, **reserved)
    code, _, said = api.refused("container", "POST", POOLS, _pool(**pool))
    assert code == 400
    assert words in said
    assert api("container", "GET", f"{POOLS}/np").status == 404


def test_nodes_of_dense_capacity_are_bound_to_it_by_kubernetes_engine(api: Api) -> None:
    _reserve(api, "a3-megagpu-8g", deploymentType="DENSE")
    compact = {"type": "COMPACT"}
    api.json("container", "POST", POOLS, _pool(config=MEGA, placementPolicy=compact))
    models = {it["scheduling"]["provisioningModel"] for it in _nodes(api)}
    assert models == {"RESERVATION_BOUND"}


def test_a_pool_that_grows_beyond_its_reservation_tells_why(api: Api) -> None:
    _reserve(api)
    api.json("container", "POST", POOLS, _pool())
    operation = api.json("container", "POST", f"{POOLS}/np:setSize", {"nodeCount": 3})
    path = f"projects/proj-a1/locations/us-central1/operations/{operation['name']}"
    ended = api.json("container", "GET", path)
    assert "does not have available resources" in ended["error"]["message"]
