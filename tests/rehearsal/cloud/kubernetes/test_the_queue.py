from collections.abc import Callable
from typing import Any

import pytest

from provision.documents.gke_status import NodeRequest
from provision.errors import CapacityError
from provision.kinds.gke import release
from provision.kinds.gke.kubernetes import all_gather, jobs, kueue, status
from provision.kinds.gke.kubernetes.facts import ClusterFacts, GpuPool
from provision.kinds.gke.kubernetes.objects import Object, build, conditions, holds
from rehearsal.cloud.kubernetes import queues
from rehearsal.cloud.kubernetes.jobs import PodSet
from tests.rehearsal.cloud.kubernetes.conftest import Clock, Gke, Make

EXAMPLE = "gke-ray-h200"
GKE = "/container/v1/projects/my-project/locations/us-central1"


def _job(cluster: Gke, name: str = "one", **changes: Any) -> Object:
    """Submit the sample job; it as it came back."""
    thing = jobs.sample(cluster.facts, cluster.pool)
    metadata = thing["metadata"]
    del metadata["generateName"]
    metadata["name"] = name
    for part in ("labels", "annotations"):
        metadata[part] |= changes.pop(part, {})
    thing["spec"] |= changes
    return cluster.api.create(thing)


def _request(cluster: Gke) -> NodeRequest:
    return cluster.seen.requests[-1]


@pytest.fixture
def made(gke_of: Make) -> Make:
    """Makes a cluster with a queue, by a clock that is moved by hand."""

    def make(scenario: str, rate: str = "1") -> Gke:
        cluster = gke_of(EXAMPLE, scenario, rate)
        cluster.create()
        return cluster

    return make


@pytest.fixture
def waiting(made: Make, clock: Clock) -> Gke:
    """A cluster under the scenario `queue`."""
    cluster = made("queue")
    clock.forward(60)  # the system pool is ready
    return cluster


def _template(cluster: Gke, **container: Any) -> Object:
    """The pods of the sample job, with changes of their container."""
    template: Object = jobs.sample(cluster.facts, cluster.pool)["spec"]["template"]
    template["spec"]["containers"][0] |= container
    return template


def _states(cluster: Gke) -> dict[str, str]:
    return {it.name: it.state for it in cluster.seen.workloads}


def test_a_queued_job_waits_for_its_nodes_with_a_reason_and_then_runs_on_them(
    waiting: Gke, clock: Clock
) -> None:
    job = _job(waiting)
    assert waiting.find(job)["spec"]["suspend"]
    assert (waiting.work.name, waiting.work.state) == ("Job one", "waiting for nodes")
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
    consumed = pod["metadata"]["annotations"]["autoscaling.x-k8s.io/consume-provisioning-request"]
    assert consumed == _request(waiting).name
    assert kueue.QUEUED_TAINT in {it.get("key") for it in pod["spec"]["tolerations"]}
    node = waiting.api.find("v1", "Node", pod["spec"]["nodeName"])
    assert node is not None
    assert kueue.QUEUED_TAINT in {it["key"] for it in node["spec"]["taints"]}

    clock.forward(125)  # it sleeps for two minutes
    assert holds(waiting.find(job), "Complete")
    assert waiting.work.state == "finished"
    assert not waiting.seen.requests


def test_nodes_that_are_idle_for_ten_minutes_go(waiting: Gke, clock: Clock) -> None:
    _job(waiting, annotations={kueue.RUN_SECONDS: "7200"})
    clock.forward(510)
    assert waiting.phases() == ["Succeeded"]
    assert waiting.nodes() == 1
    clock.forward(570)
    assert waiting.nodes() == 1
    clock.forward(60)
    assert waiting.nodes() == 0


def test_a_job_whose_run_is_over_is_given_up_and_its_nodes_go(waiting: Gke, clock: Clock) -> None:
    job = _job(waiting, template=_template(waiting, args=["3600s"]))
    for seconds in (10, 310, 60):
        clock.forward(seconds)
        waiting.pods()
    assert waiting.phases() == ["Running"]
    clock.forward(700)
    assert waiting.nodes() == 0
    # Pods in place of those of the nodes would wait for ever: Kueue suspends the job.
    assert waiting.pods() == []
    assert waiting.find(job)["spec"]["suspend"]
    assert waiting.work.state == "given up"
    assert "maxRunDurationSeconds" in waiting.work.advice


