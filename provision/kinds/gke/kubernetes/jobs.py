"""Example jobs for a specific cluster, ready for `kubectl create`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from provision.kinds.gke.kubernetes import all_gather, fabric_pods, kueue, torchrun
from provision.kinds.gke.kubernetes.fabric_pods import STAYS, Kind
from provision.kinds.gke.kubernetes.kueue import GPU
from provision.kinds.gke.kubernetes.objects import Object, to_yaml

if TYPE_CHECKING:
    from provision.kinds.gke.kubernetes.facts import ClusterFacts, GpuPool

RAY_API: Final = "ray.io/v1"
_SAMPLE_SECONDS: Final = 600
_RAY_SECONDS: Final = 21600
_SAMPLE_IMAGE: Final = "gcr.io/k8s-staging-perf-tests/sleep:v0.0.3"
_RAY_NODES: Final = 2
# B200 needs CUDA 12.8, and the others run it as well.
_RAY_CUDA: Final = "-cu128"
_TORCHRUN_NODES: Final = 2
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
    # The first pool of each machine type: one example is enough for equal pools.
    first = {pool.machine_type: pool for pool in reversed(facts.pools)}
    for pool in reversed(first.values()):
        files[f"sample-job-{pool.name}.yaml"] = [sample(facts, pool)]
        if pool.max_nodes > 1:
            nodes = min(_TORCHRUN_NODES, pool.max_nodes)
            files[f"torchrun-{pool.name}.yaml"] = [torchrun.job_set(facts, pool, nodes)]
    if facts.pools:
        pool = main_pool(facts)
        nodes = min(facts.test_nodes, pool.max_nodes)
        files["nccl-all-gather.yaml"] = [all_gather.job_set(facts, pool, nodes)]
        if facts.ray_operator:
            files["ray-cluster.yaml"] = [ray_cluster(facts, pool)]
            files["ray-job.yaml"] = [ray_job(facts, pool)]
    head = f"# For the GKE cluster {facts.name}. To run it: kubectl create --filename "
    return {
        name: f"{head}{name}\n{to_yaml(facts.mirrored(things))}" for name, things in files.items()
    }


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
    template = fabric_pods.template(facts, pool, container, Kind.PART)
    template["spec"]["restartPolicy"] = "Never"
    spec = {"parallelism": 1, "completions": 1, "template": template}
    return _queued(facts, pool, ("batch/v1", "Job", "sample-job-"), _SAMPLE_SECONDS, spec)


def ray_cluster(facts: ClusterFacts, pool: GpuPool) -> Object:
    """A Ray cluster with its head on a node without GPUs."""
    spec = _ray_spec(facts, pool, min(_RAY_NODES, pool.max_nodes))
    return _queued(facts, pool, (RAY_API, "RayCluster", "ray-"), _RAY_SECONDS, spec)


def ray_job(
    facts: ClusterFacts,
    pool: GpuPool,
    nodes: int | None = None,
    entrypoint: str = _GPU_CHECK,
    image: str | None = None,
) -> Object:
    """A job with its own Ray cluster, which is deleted after it.

    `nodes`: its workers, each with all GPUs of a node. `entrypoint`: what a shell runs on the head.
    """
    cluster = _ray_spec(facts, pool, nodes or min(_RAY_NODES, pool.max_nodes), image)
    # KubeRay's own template of what submits a job (1.6.2, common/job.go), which must stay.
    submitter = {
        "name": "ray-job-submitter",
        "image": cluster["headGroupSpec"]["template"]["spec"]["containers"][0]["image"],
        "resources": {
            "requests": {"cpu": "500m", "memory": "200Mi"},
            "limits": {"cpu": "1", "memory": "1Gi"},
        },
    }
    spec = {
        "entrypoint": entrypoint,
        "submitterPodTemplate": {
            "metadata": {"annotations": dict(STAYS)},
            "spec": {"restartPolicy": "Never", "containers": [submitter]},
        },
        "shutdownAfterJobFinishes": True,
        # Else its nodes go first, and nothing says why it failed.
        "activeDeadlineSeconds": torchrun.ordered(kueue.run_seconds(pool, _RAY_SECONDS)).most,
        "rayClusterSpec": cluster,
    }
    return _queued(facts, pool, (RAY_API, "RayJob", "ray-job-"), _RAY_SECONDS, spec)


def _queued(
    facts: ClusterFacts, pool: GpuPool, what: tuple[str, str, str], seconds: int, spec: Object
) -> Object:
    """A job that the queue starts, where there is one; `what`: API version, kind, name so far."""
    api, kind, prefix = what
    suspended = {"suspend": True} if facts.has_queue else {}
    metadata = kueue.job_metadata(facts, pool, prefix, seconds)
    return {"apiVersion": api, "kind": kind, "metadata": metadata, "spec": {**spec, **suspended}}


def _ray_spec(
    facts: ClusterFacts, pool: GpuPool, replicas: int, wanted: str | None = None
) -> dict[str, Any]:
    image = wanted or f"rayproject/ray:{facts.ray_version}-py311"
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
    worker = {"name": "ray-worker", "image": wanted or f"{image}{_RAY_CUDA}"}
    # Without it whoever reaches the head's port 8265 in the cluster runs programs as its pods.
    token = {"authOptions": {"mode": "token"}} if facts.ray_tokens else {}
    return {
        "rayVersion": facts.ray_version,
        **token,
        "headGroupSpec": {
            "rayStartParams": {"dashboard-host": "0.0.0.0", "num-cpus": "0"},  # noqa: S104 - of a pod, for the cluster's service
            "template": fabric_pods.template(facts, pool, head, Kind.HEAD),
        },
        "workerGroupSpecs": [
            {
                "groupName": "gpu",
                "replicas": replicas,
                "minReplicas": replicas,
                "maxReplicas": replicas,
                "rayStartParams": {},
                "template": fabric_pods.template(facts, pool, worker, Kind.RAY),
            }
        ],
    }
