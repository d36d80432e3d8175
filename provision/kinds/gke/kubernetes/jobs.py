"""Example jobs for a specific cluster, ready for `kubectl create`."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, Final

from provision.catalogue import machines
from provision.kinds.gke.kubernetes import all_gather, identity, networks, storage
from provision.kinds.gke.kubernetes.kueue import (
    GPU,
    GPU_TOLERATION,
    LOCAL_QUEUE,
    NAMESPACE,
    POOL_LABEL,
    QUEUE_LABEL,
    RUN_SECONDS,
)
from provision.kinds.gke.kubernetes.objects import Object, to_yaml

if TYPE_CHECKING:
    from provision.kinds.gke.kubernetes.facts import ClusterFacts, GpuPool

FLEX_LABEL: Final = "cloud.google.com/gke-flex-start"
_SAMPLE_SECONDS: Final = 600
_RAY_SECONDS: Final = 21600
_SAMPLE_IMAGE: Final = "gcr.io/k8s-staging-perf-tests/sleep:v0.0.3"
_RAY_NODES: Final = 2
_GPU_CHECK: Final = """\
python -c '
import ray
ray.init()
workers = [node for node in ray.nodes() if node["Resources"].get("GPU")]
@ray.remote(num_gpus=1)
def gpu():
    return ray.get_gpu_ids()
total = int(ray.cluster_resources()["GPU"])
print(len(workers), "nodes,", total, "GPUs", ray.get([gpu.remote() for _ in range(total)]))
'
"""


def render(facts: ClusterFacts) -> dict[str, str]:
    """The example jobs that make sense on this cluster: file name -> YAML."""
    files: dict[str, list[Object]] = {}
    for pool in _one_of_each(facts):
        files[f"sample-job-{pool.name}.yaml"] = [sample(facts, pool)]
    if facts.pools:
        pool = main_pool(facts)
        nodes = min(facts.test_nodes, pool.max_nodes)
        files["nccl-all-gather.yaml"] = [test(facts, pool, nodes)]
        if facts.ray_operator:
            files["ray-cluster.yaml"] = [ray_cluster(facts, pool)]
            files["ray-job.yaml"] = [ray_job(facts, pool)]
    head = f"# For the GKE cluster {facts.name}. To run it: kubectl create --filename "
    return {name: f"{head}{name}\n{to_yaml(things)}" for name, things in files.items()}


def main_pool(facts: ClusterFacts) -> GpuPool:
    """The pool for jobs that choose none: the first queued pool, or else the first pool."""
    return next(iter(facts.queued_pools), facts.pools[0])


def sample(facts: ClusterFacts, pool: GpuPool) -> Object:
    """A job with one GPU that sleeps for two minutes."""
    resources = {"cpu": "100m", "memory": "100Mi", GPU: "1"}
    container = {
        "name": "sample",
        "image": _SAMPLE_IMAGE,
        "args": ["120s"],
        "resources": {"requests": resources, "limits": resources},
    }
    template = _pod(facts, pool, container, all_gpus=False)
    template["spec"]["restartPolicy"] = "Never"
    spec: Object = {"parallelism": 1, "completions": 1, "template": template}
    if facts.has_queue:
        spec["suspend"] = True
    metadata = _metadata(facts, "sample-job-", pool, _SAMPLE_SECONDS)
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec}


def test(facts: ClusterFacts, pool: GpuPool, nodes: int) -> Object:
    """The bandwidth test: NCCL's all-gather on all GPUs of `nodes` nodes of a pool."""
    bare = dataclasses.replace(facts, buckets=(), shares=())  # nothing to wait for or to break
    template = _pod(bare, pool, all_gather.container(pool, nodes), all_gpus=True)
    all_gather.complete(template["spec"], pool)
    job = {
        "parallelism": nodes,
        "completions": nodes,
        "completionMode": "Indexed",
        # If one node fails, the others wait forever, so the whole test must fail.
        "backoffLimit": 0,
        "template": template,
    }
    return {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": _metadata(facts, "all-gather-", pool, all_gather.SECONDS),
        "spec": {
            "ttlSecondsAfterFinished": 1200,
            "network": {"enableDNSHostnames": True},
            "replicatedJobs": [{"name": all_gather.REPLICATED_JOB, "template": {"spec": job}}],
        },
    }


