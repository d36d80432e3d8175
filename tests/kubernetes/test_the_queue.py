"""What the real Kueue makes of our queues: whose turn it is, where, and what mends itself."""

import itertools
from collections.abc import Iterator
from typing import Any

import pytest

from provision.documents.gke_status import JobState, PodCounts, RequestState, Workload
from provision.kinds.gke.kubernetes import jobs, kueue, stages, status
from provision.kinds.gke.kubernetes.facts import GpuPool
from provision.kinds.gke.kubernetes.objects import Object, holds
from provision.settings.gke import Queue
from tests.kubernetes import processes, queues, samples
from tests.kubernetes.world import World

_NUMBERS = itertools.count()


@pytest.fixture
def clean(world: World) -> Iterator[World]:
    """A cluster without jobs and queues, before and after."""
    queues.clear(world)
    yield world
    queues.clear(world)


def _set_of_jobs(world: World, name: str, *parts: str, queue: str = "", **selector: str) -> Object:
    """Make a JobSet of equal parts, each a pod with one GPU that runs until it is deleted."""
    resources = {"requests": {kueue.GPU: "1"}, "limits": {kueue.GPU: "1"}}
    container = {"name": "c", "image": "i", "resources": resources}
    pod = {"nodeSelector": selector, "containers": [container], "restartPolicy": "Never"}
    job = {"parallelism": 1, "completions": 1, "template": {"spec": pod}}
    full = f"{name}-{next(_NUMBERS)}"
    return world.cluster.create(
        {
            "apiVersion": "jobset.x-k8s.io/v1alpha2",
            "kind": "JobSet",
            "metadata": {
                "name": full,
                "namespace": "default",
                "labels": {kueue.QUEUE_LABEL: queue or kueue.LOCAL_QUEUE},
            },
            "spec": {
                "suspend": True,
                "replicatedJobs": [
                    {"name": part, "template": {"spec": job}} for part in parts or ("main",)
                ],
            },
        }
    )


def _until_admitted(world: World, thing: Object) -> Object:
    world.until(lambda: holds(queues.workload(world, thing), "Admitted"))
    world.until(lambda: queues.now(world, thing)["spec"]["suspend"] is False)
    return queues.now(world, thing)


def _flavor(world: World, thing: Object) -> str:
    """The flavor that its GPUs were taken from."""
    (pods,) = queues.workload(world, thing)["status"]["admission"]["podSetAssignments"]
    flavor: str = pods["flavors"][kueue.GPU]
    return flavor


def _pods(thing: Object) -> list[Any]:
    return [part["template"]["spec"]["template"] for part in thing["spec"]["replicatedJobs"]]


def test_each_pod_of_a_job_is_bound_to_the_nodes_of_its_own_request(clean: World) -> None:
    queues.set_up(clean, samples.facts(samples.pool_like(samples.A100, max_nodes=4)))
    job = _set_of_jobs(clean, "bound", "driver", "worker")
    request = clean.request(job["metadata"]["name"])
    details = {"ResizeRequestName": "rr-17"}
    clean.answer(request, "Provisioned", "Provisioned", **details)
    started = _until_admitted(clean, job)
    # Two alike groups of pods: of merged ones only the first would be told.
    consumed = "autoscaling.x-k8s.io/consume-provisioning-request"
    assert [pods["metadata"]["annotations"][consumed] for pods in _pods(started)] == [
        request["metadata"]["name"]
    ] * 2
    assert [pods["spec"]["nodeSelector"][queues.REQUEST] for pods in _pods(started)] == [
        "rr-17"
    ] * 2


def test_a_job_whose_pods_claim_their_interfaces_counts_by_its_gpus(clean: World) -> None:
    facts = samples.BY_GKE
    (pool,) = facts.pools
    queues.set_up(clean, facts)
    for thing in stages.claims(facts):
        clean.cluster.apply(thing)
    job = clean.cluster.create(jobs.torchrun(facts, pool, 2))
    started = _until_admitted(clean, job)
    assert _flavor(clean, job) == pool.name
    (pods,) = _pods(started)
    assert pods["spec"]["resourceClaims"] == [stages.claim(pool)]


