"""What a real API server and a real Kueue make of our objects and jobs."""

import copy
import dataclasses
import hashlib
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from provision.documents.gke_status import NodeRequest, Workload
from provision.kinds.gke.kubernetes import (
    all_gather,
    fabric_pods,
    jobs,
    kueue,
    nccl,
    stages,
    status,
)
from provision.kinds.gke.kubernetes.client import Body, KubernetesError
from provision.kinds.gke.kubernetes.fabric_pods import Kind
from provision.kinds.gke.kubernetes.facts import ClusterFacts, GpuPool
from provision.kinds.gke.kubernetes.objects import MANAGER, Object, from_yaml, holds
from provision.kinds.gke.kubernetes.stages import Stage
from tests.kubernetes import programs, samples
from tests.kubernetes.world import PROGRESS, World

# The job of a published walk-through, with nothing changed but the pool: it knows of no taint of
# queued nodes.
_PUBLISHED_JOB = """
apiVersion: batch/v1
kind: Job
metadata:
  name: {name}
  namespace: default
  labels:
    kueue.x-k8s.io/queue-name: dws-local-queue
spec:
  parallelism: 1
  completions: 1
  suspend: true
  template:
    spec:
      nodeSelector:
        cloud.google.com/gke-nodepool: {pool}
      tolerations:
      - key: "nvidia.com/gpu"
        operator: "Exists"
        effect: "NoSchedule"
      containers:
      - name: dummy-job
        image: gcr.io/k8s-staging-perf-tests/sleep:v0.0.3
        args: ["120s"]
        resources:
          requests:
            cpu: "100m"
            memory: "100Mi"
            nvidia.com/gpu: 1
          limits:
            cpu: "100m"
            memory: "100Mi"
            nvidia.com/gpu: 1
      restartPolicy: Never
"""


def _stages(facts: ClusterFacts) -> list[Stage]:
    return [
        Stage("networks", stages.network_objects(facts)),
        Stage("NCCL", nccl.objects(facts)),
        Stage(
            "the rest", [stages.account(facts), *kueue.priority_classes(), *stages.storage(facts)]
        ),
        Stage("the queue", kueue.objects(facts)),
    ]


def _apply(world: World, facts: ClusterFacts) -> None:
    stages.apply(world.cluster, _stages(facts), progress=PROGRESS)


def _find(world: World, thing: Object) -> Object:
    metadata = thing["metadata"]
    found = world.cluster.find(
        thing["apiVersion"], thing["kind"], metadata["name"], metadata.get("namespace", "")
    )
    assert found is not None
    return found


def _written(world: World, thing: Object) -> tuple[Any, Object]:
    """The generation of an object, and what the API remembers of our writing to it."""
    metadata = _find(world, thing)["metadata"]
    (ours,) = (entry for entry in metadata["managedFields"] if entry["manager"] == MANAGER)
    return metadata.get("generation"), ours


def _job(world: World, name: str, pool: str) -> Object:
    return world.cluster.create(yaml.safe_load(_PUBLISHED_JOB.format(name=name, pool=pool)))


def _admitted(world: World, name: str) -> bool:
    works = {work.name: work.state for work in status.read(world.cluster).workloads}
    return works.get(name) in ("starting", "running", "finished")


def _flavors(world: World, name: str) -> dict[str, str]:
    """Set of pods -> the flavor that its processors and memory, or its GPUs, were taken from."""
    (work,) = (
        thing
        for thing in world.cluster.all(kueue.API, "Workload", "default")
        if thing["metadata"]["ownerReferences"][0]["name"] == name
    )
    return {
        pods["name"]: flavor
        for pods in work["status"]["admission"]["podSetAssignments"]
        for flavor in pods["flavors"].values()
    }


@pytest.fixture
def queue(world: World) -> World:
    """A queue that gives up after one retry, at once, so that a test need not wait."""
    _apply(world, samples.everything())
    hasty = {"backoffLimitCount": 1, "backoffBaseSeconds": 1, "backoffMaxSeconds": 2}
    config, _ = kueue._check()
    config["spec"]["retryStrategy"] = hasty
    world.cluster.apply(config)
    world.until(lambda: _is_active(world))
    return world


def _is_active(world: World) -> bool:
    found = world.cluster.find(kueue.API, "ClusterQueue", kueue.CLUSTER_QUEUE) or {}
    return holds(found, "Active")


def test_all_objects_are_accepted_and_applying_them_again_changes_nothing(world: World) -> None:
    facts = samples.everything()
    things = [thing for stage in _stages(facts) for thing in stage.objects]
    _apply(world, facts)
    world.until(lambda: _is_active(world))
    before = [_written(world, thing) for thing in things]
    # The times in which fields were written have whole seconds.
    time.sleep(1.1)
    _apply(world, facts)
    assert [_written(world, thing) for thing in things] == before


