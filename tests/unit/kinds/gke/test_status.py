"""What Status says of nodes that a zone does not have, and of a control plane that is silent."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from provision.catalogue import prices
from provision.codes import Code
from provision.documents.gke_status import GkeCluster, NodeRequest, RequestState
from provision.errors import ClusterError
from provision.google.api import GoogleApi, GoogleApiError
from provision.kinds.gke import control_plane, status
from provision.kinds.gke.kubernetes import status as kubernetes_status
from provision.kinds.gke.kubernetes.facts import ClusterFacts, GpuPool
from provision.lifecycle import pricing
from provision.time.clock import Clock
from provision.time.progress import Progress
from tests.unit.state.test_record import WHOLE

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


def _facts(*pools: GpuPool) -> ClusterFacts:
    return ClusterFacts(
        project="p",
        name="np-gke",
        location="us-central1",
        version="1.35.7-gke.1222000",
        pools=pools,
        workload_account="a",
    )


def _told(request: NodeRequest, api: Api, zones: dict[str, str], *pools: GpuPool) -> list[str]:
    """The lines of advice on a request, in a cluster of these pools in these zones."""
    document: dict[str, Any] = {
        "nodePools": [{"name": pool.name, "locations": [zones[pool.name]]} for pool in pools]
    }
    places = status.Places(document, _facts(*pools), cast("GoogleApi", api))
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


GROUP = "https://www.googleapis.com/compute/v1/projects/p/zones/us-central1-a/instanceGroupManagers"


def _silent(monkeypatch: pytest.MonkeyPatch, groups: dict[str, list[str]]) -> GkeCluster:
    """The Status of a cluster whose Kubernetes answers 503; groups: name -> states of its VMs."""

    def no_answer(*_: object) -> None:
        raise ClusterError(
            "Could not look at the cluster in time",
            code=Code.NOT_IN_TIME,
            why="503 The service is currently unavailable.",
            fix="everything is kept: run Create again to continue",
        )

    def managed(_project: str, _zone: str, group: str) -> list[dict[str, str]]:
        if group not in groups:
            raise GoogleApiError(403, "no", "https://x")
        return [{"instanceStatus": state} for state in groups[group]]

    def pool(name: str, zone: str, machine_type: str, **size: Any) -> dict[str, Any]:
        config, group = {"machineType": machine_type}, f"{GROUP}/gke-{name}"
        about = {"locations": [zone], "config": config, "instanceGroupUrls": [group]}
        return {"name": f"np-{name}", "status": "RUNNING", **about, **size}

    scaling = {"enabled": True, "totalMinNodeCount": 0, "totalMaxNodeCount": 4}
    pools = [
        pool("a100", "us-central1-c", "a2-highgpu-1g", autoscaling=scaling),
        pool("system", "us-central1-a", "e2-standard-4", initialNodeCount=3),
    ]
    document: dict[str, Any] = {"name": "np-gke", "location": "us-central1", "status": "RUNNING"}
    document |= {"createTime": "2026-11-22T08:00:00Z", "nodePools": pools}
    monkeypatch.setattr(control_plane, "find", lambda *_: document)
    monkeypatch.setattr(control_plane, "kept", lambda *_: _facts(A100))
    monkeypatch.setattr(control_plane, "reach", lambda *_: None)
    monkeypatch.setattr(kubernetes_status, "read", no_answer)
    monkeypatch.setattr(pricing, "known", lambda *_: prices.listed())
    progress = Progress(Clock(0), lambda _: None)
    context = SimpleNamespace(progress=progress, environ={}, clock=Clock(0))
    cloud = SimpleNamespace(api=SimpleNamespace(managed_instances=managed), folder=None)
    return status.look(cast("Any", context), cast("Any", cloud), WHOLE, None)


def test_nodes_and_costs_are_told_by_their_groups_where_kubernetes_is_silent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = _silent(
        monkeypatch, {"gke-a100": ["RUNNING", "RUNNING"], "gke-system": ["RUNNING", "STAGING"]}
    )

    assert [(it.name, it.there, it.ready) for it in found.machines] == [
        ("np-a100", 2, None),
        ("np-system", 1, None),
    ]
    assert [(it.nodes, it.ready) for it in found.node_pools] == [(2, None), (1, None)]
    (trouble,) = found.trouble
    assert "it is not known what runs in the cluster" in trouble.what
    assert "Create" not in trouble.fix
    assert found.is_unknown
    assert found.is_pending
    assert found.cost is not None
    assert (next(it.now for it in found.cost.parts if it.pool == "np-a100") or 0) > 1
    assert found.so_far is None


def test_what_no_group_tells_either_is_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    found = _silent(monkeypatch, {"gke-system": ["RUNNING"] * 3})

    assert [it.there for it in found.machines] == [None, 3]
    assert found.cost is None
    assert found.is_unknown
