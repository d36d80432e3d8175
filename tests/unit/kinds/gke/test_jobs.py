"""What a job on GKE takes is said before it is submitted."""

import dataclasses
from decimal import Decimal
from typing import Any, cast

import pytest

from provision.catalogue import prices
from provision.deployment.kind import Stranded
from provision.documents.job import Job, JobState
from provision.errors import SettingsError
from provision.kinds.gke import control_plane, preview
from provision.kinds.gke.jobs import GkeJobs
from provision.kinds.gke.kubernetes import job_pods, run_jobs
from provision.kinds.gke.kubernetes import status as queue
from provision.kinds.gke.preview import Room
from provision.settings.job_options import JobArray
from provision.spec.job import JobSpec
from provision.spec.pools import Pool, Size
from provision.time.clock import Clock
from tests.kubernetes import samples
from tests.table import cases
from tests.unit.kinds.cases import having, problem_of
from tests.unit.memory_folder import MemoryFolder
from tests.unit.state.test_record import WHOLE

SCALES = Size(min=0, max=4)
HOURS = 4 * 3600
ZONE = "us-central1-a"
NO_PRICES = dataclasses.replace(prices.listed(), rows={})


def _made(size: Size = SCALES) -> Pool:
    return samples.as_spec(samples.ULTRA, size)


@pytest.mark.parametrize(("size", "nodes"), [(SCALES, 1), (Size(count=4), 4)])
def test_a_job_takes_all_nodes_of_a_pool_of_one_size(size: Size, nodes: int) -> None:
    assert preview.by_default(_made(size), 4) == nodes


@cases(
    """
changes | seconds | coming | words
{} | @HOURS | 2 | 16 x H200 141 GB, PRICE/h, until --time (4 hours) is over
{} | null | 2 | 16 x H200 141 GB, PRICE/h, until it ends, 7 days at most
{max_run_seconds: 3600} | @HOURS | 2 | PRICE/h, until it ends, 1 hour at most
{mode: flex_start} | null | 1 | 1 of them new, PRICE/h, until it ends, each node 7 days at most
{mode: standard, max_run_seconds: null} | null | 0 | 16 x H200 141 GB, there already, at no more
    cost, until it ends
""",
    HOURS=HOURS,
)
def test_nodes_price_and_end_are_said_in_one_sentence(
    changes: dict[str, object], seconds: int | None, coming: int, words: str
) -> None:
    pool = samples.pool_like(samples.ULTRA, **changes)
    spec = JobSpec(name="a", command=("true",), nodes=2, seconds=seconds)
    room = Room(pool, 2, 1, 8)
    found = preview.needs(spec, room, _made(), coming, prices.listed())
    assert found.words.startswith("The job takes 2 nodes of demo-h200, 16 x H200 141 GB, ")
    assert found.words.endswith(words.replace("PRICE", f"≈ ${found.more:.2f}"))
    one = preview.needs(spec, room, _made(), 1, prices.listed()).more
    assert abs(found.more - one * coming) < Decimal("0.001")
    assert one > Decimal(10)


@pytest.mark.parametrize(
    ("mode", "size", "coming", "for_parts"),
    [
        ("flex_start", SCALES, 2, 1),
        ("flex_start_queued", SCALES, 3, 2),
        ("spot", Size(count=4), 0, 0),
    ],
)
def test_nodes_that_wait_for_work_do_not_come(
    mode: str, size: Size, coming: int, for_parts: int
) -> None:
    asks = {"resources": {"requests": {"nvidia.com/gpu": "8"}}}
    there = {
        "Node": [
            *({"metadata": {"name": name}, "spec": {}} for name in ("busy", "done", "full")),
            {"metadata": {"name": "cordoned"}, "spec": {"unschedulable": True}},
        ],
        "Pod": [
            {"spec": {"nodeName": "busy", "containers": [asks]}, "status": {"phase": "Running"}},
            {"spec": {"nodeName": "done", "containers": [asks]}, "status": {"phase": "Failed"}},
            {"spec": {"nodeName": "done", "containers": [{}]}, "status": {"phase": "Running"}},
            {"spec": {"nodeName": "full", "containers": [asks]}},
        ],
    }
    ours = having(_all=lambda _, __, kind, *___: there[kind])
    pool = samples.pool_like(samples.ULTRA, mode=mode)
    assert GkeJobs._coming(ours, Room(pool, 3, 1, 8), _made(size)) == coming
    assert GkeJobs._coming(ours, Room(pool, 1, 16, 1), _made(size)) == for_parts


def test_a_price_that_nobody_knows_is_said_to_be_unknown() -> None:
    spec = JobSpec(name="a", command=("true",), nodes=1)
    found = preview.needs(spec, Room(samples.ULTRA, 1, 1, 8), _made(), 1, NO_PRICES)
    assert "8 x H200 141 GB, at an unknown price, until" in found.words
    assert found.more > 10**9  # whoever is asked above some dollars is asked
    room = Room(samples.ULTRA, 1, 1, 8)
    assert preview.needs(spec, room, _made(), 1, None).words.endswith(
        "8 x H200 141 GB, until it ends, 7 days at most"
    )


