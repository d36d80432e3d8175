"""What Status finds broken in a GKE cluster, and what it finds only under way."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from provision.codes import Code
from provision.documents.gke_status import (
    JobState,
    NodeRequest,
    RequestState,
    Workload,
)
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


def _broken(*arguments: str, **changes: Any) -> list[str]:
    return [one.what for one in trouble.found(_case(*arguments, **changes))]


def _waits(*arguments: str, **changes: Any) -> list[str]:
    return [one.what for one in trouble.waiting(_case(*arguments, **changes))]


def test_a_cluster_that_runs_with_its_nodes_is_no_trouble() -> None:
    assert (_broken(), _waits()) == ([], [])


@pytest.mark.parametrize("state", ["ERROR", "RUNNING_WITH_ERROR", "STOPPING", "DEGRADED"])
def test_a_pool_that_is_not_in_order_is_told_with_googles_words(state: str) -> None:
    (one,) = trouble.found(_case(pool=state))
    assert one.what == "the node pool np-gpu is not in order"
    assert one.about is About.POOL
    assert one.why == (f"its state is {state}: no room",)
    assert one.fix


@pytest.mark.parametrize("state", ["PROVISIONING", "RECONCILING"])
def test_what_gke_is_changing_is_under_way_and_not_broken(state: str) -> None:
    assert _broken(state) == []
    assert _waits(state) == ["the cluster is being changed by GKE"]
    assert _waits("RUNNING", state) == ["the node pool np-gpu is being changed by GKE"]


def test_a_pool_or_a_cluster_that_somebody_deleted_is_missed() -> None:
    document = {"name": "np-gke", "status": "RUNNING", "nodePools": []}
    assert _broken(document=document, machines=()) == ["the node pool np-gpu does not exist"]
    assert _broken(document={}, machines=()) == ["the cluster does not exist"]


def test_nodes_that_are_missing_or_not_ready_are_told_by_name() -> None:
    node = Node(name="gke-1", unready="gke-1 is not ready (NodeStatusUnknown): silent")
    nodes = (Nodes(pool=NAME, each=(node,)),)
    machines = (dataclasses.replace(NOW, there=1, ready=0),)
    first, second = trouble.found(_case(nodes=nodes, machines=machines))
    assert first.what == "1 of 2 nodes of np-gpu exist"
    assert (second.names, second.why) == (("gke-1",), (node.unready,))
    assert first.by_itself
    assert second.by_itself


def test_a_pool_that_gets_no_nodes_tells_what_google_refuses() -> None:
    problem = Problem(what="the zone has none", why="no\nno", fix="wait", code=Code.STOCK_OUT)
    machines = (dataclasses.replace(NOW, there=0, ready=0),)
    (one,) = trouble.found(_case(machines=machines, refused={NAME: [problem]}))
    assert (one.what, one.why, one.fix) == ("the zone has none", ("no",), "wait")
    assert (one.count, one.by_itself) == (2, True)


def test_nodes_that_nobody_has_counted_are_not_missed() -> None:
    machines = (dataclasses.replace(NOW, there=0, ready=0),)
    assert _broken(machines=machines, counted=False) == []


def test_a_pool_that_scales_misses_only_its_minimum() -> None:
    scaling = dataclasses.replace(NOW, asked=None, least=0, most=4, there=0, ready=0)
    assert _broken(machines=(scaling,)) == []
    assert _broken(machines=(dataclasses.replace(scaling, least=1),)) == [
        "0 of 1 nodes of np-gpu exist"
    ]


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
    assert _broken(works=works, requests=(request,)) == []


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


@pytest.mark.parametrize(
    ("state", "words"),
    [
        (JobState.PENDING, "Job a waits for nodes, in no queue"),
        (JobState.STARTING, "Job a is starting, in no queue"),
        (JobState.RUNNING, None),
    ],
)
def test_a_job_in_no_queue_waits_like_the_others(state: JobState, words: str | None) -> None:
    waits = _waits(outside=(Workload(name="Job a", state=state),))
    assert waits == ([words] if words else [])


def test_a_job_of_the_queue_that_starts_is_not_running_yet() -> None:
    starts = Workload(name="Job a", state=JobState.STARTING, message="ImagePullBackOff")
    (found,) = trouble.waiting(_case(works=(starts,)))
    assert (found.what, found.why) == ("Job a starting", ("ImagePullBackOff",))


def test_a_job_that_was_given_up_and_a_request_that_failed_are_broken() -> None:
    work = Workload(name="Job a", state=JobState.GIVEN_UP, message="no quota", advice="ask for it")
    request = NodeRequest(
        name="r",
        state=RequestState.FAILED,
        message="no quota",
        advice="ask",
        waits_for="quota",
    )
    found = list(trouble.found(_case(works=(work,), requests=(request,))))
    assert [one.what for one in found] == [
        "Job a given up",
        "the request r failed for lack of quota",
    ]
    assert [one.fix for one in found] == ["ask for it", "ask"]
    assert _waits(works=(work,), requests=(request,)) == []


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
    assert bool(_broken(requests=(request,))) is (state is RequestState.FAILED)
    assert bool(_waits(requests=(request,))) is (state in pending)
