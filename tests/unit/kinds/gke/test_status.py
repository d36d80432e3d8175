"""What Status says of a request for nodes that a zone does not have."""

from __future__ import annotations

from typing import Any, cast

import pytest

from provision.documents.gke_status import NodeRequest, RequestState
from provision.google.api import GoogleApi, GoogleApiError
from provision.kinds.gke import status
from provision.kinds.gke.kubernetes.facts import ClusterFacts, GpuPool

ADVICE = "the zone has no such machines now: try another zone, region or machine type"


class Api:
    """A Google that offers everything in these zones, or does not say."""

    def __init__(self, *zones: str) -> None:
        self._zones = set(zones)

    def zones_with(self, _project: str, collection: str, name: str) -> set[str]:
        if not self._zones:
            raise GoogleApiError(403, "no", "https://x")
        if (collection, name) == ("acceleratorTypes", "nvidia-tesla-t4"):
            return self._zones - {"us-central1-b"}
        return self._zones - ({"us-central1-b"} if name == "a2-highgpu-1g" else set())


def _pool(name: str, machine_type: str, gpu: str, mode: str = "queued") -> GpuPool:
    return GpuPool(
        name=name, machine_type=machine_type, accelerator=gpu, gpus=1, max_nodes=2, mode=mode
    )


def _told(request: NodeRequest, api: Api, zones: dict[str, str], *pools: GpuPool) -> list[str]:
    """The lines of advice on a request, in a cluster of these pools in these zones."""
    facts = ClusterFacts(
        project="p",
        name="np-gke",
        location="us-central1",
        pools=pools,
        workload_account="a",
    )
    document: dict[str, Any] = {
        "nodePools": [{"name": pool.name, "locations": [zones[pool.name]]} for pool in pools]
    }
    places = status.Places(document, facts, cast("GoogleApi", api))
    return places.added(request).advice.splitlines()


def _request(
    message: str = "Expected time is indefinite.", state: RequestState = RequestState.FAILED
) -> NodeRequest:
    return NodeRequest(
        name="r", state=state, reason="ResourcePoolExhausted", message=message, advice=ADVICE
    )


T4 = _pool("np-t4", "n1-standard-8", "nvidia-tesla-t4")
A100 = _pool("np-a100", "a2-highgpu-1g", "nvidia-tesla-a100")
ZONES = {"np-t4": "us-central1-a", "np-a100": "us-central1-c"}
API = Api("us-central1-a", "us-central1-b", "us-central1-f", "europe-west4-a")


def test_a_stockout_names_the_zones_and_regions_that_have_machine_and_gpu() -> None:
    assert _told(_request(), API, ZONES, T4) == [
        ADVICE,
        "zones of us-central1 that have the machine type: us-central1-f",
        "other regions that have it: europe-west4",
    ]


def test_of_several_pools_it_is_the_one_in_the_zone_that_google_names() -> None:
    words = "The zone 'projects/p/zones/us-central1-c' does not have enough resources available"
    assert _told(_request(words), API, ZONES, T4, A100) == [
        ADVICE,
        "zones of us-central1 that have the machine type: us-central1-a, us-central1-f",
        "other regions that have it: europe-west4",
    ]


def test_pools_without_a_queue_are_not_meant() -> None:
    standard = _pool("np-a100", "a2-highgpu-1g", "nvidia-tesla-a100", mode="standard")
    assert len(_told(_request(), API, ZONES, T4, standard)) == 3


@pytest.mark.parametrize(
    ("request_", "api", "pools"),
    [
        pytest.param(_request(), API, (T4, A100), id="which of two pools is not known"),
        pytest.param(_request(), Api(), (T4,), id="Google does not tell"),
        pytest.param(_request(state=RequestState.PROVISIONED), API, (T4,), id="it has its nodes"),
    ],
)
def test_where_it_is_not_known_no_place_is_named(
    request_: NodeRequest, api: Api, pools: tuple[GpuPool, ...]
) -> None:
    assert _told(request_, api, ZONES, *pools) == [ADVICE]
