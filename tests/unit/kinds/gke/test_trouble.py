"""What Status finds broken in a GKE cluster, and what it finds only under way."""

import dataclasses
from typing import Any, cast

import pytest

from provision.catalogue import prices
from provision.codes import Code
from provision.documents.gke_status import GkeCluster, JobState, NodeRequest, RequestState, Workload
from provision.documents.status import About, PoolMode, PoolNow
from provision.errors import ClusterError, Problem
from provision.google.api import GoogleApi, GoogleApiError
from provision.kinds.gke import control_plane, status, trouble
from provision.kinds.gke.kubernetes import status as kubernetes_status
from provision.kinds.gke.kubernetes.facts import ClusterFacts, GpuPool
from provision.kinds.gke.kubernetes.nodes import Node, Nodes
from provision.kinds.gke.kubernetes.status import Status
from provision.lifecycle import pricing
from provision.spec.capacity import Mode
from provision.time.clock import Clock
from tests.table import cases
from tests.unit.kinds.cases import having, unheard
from tests.unit.state.test_record import WHOLE

NAME = "np-gpu"
NOW = PoolNow(
    name=NAME,
    machine_type="g2-standard-24",
    zone="us-central1-a",
    mode=PoolMode.STANDARD,
    asked=2,
    there=2,
    ready=2,
)


def _case(state: str = "RUNNING", pool: str = "RUNNING", **changes: Any) -> trouble.Case:
    document: dict[str, Any] = {"name": "np-gke", "status": state}
    document["nodePools"] = [{"name": NAME, "status": pool, "statusMessage": "no room"}]
    usual: dict[str, Any] = {"document": document, "machines": (NOW,), "gpus": {NAME: 0}}
    usual |= {"counted": True, "refused": {}, "clock": Clock()}
    told: dict[str, Any] = {"nodes": (), "workloads": (), "requests": ()}
    told |= {name: changes.pop(name) for name in [*told, "outside"] if name in changes}
    return trouble.Case(told=Status(**told), **usual | changes)


def _both(*arguments: str, **changes: Any) -> tuple[list[str], list[str]]:
    """What is broken, and what is under way."""
    case = _case(*arguments, **changes)
    return [it.what for it in trouble.found(case)], [it.what for it in trouble.waiting(case)]


def _now(**changes: Any) -> tuple[PoolNow]:
    return (dataclasses.replace(NOW, **{"there": 0, "ready": 0} | changes),)


SCALES = {"asked": None, "most": 4}


@cases(
    """
states               | changes                       | broken | waits
-                    | {}                            | -      | -
PROVISIONING         | {}                            | -      | the cluster is being changed by GKE
RECONCILING          | {}                            | -      | the cluster is being changed by GKE
RUNNING PROVISIONING | {}           | -      | the node pool np-gpu is being changed by GKE
RUNNING RECONCILING  | {}           | -      | the node pool np-gpu is being changed by GKE
-                    | @GONE                         | the node pool np-gpu does not exist | -
-                    | {document: {}, machines: []}  | the cluster does not exist | -
-                    | @UNCOUNTED                    | -      | -
-                    | @EMPTY                        | -      | -
-                    | @LACKS                        | 0 of 1 node of np-gpu exist | -
-                    | @PENDING                      | -      | Job a waits for nodes, in no queue
-                    | @STARTING                     | -      | Job a is starting, in no queue
-                    | @RUNNING                      | -      | -
""",
    GONE={"document": {"name": "np-gke", "status": "RUNNING", "nodePools": []}, "machines": ()},
    UNCOUNTED={"machines": _now(), "counted": False},
    EMPTY={"machines": _now(**SCALES, least=0)},
    LACKS={"machines": _now(**SCALES, least=1)},
    **{it.name: {"outside": (Workload(name="Job a", state=it),)} for it in JobState},
)
def test_what_is_broken_and_what_is_only_under_way(
    states: str, changes: dict[str, Any], broken: str, waits: str
) -> None:
    told = tuple([it] if it else [] for it in (broken, waits))
    assert _both(*states.split(), **changes) == told


@pytest.mark.parametrize("state", ["ERROR", "RUNNING_WITH_ERROR", "STOPPING", "DEGRADED"])
def test_a_pool_that_is_not_in_order_is_told_with_googles_words(state: str) -> None:
    (one,) = trouble.found(_case(pool=state))
    assert one.what == "the node pool np-gpu is not in order"
    assert one.about is About.POOL
    assert one.why == (f"its state is {state}: no room",)
    assert one.fix


def test_nodes_that_are_missing_or_not_ready_are_told_with_what_google_refuses() -> None:
    node = Node(name="gke-1", unready="gke-1 is not ready (NodeStatusUnknown): silent")
    nodes = (Nodes(pool=NAME, each=(node,)),)
    first, second = trouble.found(_case(nodes=nodes, machines=_now(there=1)))
    assert first.what == "1 of 2 nodes of np-gpu exist"
    assert (second.names, second.why) == (("gke-1",), (node.unready,))
    assert first.by_itself
    assert second.by_itself
    problem = Problem(what="the zone has none", why="no\nno", fix="wait", code=Code.STOCK_OUT)
    (one,) = trouble.found(_case(machines=_now(), refused={NAME: [problem]}))
    assert (one.what, one.why, one.fix) == ("the zone has none", ("no",), "wait")
    assert (one.count, one.by_itself) == (2, True)