def test_nodes_that_no_pod_uses_in_time_are_lost_and_the_request_says_so(
    waiting: Gke, clock: Clock
) -> None:
    template = build("v1", "PodTemplate", "tpl", "default", template=_template(waiting))
    waiting.api.create(template)
    sets = [{"count": 1, "podTemplateRef": {"name": "tpl"}}]
    spec = {"provisioningClassName": "queued-provisioning.gke.io", "podSets": sets}
    kind = status.REQUEST_API, status.REQUEST
    waiting.api.create(build(*kind, "by-hand", "default", spec=spec))
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
    _job(waiting)
    clock.forward(60)
    assert _request(waiting).state == "waiting"
    waiting.api.delete("batch/v1", "Job", "one", "default")
    assert not waiting.seen.requests
    assert not waiting.seen.workloads
    clock.forward(1000)
    assert waiting.nodes() == 0


def test_giving_up_stops_the_queue_and_creating_again_starts_it(waiting: Gke, clock: Clock) -> None:
    _job(waiting)
    clock.forward(60)
    assert release.cancel_requests(waiting.api, waiting.facts) == 1
    clock.forward(1)
    assert not waiting.seen.requests
    assert waiting.work.message == "ClusterQueue dws-cluster-queue is inactive"
    assert waiting.create() == 1
    assert len(waiting.seen.requests) == 1


MAKERS: dict[str, Callable[[ClusterFacts, GpuPool], Object]] = {
    "sample": jobs.sample,
    "ray_job": jobs.ray_job,
    "ray_cluster": jobs.ray_cluster,
    "test": lambda facts, pool: all_gather.job_set(facts, pool, 2),
}


@pytest.mark.parametrize("maker", MAKERS)
def test_a_queue_that_is_drained_suspends_what_runs(waiting: Gke, clock: Clock, maker: str) -> None:
    made = waiting.api.create(MAKERS[maker](waiting.facts, waiting.pool))
    for seconds in (10, 400):
        clock.forward(seconds)
        waiting.pods()
    assert set(waiting.phases()) == {"Running"}
    queue = _object(waiting, "ClusterQueue")
    waiting.api.apply({**queue, "spec": {**queue["spec"], "stopPolicy": "HoldAndDrain"}})
    assert waiting.find(made)["spec"]["suspend"]
    assert waiting.pods() == []
    assert not waiting.seen.requests


def _object(cluster: Gke, kind: str) -> Object:
    """The first of the program's own objects of a kind."""
    return next(it for it in kueue.objects(cluster.facts) if it["kind"] == kind)


@pytest.mark.parametrize("whole", [False, True])
def test_a_pool_or_cluster_that_goes_takes_its_request_with_it(
    made: Make, clock: Clock, *, whole: bool
) -> None:
    cluster = made("never")
    _job(cluster)
    clock.forward(60)
    assert _request(cluster).state == "waiting"
    at = f"{GKE}/clusters/demo-gke"
    cluster.google("DELETE", at if whole else f"{at}/nodePools/{cluster.pool.name}")
    if not whole:
        clock.forward(150)
        assert "Retry state" in cluster.work.message
    clock.forward(600)
    groups = "/compute/v1/projects/my-project/zones/us-central1-b/instanceGroupManagers"
    left = cluster.google("GET", groups).get("items", [])
    assert [it["name"] for it in left if "ray-h200" in it["name"]] == []


def test_under_never_a_job_waits_for_ever(made: Make, clock: Clock) -> None:
    cluster = made("never")
    job = _job(cluster)
    for _ in range(3):
        clock.forward(100_000)
        assert _request(cluster).state == "waiting"
    assert cluster.find(job)["spec"]["suspend"]
    assert cluster.nodes() == 0


@pytest.mark.slow(sibling="::test_a_job_whose_requests_fail_is_tried_on_and_on")
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
    made: Make, clock: Clock, scenario: str, message: str, advice: str
) -> None:
    cluster = made(scenario)
    config = _object(cluster, "ProvisioningRequestConfig")
    config["spec"]["retryStrategy"]["backoffLimitCount"] = 3
    cluster.api.apply(config)
    job = _job(cluster)
    names: list[str] = []
    retried = 0
    for _ in range(110):
        clock.forward(10)
        found = cluster.seen
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
    work = cluster.work
    assert work.state == "given up"
    for words in ("Nodepool in backoff after failed scale-up", "; the failure before: ", message):
        assert words in work.message
    assert advice in work.advice
    assert cluster.find(job)["spec"]["suspend"]


def test_a_job_whose_requests_fail_is_tried_on_and_on(made: Make, clock: Clock) -> None:
    cluster = made("stockout")
    _job(cluster)
    for _ in range(60):
        clock.forward(120)
        work = cluster.work
    # Two hours: pauses of 1, 2, 4, 8, 16 minutes, then half an hour each.
    assert work.state != "given up"
    assert work.retries >= 6
    assert "another zone" in work.advice


def _prioritized(cluster: Gke, name: str, priority: str = "") -> None:
    """A job of a priority, on all nodes."""
    label = {"kueue.x-k8s.io/priority-class": priority or name}
    _job(cluster, name, labels=label, parallelism=32, completions=32)


