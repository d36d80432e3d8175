from typing import Any

import pytest

from tests.rehearsal.cloud.services.conftest import L4 as PLAIN
from tests.rehearsal.cloud.services.conftest import PLACE, POOLS, ZONE, Api, Json

SPECIFIC = {
    "consumeReservationType": "SPECIFIC_RESERVATION",
    "key": "compute.googleapis.com/reservation-name",
    "values": ["mine"],
}
L4: Json = PLAIN | {"reservationAffinity": SPECIFIC}
MEGA: Json = {
    "machineType": "a3-megagpu-8g",
    "accelerators": [{"acceleratorType": "nvidia-h100-mega-80gb", "acceleratorCount": "8"}],
    "reservationAffinity": SPECIFIC,
}


@pytest.fixture(autouse=True)
def cluster(api: Api) -> None:
    api.cluster()


def _reserve(api: Api, machine: str = "g2-standard-4", **more: Any) -> None:
    specific = {"count": "2", "instanceProperties": {"machineType": machine}}
    body = {"name": "mine", "specificReservation": specific, "specificReservationRequired": True}
    api.json("compute", "POST", f"{ZONE}/reservations", body | more)


def _pool(count: int = 2, **more: Any) -> Json:
    pool = {"name": "np", "initialNodeCount": count, "config": L4, "locations": ["us-central1-a"]}
    return {"nodePool": {**pool, **more}}


def _models(api: Api) -> list[str]:
    every = api.compute(f"{ZONE}/instances")
    reserved = [it for it in every if it.get("reservationAffinity")]
    return [it["scheduling"]["provisioningModel"] for it in reserved]


def test_nodes_use_the_reservation_of_their_pool_and_no_more(api: Api) -> None:
    _reserve(api)
    assert api.gke_refused("POST", POOLS, _pool(5)) == (
        "429 Reservation does not have enough resources for the request: specific reservation"
        ' "mine" is insufficient for node pool "np" at zone "us-central1-a": required 5 and short'
        " of 3 VM count of machine type g2-standard-4"
    )
    api.gke("POST", POOLS, _pool())
    assert _models(api) == ["STANDARD"] * 2
    found = api.json("compute", "GET", f"{ZONE}/reservations/mine")["specificReservation"]
    assert found["inUseCount"] == "2"
    operation = api.gke("POST", f"{POOLS}/np:setSize", {"nodeCount": 3})
    ended = api.gke("GET", f"{PLACE}/operations/{operation['name']}")
    assert "does not have available resources" in ended["error"]["message"]


UNFIT: dict[str, tuple[Json | None, Json]] = {
    "Specified reservations [mine] do not exist.": (None, {}),
    "is incorrect for the requested resources": ({"machine": "g2-standard-8"}, {}),
    "can not be targeted": ({"specificReservationRequired": False}, {}),
    "consume no reservation": ({}, {"config": {**L4, "spot": True}}),
    "placement policy": ({}, {"placementPolicy": {"type": "COMPACT"}}),
}


@pytest.mark.parametrize("words", UNFIT)
def test_a_pool_that_its_reservation_does_not_fit_is_refused(api: Api, words: str) -> None:
    reserved, pool = UNFIT[words]
    if reserved is not None:
        _reserve(api, **reserved)
    refused = api.gke_refused("POST", POOLS, _pool(**pool))
    assert refused.startswith("400 ")
    assert words in refused
    assert api("container", "GET", f"{POOLS}/np").status == 404


def test_nodes_of_dense_capacity_are_bound_to_it_by_kubernetes_engine(api: Api) -> None:
    _reserve(api, "a3-megagpu-8g", deploymentType="DENSE")
    api.gke("POST", POOLS, _pool(config=MEGA, placementPolicy={"type": "COMPACT"}))
    assert _models(api) == ["RESERVATION_BOUND"] * 2
