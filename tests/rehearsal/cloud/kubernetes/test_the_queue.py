"""Jobs in Kueue's queue, and the nodes that they wait for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from provision.errors import CapacityError
from provision.kinds.gke.kubernetes import all_gather, clearing, jobs, kueue, status
from provision.kinds.gke.kubernetes.objects import conditions, holds

if TYPE_CHECKING:
    from collections.abc import Callable

    from provision.documents.gke_status import NodeRequest
    from provision.kinds.gke.kubernetes.facts import ClusterFacts, GpuPool
    from provision.kinds.gke.kubernetes.objects import Object
    from tests.rehearsal.cloud.kubernetes.conftest import Clock, Gke, Make

pytestmark = pytest.mark.loopback

EXAMPLE = "gke-ray-h200"
GKE = "/container/v1/projects/my-project/locations/us-central1"


def _job(cluster: Gke, name: str = "one", **changes: Any) -> Object:
    """Submit the sample job; it as it came back."""
    thing = jobs.sample(cluster.facts, jobs.main_pool(cluster.facts))
    metadata = thing["metadata"]
    del metadata["generateName"]
    metadata["name"] = name
    for part in ("labels", "annotations"):
        metadata[part] |= changes.pop(part, {})
    thing["spec"] |= changes
    return cluster.api.create(thing)


def _request(cluster: Gke) -> NodeRequest:
    return status.read(cluster.api).requests[-1]


def _said(cluster: Gke, thing: Object) -> set[str]:
    return {name for name in conditions(cluster.find(thing)) if holds(cluster.find(thing), name)}


@pytest.fixture
def waiting(gke_of: Make, clock: Clock) -> Gke:
    """A cluster by a clock that is moved by hand, under the scenario `queue`."""
    cluster = gke_of(EXAMPLE, "queue", "1")
    cluster.create()
    clock.forward(60)  # the system pool is ready
    return cluster


def test_a_queued_job_waits_for_its_nodes_with_a_reason_and_then_runs_on_them(
    waiting: Gke, clock: Clock
) -> None:
    job = _job(waiting)
    assert waiting.find(job)["spec"]["suspend"]
    (work,) = status.read(waiting.api).workloads
    assert (work.name, work.state) == ("Job one", "waiting for nodes")
    assert _request(waiting).state == "pending"

    clock.forward(60)
    request = _request(waiting)
    assert (request.state, request.reason) == ("waiting", "ResourcePoolExhausted")
    assert waiting.find(job)["spec"]["suspend"]

    clock.forward(250)  # not yet granted
    assert waiting.find(job)["spec"]["suspend"]
    clock.forward(65)  # granted, and nodes are ready
    assert _request(waiting).state == "running"
    assert not waiting.find(job)["spec"]["suspend"]
    (pod,) = waiting.pods()
    assert pod["status"]["phase"] == "Running"
    annotations = pod["metadata"]["annotations"]
    assert (
        annotations["autoscaling.x-k8s.io/consume-provisioning-request"] == _request(waiting).name
    )
    assert kueue.QUEUED_TAINT in {it.get("key") for it in pod["spec"]["tolerations"]}
    node = waiting.api.find("v1", "Node", pod["spec"]["nodeName"])
    assert node is not None
    assert kueue.QUEUED_TAINT in {it["key"] for it in node["spec"]["taints"]}

    clock.forward(125)  # it sleeps for two minutes
    assert "Complete" in _said(waiting, job)
    assert status.read(waiting.api).workloads[0].state == "finished"
    assert not status.read(waiting.api).requests


def test_nodes_that_are_idle_for_ten_minutes_go(waiting: Gke, clock: Clock) -> None:
    _job(waiting, annotations={kueue.RUN_SECONDS: "7200"})
    pool = jobs.main_pool(waiting.facts).name
    clock.forward(510)
    assert [pod["status"]["phase"] for pod in waiting.pods()] == ["Succeeded"]
    assert waiting.nodes(pool) == 1
    clock.forward(570)
    assert waiting.nodes(pool) == 1
    clock.forward(60)
    assert waiting.nodes(pool) == 0


def test_a_job_whose_run_is_over_is_given_up_and_its_nodes_go(waiting: Gke, clock: Clock) -> None:
    template = jobs.sample(waiting.facts, jobs.main_pool(waiting.facts))["spec"]["template"]
    template["spec"]["containers"][0]["args"] = ["3600s"]
    job = _job(waiting, template=template)
    pool = jobs.main_pool(waiting.facts).name
    for seconds in (10, 310, 60):
        clock.forward(seconds)
        waiting.pods()
    assert waiting.pods()[0]["status"]["phase"] == "Running"
    clock.forward(700)
    assert waiting.nodes(pool) == 0
    # Pods in place of those of the nodes would wait for ever: Kueue suspends the job.
    assert waiting.pods() == []
    assert waiting.find(job)["spec"]["suspend"]
    (work,) = status.read(waiting.api).workloads
    assert work.state == "given up"
    assert "maxRunDurationSeconds" in work.advice


def test_nodes_that_no_pod_uses_in_time_are_lost_and_the_request_says_so(
    waiting: Gke, clock: Clock
) -> None:
    thing = jobs.sample(waiting.facts, jobs.main_pool(waiting.facts))
    template = {
        "metadata": {"name": "tpl", "namespace": "default"},
        "template": thing["spec"]["template"],
    }
    waiting.api.create({"apiVersion": "v1", "kind": "PodTemplate", **template})
    spec = {
        "provisioningClassName": "queued-provisioning.gke.io",
        "podSets": [{"count": 1, "podTemplateRef": {"name": "tpl"}}],
    }
    metadata = {"name": "by-hand", "namespace": "default"}
    request = {"apiVersion": status.REQUEST_API, "kind": status.REQUEST}
    waiting.api.create({**request, "metadata": metadata, "spec": spec})
    for seconds in (10, 340, 60):
        clock.forward(seconds)
        assert _request(waiting).name == "by-hand"
    assert _request(waiting).state == "provisioned"
    assert "10 minutes" in _request(waiting).advice
    clock.forward(601)
    assert _request(waiting).state == "expired"
    assert "go when none does" in _request(waiting).advice


def test_a_request_that_is_deleted_is_cancelled_and_no_node_comes(
    waiting: Gke, clock: Clock
) -> None:
    job = _job(waiting)
    clock.forward(60)
    assert _request(waiting).state == "waiting"
    waiting.api.delete("batch/v1", "Job", job["metadata"]["name"], "default")
    assert not status.read(waiting.api).requests
    assert not status.read(waiting.api).workloads
    clock.forward(1000)
    assert waiting.nodes(jobs.main_pool(waiting.facts).name) == 0


def test_giving_up_stops_the_queue_and_creating_again_starts_it(waiting: Gke, clock: Clock) -> None:
    _job(waiting)
    clock.forward(60)
    assert clearing.cancel_requests(waiting.api, waiting.facts) == 1
    clock.forward(1)
    assert not status.read(waiting.api).requests
    assert status.read(waiting.api).workloads[0].message == (
        "ClusterQueue dws-cluster-queue is inactive"
    )
    assert waiting.create() == 1
    assert len(status.read(waiting.api).requests) == 1


MAKERS: dict[str, Callable[[ClusterFacts, GpuPool], Object]] = {
    "sample": jobs.sample,
    "ray_job": jobs.ray_job,
    "ray_cluster": jobs.ray_cluster,
    "test": lambda facts, pool: all_gather.job_set(facts, pool, 2),
}


@pytest.mark.parametrize("maker", MAKERS)
def test_a_queue_that_is_drained_suspends_what_runs(waiting: Gke, clock: Clock, maker: str) -> None:
    made = waiting.api.create(MAKERS[maker](waiting.facts, jobs.main_pool(waiting.facts)))
    for seconds in (10, 400):
        clock.forward(seconds)
        waiting.pods()
    assert {pod["status"]["phase"] for pod in waiting.pods()} == {"Running"}
    queue = next(it for it in kueue.objects(waiting.facts) if it["kind"] == "ClusterQueue")
    waiting.api.apply({**queue, "spec": {**queue["spec"], "stopPolicy": "HoldAndDrain"}})
    assert waiting.find(made)["spec"]["suspend"]
    assert waiting.pods() == []
    assert not status.read(waiting.api).requests


@pytest.mark.parametrize("whole", [False, True])
def test_a_pool_or_cluster_that_goes_takes_its_request_with_it(
    gke_of: Make, clock: Clock, *, whole: bool
) -> None:
    cluster = gke_of(EXAMPLE, "never", "1")
    cluster.create()
    _job(cluster)
    clock.forward(60)
    assert _request(cluster).state == "waiting"
    pool = jobs.main_pool(cluster.facts).name
    at = f"{GKE}/clusters/demo-gke"
    cluster.google("DELETE", at if whole else f"{at}/nodePools/{pool}")
    if not whole:
        clock.forward(150)
        (work,) = status.read(cluster.api).workloads
        assert "Retry state" in work.message
    clock.forward(600)
    groups = "/compute/v1/projects/my-project/zones/us-central1-b/instanceGroupManagers"
    left = cluster.google("GET", groups).get("items", [])
    assert [it["name"] for it in left if "ray-h200" in it["name"]] == []


def test_under_never_a_job_waits_for_ever(gke_of: Make, clock: Clock) -> None:
    cluster = gke_of(EXAMPLE, "never", "1")
    cluster.create()
    job = _job(cluster)
    for _ in range(3):
        clock.forward(100_000)
        assert _request(cluster).state == "waiting"
    assert cluster.find(job)["spec"]["suspend"]
    assert cluster.nodes(jobs.main_pool(cluster.facts).name) == 0


@pytest.mark.slow(
    sibling="tests/rehearsal/cloud/kubernetes/test_the_queue.py"
    "::test_a_job_whose_requests_fail_is_tried_on_and_on"
)
@pytest.mark.parametrize(
    ("scenario", "message", "advice"),
    [
        (
            "quota",
            "Quota 'PREEMPTIBLE_NVIDIA_H200_GPUS' exceeded.  Limit: 0.0 in region us-central1.",
            "request a higher quota PREEMPTIBLE_NVIDIA_H200_GPUS of us-central1",
        ),
        ("stockout", "due to insufficient capacity in zone us-central1-b", "another zone"),
    ],
)
def test_requests_that_fail_are_tried_again_and_then_given_up_with_the_cause_that_a_rest_hides(
    gke_of: Make, clock: Clock, scenario: str, message: str, advice: str
) -> None:
    cluster = gke_of(EXAMPLE, scenario, "1")
    cluster.create()
    _give_up_after(cluster, 3)
    job = _job(cluster)
    names: list[str] = []
    retried = 0
    for _ in range(110):
        clock.forward(10)
        found = status.read(cluster.api)
        # Kueue deletes a request that failed before it makes the next one.
        assert len(found.requests) <= 1
        names += [it.name for it in found.requests if it.name not in names]
        (work,) = found.workloads
        if work.state == "pending":
            retried += 1
            assert message in work.message
            assert advice in work.advice
    assert [name[-1] for name in names] == ["1", "2", "3", "4"]
    # 60, 120 and 240 seconds lie between the attempts.
    assert 38 <= retried <= 46
    (work,) = status.read(cluster.api).workloads
    assert work.state == "given up"
    assert "Nodepool in backoff after failed scale-up" in work.message
    assert "; the failure before: " in work.message
    assert message in work.message
    assert advice in work.advice
    assert cluster.find(job)["spec"]["suspend"]


def _give_up_after(cluster: Gke, limit: int) -> None:
    (config,) = (
        it for it in kueue.objects(cluster.facts) if it["kind"] == "ProvisioningRequestConfig"
    )
    config["spec"]["retryStrategy"]["backoffLimitCount"] = limit
    cluster.api.apply(config)


def test_a_job_whose_requests_fail_is_tried_on_and_on(gke_of: Make, clock: Clock) -> None:
    cluster = gke_of(EXAMPLE, "stockout", "1")
    cluster.create()
    _job(cluster)
    for _ in range(60):
        clock.forward(120)
        (work,) = status.read(cluster.api).workloads
    # Two hours: pauses of 1, 2, 4, 8, 16 minutes, then half an hour each.
    assert work.state != "given up"
    assert work.retries >= 6
    assert "another zone" in work.advice


def test_a_job_of_more_priority_takes_what_one_of_less_has(waiting: Gke, clock: Clock) -> None:
    low = {"kueue.x-k8s.io/priority-class": "low"}
    _job(waiting, "low", labels=low, parallelism=32, completions=32)
    high = {"kueue.x-k8s.io/priority-class": "high"}
    _job(waiting, "high", labels=high, parallelism=32, completions=32)
    clock.forward(10)
    states = {it.name: it.state for it in status.read(waiting.api).workloads}
    assert states == {"Job high": "waiting for nodes", "Job low": "pending"}


def test_a_booking_that_expires_before_the_job_is_admitted_is_tried_again(
    waiting: Gke, clock: Clock
) -> None:
    job = _job(waiting)
    clock.forward(60)
    # A second check that nobody answers keeps the job from its nodes.
    (config,) = (it for it in kueue.objects(waiting.facts) if it["kind"] == "AdmissionCheck")
    other = {**config, "metadata": {"name": "slow"}}
    other["spec"] = {**config["spec"], "parameters": {**config["spec"]["parameters"], "name": "x"}}
    waiting.api.apply(other)
    (work,) = waiting.api.all(kueue.API, "Workload")
    checks = [*work["status"]["admissionChecks"], {"name": "slow", "state": "Pending"}]
    queue = next(it for it in kueue.objects(waiting.facts) if it["kind"] == "ClusterQueue")
    names = [{"name": it["name"]} for it in checks]
    spec = {**queue["spec"], "admissionChecksStrategy": {"admissionChecks": names}}
    waiting.api.apply({**queue, "spec": spec})
    waiting.api.delete("batch/v1", "Job", job["metadata"]["name"], "default")
    clock.forward(10)
    _job(waiting, "two")
    clock.forward(400)
    assert _request(waiting).state == "provisioned"
    clock.forward(620)
    (work,) = waiting.api.all(kueue.API, "Workload")
    said = conditions(work)["Evicted"]["message"]
    assert "Retrying after booking expired: Capacity booking for the Provisioning Request" in said


def test_the_bandwidth_test_tells_why_it_got_no_nodes(gke_of: Make) -> None:
    cluster = gke_of(EXAMPLE, "stockout")
    cluster.create()
    with pytest.raises(CapacityError) as caught:
        cluster.test()
    assert "another zone" in caught.value.problems[0].fix


def test_a_job_without_gpus_needs_no_request(waiting: Gke) -> None:
    template = jobs.sample(waiting.facts, jobs.main_pool(waiting.facts))["spec"]["template"]
    spec = template["spec"]
    del spec["nodeSelector"]
    spec["containers"][0]["resources"] = {"requests": {"cpu": "100m"}}
    job = _job(waiting, template=template)
    assert not waiting.find(job)["spec"]["suspend"]
    assert not status.read(waiting.api).requests
    (pod,) = waiting.pods()
    assert pod["status"]["phase"] == "Running"


def test_a_job_of_no_queue_is_not_held(waiting: Gke) -> None:
    job = _job(waiting, "other", labels={"kueue.x-k8s.io/queue-name": "none"})
    assert waiting.find(job)["spec"]["suspend"]
    (work,) = status.read(waiting.api).workloads
    assert work.message == "LocalQueue none doesn't exist"


def test_more_gpus_than_the_queue_has_are_not_admitted(waiting: Gke) -> None:
    _job(waiting, parallelism=33, completions=33)
    (work,) = status.read(waiting.api).workloads
    assert work.state == "pending"
    assert "insufficient quota for nvidia.com/gpu in flavor ray-h200-nodepool-1" in work.message
    assert not status.read(waiting.api).requests


def test_the_more_urgent_of_two_jobs_gets_what_is_left(waiting: Gke) -> None:
    label = {"kueue.x-k8s.io/priority-class": "very-high"}
    _job(waiting, "first", labels=label, parallelism=32, completions=32)
    for name in ("low", "high"):
        label = {"kueue.x-k8s.io/priority-class": name}
        _job(waiting, name, labels=label, parallelism=32, completions=32)
    pending = {it.name: it for it in status.read(waiting.api).workloads if it.state == "pending"}
    assert pending.keys() == {"Job low", "Job high"}
    assert "insufficient unused quota" in pending["Job low"].message
    waiting.api.delete("batch/v1", "Job", "first", "default")
    states = {it.name: it.state for it in status.read(waiting.api).workloads}
    assert states == {"Job high": "waiting for nodes", "Job low": "pending"}


def test_the_queue_says_what_it_lacks(waiting: Gke) -> None:
    def active() -> Object:
        found = waiting.api.find(kueue.API, "ClusterQueue", kueue.CLUSTER_QUEUE)
        return dict(conditions(found or {})["Active"])

    assert active()["status"] == "True"
    waiting.api.delete(kueue.API, "AdmissionCheck", kueue.CHECK)
    assert active()["reason"] == "AdmissionCheckNotFound"
    assert kueue.CHECK in active()["message"]