def test_the_second_of_two_jobs_outlasts_a_pool_that_the_first_still_fills(clean: World) -> None:
    queues.set_up(clean, samples.facts(samples.A100))
    first = _set_of_jobs(clean, "first")
    clean.answer(clean.request("first"), "Provisioned", "Provisioned")
    _until_admitted(clean, first)
    second = _set_of_jobs(clean, "second")
    # It has no quota, so that no request is made of a pool that is taken.
    clean.until(
        lambda: (
            "insufficient unused quota"
            in str(queues.workload(clean, second).get("status", {}).get("conditions"))
        )
    )
    clean.cluster.delete(first["apiVersion"], "JobSet", first["metadata"]["name"], "default")
    words = "Max nodepool size reached, affected nodepools: demo-a100"
    for attempt in range(1, 6):
        request = clean.request("second", attempt)
        clean.answer(request, "Failed", "NodepoolSizeReached", words)
    clean.answer(clean.request("second", 6), "Provisioned", "Provisioned")
    _until_admitted(clean, second)


def test_a_job_that_lost_a_node_gives_the_rest_back_and_asks_anew(clean: World) -> None:
    pool = samples.pool_like(samples.A100, max_nodes=4)
    queues.set_up(clean, samples.facts(pool))
    job = _submitted(clean, "lost", pool)
    request = clean.request("lost")
    clean.add_node(pool, "a100-0", **{queues.REQUEST: "rr-1"})
    clean.answer(request, "Provisioned", "Provisioned", ResizeRequestName="rr-1")
    _until_admitted(clean, job)
    clean.until(lambda: holds(queues.workload(clean, job), "PodsReady"))
    (pod,) = clean.cluster.all("v1", "Pod", "default", f"job-name={job['metadata']['name']}")
    # The VM is gone, and what ran on it.
    clean.cluster.delete("v1", "Node", "a100-0")
    clean.cluster.delete("v1", "Pod", pod["metadata"]["name"], "default")
    clean.until(lambda: queues.evicted(clean, job) == "PodsReadyTimeout")

    def anew() -> Object | None:
        found = clean.request("lost")
        return None if found["metadata"]["uid"] == request["metadata"]["uid"] else found

    # Another request: the one before is gone, and what it asked for with it.
    clean.answer(clean.until(anew), "Provisioned", "Provisioned", ResizeRequestName="rr-2")
    again = _until_admitted(clean, job)
    assert again["spec"]["template"]["spec"]["nodeSelector"][queues.REQUEST] == "rr-2"


def test_status_tells_of_each_job_by_its_pods_and_of_one_in_no_queue(clean: World) -> None:
    pool = samples.pool_like(samples.A100, max_nodes=4)
    queues.set_up(clean, samples.facts(pool))
    job = _submitted(clean, "told", pool)
    request = clean.request("told")
    assert _told(clean, job).state is JobState.WAITING_FOR_NODES
    clean.answer(request, "Provisioned", "Provisioned", ResizeRequestName="rr-1")
    # It is let in, and its pod has no node yet.
    words = "no nodes available to schedule pods"
    starting = clean.until(lambda: _if(_told(clean, job), JobState.STARTING, words))
    assert starting.pods == PodCounts(waiting=1)
    (asked,) = status.read(clean.cluster).requests
    assert (asked.state, asked.then) == (RequestState.RUNNING, "Google deletes its nodes")
    clean.add_node(pool, "a100-0", **{queues.REQUEST: "rr-1"})
    running = clean.until(lambda: _if(_told(clean, job), JobState.RUNNING))
    assert running.pods == PodCounts(ready=1)
    assert (running.pools, running.flavors) == ((pool.name,), (pool.name,))
    assert running.queue == kueue.LOCAL_QUEUE

    loose = _submitted(clean, "loose", pool, queued=False)
    name = f"Job {loose['metadata']['name']}"

    def outside() -> Workload | None:
        found = status.read(clean.cluster).outside
        return next((it for it in found if it.name == name and it.message), None)

    found = clean.until(outside)
    assert found.state is JobState.PENDING
    assert "1 node(s) had untolerated taint" in found.message
    assert f"{kueue.QUEUE_LABEL}: {kueue.LOCAL_QUEUE}" in found.advice
    assert [it.name for it in status.read(clean.cluster).outside] == [name]