def test_a_job_of_more_priority_takes_what_one_of_less_has(waiting: Gke, clock: Clock) -> None:
    _prioritized(waiting, "low")
    _prioritized(waiting, "high")
    clock.forward(10)
    assert _states(waiting) == {"Job high": "waiting for nodes", "Job low": "pending"}


def test_the_more_urgent_of_two_jobs_gets_what_is_left(waiting: Gke) -> None:
    _prioritized(waiting, "first", "very-high")
    _prioritized(waiting, "low")
    _prioritized(waiting, "high")
    pending = {it.name: it for it in waiting.seen.workloads if it.state == "pending"}
    assert pending.keys() == {"Job low", "Job high"}
    assert "insufficient unused quota" in pending["Job low"].message
    waiting.api.delete("batch/v1", "Job", "first", "default")
    assert _states(waiting) == {"Job high": "waiting for nodes", "Job low": "pending"}


def test_a_booking_that_expires_before_the_job_is_admitted_is_tried_again(
    waiting: Gke, clock: Clock
) -> None:
    _job(waiting)
    clock.forward(60)
    # A second check that nobody answers keeps the job from its nodes.
    check, queue = _object(waiting, "AdmissionCheck"), _object(waiting, "ClusterQueue")
    parameters = {**check["spec"]["parameters"], "name": "x"}
    slow = {"metadata": {"name": "slow"}, "spec": {**check["spec"], "parameters": parameters}}
    waiting.api.apply({**check, **slow})
    (work,) = waiting.api.all(kueue.API, "Workload")
    names = [{"name": it["name"]} for it in work["status"]["admissionChecks"]]
    checks = {"admissionChecksStrategy": {"admissionChecks": [*names, {"name": "slow"}]}}
    waiting.api.apply({**queue, "spec": {**queue["spec"], **checks}})
    waiting.api.delete("batch/v1", "Job", "one", "default")
    clock.forward(10)
    _job(waiting, "two")
    clock.forward(400)
    assert _request(waiting).state == "provisioned"
    clock.forward(620)
    (work,) = waiting.api.all(kueue.API, "Workload")
    said = conditions(work)["Evicted"]["message"]
    assert "Retrying after booking expired: Capacity booking for the Provisioning Request" in said


def test_the_bandwidth_test_tells_why_it_got_no_nodes(made: Make) -> None:
    cluster = made("stockout", "0")
    with pytest.raises(CapacityError) as caught:
        cluster.test()
    assert "another zone" in caught.value.problems[0].fix


def test_a_job_without_gpus_needs_no_request(waiting: Gke) -> None:
    template = _template(waiting, resources={"requests": {"cpu": "100m"}})
    del template["spec"]["nodeSelector"]
    job = _job(waiting, template=template)
    assert not waiting.find(job)["spec"]["suspend"]
    assert not waiting.seen.requests
    assert waiting.phases() == ["Running"]


def test_a_job_of_no_queue_is_not_held(waiting: Gke) -> None:
    job = _job(waiting, "other", labels={"kueue.x-k8s.io/queue-name": "none"})
    assert waiting.find(job)["spec"]["suspend"]
    assert waiting.work.message == "LocalQueue none doesn't exist"


def test_more_gpus_than_the_queue_has_are_not_admitted(waiting: Gke) -> None:
    _job(waiting, parallelism=33, completions=33)
    work = waiting.work
    assert work.state == "pending"
    assert "insufficient quota for nvidia.com/gpu in flavor ray-h200-nodepool-1" in work.message
    assert not waiting.seen.requests


def test_the_queue_says_what_it_lacks(waiting: Gke) -> None:
    def active() -> Object:
        found = waiting.api.find(kueue.API, "ClusterQueue", kueue.CLUSTER_QUEUE)
        return dict(conditions(found or {})["Active"])

    assert active()["status"] == "True"
    waiting.api.delete(kueue.API, "AdmissionCheck", kueue.CHECK)
    assert active()["reason"] == "AdmissionCheckNotFound"
    assert kueue.CHECK in active()["message"]


@pytest.mark.parametrize("asks", [True, False])
@pytest.mark.parametrize("has", [True, False])
def test_pods_get_flavors_with_a_topology_if_they_ask_for_it_and_no_others(
    *, has: bool, asks: bool
) -> None:
    flavor = {"spec": {"topologyName": kueue.TOPOLOGY} if has else {}}
    template: Object = {"metadata": {"annotations": kueue.PLACED if asks else {}}, "spec": {}}
    said = queues._misplaced("p-placed", flavor, PodSet("main", 1, template))
    assert (said is None) is (has is asks)
    if has and not asks:
        assert "podset-preferred-topology: kubernetes" in kueue.lacks_place("p", str(said))
        assert not kueue.lacks_place("other", str(said))