def test_other_options_and_a_cache_reach_the_volumes_that_are_there(world: World) -> None:
    facts = samples.everything()
    _apply(world, facts)
    changed = dataclasses.replace(facts, bucket_options=("uid=1000", "ro"), bucket_cache_gib=10)

    _apply(world, changed)

    volumes = [it for it in stages.storage(changed) if "csi" in it.get("spec", {})]
    assert volumes
    for volume in volumes:
        wanted = volume["spec"]["mountOptions"]
        assert "file-cache:max-size-mb:10240" in wanted
        assert _find(world, volume)["spec"]["mountOptions"] == wanted


def test_all_example_jobs_are_accepted_and_have_no_unknown_field(world: World) -> None:
    for facts in samples.ALL:
        for text in jobs.render(facts).values():
            for thing in from_yaml(text):
                thing["metadata"]["labels"] = {}
                made = world.cluster.create(thing)
                name = made["metadata"]["name"]
                world.cluster.delete(thing["apiVersion"], thing["kind"], name, "default")


def test_the_field_that_bypasses_the_queue_is_refused_at_once(world: World) -> None:
    _apply(world, samples.TWO_QUEUED)
    old: dict[str, Any] = kueue._cluster_queue(samples.TWO_QUEUED, kueue.CLUSTER_QUEUE, 2)
    old["spec"]["admissionChecks"] = [kueue.CHECK]
    with pytest.raises(KubernetesError) as caught:
        stages.apply(world.cluster, [Stage("wrong", [old])], progress=PROGRESS)
    assert ".spec.admissionChecks: field not declared in schema" in caught.value.message


def test_kueues_manifest_made_of_its_sources_is_the_pinned_one_and_is_accepted(
    world: World, manifest: Path
) -> None:
    content = manifest.read_bytes()
    assert hashlib.sha256(content).hexdigest() == programs.KUEUE.sha256
    for thing in from_yaml(content.decode()):
        if thing["kind"] == "Service":
            continue  # the session has turned the webhooks' service to loopback
        world.cluster._json(
            "try",
            "PATCH",
            world.cluster._path_of(thing),
            {"fieldManager": "try", "force": "true", "fieldValidation": "Strict", "dryRun": "All"},
            Body(thing, "application/apply-patch+yaml"),
        )


def test_a_job_on_bound_nodes_gets_those_that_stand_together(queue: World) -> None:
    for name, block in (("h0", "b1"), ("h1", "b2"), ("h2", "b2")):
        places = (block, block, f"{block}-{name}", name)
        queue.add_node(samples.PLACED, name, **dict(zip(kueue._LEVELS, places, strict=True)))
    facts = samples.facts(samples.PLACED)
    sizes = {"limits": {kueue.GPU: "8"}, "requests": {"cpu": "1", "memory": "1Gi", kueue.GPU: "8"}}
    container: Object = {"name": "x", "image": "x", "command": ["true"], "resources": sizes}
    pod = fabric_pods.template(facts, samples.PLACED, container, Kind.PART)
    pod["spec"] |= {"restartPolicy": "Never", "serviceAccountName": "default"}
    own = copy.deepcopy(pod)
    del own["metadata"]["annotations"][next(iter(kueue.PLACED))]

    def begin(name: str, template: Object, size: int) -> Callable[[], bool]:
        spec = {"parallelism": size, "completions": size, "template": template, "suspend": True}
        labels = {kueue.QUEUE_LABEL: kueue.LOCAL_QUEUE}
        metadata = {"name": name, "namespace": "default", "labels": labels}
        job: Object = {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec}
        queue.cluster.create(job)
        return lambda: _find(queue, job).get("status", {}).get("succeeded") == size

    # It takes all nodes: once it is through, Kueue has seen each of them.
    queue.until(begin("all", pod, 3))
    begin("own", own, 1)
    queue.until(begin("together", pod, 2))
    pods = queue.cluster.all("v1", "Pod", "default", "job-name=together")
    assert {it["spec"]["nodeName"] for it in pods} == {"h1", "h2"}
    # What asks for no place gets none, and is told how to ask.
    works = {it.name: it for it in status.read(queue.cluster).workloads}
    assert works["Job own"].state == "pending"
    assert "kueue.x-k8s.io/podset-preferred-topology" in works["Job own"].advice


def test_a_gpu_job_waits_for_its_request_and_runs_when_that_is_granted(queue: World) -> None:
    job = _job(queue, "granted", samples.T4.name)
    request = queue.request("granted")
    assert request["spec"]["provisioningClassName"] == "queued-provisioning.gke.io"
    queue.answer(request, "Accepted", "Accepted")
    assert _find(queue, job)["spec"]["suspend"]
    queue.add_node(samples.T4, "t4-0")
    queue.answer(_find(queue, request), "Provisioned", "Provisioned")
    queue.until(lambda: _find(queue, job).get("status", {}).get("succeeded"))
    pod = queue.cluster.all("v1", "Pod", "default", "job-name=granted")[0]
    assert pod["spec"]["nodeName"] == "t4-0"
    assert kueue.QUEUED_TAINT in [each.get("key") for each in pod["spec"]["tolerations"]]


