"""Example jobs for a specific cluster, ready for `kubectl create`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from provision import in_tree
from provision.kinds.gke.kubernetes import all_gather, fabric_pods, kueue
from provision.kinds.gke.kubernetes.fabric_pods import STAYS, Kind
from provision.kinds.gke.kubernetes.kueue import GPU
from provision.kinds.gke.kubernetes.nccl import FIRST
from provision.kinds.gke.kubernetes.objects import Object, field, labelled, to_yaml, variables

if TYPE_CHECKING:
    from collections.abc import Sequence

    from provision.kinds.gke.kubernetes.facts import ClusterFacts, GpuPool

RAY_API: Final = "ray.io/v1"
_SAMPLE_SECONDS: Final = 600
_RAY_SECONDS: Final = 21600
_SAMPLE_IMAGE: Final = "gcr.io/k8s-staging-perf-tests/sleep:v0.0.3"
_NODES: Final = 2
# B200 needs CUDA 12.8, and the others run it as well.
_RAY_CUDA: Final = "-cu128"
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
            nodes = min(_NODES, pool.max_nodes)
            files[f"torchrun-{pool.name}.yaml"] = [torchrun(facts, pool, nodes)]
    if facts.pools:
        pool = main_pool(facts.pools)
        nodes = min(facts.test_nodes, pool.max_nodes)
        files["nccl-all-gather.yaml"] = [all_gather.job_set(facts, pool, nodes)]
        if facts.ray_operator:
            files["ray-cluster.yaml"] = [ray_cluster(facts, pool)]
            files["ray-job.yaml"] = [ray_job(facts, pool)]
    head = f"# For the GKE cluster {facts.name}. To run it: kubectl create --filename "
    return {
        name: f"{head}{name}\n{to_yaml(facts.mirrored(things))}" for name, things in files.items()
    }


def main_pool(pools: Sequence[GpuPool]) -> GpuPool:
    """The pool for jobs that choose none: the first queued pool, or else the first pool."""
    return next((it for it in pools if it.queued), pools[0])


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
    spec = _ray_spec(facts, pool, min(_NODES, pool.max_nodes))
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
    cluster = _ray_spec(facts, pool, nodes or min(_NODES, pool.max_nodes), image)
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
        "activeDeadlineSeconds": ordered(kueue.run_seconds(pool, _RAY_SECONDS)).most,
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


# ------------------------------------------------------------------------------ torchrun

# The program trains nothing of use: it shows that the processes find each other and over which
# network, and how a job outlives its nodes. It saves what it did in the first bucket or share; all
# of it begins again from there when a node is lost, when it is told to stop, and in its next run.

# A job is told that its nodes' run ends by their age. Google documents no notice for the end of a
# run, counts it from the VM's start, and deletes the VM. A container sees its node's uptime. So
# each attempt of a job stops in time on the very nodes that it has, and begins nothing on nodes
# that are about to go (ADR 58).

STOPPED: Final = 75
"""The exit code of a training that was told to stop, and saved what it did (EX_TEMPFAIL)."""

STOP_FILE: Final = "/tmp/stop"  # noqa: S108 - in a container, where nobody else is
"""The file that tells the program to stop; its default for `--stop`."""

STOPPED_FILE: Final = f"{STOP_FILE}.done"
"""The file that each of its processes leaves when all have stopped, whoever was told to."""

IMAGE: Final = "nvcr.io/nvidia/pytorch:25.01-py3"
"""NVIDIA's: its PyTorch takes the NCCL that the node brings, and it has what RDMA needs.

PyTorch's own wheels load the NCCL that they come with. CUDA 12.8 serves B200 as well.
"""

NAME: Final = "torchrun"
_SECONDS: Final = 3600
_KEPT: Final = 86400  # seconds for which an ended job is there; its log goes with its nodes
_PORT: Final = 29500
_STEPS: Final = 500
_WIDTH: Final = 8192  # a gigabyte of gradients, so that the network has something to carry
_NOTE: Final = """\
echo 'No bucket or share is mounted: checkpoints go with the pod, and each attempt starts over.'
"""
STOP_AGE: Final = "NODE_STOP_AGE"
"""The variable that says at which age of its node, in seconds, a job stops."""

_CLOCK: Final = f"""\
clock=
if [ -n "${{{STOP_AGE}:-}}" ]; then
  read -r age _ </proc/uptime
  left=$(({STOP_AGE} - ${{age%%.*}}))
  if [ "${{left}}" -lt 60 ]; then
    echo 'The run of this node is nearly over: nothing is begun on it.'
    trap 'exit {STOPPED}' TERM
    sleep infinity & wait $!
  fi
  (sleep "${{left}}"; touch {STOP_FILE}) & clock=$!