def ray_cluster(facts: ClusterFacts, pool: GpuPool) -> Object:
    """A Ray cluster with its head on a node without GPUs."""
    spec = _ray_spec(facts, pool)
    if facts.has_queue:
        spec["suspend"] = True
    metadata = _metadata(facts, "ray-", pool, _RAY_SECONDS)
    return {"apiVersion": "ray.io/v1", "kind": "RayCluster", "metadata": metadata, "spec": spec}


def ray_job(facts: ClusterFacts, pool: GpuPool) -> Object:
    """A job with its own Ray cluster, which uses each GPU once and is then deleted."""
    spec = {
        "entrypoint": _GPU_CHECK,
        "shutdownAfterJobFinishes": True,
        "rayClusterSpec": _ray_spec(facts, pool),
    }
    if facts.has_queue:
        spec["suspend"] = True
    metadata = _metadata(facts, "ray-job-", pool, _RAY_SECONDS)
    return {"apiVersion": "ray.io/v1", "kind": "RayJob", "metadata": metadata, "spec": spec}


def _one_of_each(facts: ClusterFacts) -> list[GpuPool]:
    """The first pool of each machine type: one example is enough for equal pools."""
    return list({pool.machine_type: pool for pool in reversed(facts.pools)}.values())[::-1]


def _metadata(facts: ClusterFacts, prefix: str, pool: GpuPool, seconds: int) -> Object:
    metadata: Object = {"generateName": prefix, "namespace": NAMESPACE}
    if facts.has_queue:
        metadata["labels"] = {QUEUE_LABEL: LOCAL_QUEUE}
    if pool.queued:
        limit = min(seconds, pool.max_run_seconds or seconds)
        metadata["annotations"] = {RUN_SECONDS: str(limit)}
    return metadata


def _pod(facts: ClusterFacts, pool: GpuPool, container: Object, *, all_gpus: bool) -> Object:
    """A pod template for a pool: node selector, mounts, and with `all_gpus` all interfaces."""
    volumes, mounts, annotations = storage.pod_volumes(facts)
    if all_gpus:
        annotations |= networks.pod_annotations(facts, pool)
    selector = {POOL_LABEL: pool.name}
    if pool.flex_start:
        selector[FLEX_LABEL] = "true"
    template: Object = {"metadata": {"annotations": annotations}} if annotations else {}
    template["spec"] = {
        "serviceAccountName": identity.SERVICE_ACCOUNT,
        "nodeSelector": selector,
        "tolerations": [dict(GPU_TOLERATION)],
        "containers": [_with(container, "volumeMounts", mounts)],
    }
    if volumes:
        template["spec"]["volumes"] = volumes
    return template


def _with(container: Object, key: str, entries: list[Object]) -> Object:
    together = [*container.get(key, []), *entries]
    return {**container, key: together} if together else container


def _ray_spec(facts: ClusterFacts, pool: GpuPool) -> dict[str, Any]:
    image = f"rayproject/ray:{facts.ray_version}-py311"
    replicas = min(_RAY_NODES, pool.max_nodes)
    resources = {"cpu": "1", "memory": "4Gi"}
    head = {
        "name": "ray-head",
        "image": image,
        "ports": [
            {"name": "gcs", "containerPort": 6379},
            {"name": "dashboard", "containerPort": 8265},
            {"name": "client", "containerPort": 10001},
        ],
        "resources": {"requests": resources, "limits": resources},
    }
    worker = {"name": "ray-worker", "image": f"{image}-gpu", "resources": _worker(pool)}
    return {
        "rayVersion": facts.ray_version,
        "headGroupSpec": {
            "rayStartParams": {"dashboard-host": "0.0.0.0", "num-cpus": "0"},  # noqa: S104 - of a pod, for the cluster's service
            "template": {"spec": {"containers": [head]}},
        },
        "workerGroupSpecs": [
            {
                "groupName": "gpu",
                "replicas": replicas,
                "minReplicas": replicas,
                "maxReplicas": replicas,
                "rayStartParams": {},
                "template": _pod(facts, pool, worker, all_gpus=True),
            }
        ],
    }


def _worker(pool: GpuPool) -> Object:
    """All GPUs of a node, and three quarters of its vCPUs: system pods run there too."""
    resources = {GPU: str(pool.gpus)}
    machine = machines.lookup(pool.machine_type)
    if machine:
        resources["cpu"] = str(max(1, machine.vcpus * 3 // 4))
    return {"requests": resources, "limits": resources}
