"""How jobs end, by themselves or with their nodes, and what begins them again."""

import dataclasses
import json
from collections.abc import Callable
from typing import Any

import pytest
import yaml

from provision.kinds.gke.kubernetes import fabric_pods, jobs, kueue
from provision.kinds.gke.kubernetes.client import KubernetesError
from provision.kinds.gke.kubernetes.objects import Object, conditions, holds
from provision.settings.storage import Mount
from tests.rehearsal.cloud.kubernetes.conftest import Clock, Gke, Make

EXAMPLE = "gke-ray-h200"
HOURS = 3600
TRAIN = ["python3", "/train.py", "--checkpoints", "/mnt/data/run", "--steps", "144000"]
"""Two hours of steps, twenty in a second, with a checkpoint every five seconds."""


@pytest.fixture
def cluster(gke_of: Make, clock: Clock) -> Gke:
    """With a queue whose nodes come at once, by a clock that is moved by hand."""
    made = gke_of(EXAMPLE, "", "1")
    made.create()
    clock.forward(60)
    return made


def _pod(cluster: Gke, *command: str, **changes: Any) -> Object:
    """A pod template with all GPUs of a node, and a claim at /mnt/data."""
    container = {
        "name": "main",
        "image": "train",
        "command": list(command),
        "resources": {"limits": {kueue.GPU: str(cluster.pool.gpus)}},
        "volumeMounts": [{"name": "data", "mountPath": "/mnt/data"}],
    }
    spec = {
        "restartPolicy": "Never",
        "nodeSelector": {kueue.POOL_LABEL: cluster.pool.name},
        "containers": [container],
        "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "mnt-data"}}],
    }
    return {"spec": spec | changes}


def _job(
    cluster: Gke, template: Object, name: str = "one", run: int = 2 * HOURS, **changes: Any
) -> Object:
    """A Job of one pod, as it came back; changes are of its spec, or else its labels."""
    metadata = _metadata(name, run)
    metadata["labels"] |= changes.pop("labels", {})
    metadata["annotations"] |= changes.pop("annotations", {})
    spec = {"parallelism": 1, "completions": 1, "backoffLimit": 0, "template": template}
    thing = {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata}
    return cluster.api.create({**thing, "spec": spec | changes})