@pytest.mark.parametrize("pools", [[], [{"name": NAME, "status": "STOPPING"}]])
def test_nobody_is_to_wait_for_the_nodes_of_a_pool_that_is_deleted(pools: list[Any]) -> None:
    document = {"name": "np-gke", "status": "RUNNING", "nodePools": pools}
    (one,) = trouble.found(_case(document=document, machines=_now()))
    assert one.what in {
        "the node pool np-gpu does not exist",
        "the node pool np-gpu is not in order",
    }
    assert one.fix.startswith("run Create")


def test_jobs_alike_wait_as_one_and_say_until_when_and_what_comes_then() -> None:
    works = tuple(
        Workload(name=f"Job {number}", state=JobState.WAITING_FOR_NODES, message="no room")
        for number in range(3)
    )
    request = NodeRequest(
        name="r", state=RequestState.WAITING, reason="Out", message="no room", waits_for="quota"
    )
    jobs, asks = trouble.waiting(_case(workloads=works, requests=(request,)))
    assert (jobs.what, jobs.count, jobs.why) == ("3 jobs waiting for nodes", 3, ())
    assert jobs.names == ("Job 0", "Job 1", "Job 2")
    assert asks.what == "the request r waits in Google's queue for quota"
    assert asks.why == ("Out: no room",)
    assert _both(workloads=works, requests=(request,))[0] == []
    soon, past = "2999-01-01T00:00:00Z", "2026-01-01T00:00:00Z"
    works = tuple(
        Workload(name=f"Job {number}", state=JobState.PENDING, next_try=moment)
        for number, moment in enumerate((soon, "2999-01-02T00:00:00Z"))
    )
    request = NodeRequest(
        name="r", state=RequestState.PENDING, waits_for="quota", until=past, then="it fails"
    )
    jobs, asks = trouble.waiting(_case(workloads=works, requests=(request,)))
    assert (jobs.until, jobs.then) == (soon, "Kueue asks for nodes again")
    assert jobs.until_seconds
    # What is over is not announced.
    assert (asks.until, asks.until_seconds, asks.then) == (None, None, "")


def test_jobs_that_were_given_up_and_requests_that_failed_are_broken_and_others_start() -> None:
    work = Workload(name="Job a", state=JobState.GIVEN_UP, message="no quota", advice="ask for it")
    about = {"message": "no quota", "advice": "ask", "waits_for": "quota"}
    request = NodeRequest(name="r", state=RequestState.FAILED, **about)
    found = list(trouble.found(_case(workloads=(work,), requests=(request,))))
    assert [one.what for one in found] == [
        "Job a given up",
        "the request r failed for lack of quota",
    ]
    assert [one.fix for one in found] == ["ask for it", "ask"]
    assert _both(workloads=(work,), requests=(request,))[1] == []
    starts = Workload(name="Job a", state=JobState.STARTING, message="ImagePullBackOff")
    (waits,) = trouble.waiting(_case(workloads=(starts,)))
    assert (waits.what, waits.why) == ("Job a starting", ("ImagePullBackOff",))


@pytest.mark.parametrize("state", RequestState)
def test_a_request_is_broken_only_if_it_failed(state: RequestState) -> None:
    broken, waits = _both(requests=(NodeRequest(name="r", state=state),))
    assert bool(broken) is (state is RequestState.FAILED)
    assert bool(waits) is (state.name in {"PENDING", "ACCEPTED", "WAITING", "PROVISIONED"})


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


def _pool(name: str, machine_type: str, gpu: str, mode: Mode = Mode.QUEUED) -> GpuPool:
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


def test_a_stockout_names_the_zones_and_regions_that_have_what_its_pool_asks_for() -> None:
    assert _told(_request(), API, ZONES, T4) == [
        ADVICE,
        "zones of us-central1 that have the machine type: us-central1-f",
        "other regions that have it: europe-west4",
    ]
    words = "The zone 'projects/p/zones/us-central1-c' does not have enough resources available"
    assert _told(_request(words), API, ZONES, T4, A100) == [
        ADVICE,
        "zones of us-central1 that have the machine type: us-central1-a, us-central1-f",
        "other regions that have it: europe-west4",
    ]
    standard = _pool("np-a100", "a2-highgpu-1g", "nvidia-tesla-a100", mode=Mode.STANDARD)
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
        late, why = "Could not look at the cluster in time", "503 The service is unavailable."
        raise ClusterError(late, code=Code.NOT_IN_TIME, why=why, fix="run Create again to continue")

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
    for name, found in (("find", document), ("kept", _facts(A100)), ("reach", None)):
        monkeypatch.setattr(control_plane, name, lambda *_, found=found: found)
    monkeypatch.setattr(kubernetes_status, "read", no_answer)
    monkeypatch.setattr(pricing, "known", lambda *_: prices.listed())
    context = having(progress=unheard(), environ={}, clock=Clock(0))
    api = having(managed_instances=managed, find=lambda *_: {"uniqueId": "1"})
    cloud = having(api=api, folder=None, project_number="42", lists=None)
    return status.look(context, cloud, WHOLE, None)


def test_groups_tell_nodes_where_kubernetes_is_silent(monkeypatch: pytest.MonkeyPatch) -> None:
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
    found = _silent(monkeypatch, {"gke-system": ["RUNNING"] * 3})
    assert [it.there for it in found.machines] == [None, 3]
    assert found.cost is None
    assert found.is_unknown