def _pod(rank: int, reason: str = "", **status: Any) -> dict[str, Any]:
    labels = {"batch.kubernetes.io/job-completion-index": str(rank)}
    return {
        "metadata": {"name": f"a-{rank}", "labels": labels},
        "spec": {"nodeName": f"node-{rank}"},
        "status": {"reason": reason, **status},
    }


@cases("""
ends | pod | words
[{rank: 1, vm: node-1, code: 137}] | {containerStatuses: [{name: job, state: {terminated:
    {reason: OOMKilled}}}]} | exit code 137: out of memory, first on node-1 (rank 1)
[{rank: 1, vm: node-1}] | {reason: Evicted, message: disk pressure}
    | Evicted: disk pressure, first on node-1 (rank 1)
[{rank: 1, vm: node-1, code: 1, tail: "torch.OutOfMemoryError: CUDA out of memory."}] | {}
    | exit code 1: a GPU ran out of memory, first on node-1 (rank 1)
[] | {initContainerStatuses: [{name: fetch, state: {terminated: {exitCode: 1,
    message: "no\\nnot found"}}}]} | fetch failed: not found, first on node-1 (rank 1)
""")
def test_why_a_program_failed_is_what_the_pod_of_its_rank_says(
    ends: list[dict[str, Any]], pod: dict[str, Any], words: str
) -> None:
    for status in pod.get("containerStatuses", []):
        status["name"] = run_jobs.CONTAINER
    own = [_pod(0), _pod(1, **pod)]
    found = job_pods.first_failure(own, ends, list)
    assert found is not None
    assert found.words == words


@cases(
    """
pools | asked | nodes | gpus | slots | machines | refused
[L4] | {array: 0-63} | 1 | 2 | 2 | 2 |
[L4] | {array: 0-63, gpus: 1} | 1 | 1 | 4 | 2 |
[L4] | {array: 0-63%3, gpus: 1} | 1 | 1 | 3 | 2 |
[ONE] | {array: 0-63, gpus: 1} | 1 | 1 | 2 | 1 |
[L4] | {array: 7-7, gpus: 1} | 1 | 1 | 1 | 1 |
[L4] | {gpus: 1, nodes: 2} | 2 | 1 | 1 | 1 |
[L4] | {gpus: 3} | - | - | - | - | The job wants 3 GPUs of each machine, and g2-standard-24 has 2
[ULTRA, L4] | {gpus: 4} | 1 | 4 | 1 | 1 |
[ULTRA] | {gpus: 4, nodes: 2} | - | - | - | - | The job wants 4 of the 8 GPUs of 2 nodes
[ULTRA] | {gpus: 8, nodes: 2} | 2 | 8 | 1 | 2 |
"""
)
def test_a_job_has_as_many_tasks_at_a_time_as_there_can_be_gpus_for(  # noqa: PLR0913, PLR0917 - a case in words
    pools: list[str],
    asked: dict[str, Any],
    nodes: int,
    gpus: int,
    slots: int,
    machines: int,
    refused: str | None,
) -> None:
    pair = samples.pool_like(samples.L4, machine_type="g2-standard-24", gpus=2, max_nodes=8)
    one = dataclasses.replace(pair, max_nodes=1)
    known = {"L4": pair, "ONE": one, "ULTRA": samples.ULTRA}
    quota = 4 if pools == ["L4"] else 16
    facts = dataclasses.replace(samples.facts(*(known[it] for it in pools)), gpu_quota=quota)
    array = JobArray.of(asked["array"]) if "array" in asked else None
    spec = JobSpec(name="a", command=("true",), **{**asked, "array": array})
    if refused:
        assert problem_of(SettingsError, preview.room, facts, spec, dict).what == refused
        return
    room = preview.room(facts, spec, dict)
    assert (room.nodes, room.gpus, room.slots, room.machines) == (nodes, gpus, slots, machines)


def test_what_a_job_of_tasks_takes_is_what_runs_at_a_time() -> None:
    pool = samples.pool_like(samples.L4, machine_type="g2-standard-24", gpus=2, max_nodes=8)
    spec = JobSpec(name="a", command=("true",), gpus=1, array=JobArray(0, 63), seconds=HOURS)
    words = preview.needs(spec, Room(pool, 1, 4, 1), _made(), 2, None).words
    assert "2 nodes of" in words
    assert "4 x L4, for 4 of its 64 tasks at a time" in words
    assert words.endswith("until its tasks have ended, each when --time (4 hours) is over")


def _work(name: str, nodes: int, *, has_room: bool) -> dict[str, Any]:
    """A Workload of nodes with eight GPUs, which Kueue has let in if it has room."""
    box = {"resources": {"requests": {"nvidia.com/gpu": "8"}}}
    let_in = {"conditions": [{"type": "Admitted", "status": "True"}]} if has_room else {}
    return {
        "metadata": {"ownerReferences": [{"name": name}]},
        "spec": {"podSets": [{"count": nodes, "template": {"spec": {"containers": [box]}}}]},
        "status": let_in,
    }