def test_a_job_whose_requests_fail_is_given_up_and_stays_suspended(queue: World) -> None:
    job = _job(queue, "refused", samples.A100.name)
    words = "Quota 'NVIDIA_A100_GPUS' exceeded. Limit: 1.0 in region us-central1."
    for attempt in (1, 2):
        request = queue.request("refused", attempt)
        queue.answer(request, "Failed", "QuotaExceeded", words)
    given_up = queue.until(lambda: _given_up(queue, "refused"))
    # Kueue deletes the requests that failed; what they said stays in what it says of the job.
    assert words in given_up.message
    assert "NVIDIA_A100_GPUS of us-central1" in given_up.advice
    queue.until(lambda: not _requests(queue, "refused"))
    assert _find(queue, job)["spec"]["suspend"]


def test_a_job_that_is_given_up_while_its_pool_rests_is_told_the_failure_before(
    queue: World,
) -> None:
    _job(queue, "hidden", samples.A100.name)
    words = "Quota 'NVIDIA_A100_GPUS' exceeded.  Limit: 1.0 in region us-central1."
    rests = "Nodepool in backoff after failed scale-up, affected nodepools: pool"
    queue.answer(queue.request("hidden", 1), "Failed", "QuotaExceeded", words)
    queue.answer(queue.request("hidden", 2), "Failed", "NodepoolInBackoff", rests)
    given_up = queue.until(lambda: _given_up(queue, "hidden"))
    assert rests in given_up.message
    assert given_up.message.endswith(f"the failure before: {words}")
    assert "NVIDIA_A100_GPUS of us-central1" in given_up.advice


def test_an_expired_booking_is_nothing_to_a_job_that_runs_and_revoked_capacity_ends_it(
    queue: World,
) -> None:
    job = _job(queue, "kept", samples.A100.name)
    request = queue.request("kept")
    queue.answer(request, "Provisioned", "Provisioned", "words")
    queue.until(lambda: _find(queue, job)["spec"]["suspend"] is False)
    queue.answer(_find(queue, request), "BookingExpired", "BookingExpired", "the booking is over")
    time.sleep(2)
    assert _admitted(queue, "Job kept")
    (found,) = _requests(queue, "kept")
    assert (found.state, found.advice) == ("running", "")
    queue.answer(_find(queue, request), "CapacityRevoked", "CapacityRevoked", REVOKED)
    given_up = queue.until(lambda: _given_up(queue, "kept"))
    assert REVOKED in given_up.message
    assert "maxRunDurationSeconds" in given_up.advice
    queue.until(lambda: _find(queue, job)["spec"]["suspend"])


REVOKED = (
    "Capacity provisioned for the Provisioning Request was reclaimed and is no longer available in"
    " the cluster."
)


def _given_up(queue: World, name: str) -> Workload | None:
    works = status.read(queue.cluster).workloads
    return next((it for it in works if it.name == f"Job {name}" and it.state == "given up"), None)


def _requests(queue: World, words: str) -> list[NodeRequest]:
    return [it for it in status.read(queue.cluster).requests if words in it.name]


def test_a_job_without_gpus_does_not_wait_for_a_gpu_node(queue: World) -> None:
    job: Object = yaml.safe_load(_PUBLISHED_JOB.format(name="plain", pool="any"))
    pod = job["spec"]["template"]["spec"]
    del pod["nodeSelector"]
    for kind in ("requests", "limits"):
        del pod["containers"][0]["resources"][kind][kueue.GPU]
    made = queue.cluster.create(job)
    queue.until(lambda: _find(queue, made)["spec"]["suspend"] is False)


@pytest.mark.parametrize("kind", ["RayJob", "RayCluster", "JobSet"])
def test_a_ray_head_is_admitted_and_only_the_gpu_pods_need_nodes(queue: World, kind: str) -> None:
    facts, pool = samples.FLEX_QUEUED_ULTRA, samples.ULTRA
    makers: dict[str, Callable[[ClusterFacts, GpuPool], Object]] = {
        "RayJob": jobs.ray_job,
        "RayCluster": jobs.ray_cluster,
        "JobSet": lambda facts, pool: all_gather.job_set(facts, pool, 2),
    }
    thing = makers[kind](facts, pool)
    made = queue.cluster.create(thing)
    name = made["metadata"]["name"]
    request = queue.request(name)
    assert len(request["spec"]["podSets"]) == 1
    assert request["spec"]["podSets"][0]["count"] == 2
    assert _find(queue, made)["spec"]["suspend"]
    queue.answer(request, "Provisioned", "Provisioned")
    queue.until(lambda: not _find(queue, made)["spec"].get("suspend"))
    assert _admitted(queue, f"{kind} {name}")
    flavors = _flavors(queue, name)
    on_gpus = {pods for pods, flavor in flavors.items() if flavor == pool.name}
    # All others, a Ray head and what submits its job, are where no GPU pod has to be.
    assert on_gpus == {fabric_pods.REPLICATED_JOB if kind == "JobSet" else "gpu"}
    assert set(flavors.values()) <= {pool.name, kueue.DEFAULT_FLAVOR}
    queue.cluster.delete(made["apiVersion"], kind, name, "default")