fi
"""
"""The lines of bash that tell the training to stop when its node is that old."""

# Ten minutes to save are what the autoscaler gives pods as well. The rest is for what passes
# between the VM's start, from which Google counts, and that of its kernel, and for the last step.
_MOST_GRACE: Final = 600
_MOST_MARGIN: Final = 900
_PART: Final = 4


def torchrun(facts: ClusterFacts, pool: GpuPool, nodes: int) -> Object:
    """A training job on all GPUs of `nodes` nodes of a pool, to be copied for one's own."""
    container = {
        "name": NAME,
        "image": IMAGE,
        "command": ["bash", "-c", _script(facts)],
        "env": launch_variables(pool, nodes),
    }
    pod = fabric_pods.template(facts, pool, container, fabric_pods.Kind.WHOLE)
    end = ordered(kueue.run_seconds(pool, _SECONDS))
    pod["spec"] |= {"restartPolicy": "Never", "terminationGracePeriodSeconds": end.grace}
    interrupted = {
        "name": "interrupted",
        "action": "RestartJobSetAndIgnoreMaxRestarts",
        "onJobFailureReasons": ["PodFailurePolicy"],
    }
    # Restarts are of failures of the program itself; a node that is lost or drained is none, nor is
    # a stop in order.
    return fabric_pods.job_set(
        kueue.job_metadata(facts, pool, f"{NAME}-", _SECONDS),
        pod,
        nodes,
        {**fabric_pods.restarted(3, interrupted), "ttlSecondsAfterFinished": _KEPT},
        fabric_pods.failed_by({"containerName": NAME, "operator": "In", "values": [STOPPED]}),
    )


def training() -> str:
    """The example's program, which VMs run too."""
    return in_tree("examples/recipes/fine-tune/train.py").read_text(encoding="utf-8")


def _script(facts: ClusterFacts) -> str:
    kept = [*(it.path for it in facts.buckets), *(it.path for it in facts.shares)]
    # One folder for each job: its restarts and its next run find it, another job does not.
    folder = f"{kept[0]}/checkpoints/${{JOB_SET}}" if kept else "/tmp/checkpoints"  # noqa: S108 - in the pod
    note = "" if kept else _NOTE
    # A shell gets the signals: torchrun would give its processes half a minute, not the pod's time.
    # The profile of A3 Mega makes NCCL say warnings alone.
    return f"""\
set -u
{_CLOCK}cat >/tmp/train.py <<'END'
{training()}END
trap 'told=yes; touch {STOP_FILE}' TERM
# The log then says "Using network ..."; the script of TCPXO has set something else.
export NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,NET
{note}torchrun --nnodes="${{NNODES}}" --nproc_per_node="${{NPROC_PER_NODE}}" \\
  --node_rank="${{NODE_RANK}}" --master_addr="${{MASTER_ADDR}}" --master_port="${{MASTER_PORT}}" \\
  /tmp/train.py --checkpoints {folder} --steps {_STEPS} --width {_WIDTH} &
# A signal ends a wait, not the training.
told=yes
while [ "${{told}}" = yes ]; do told=no; wait $!; code=$?; done
# torchrun has no exit code but 1 for a program that stopped.
for told in {STOP_FILE} {STOPPED_FILE}; do
  [ "${{code}}" = 0 ] || [ ! -e "${{told}}" ] || code={STOPPED}
done
[ -z "${{clock}}" ] || kill "${{clock}}"
exit "${{code}}"
"""


def launch_variables(
    pool: GpuPool,
    nodes: int,
    gpus: int | None = None,
    *,
    seconds: int = _SECONDS,
    alone: bool = False,
) -> list[Object]:
    """What the processes of a job find each other by: the variables of a pod of a JobSet.

    `gpus`: that it has; None for all of a node. `seconds`: for how long it asks for nodes of a
    queued pool. `alone`: one of no JobSet, which knows no other.
    """
    run = kueue.run_seconds(pool, seconds) if pool.queued else pool.max_run_seconds
    values = {
        "NNODES": nodes,
        "NPROC_PER_NODE": gpus or pool.gpus,
        # The first pod's name, which JobSet makes.
        "MASTER_ADDR": "127.0.0.1"
        if alone
        else f"$(JOB_SET)-{fabric_pods.REPLICATED_JOB}-0-0.$(JOB_SET)",
        "MASTER_PORT": _PORT,
        "GLOO_SOCKET_IFNAME": FIRST,
        # Not where the nodes' run has no end.
        **({STOP_AGE: ordered(run).most} if run else {}),
    }
    rank = f"metadata.annotations['{fabric_pods.RANK_LABEL}']"
    known = [labelled("JOB_SET", fabric_pods.SET_LABEL), field("NODE_RANK", rank)]
    return [*(variables({"NODE_RANK": 0}) if alone else known), *variables(values)]


@dataclass(frozen=True, kw_only=True)
class OrderedEnd:
    """The end of a job before that of its nodes, in seconds."""

    most: int  # from the start of its nodes until it is told to stop
    grace: int  # from its SIGTERM until its pods are killed


def ordered(run_seconds: int) -> OrderedEnd:
    """The end of a job whose nodes run for so many seconds; short runs have a shorter one."""
    margin = min(_MOST_MARGIN, run_seconds // _PART)
    return OrderedEnd(most=run_seconds - margin, grace=margin * _MOST_GRACE // _MOST_MARGIN)