def _job_set(cluster: Gke, template: Object, nodes: int = 2, **job: Any) -> Object:
    """A gang of pods, which are begun again together, three times at most."""
    inner = {"parallelism": nodes, "completions": nodes, "completionMode": "Indexed"}
    inner |= {"backoffLimit": 0, "template": template, **job}
    rule = {
        "name": "interrupted",
        "action": "RestartJobSetAndIgnoreMaxRestarts",
        "onJobFailureReasons": ["PodFailurePolicy"],
    }
    spec = {
        "failurePolicy": {"maxRestarts": 3, "rules": [rule]},
        "replicatedJobs": [{"name": "w", "template": {"spec": inner}}],
    }
    thing = {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet"}
    return cluster.api.create({**thing, "metadata": _metadata("gang"), "spec": spec})


def _metadata(name: str, run: int = 2 * HOURS) -> Object:
    return {
        "name": name,
        "namespace": "default",
        "labels": {kueue.QUEUE_LABEL: kueue.LOCAL_QUEUE},
        "annotations": {kueue.RUN_SECONDS: str(run)},
    }


_CONDITION = {"type": "DisruptionTarget", "status": "True"}
DISRUPTED = {"rules": [{"action": "FailJob", "onPodConditions": [_CONDITION]}]}
REQUEUED_TOO_OFTEN = "DeactivatedDueToRequeuingLimitExceeded"


def _pass(cluster: Gke, clock: Clock, seconds: float, step: float = 60) -> None:
    """Let time pass, with somebody who looks every minute."""
    for _ in range(int(seconds // step)):
        clock.forward(step)
        cluster.pods()


def _until(
    clock: Clock, is_so: Callable[[], object], most: float = HOURS, step: float = 30
) -> None:
    """Let time pass until something is so."""
    for _ in range(int(most // step)):
        if is_so():
            return
        clock.forward(step)
    raise AssertionError("it did not happen in time")


def _workload(cluster: Gke, of: str = "") -> Object:
    found = cluster.api.all(kueue.API, "Workload", "default")
    (work,) = (it for it in found if of in it["metadata"]["name"])
    return work


def _why(cluster: Gke, name: str, of: str = "") -> str:
    """The reason of a condition of a workload that is true; "" for none."""
    work = _workload(cluster, of)
    return conditions(work)[name]["reason"] if holds(work, name) else ""


def _lose_a_node(cluster: Gke, name: str = "") -> str:
    """Delete the VM of a node, or of the first one with GPUs."""
    nodes = cluster.api.all("v1", "Node", selector=kueue.ACCELERATOR_LABEL)
    node = next(it for it in nodes if it["metadata"]["name"] == (name or it["metadata"]["name"]))
    found: str = node["metadata"]["name"]
    zone = node["metadata"]["labels"]["topology.kubernetes.io/zone"]
    cluster.google("DELETE", f"/compute/v1/projects/my-project/zones/{zone}/instances/{found}")
    return found


def _began(cluster: Gke, container: str = "main") -> int:
    """The step that the training began with, in its own words."""
    mine = (it for it in cluster.pods() if it["spec"]["containers"][0]["name"] == container)
    pod = next(it for it in mine if it["status"]["phase"] != "Pending")
    lines = cluster.log(pod, container).splitlines()
    return int(next(line for line in lines if line.startswith("begins")).rpartition(" ")[2])


def _restarts(cluster: Gke) -> int:
    found = [it["status"].get("containerStatuses") or [] for it in cluster.pods()]
    return sum(it["restartCount"] for containers in found for it in containers)


def _moment(stamp: str) -> int:
    hours, minutes, seconds = stamp[11:19].split(":")
    return (int(hours) * 60 + int(minutes)) * 60 + int(seconds)


# ------------------------------------------------------------------ by themselves


def test_a_job_fails_by_its_limit_after_pauses_that_double(cluster: Gke, clock: Clock) -> None:
    job = _job(cluster, _pod(cluster, "sh", "-c", "exit 3"), backoffLimit=2)
    _pass(cluster, clock, 600, step=10)
    found = cluster.find(job)
    assert conditions(found)["Failed"]["reason"] == "BackoffLimitExceeded"
    assert found["status"]["failed"] == 3
    codes = [it["status"]["containerStatuses"][0]["state"] for it in cluster.pods()]
    assert [it["terminated"]["exitCode"] for it in codes] == [3, 3, 3]
    starts = sorted(_moment(it["status"]["startTime"]) for it in cluster.pods())
    # Each runs for a minute; 10 and 20 seconds lie between them.
    assert starts[1] - starts[0] == pytest.approx(70, abs=10)
    assert starts[2] - starts[1] == pytest.approx(80, abs=10)
    assert cluster.work.state == "finished"
    assert _why(cluster, "Finished") == "Failed"
    assert cluster.work.message.endswith("; main ended with exit code 3")


def test_a_container_is_begun_again_in_its_pod_where_the_pod_says_so(
    cluster: Gke, clock: Clock
) -> None:
    template = _pod(cluster, "sh", "-c", "exit 3", restartPolicy="OnFailure")
    job = _job(cluster, template, backoffLimit=2)
    _until(clock, lambda: _restarts(cluster) == 1)
    assert len(cluster.pods()) == 1
    _pass(cluster, clock, 120, step=10)
    assert conditions(cluster.find(job))["Failed"]["reason"] == "BackoffLimitExceeded"


def test_an_exit_code_that_a_rule_names_fails_the_job_at_once(cluster: Gke, clock: Clock) -> None:
    codes = {"containerName": "main", "operator": "In", "values": [75]}
    policy = {"rules": [{"action": "FailJob", "onExitCodes": codes}]}
    template = _pod(cluster, "sh", "-c", "exit 75")
    job = _job(cluster, template, backoffLimit=5, podFailurePolicy=policy)
    _pass(cluster, clock, 180)
    said = conditions(cluster.find(job))["Failed"]
    assert said["reason"] == "PodFailurePolicy"
    assert said["message"].endswith("failed with exit code 75 matching FailJob rule at index 0")


def test_each_index_of_a_job_has_its_own_limit_and_the_others_go_on(
    cluster: Gke, clock: Clock
) -> None:
    template = _pod(cluster, "bash", "-c", '"$@"', "job", "bash", "-c", "exit $JOB_INDEX")
    keep = {"name": "keep", "restartPolicy": "Always", "command": ["keep", "no-bucket", "p/"]}
    template["spec"]["initContainers"] = [keep]
    # Index 0 only ends; tasks 0, 1 and 2 follow, each with its number as exit code.
    template["spec"]["containers"][0]["env"] = [{"name": "AIINFRA_ARRAY", "value": "0 1"}]
    codes = {"containerName": "main", "operator": "In", "values": [2]}
    policy = {"rules": [{"action": "FailIndex", "onExitCodes": codes}]}
    job = _job(
        cluster,
        template,
        parallelism=2,
        completions=4,
        completionMode="Indexed",
        backoffLimitPerIndex=1,
        podFailurePolicy=policy,
    )
    _pass(cluster, clock, 300, step=10)
    found = cluster.find(job)
    assert conditions(found)["Failed"]["reason"] == "FailedIndexes"
    assert found["status"]["completedIndexes"] == "0,1"
    assert found["status"]["failedIndexes"] == "2,3"
    told = [
        (
            it["metadata"]["labels"]["batch.kubernetes.io/job-completion-index"],
            it["metadata"]["annotations"]["batch.kubernetes.io/job-index-failure-count"],
        )
        for it in cluster.pods()
    ]
    assert sorted(told) == [("0", "0"), ("1", "0"), ("2", "0"), ("2", "1"), ("3", "0")]


def test_a_job_that_may_have_fewer_pods_at_a_time_gets_those_that_there_is_quota_for(
    cluster: Gke, clock: Clock
) -> None:
    least = {"kueue.x-k8s.io/job-min-parallelism": "2"}
    template = _pod(cluster, "sleep", "60")
    job = _job(cluster, template, annotations=least, parallelism=6, completions=6)
    _until(clock, lambda: cluster.find(job)["spec"]["parallelism"] == 4)
    (assigned,) = _workload(cluster)["status"]["admission"]["podSetAssignments"]
    assert assigned["count"] == 4
    _until(clock, lambda: _why(cluster, "Finished") == "Succeeded")


def test_what_the_last_indexes_of_a_job_do_not_need_is_the_next_jobs(
    cluster: Gke, clock: Clock
) -> None:
    many: dict[str, Any] = {"parallelism": 4, "completions": 5, "completionMode": "Indexed"}
    _job(cluster, _pod(cluster, "sleep", "600"), **many)
    _job(cluster, _pod(cluster, "sleep", "60"), "two")
    _until(clock, lambda: _why(cluster, "Admitted", "one"))
    assert not _why(cluster, "QuotaReserved", "two")
    _until(clock, lambda: _why(cluster, "QuotaReserved", "two"))
    assert not _why(cluster, "Finished", "one")
    (given,) = _workload(cluster, "one")["status"]["reclaimablePods"]
    assert given == {"name": "main", "count": 3}


def test_a_pod_ends_when_it_has_been_on_its_node_for_as_long_as_it_may(
    cluster: Gke, clock: Clock
) -> None:
    template = _pod(cluster, "sleep", "9000", activeDeadlineSeconds=120)
    job = _job(cluster, template)
    _pass(cluster, clock, 300)
    (pod,) = cluster.pods()
    assert pod["status"]["reason"] == "DeadlineExceeded"
    assert holds(cluster.find(job), "Failed")


def test_a_set_fails_with_its_first_job_or_begins_again_as_often_as_it_says(
    cluster: Gke, clock: Clock
) -> None:
    made = _job_set(cluster, _pod(cluster, "sh", "-c", "exit 3"))
    _pass(cluster, clock, 150, step=10)
    found = cluster.find(made)
    assert holds(found, "RestartingJobSet") or found["status"]["restarts"] == 1
    labels = cluster.api.all("batch/v1", "Job", "default")[0]["metadata"]["labels"]
    assert labels["jobset.sigs.k8s.io/restart-attempt"] == "1"
    _pass(cluster, clock, 240, step=10)
    found = cluster.find(made)
    assert conditions(found)["Failed"]["reason"] == "ReachedMaxRestarts"
    assert found["status"]["restartsCountTowardsMax"] == 3
    assert _why(cluster, "Finished") == "Failed"
    cluster.api.delete(made["apiVersion"], "JobSet", "gang", "default")
    without = {key: it for key, it in made["spec"].items() if key != "failurePolicy"}
    again = cluster.api.create({**made, "metadata": _metadata("gang"), "spec": without})
    _pass(cluster, clock, 900)
    assert conditions(cluster.find(again))["Failed"]["reason"] == "FailedJobs"


def test_a_ray_job_fails_with_its_program(cluster: Gke, clock: Clock) -> None:
    thing = jobs.ray_job(cluster.facts, cluster.pool)
    thing["spec"]["entrypoint"] = "python train.py; exit 1"
    made = cluster.api.create(thing)
    _pass(cluster, clock, 300)
    found = cluster.find(made)["status"]
    assert (found["jobStatus"], found["jobDeploymentStatus"]) == ("FAILED", "Failed")
    assert cluster.api.all("ray.io/v1", "RayCluster", "default") == []
    assert _why(cluster, "Finished") == "Failed"


# ------------------------------------------------------------------ with their nodes


def test_a_gang_that_lost_a_node_gives_the_rest_back_and_goes_on_from_its_checkpoint(
    cluster: Gke, clock: Clock
) -> None:
    made = _job_set(cluster, _pod(cluster, *TRAIN), podFailurePolicy=DISRUPTED)
    _pass(cluster, clock, 600)
    assert _why(cluster, "PodsReady") == "Started"
    (first,) = cluster.seen.requests
    lost = _lose_a_node(cluster)
    _pass(cluster, clock, 120)
    found = cluster.find(made)
    # It begins again at once, and lacks a node: Kueue gives it ten minutes.
    assert (found["status"]["restarts"], found["status"]["restartsCountTowardsMax"]) == (1, 0)
    assert conditions(_workload(cluster))["PodsReady"]["reason"] == "WaitForRecovery"
    _pass(cluster, clock, 420)
    assert not cluster.find(made)["spec"]["suspend"]
    _until(clock, lambda: _why(cluster, "Evicted") == "PodsReadyTimeout", 120)
    assert cluster.find(made)["spec"]["suspend"]
    assert cluster.pods() == []
    assert _workload(cluster)["status"]["requeueState"]["count"] == 1
    # Other nodes, of a request of its own.
    _until(clock, lambda: _why(cluster, "PodsReady") == "Started")
    (second,) = cluster.seen.requests
    assert second.name == first.name
    assert lost not in {it["spec"]["nodeName"] for it in cluster.pods()}
    step = _began(cluster)
    assert step >= 10_000
    assert step % 100 == 0
    _pass(cluster, clock, 2 * HOURS)
    assert holds(cluster.find(made), "Completed")


def test_a_lost_ray_worker_is_not_seen_by_the_queue(cluster: Gke, clock: Clock) -> None:
    cluster.api.create(jobs.ray_cluster(cluster.facts, cluster.pool))
    _pass(cluster, clock, 600)
    assert _why(cluster, "PodsReady") == "Started"
    _lose_a_node(cluster, cluster.pods("ray.io/node-type=worker")[0]["spec"]["nodeName"])
    _pass(cluster, clock, 2400)
    assert _why(cluster, "PodsReady") == "Started"
    phases = [it["status"]["phase"] for it in cluster.pods("ray.io/node-type=worker")]
    assert sorted(phases) == ["Pending", "Running"]
    work = cluster.work
    assert (work.state, work.message.startswith("it has lost a worker: ")) == ("starting", True)
    name = work.name.removeprefix("RayCluster ")
    assert f"`kubectl delete raycluster {name} --namespace default`" in work.advice


def test_a_job_whose_nodes_never_come_up_is_queued_again_and_given_up_by_the_limit(
    cluster: Gke, clock: Clock
) -> None:
    _configure(cluster, timeout="5m", backoffLimitCount=1)
    _job(cluster, _pod(cluster, "sleep", "60"))
    _until(clock, lambda: _why(cluster, "Admitted"))
    # The node is gone before the pod can start.
    _lose_a_node(cluster)
    _until(clock, lambda: _why(cluster, "Evicted") == "PodsReadyTimeout")
    assert conditions(_workload(cluster))["Requeued"]["status"] == "False"
    assert _workload(cluster)["status"]["requeueState"]["count"] == 1
    _until(clock, lambda: _why(cluster, "Admitted"))
    _lose_a_node(cluster)
    _until(clock, lambda: _why(cluster, "Evicted") == REQUEUED_TOO_OFTEN)
    assert cluster.work.state == "given up"
    assert "maximum number of re-queuing retries" in cluster.work.message


def test_a_gang_whose_zone_gives_some_of_its_nodes_is_given_up_in_the_end(
    gke_of: Make, clock: Clock
) -> None:
    cluster = gke_of("gke-a3-ultra-flex", "some", "1")
    cluster.create()
    clock.forward(60)
    _configure(cluster, backoffLimitCount=2)
    made = _job_set(cluster, _pod(cluster, *TRAIN), nodes=4, podFailurePolicy=DISRUPTED)
    for _ in range(3):
        _until(clock, lambda: cluster.nodes() == 2)
        _pass(cluster, clock, 900)
        work = cluster.work
        assert (work.state, work.pods and work.pods.waiting) == ("starting", 2)
        _until(clock, lambda: _why(cluster, "Evicted"))
    assert _why(cluster, "Evicted") == REQUEUED_TOO_OFTEN
    assert cluster.find(made)["spec"]["suspend"]
    assert cluster.work.state == "given up"
    assert "PodsReadyTimeout (WaitForStart) 2 times" in cluster.work.interruptions
    _until(clock, lambda: cluster.nodes() == 0)


def _configure(cluster: Gke, **changes: Any) -> None:
    """Change what Kueue waits for."""
    found = cluster.api.find("v1", "ConfigMap", "kueue-manager-config", "kueue-system")
    assert found is not None
    key = "controller_manager_config.yaml"
    document = yaml.safe_load(found["data"][key])
    again = {name: changes.pop(name) for name in list(changes) if name.startswith("backoff")}
    document["waitForPodsReady"] |= changes
    document["waitForPodsReady"]["requeuingStrategy"] |= again
    wanted = {"apiVersion": "v1", "kind": "ConfigMap", "data": {key: yaml.safe_dump(document)}}
    wanted["metadata"] = {"name": "kueue-manager-config", "namespace": "kueue-system"}
    cluster.api.apply(wanted)


# ------------------------------------------------------------------ at the end of their run


def test_a_job_ends_in_order_before_its_nodes_and_goes_on_in_its_next_run(
    cluster: Gke, clock: Clock
) -> None:
    limit = {"kueue.x-k8s.io/max-exec-time-seconds": "3000"}
    job = _job(cluster, _pod(cluster, *TRAIN), run=HOURS, labels=limit)
    _until(clock, lambda: _why(cluster, "PodsReady"))
    work = cluster.work
    assert work.stops is not None
    assert work.nodes_end is not None
    # Both clocks: Kueue's from its admission, Google's from the start of its nodes.
    assert 300 < _moment(work.nodes_end) - _moment(work.stops) < 900
    _pass(cluster, clock, 3300)
    assert _why(cluster, "Evicted") == "DeactivatedDueToMaximumExecutionTimeExceeded"
    assert cluster.find(job)["spec"]["suspend"]
    assert cluster.pods() == []
    assert cluster.work.state == "given up"
    assert "maximum execution time" in cluster.work.message
    # The next run: another workload of the same job, which keeps its name and its checkpoint.
    name = _workload(cluster)["metadata"]["name"]
    assert f"kubectl delete workload {name} " in cluster.work.advice
    path = f"/apis/{kueue.API}/namespaces/default/workloads/{name}"
    cluster.raw("PATCH", path, {"spec": {"active": True}}, "application/merge-patch+json")
    assert _workload(cluster)["spec"]["active"] is False
    cluster.api.delete(kueue.API, "Workload", name, "default")
    _until(clock, lambda: _why(cluster, "PodsReady"))
    assert 54_000 <= _began(cluster) <= 60_000


def _example(cluster: Gke, **texts: str) -> Object:
    """The training example with a bucket at /mnt/data, two hours to do, and other numbers."""
    facts = dataclasses.replace(cluster.facts, buckets=(Mount(bucket="data", path="/mnt/data"),))
    text = json.dumps(jobs.torchrun(facts, jobs.main_pool(facts.pools), 2))
    for before, now in ({"--steps 500": "--steps 144000"} | texts).items():
        text = text.replace(before, now)
    return cluster.api.create(json.loads(text))


def _ends(cluster: Gke) -> int:
    """When the first node of the pods ends."""
    node = cluster.api.find("v1", "Node", cluster.pods()[0]["spec"]["nodeName"])
    assert node is not None
    return _moment(node["metadata"]["annotations"]["node.gke.io/machine-termination-datetime"])


def test_the_example_stops_before_its_nodes_end_and_goes_on_in_its_next_run(
    cluster: Gke, clock: Clock
) -> None:
    made = _example(cluster)
    _until(clock, lambda: _why(cluster, "PodsReady"))
    ends = _ends(cluster)
    _until(clock, lambda: cluster.find(made)["status"].get("restarts"))
    # Ten minutes for saving, and it does not count as a failure of its own.
    told = conditions(cluster.find(made))["RestartingJobSet"]["lastTransitionTime"]
    assert 600 < ends - _moment(told) < 960
    assert cluster.find(made)["status"]["restartsCountTowardsMax"] == 0
    _until(clock, lambda: _why(cluster, "PodsReady") and cluster.pods())
    words = cluster.log(cluster.pods()[0], "torchrun")
    assert words.endswith("The run of this node is nearly over: nothing is begun on it.\n")
    _until(clock, lambda: _why(cluster, "Evicted") == "DeactivatedDueToAdmissionCheck")
    name = _workload(cluster)["metadata"]["name"]
    assert f"`kubectl delete workload {name} --namespace default`" in cluster.work.advice
    cluster.api.delete(kueue.API, "Workload", name, "default")
    _until(clock, lambda: _why(cluster, "PodsReady") and _began(cluster, "torchrun"))
    assert 48_000 < _began(cluster, "torchrun") < 54_000


def test_a_job_that_lost_a_node_has_the_whole_run_of_its_new_ones(
    cluster: Gke, clock: Clock
) -> None:
    made = _example(cluster)
    _until(clock, lambda: _why(cluster, "PodsReady"))
    _pass(cluster, clock, 1800)
    _lose_a_node(cluster)
    _until(clock, lambda: _why(cluster, "Evicted") == "PodsReadyTimeout")
    _until(clock, lambda: _why(cluster, "PodsReady") == "Started")
    again = cluster.find(made)["status"]["restarts"]
    ends = _ends(cluster)
    _until(clock, lambda: cluster.find(made)["status"]["restarts"] > again)
    told = conditions(cluster.find(made))["RestartingJobSet"]["lastTransitionTime"]
    assert 600 < ends - _moment(told) < 960


def test_an_ended_pod_goes_with_its_node_and_so_does_its_log(cluster: Gke, clock: Clock) -> None:
    job = _job(cluster, _pod(cluster, "sleep", "60"))
    _until(clock, lambda: holds(cluster.find(job), "Complete"))
    (pod,) = cluster.pods()
    _lose_a_node(cluster, pod["spec"]["nodeName"])
    _until(clock, lambda: not cluster.pods(), 180)
    with pytest.raises(KubernetesError, match="404"):
        cluster.log(pod, "main")
    _pass(cluster, clock, 300)
    assert cluster.find(job)["status"]["succeeded"] == 1
    assert cluster.pods() == [], "what has succeeded is not done again"


@pytest.mark.parametrize(
    ("version", "lifted", "state"),
    [
        ("1.32.13-gke.2268000", False, "Evicted"),
        ("1.32.13-gke.2268000", True, ""),
        ("1.35.6-gke.1250000", False, ""),
    ],
    ids=["old_and_limited", "limits_lifted", "streams"],
)
def test_a_checkpoint_larger_than_the_drivers_disk_has_the_pod_evicted(
    gke_of: Make, clock: Clock, version: str, *, lifted: bool, state: str
) -> None:
    cluster = gke_of(EXAMPLE, "", "1", version=version)
    cluster.create()
    clock.forward(60)
    template = _pod(cluster, *TRAIN, "--width", "20480")
    given = {"gke-gcsfuse/volumes": "true"}
    if lifted:
        given["gke-gcsfuse/ephemeral-storage-limit"] = "0"
    template["metadata"] = {"annotations": given}
    _job(cluster, template)
    _until(clock, lambda: any(it["status"]["phase"] != "Pending" for it in cluster.pods()))
    _pass(cluster, clock, 60)
    (pod,) = cluster.pods()
    assert pod["status"].get("reason", "") == state
    if state:
        assert "total limit of containers 5Gi" in pod["status"]["message"]


@pytest.mark.parametrize("stays", [False, True])
def test_a_node_with_little_on_it_is_emptied_unless_its_pod_says_that_it_stays(
    gke_of: Make, clock: Clock, *, stays: bool
) -> None:
    """Two jobs of one GPU, each on a node of eight since another one has left the first node."""
    cluster = gke_of("gke-a3-ultra-flex", "", "1")
    cluster.create()
    pool = next(it for it in cluster.facts.pools if it.gpus > 1 and not it.queued)
    clock.forward(60)
    for name, gpus in (("first", 1), ("wide", pool.gpus - 1), ("second", 1)):
        template = _pod(cluster, "sleep", "600" if name == "wide" else "7200")
        container = template["spec"]["containers"][0]
        container["resources"] = {"limits": {kueue.GPU: str(gpus)}}
        template["spec"]["nodeSelector"] = {kueue.POOL_LABEL: pool.name}
        if stays:
            template["metadata"] = {"annotations": dict(fabric_pods.STAYS)}
        _job(cluster, template, name, backoffLimit=6)
        _pass(cluster, clock, 120)
    _pass(cluster, clock, 3000)
    alive = [it for it in cluster.pods() if it["status"]["phase"] == "Running"]
    assert len(alive) == 2
    assert (len({it["spec"]["nodeName"] for it in alive}) == 1) == (not stays)


def test_a_job_that_runs_to_the_end_of_its_nodes_is_given_up(cluster: Gke, clock: Clock) -> None:
    _job(cluster, _pod(cluster, *TRAIN), run=HOURS, backoffLimit=6)
    _until(clock, lambda: _why(cluster, "PodsReady"))
    _pass(cluster, clock, HOURS + 300)
    # The autoscaler says that the nodes are revoked, by the clock: Kueue gives the job up.
    assert _why(cluster, "Evicted") == "DeactivatedDueToAdmissionCheck"
    assert cluster.nodes() == 0
    _pass(cluster, clock, HOURS)
    assert cluster.pods() == []


def test_of_two_jobs_in_a_full_pool_the_second_runs_after_the_first(
    cluster: Gke, clock: Clock
) -> None:
    every = {"parallelism": cluster.pool.max_nodes, "completions": cluster.pool.max_nodes}
    template = _pod(cluster, "sleep", "1200")
    first, second = (_job(cluster, template, name, **every) for name in ("first", "second"))
    _pass(cluster, clock, 600)
    found = {it.name: it for it in cluster.seen.workloads}
    assert found["Job second"].state == "pending"
    assert {name: it.place for name, it in found.items()} == {"Job first": None, "Job second": 1}
    _pass(cluster, clock, 1500)
    assert holds(cluster.find(first), "Complete")
    # The idle nodes of the first fill the pool for ten minutes: requests fail, and are made again.
    _pass(cluster, clock, 3600)
    assert holds(cluster.find(second), "Complete")


# ------------------------------------------------------------------ a week


@pytest.mark.slow(sibling="::test_a_job_that_lost_a_node_has_the_whole_run_of_its_new_ones")
def test_a_week(gke_of: Make, clock: Clock) -> None:
    """An upgrade at night, a lost GPU, a preemption, a lost node, and the end of the run.

    The job goes on from its checkpoint each time; afterwards each cause can be read.
    """
    old = "1.35.6-gke.1250000"
    cluster = gke_of(EXAMPLE, "upgrades,lost-gpu", "1", version=old, KUEUE_GPU_QUOTA="24")
    cluster.create()
    clock.forward(60)
    # Nodes for seven days, and steps for twelve.
    numbers = {"--steps 500": "--steps 20736000", '"3600"': '"604800"', '"2700"': '"603900"'}
    made = _example(cluster, **numbers)
    steps = [0]

    def goes_on() -> None:
        """It runs again, and not from where it has been already."""
        _until(clock, lambda: _why(cluster, "PodsReady", "torchrun"))
        steps.append(_began(cluster, "torchrun"))
        assert steps[-1] > steps[-2]

    _until(clock, lambda: _why(cluster, "PodsReady"))
    first = {it["metadata"]["uid"] for it in cluster.pods()}
    _pass(cluster, clock, 8 * HOURS, step=HOURS)
    # At night: the control plane is upgraded, and the nodes under a training are not.
    found = cluster.google("GET", f"{_CLUSTERS}/demo-gke")
    assert found["currentMasterVersion"] == "1.35.7-gke.1222000"
    assert {it["metadata"]["uid"] for it in cluster.pods()} == first

    # The second day: a GPU is gone. Status names its node, and its VM is replaced.
    seen = [node for it in cluster.seen.nodes for node in it.each]
    (broken,) = (node.name for node in seen if "79" in (*node.xids, *node.recent))
    _lose_a_node(cluster, broken)
    _until(clock, lambda: _why(cluster, "Evicted") == "PodsReadyTimeout")
    goes_on()
    _pass(cluster, clock, 24 * HOURS, step=HOURS)

    # The third day: a job of more priority takes its share of the queue.
    urgent = {"kueue.x-k8s.io/priority-class": "very-high"}
    two = {"parallelism": 2, "completions": 2, "backoffLimit": 6}
    other = _job(cluster, _pod(cluster, "sleep", "1200"), "urgent", labels=urgent, **two)
    _until(clock, lambda: holds(cluster.find(other), "Complete"))
    goes_on()
    _pass(cluster, clock, 24 * HOURS, step=HOURS)

    # The fourth day: a node is lost. The new ones have their whole run.
    _lose_a_node(cluster, cluster.pods()[0]["spec"]["nodeName"])
    _until(clock, lambda: _why(cluster, "Evicted", "torchrun") == "PodsReadyTimeout")
    goes_on()
    _pass(cluster, clock, 6 * 24 * HOURS, step=6 * HOURS)
    (work,) = (it for it in cluster.seen.workloads if "torchrun" in it.name)
    assert work.state == "running"

    # The run ends; the next one goes on.
    _until(clock, lambda: _why(cluster, "Evicted", "torchrun"), 36 * HOURS, step=900)
    (work,) = (it for it in cluster.seen.workloads if "torchrun" in it.name)
    assert work.state == "given up"
    assert any(it.startswith("Preempted ") for it in work.interruptions)
    assert "PodsReadyTimeout (WaitForRecovery) 2 times" in work.interruptions
    assert any(it.startswith("begun again ") for it in work.interruptions)
    assert not any("its own failures" in it for it in work.interruptions)
    name = work.advice.partition("delete workload ")[2].partition(" ")[0]
    cluster.api.delete(kueue.API, "Workload", name, "default")
    goes_on()
    assert cluster.find(made)["status"]["restartsCountTowardsMax"] == 0


_CLUSTERS = "/container/v1/projects/my-project/locations/us-central1/clusters"
