"""What the real Kueue and JobSet make of the training example and of a job of Run."""

import dataclasses
import itertools
import time
from collections.abc import Iterator

import pytest

from provision.kinds.gke.kubernetes import job_pods, jobs, kueue, run_jobs
from provision.kinds.gke.kubernetes.client import Body
from provision.kinds.gke.kubernetes.objects import Object, conditions, holds
from provision.settings.job_options import JobArray
from tests.kubernetes import processes, queues, samples
from tests.kubernetes.world import World

POOL = samples.pool_like(samples.A100, max_nodes=4)
FACTS = samples.facts(POOL)
_NODES = itertools.count()


@pytest.fixture
def clean(world: World) -> Iterator[World]:
    """A cluster with a queue, and without jobs before and after."""
    queues.clear(world)
    queues.set_up(world, FACTS)
    yield world
    queues.clear(world)


def _submit(world: World, **labels: str) -> Object:
    """The example for two nodes, whose pods run until somebody ends them."""
    thing = jobs.torchrun(FACTS, POOL, 2)
    thing["metadata"]["labels"] |= labels
    return _create(world, thing)


def _create(world: World, thing: Object) -> Object:
    """A job whose pods run until somebody ends them."""
    (job,) = (it["template"] for it in thing["spec"].get("replicatedJobs", [{"template": thing}]))
    template = job["spec"]["template"]
    annotations = {**template.get("metadata", {}).get("annotations", {}), processes.STAYS: "true"}
    template["metadata"] = {"annotations": annotations}
    return world.cluster.create(thing)


def _grant(world: World, job_set: Object, other_than: str = "") -> Object:
    """Answer the request of a job, as soon as there is another one, and bring its nodes."""

    def look() -> Object | None:
        found = world.request(job_set["metadata"]["name"])
        return None if found["metadata"]["uid"] == other_than else found

    request = world.until(look)
    number = next(_NODES)
    for each in ("a", "b"):
        world.add_node(POOL, f"node-{number}-{each}", **{queues.REQUEST: f"rr-{number}"})
    world.answer(request, "Provisioned", "Provisioned", ResizeRequestName=f"rr-{number}")
    world.until(lambda: _ready(world, job_set))
    return request


def _ready(world: World, job_set: Object) -> bool:
    return holds(queues.workload(world, job_set), "PodsReady")


def _pods(world: World, job_set: Object) -> list[Object]:
    selector = f"jobset.sigs.k8s.io/jobset-name={job_set['metadata']['name']}"
    return world.cluster.all("v1", "Pod", "default", selector)


def _fail(world: World, pod: Object, code: int) -> None:
    """Let the program of a pod end, as a kubelet tells it."""
    moment = pod["status"]["startTime"]
    ended = {"exitCode": code, "reason": "Error", "startedAt": moment, "finishedAt": moment}
    (container,) = pod["spec"]["containers"]
    state = {"name": container["name"], "image": "i", "imageID": "", "ready": False}
    state |= {"restartCount": 0, "state": {"terminated": ended}}
    phase = "Failed" if code else "Succeeded"
    others = [it for it in pod["status"]["conditions"] if it["type"] != "Ready"]
    conditions = [*others, {"type": "Ready", "status": "False"}]
    status = {"phase": phase, "containerStatuses": [state], "conditions": conditions}
    world.patch_status(pod, status)


def _lose(world: World, pod: Object) -> None:
    """Take a pod's node away, and do what the collector of pods does then."""
    world.cluster.delete("v1", "Node", pod["spec"]["nodeName"])
    told = {"type": "DisruptionTarget", "status": "True", "reason": "DeletionByPodGC"}
    others = [it for it in pod["status"]["conditions"] if it["type"] != "Ready"]
    gone = {"type": "Ready", "status": "False"}
    world.patch_status(pod, {"phase": "Failed", "conditions": [*others, gone, told]})
    world.cluster.delete("v1", "Pod", pod["metadata"]["name"], "default")


