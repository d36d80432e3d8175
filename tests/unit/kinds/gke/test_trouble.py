"""What Status finds broken in a GKE cluster, and what it finds only under way."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from provision.codes import Code
from provision.documents.gke_status import JobState, NodeRequest, RequestState, Workload
from provision.documents.status import About, PoolMode, PoolNow
from provision.errors import Problem
from provision.kinds.gke import trouble
from provision.kinds.gke.kubernetes.nodes import Node, Nodes
from provision.time.clock import Clock

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
    usual = trouble.Case(
        document={
            "name": "np-gke",
            "status": state,
            "nodePools": [{"name": NAME, "status": pool, "statusMessage": "no room"}],
        },
        machines=(NOW,),
        expected=(NAME,),
        counted=True,
        refused={},
        works=(),
        requests=(),
        clock=Clock(),
    )
    return dataclasses.replace(usual, **changes)


def _both(*arguments: str, **changes: Any) -> tuple[list[str], list[str]]:
    """What is broken, and what is under way."""
    case = _case(*arguments, **changes)
    return [it.what for it in trouble.found(case)], [it.what for it in trouble.waiting(case)]


def _now(**changes: Any) -> tuple[PoolNow]:
    return (dataclasses.replace(NOW, **{"there": 0, "ready": 0} | changes),)


def _outside(state: JobState) -> dict[str, Any]:
    return {"outside": (Workload(name="Job a", state=state),)}


SCALES = {"asked": None, "most": 4}
EMPTY = {"name": "np-gke", "status": "RUNNING", "nodePools": []}


@pytest.mark.parametrize(
    ("states", "changes", "broken", "waits"),
    [
        pytest.param("", {}, [], [], id="it runs with its nodes"),
        *(
            (states, {}, [], [f"the {what} is being changed by GKE"])
            for states, what in (
                ("PROVISIONING", "cluster"),
                ("RECONCILING", "cluster"),
                ("RUNNING PROVISIONING", "node pool np-gpu"),
                ("RUNNING RECONCILING", "node pool np-gpu"),
            )
        ),
        ("", {"document": EMPTY, "machines": ()}, ["the node pool np-gpu does not exist"], []),
        ("", {"document": {}, "machines": ()}, ["the cluster does not exist"], []),
        pytest.param("", {"machines": _now(), "counted": False}, [], [], id="nobody has counted"),
        ("", {"machines": _now(**SCALES, least=0)}, [], []),
        ("", {"machines": _now(**SCALES, least=1)}, ["0 of 1 nodes of np-gpu exist"], []),
        ("", _outside(JobState.PENDING), [], ["Job a waits for nodes, in no queue"]),
        ("", _outside(JobState.STARTING), [], ["Job a is starting, in no queue"]),
        ("", _outside(JobState.RUNNING), [], []),
    ],
)
def test_what_is_broken_and_what_is_only_under_way(
    states: str, changes: dict[str, Any], broken: list[str], waits: list[str]
) -> None:
    assert _both(*states.split(), **changes) == (broken, waits)


@pytest.mark.parametrize("state", ["ERROR", "RUNNING_WITH_ERROR", "STOPPING", "DEGRADED"])
def test_a_pool_that_is_not_in_order_is_told_with_googles_words(state: str) -> None:
    (one,) = trouble.found(_case(pool=state))
    assert one.what == "the node pool np-gpu is not in order"
    assert one.about is About.POOL
    assert one.why == (f"its state is {state}: no room",)
    assert one.fix


def test_nodes_that_are_missing_or_not_ready_are_told_by_name() -> None:
    node = Node(name="gke-1", unready="gke-1 is not ready (NodeStatusUnknown): silent")
    nodes = (Nodes(pool=NAME, each=(node,)),)
    first, second = trouble.found(_case(nodes=nodes, machines=_now(there=1)))
    assert first.what == "1 of 2 nodes of np-gpu exist"
    assert (second.names, second.why) == (("gke-1",), (node.unready,))
    assert first.by_itself
    assert second.by_itself


def test_a_pool_that_gets_no_nodes_tells_what_google_refuses() -> None:
    problem = Problem(what="the zone has none", why="no\nno", fix="wait", code=Code.STOCK_OUT)
    (one,) = trouble.found(_case(machines=_now(), refused={NAME: [problem]}))
    assert (one.what, one.why, one.fix) == ("the zone has none", ("no",), "wait")
    assert (one.count, one.by_itself) == (2, True)


def test_jobs_alike_wait_as_one_and_do_not_repeat_what_their_request_says() -> None:
    works = tuple(
        Workload(name=f"Job {number}", state=JobState.WAITING_FOR_NODES, message="no room")
        for number in range(3)
    )
    request = NodeRequest(
        name="r", state=RequestState.WAITING, reason="Out", message="no room", waits_for="quota"
    )
    jobs, asks = trouble.waiting(_case(works=works, requests=(request,)))
    assert (jobs.what, jobs.count, jobs.why) == ("3 jobs waiting for nodes", 3, ())
    assert jobs.names == ("Job 0", "Job 1", "Job 2")
    assert asks.what == "the request r waits in Google's queue for quota"
    assert asks.why == ("Out: no room",)
    assert _both(works=works, requests=(request,))[0] == []


def test_what_waits_says_until_when_and_what_comes_then() -> None:
    soon, past = "2999-01-01T00:00:00Z", "2026-01-01T00:00:00Z"
    works = tuple(
        Workload(name=f"Job {number}", state=JobState.PENDING, next_try=moment)
        for number, moment in enumerate((soon, "2999-01-02T00:00:00Z"))
    )
    request = NodeRequest(
        name="r", state=RequestState.PENDING, waits_for="quota", until=past, then="it fails"
    )
    jobs, asks = trouble.waiting(_case(works=works, requests=(request,)))
    assert (jobs.until, jobs.then) == (soon, "Kueue asks for nodes again")
    assert jobs.until_seconds
    # What is over is not announced.
    assert (asks.until, asks.until_seconds, asks.then) == (None, None, "")


def test_a_job_of_the_queue_that_starts_is_not_running_yet() -> None:
    starts = Workload(name="Job a", state=JobState.STARTING, message="ImagePullBackOff")
    (found,) = trouble.waiting(_case(works=(starts,)))
    assert (found.what, found.why) == ("Job a starting", ("ImagePullBackOff",))


def test_a_job_that_was_given_up_and_a_request_that_failed_are_broken() -> None:
    work = Workload(name="Job a", state=JobState.GIVEN_UP, message="no quota", advice="ask for it")
    about = {"message": "no quota", "advice": "ask", "waits_for": "quota"}
    request = NodeRequest(name="r", state=RequestState.FAILED, **about)
    found = list(trouble.found(_case(works=(work,), requests=(request,))))
    assert [one.what for one in found] == [
        "Job a given up",
        "the request r failed for lack of quota",
    ]
    assert [one.fix for one in found] == ["ask for it", "ask"]
    assert _both(works=(work,), requests=(request,))[1] == []


@pytest.mark.parametrize("state", RequestState)
def test_a_request_is_broken_only_if_it_failed_whatever_became_of_its_booking(
    state: RequestState,
) -> None:
    request = NodeRequest(name="r", state=state)
    pending = {
        RequestState.PENDING,
        RequestState.ACCEPTED,
        RequestState.WAITING,
        RequestState.PROVISIONED,
    }
    broken, waits = _both(requests=(request,))
    assert bool(broken) is (state is RequestState.FAILED)
    assert bool(waits) is (state in pending)