def test_what_is_in_the_way_of_a_job_is_named_and_not_whatever_comes_first() -> None:
    small, large = _work("small-1", 1, has_room=True), _work("long-1", 15, has_room=True)
    waits = _work("wide-1", 16, has_room=False)
    assert queue.in_the_way([small, large, waits]) == "long-1 is before it, with 120 GPUs"
    assert queue.in_the_way([waits]) == "wide-1 is before it"


@cases(
    """
machine | nodes | pool | refused
null | null | demo-h200 |
null | 3 | demo-h200 |
nvidia-tesla-t4 | null | demo-t4 |
a3-highgpu-8g | 2 | demo-high |
h100 | null | demo-mega |
h100-80gb | null | demo-high |
h10 | null | | The cluster has no nodes of h10
b200 | null | | The cluster has no nodes of b200
h100 | 3 | | The job wants 3 nodes, and can have 2
"""
)
def test_a_job_runs_on_the_pool_of_the_machine_or_gpu_that_it_names(
    machine: str | None, nodes: int | None, pool: str | None, refused: str | None
) -> None:
    pools = (samples.MEGA, samples.HIGH, samples.ULTRA, samples.T4)
    facts = having(pools=pools, has_queue=False, ray_operator=False)
    spec = JobSpec(name="a", command=("true",), nodes=nodes, machine=machine)
    if not refused:
        found = preview.room(facts, spec, dict)
        assert (found.pool.name, found.nodes) == (pool, nodes or 1)
        return
    problem = problem_of(SettingsError, preview.room, facts, spec, dict)
    assert problem.what == refused
    told = "a3-megagpu-8g (nvidia-h100-mega-80gb), a3-highgpu-8g" if nodes is None else " of h100, "
    assert told in problem.why


LOST, OTHER = samples.A2.name, samples.L4.name
OF_BOTH = samples.facts(samples.A2, samples.L4)
A2_RUNS = {"instanceStatus": "RUNNING", "currentAction": "NONE"}
REFUSED = {
    "instanceStatus": "",
    "lastAttempt": {"errors": {"errors": [{"code": "ZONE_RESOURCE_POOL_EXHAUSTED"}]}},
}


def _stranded(
    monkeypatch: pytest.MonkeyPatch, members: dict[str, list[dict[str, Any]]], nodes: int = 2
) -> Stranded | None:
    """What a job on the pool of A2 has lost, by what the groups of pools say that are there."""
    pools = [
        {
            "name": it.name,
            "config": {"machineType": it.machine_type},
            "locations": [ZONE],
            "initialNodeCount": 2,
            "instanceGroupUrls": [f"x/{it.name}"],
        }
        for it in OF_BOTH.pools
        if it.name in members
    ]
    monkeypatch.setattr(control_plane, "finished", lambda *_: OF_BOTH)
    monkeypatch.setattr(control_plane, "find", lambda *_: {"nodePools": pools})
    api = having(managed_instances=lambda *it: members[it[2]], zones_with=lambda *_: set())
    # A move has gone there since these jobs were opened.
    folder = MemoryFolder()
    monkeypatch.setattr(folder, "record", lambda: dataclasses.replace(WHOLE, zone=ZONE))
    cloud = having(folder=folder, api=api)
    jobs = GkeJobs(having(clock=Clock()), cloud, dataclasses.replace(WHOLE, zone="us-east1-b"))
    machine = samples.A2.machine_type
    job = Job(name="a", state=JobState.WAITING, submitted="", machine_type=machine, nodes=nodes)
    return jobs.stranded(job)


def test_with_a_pool_that_goes_elsewhere_go_all_in_its_zone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    there: dict[str, list[dict[str, Any]]] = {LOST: [A2_RUNS, REFUSED], OTHER: [A2_RUNS, A2_RUNS]}
    found = _stranded(monkeypatch, there)
    assert found is not None
    assert f"1 of 2 nodes of {LOST} run" in found.what
    assert (found.left, found.own) == (3, 1)
    assert _stranded(monkeypatch, there, nodes=1) is None
    assert _stranded(monkeypatch, {LOST: [A2_RUNS] * 2, OTHER: [REFUSED]}) is None


def test_a_pool_that_a_killed_move_has_left_nowhere_is_lost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = _stranded(monkeypatch, {OTHER: [A2_RUNS]})
    assert found == Stranded(what=f"np has no pool {LOST}", left=1, here=True)


def test_what_one_machine_type_has_lost_is_not_what_another_has(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[str] = []

    def look(_api: object, _record: object, _facts: object, machine_type: str) -> Stranded | None:
        asked.append(machine_type)
        return Stranded(what="z-a has no x", left=1) if machine_type == "x" else None

    monkeypatch.setattr(control_plane, "finished", lambda *_: None)
    monkeypatch.setattr(control_plane, "stranded", look)
    cloud = having(folder=MemoryFolder(), api=None)
    jobs = GkeJobs(having(clock=Clock()), cloud, cast("Any", None))
    found = [
        jobs.stranded(Job(name="a", state=JobState.WAITING, submitted="", machine_type=it))
        for it in ("x", "y", "x")
    ]
    assert [bool(it) for it in found] == [True, False, True]
    assert asked == ["x", "y"]