def _told(world: World, job: Object) -> Workload:
    name = f"Job {job['metadata']['name']}"
    return world.until(
        lambda: next((it for it in status.read(world.cluster).workloads if it.name == name), None)
    )


def _if(found: Workload, state: JobState, words: str = "") -> Workload | None:
    return found if found.state is state and words in found.message else None


def test_a_team_gets_its_share_back_from_one_that_borrowed_it(clean: World) -> None:
    teams = (Queue(name="team-a", gpus=1), Queue(name="team-b", gpus=1))
    queues.set_up(clean, samples.facts(samples.L4, queues=teams))
    first = _set_of_jobs(clean, "a", queue="team-a")
    borrower = _set_of_jobs(clean, "a-too", queue="team-a")
    _until_admitted(clean, first)
    _until_admitted(clean, borrower)
    owner = _set_of_jobs(clean, "b", queue="team-b")
    _until_admitted(clean, owner)
    waiting = clean.until(
        lambda: [it for it in (first, borrower) if queues.now(clean, it)["spec"]["suspend"]]
    )
    assert len(waiting) == 1
    assert holds(queues.workload(clean, waiting[0]), "Preempted")


def test_a_job_takes_reserved_nodes_first_and_asks_for_others_when_they_are_taken(
    clean: World,
) -> None:
    queues.set_up(clean, samples.facts(samples.A100, samples.RESERVED))
    first = _set_of_jobs(clean, "first")
    _until_admitted(clean, first)
    assert _flavor(clean, first) == samples.RESERVED.name
    second = _set_of_jobs(clean, "second")
    clean.answer(clean.request("second"), "Provisioned", "Provisioned")
    _until_admitted(clean, second)
    assert _flavor(clean, second) == samples.A100.name
    requests = clean.cluster.all("autoscaling.x-k8s.io/v1", "ProvisioningRequest", "default")
    assert not [it for it in requests if "first" in it["metadata"]["name"]]


def test_a_job_gets_the_pool_of_the_gpus_that_it_selects(clean: World) -> None:
    queues.set_up(clean, samples.facts(samples.RESERVED, samples.L4))
    job = _set_of_jobs(clean, "picky", **{kueue.ACCELERATOR_LABEL: "nvidia-l4"})
    _until_admitted(clean, job)
    assert _flavor(clean, job) == samples.L4.name


def test_a_job_of_more_priority_takes_the_place_of_one_of_less(clean: World) -> None:
    one = samples.pool_like(samples.L4, max_nodes=1)
    queues.set_up(clean, samples.facts(one))
    low = _submitted(clean, "low", one, priority="low")
    _until_admitted(clean, low)
    high = _submitted(clean, "high", one, priority="high")
    _until_admitted(clean, high)
    clean.until(lambda: queues.now(clean, low)["spec"]["suspend"])


def _submitted(
    world: World, name: str, pool: GpuPool, priority: str = "medium", *, queued: bool = True
) -> Object:
    """Make a Job of one pod with one GPU, which kwok keeps running."""
    resources = {"requests": {kueue.GPU: "1"}, "limits": {kueue.GPU: "1"}}
    pod = {
        "nodeSelector": {kueue.POOL_LABEL: pool.name},
        "containers": [{"name": "c", "image": "i", "resources": resources}],
        "restartPolicy": "Never",
        **({} if queued else {"tolerations": [{"key": kueue.GPU, "operator": "Exists"}]}),
    }
    metadata = {"annotations": {processes.STAYS: "true"}}
    labels = {kueue.QUEUE_LABEL: kueue.LOCAL_QUEUE, "kueue.x-k8s.io/priority-class": priority}
    return world.cluster.create(
        {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {
                "name": f"{name}-{next(_NUMBERS)}",
                "namespace": "default",
                "labels": labels if queued else {},
            },
            "spec": {"suspend": queued, "template": {"metadata": metadata, "spec": pod}},
        }
    )