def _restarts(world: World, job_set: Object) -> tuple[int, int]:
    """How often it began again, and how much of that is held against it."""
    told = queues.now(world, job_set).get("status") or {}
    return told.get("restarts", 0), told.get("restartsCountTowardsMax", 0)


@pytest.mark.parametrize(("code", "counted"), [(1, 1), (75, 0)])
def test_a_program_that_fails_begins_all_again_and_counts_unless_it_was_stopped(
    clean: World, code: int, counted: int
) -> None:
    job_set = _submit(clean)
    _grant(clean, job_set)
    before = {it["metadata"]["uid"] for it in _pods(clean, job_set)}
    _fail(clean, _pods(clean, job_set)[0], code)
    clean.until(lambda: _restarts(clean, job_set) == (1, counted))
    clean.until(lambda: len(_pods(clean, job_set)) == 2 and _ready(clean, job_set))
    # On the same nodes: the job keeps what it was let in with.
    clean.until(lambda: not before & {it["metadata"]["uid"] for it in _pods(clean, job_set)})
    assert holds(queues.workload(clean, job_set), "Admitted")


@pytest.mark.parametrize(("code", "restarts"), [(run_jobs.HOPELESS, (0, 0)), (3, (1, 1))])
def test_a_job_of_run_that_would_fail_again_ends_its_set(
    clean: World, code: int, restarts: tuple[int, int]
) -> None:
    wanted = samples.wanted(FACTS, ("true",), restarts=3)
    job_set = _create(clean, run_jobs.JOB_SET.build(FACTS, wanted))
    _grant(clean, job_set)
    _fail(clean, _pods(clean, job_set)[0], code)
    if code == run_jobs.HOPELESS:
        clean.until(lambda: holds(queues.now(clean, job_set), "Failed"))
        told = conditions(queues.now(clean, job_set))["Failed"]
        assert told["reason"] == "FailJobSetFailurePolicyAction"
    clean.until(lambda: _restarts(clean, job_set) == restarts)


def _tasks(world: World, slots: int, tasks: int, name: str = "sweep-1") -> Object:
    wanted = samples.wanted(FACTS, name=name, array=JobArray(0, tasks - 1))
    wanted = dataclasses.replace(wanted, nodes=1, slots=slots)
    return _create(world, run_jobs.JOB.build(FACTS, wanted))


def _of_index(world: World, index: int) -> Object | None:
    label = f"batch.kubernetes.io/job-completion-index={index}"
    return next(iter(world.cluster.all("v1", "Pod", "default", label)), None)


def test_a_task_that_fails_for_good_lets_the_others_go_on(clean: World) -> None:
    job = _tasks(clean, 2, 2)
    _grant(clean, job)
    only_ends = clean.until(lambda: _of_index(clean, 0))
    first = clean.until(lambda: _of_index(clean, 1))
    assert (job_pods.rank(first), job_pods.is_placeholder(only_ends)) == (0, True)
    assert first["metadata"]["annotations"][run_jobs.FAILURES] == "0"
    _fail(clean, only_ends, 0)
    _fail(clean, first, run_jobs.HOPELESS)
    clean.until(lambda: run_jobs.ended(queues.now(clean, job)) == ([], [0]))
    second = clean.until(lambda: _of_index(clean, 2))
    clean.until(lambda: queues.now(clean, job)["status"].get("ready") == 1)
    # Else the queue takes its nodes back after a while.
    clean.until(lambda: _ready(clean, job))
    time.sleep(1)
    assert _ready(clean, job)
    assert run_jobs.JOB.end(queues.now(clean, job)) is None
    _fail(clean, clean.until(lambda: queues.now(clean, second)), 0)
    clean.until(lambda: holds(queues.now(clean, job), "Failed"))
    assert run_jobs.ended(queues.now(clean, job)) == ([1], [0])
    assert conditions(queues.now(clean, job))["Failed"]["reason"] == "FailedIndexes"
    clean.until(lambda: holds(queues.workload(clean, job), "Finished"))


