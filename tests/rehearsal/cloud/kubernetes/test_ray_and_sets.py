import dataclasses
from typing import Any

import pytest

from provision.kinds.gke.kubernetes import all_gather, jobs, stages
from provision.kinds.gke.kubernetes.objects import Object, holds
from tests.rehearsal.cloud.kubernetes.conftest import Clock, Gke, Make

PATIENCE = (10, 400)  # accepted, then granted and ready


@pytest.fixture
def cluster(gke_of: Make, clock: Clock) -> Gke:
    """With a queue whose nodes come, by a clock that is moved by hand."""
    made = gke_of("gke-ray-h200", "queue", "1")
    made.create()
    clock.forward(60)
    return made


def _submit(cluster: Gke, thing: Object) -> Object:
    thing["metadata"]["name"] = "one"
    del thing["metadata"]["generateName"]
    return cluster.api.create(thing)


def _pass(cluster: Gke, clock: Clock) -> None:
    for seconds in PATIENCE:
        clock.forward(seconds)
        cluster.pods()


def _clusters(cluster: Gke) -> list[Object]:
    return cluster.api.all("ray.io/v1", "RayCluster", "default")


def test_a_ray_cluster_has_no_pods_before_it_is_admitted_and_runs_until_it_is_deleted(
    cluster: Gke, clock: Clock
) -> None:
    made = _submit(cluster, jobs.ray_cluster(cluster.facts, cluster.pool))
    assert cluster.find(made)["status"]["state"] == "suspended"
    assert cluster.pods() == []
    _pass(cluster, clock)
    status_now = cluster.find(made)["status"]
    assert (status_now["state"], status_now["readyWorkerReplicas"]) == ("ready", 2)
    (head,) = cluster.pods("ray.io/node-type=head")
    assert "-system-" in head["spec"]["nodeName"]
    workers = cluster.pods("ray.io/node-type=worker")
    assert len({it["spec"]["nodeName"] for it in workers}) == 2
    assert all(len(it["spec"]["nodeName"].split("ray-h200")) == 2 for it in workers)
    clock.forward(10_000)
    assert cluster.find(made)["status"]["state"] == "ready"
    cluster.api.delete("ray.io/v1", "RayCluster", "one", "default")
    assert cluster.pods() == []
    assert not cluster.seen.workloads


def test_a_ray_job_makes_a_cluster_runs_and_takes_it_down(cluster: Gke, clock: Clock) -> None:
    made = _submit(cluster, jobs.ray_job(cluster.facts, cluster.pool))
    assert cluster.find(made)["status"]["jobDeploymentStatus"] == "Suspended"
    _pass(cluster, clock)
    assert cluster.find(made)["status"]["jobStatus"] == "RUNNING"
    assert len(_clusters(cluster)) == 1
    (submitter,) = cluster.pods("job-name=one")
    clock.forward(61)
    assert cluster.find(made)["status"]["jobStatus"] == "SUCCEEDED"
    assert _clusters(cluster) == []
    assert "succeeded" in cluster.log(submitter, "ray-job-submitter")
    assert (cluster.work.name, cluster.work.state) == ("RayJob one", "finished")


def _run_through(cluster: Gke, clock: Clock, **spec: Any) -> tuple[int, Object]:
    """Submit a RayJob, and look at it every half minute for ten: how many clusters, its end."""
    made = jobs.ray_job(cluster.facts, cluster.pool)
    made["spec"] |= spec
    made = _submit(cluster, made)
    names: set[str] = set()
    for _ in range(20):
        clock.forward(30)
        names |= {it["metadata"]["name"] for it in _clusters(cluster)}
    return len(names), cluster.find(made)["status"]


def test_a_ray_job_that_fails_is_begun_again_on_another_cluster_as_often_as_it_says(
    cluster: Gke, clock: Clock
) -> None:
    clusters, then = _run_through(cluster, clock, entrypoint="exit 3", backoffLimit=1)
    assert (clusters, then["failed"]) == (2, 2)
    assert (then["jobDeploymentStatus"], then["jobStatus"]) == ("Failed", "FAILED")
    assert then["reason"] == "AppFailed"
    assert _clusters(cluster) == []


def test_a_ray_job_that_takes_too_long_is_not_begun_again(cluster: Gke, clock: Clock) -> None:
    limits = {"activeDeadlineSeconds": 40, "backoffLimit": 3}
    clusters, then = _run_through(cluster, clock, **limits)
    assert clusters == 1
    assert (then["jobDeploymentStatus"], then["reason"]) == ("Failed", "DeadlineExceeded")
    assert cluster.work.state == "finished"


def test_a_ray_job_keeps_its_cluster_for_as_long_as_it_says_after_its_end(
    cluster: Gke, clock: Clock
) -> None:
    _, then = _run_through(cluster, clock, ttlSecondsAfterFinished=1200)
    assert then["jobDeploymentStatus"] == "Complete"
    assert len(_clusters(cluster)) == 1
    clock.forward(1200)
    assert cluster.pods("ray.io/node-type=worker") == []


def test_a_job_set_has_no_jobs_before_it_is_admitted_and_no_table_while_it_runs(
    cluster: Gke, clock: Clock
) -> None:
    made = _submit(cluster, all_gather.job_set(cluster.facts, cluster.pool, 2))
    assert holds(cluster.find(made), "Suspended")
    assert cluster.api.all("batch/v1", "Job", "default") == []
    _pass(cluster, clock)
    (job,) = cluster.api.all("batch/v1", "Job", "default")
    assert job["metadata"]["name"] == "one-w-0"
    first, second = cluster.pods("jobset.sigs.k8s.io/jobset-name=one")
    index = "batch.kubernetes.io/job-completion-index"
    assert [it["metadata"]["labels"][index] for it in (first, second)] == ["0", "1"]
    running = all_gather.parse(cluster.log(first, "nccl"))
    assert (running.networks, running.rows, running.average) == (("gIB",), (), None)
    clock.forward(241)
    assert holds(cluster.find(made), "Completed")
    assert all_gather.parse(cluster.log(first, "nccl")).average is not None
    assert all_gather.parse(cluster.log(second, "nccl")).rows == ()


def test_ray_asks_for_a_token_where_the_operator_knows_one(cluster: Gke) -> None:
    facts = dataclasses.replace(cluster.facts, ray_tokens=stages.ray_tokens(cluster.api))
    pool = jobs.main_pool(facts.pools)
    made = cluster.api.create(jobs.ray_job(facts, pool))
    assert made["spec"]["rayClusterSpec"]["authOptions"] == {"mode": "token"}
    before = jobs.ray_job(cluster.facts, pool)
    assert "authOptions" not in before["spec"]["rayClusterSpec"]