def test_a_job_of_tasks_begins_with_what_there_is_quota_for(clean: World) -> None:
    large = _tasks(clean, 3, 9, "large-1")
    clean.until(lambda: holds(queues.workload(clean, large), "QuotaReserved"))
    small = _tasks(clean, 4, 9, "small-1")
    clean.until(lambda: holds(queues.workload(clean, small), "QuotaReserved"))
    (got,) = queues.workload(clean, small)["status"]["admission"]["podSetAssignments"]
    assert got["count"] == 1
    (asked,) = clean.request("small-1")["spec"]["podSets"]
    assert asked["count"] == 1


def test_a_lost_node_begins_all_again_on_nodes_of_another_request(clean: World) -> None:
    job_set = _submit(clean)
    request = _grant(clean, job_set)
    lost = _pods(clean, job_set)[0]
    _lose(clean, lost)
    clean.until(lambda: _restarts(clean, job_set) == (1, 0))
    clean.until(lambda: queues.evicted(clean, job_set) == "PodsReadyTimeout")
    again = _grant(clean, job_set, other_than=request["metadata"]["uid"])
    assert again["metadata"]["name"] == request["metadata"]["name"]
    clean.until(lambda: len(_pods(clean, job_set)) == 2)
    nodes = {it["spec"].get("nodeName") for it in _pods(clean, job_set)}
    assert lost["spec"]["nodeName"] not in nodes
    assert _restarts(clean, job_set) == (1, 0)


def test_a_job_is_stopped_before_its_nodes_end_and_goes_on_in_its_next_run(clean: World) -> None:
    job_set = _submit(clean, **{kueue.MOST_SECONDS: "4"})
    request = _grant(clean, job_set)
    grace = {it["spec"]["terminationGracePeriodSeconds"] for it in _pods(clean, job_set)}
    assert grace == {600}
    reason = "DeactivatedDueToMaximumExecutionTimeExceeded"
    clean.until(lambda: queues.evicted(clean, job_set) == reason)
    clean.until(lambda: queues.now(clean, job_set)["spec"]["suspend"])
    clean.until(lambda: not _pods(clean, job_set))
    work = queues.workload(clean, job_set)
    said = conditions(work)["Evicted"]["message"]
    assert said == "The workload is deactivated due to exceeding the maximum execution time"
    # Google buys no nodes for it meanwhile, and it is no failure.
    assert _requests(clean) == []
    assert _restarts(clean, job_set) == (0, 0)
    # No next run: Kueue takes back what is set here.
    _activate(clean, work)
    clean.until(lambda: queues.workload(clean, job_set)["spec"]["active"] is False)
    _next_run(clean, job_set, work, request)


def test_a_job_whose_nodes_were_revoked_goes_on_in_its_next_run(clean: World) -> None:
    job_set = _submit(clean)
    request = _grant(clean, job_set)
    clean.answer(queues.now(clean, request), "CapacityRevoked", "CapacityRevoked", "reclaimed")
    reason = "DeactivatedDueToAdmissionCheck"
    clean.until(lambda: queues.evicted(clean, job_set) == reason)
    clean.until(lambda: not _pods(clean, job_set))
    _next_run(clean, job_set, queues.workload(clean, job_set), request)


def _requests(world: World) -> list[Object]:
    return world.cluster.all("autoscaling.x-k8s.io/v1", "ProvisioningRequest", "default")


def _activate(world: World, work: Object) -> None:
    body = Body({"spec": {"active": True}}, "application/merge-patch+json")
    world.cluster._json("activate", "PATCH", world.cluster._path_of(work), body=body)


def _next_run(world: World, job_set: Object, work: Object, request: Object) -> None:
    """Delete the workload, as the guide says: the job gets another one, which asks anew."""
    world.cluster.delete(kueue.API, "Workload", work["metadata"]["name"], "default")
    _grant(world, job_set, other_than=request["metadata"]["uid"])
    again = queues.workload(world, job_set)
    assert again["metadata"]["uid"] != work["metadata"]["uid"]
    assert holds(again, "Admitted")
    assert queues.now(world, job_set)["metadata"]["uid"] == job_set["metadata"]["uid"]
