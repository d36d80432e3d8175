"""Example jobs for a specific cluster, ready for `kubectl create`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from provision.kinds.gke.kubernetes import all_gather, fabric_pods, kueue
from provision.kinds.gke.kubernetes.fabric_pods import STAYS, Kind
from provision.kinds.gke.kubernetes.kueue import GPU
from provision.kinds.gke.kubernetes.nccl import FIRST
from provision.kinds.gke.kubernetes.objects import field, labelled, to_yaml, variables

if TYPE_CHECKING:
    from provision.kinds.gke.kubernetes.facts import ClusterFacts, GpuPool
    from provision.kinds.gke.kubernetes.objects import Object

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
{PROGRAM}END
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


def launch_variables(pool: GpuPool, nodes: int) -> list[Object]:
    """What the processes of a job find each other by: the variables of a pod of a JobSet."""
    run = kueue.run_seconds(pool, _SECONDS) if pool.queued else pool.max_run_seconds
    values = {
        "NNODES": nodes,
        "NPROC_PER_NODE": pool.gpus,
        # The first pod's name, which JobSet makes.
        "MASTER_ADDR": f"$(JOB_SET)-{fabric_pods.REPLICATED_JOB}-0-0.$(JOB_SET)",
        "MASTER_PORT": _PORT,
        "GLOO_SOCKET_IFNAME": FIRST,
        # Not where the nodes' run has no end.
        **({STOP_AGE: ordered(run).most} if run else {}),
    }
    return [
        labelled("JOB_SET", fabric_pods.SET_LABEL),
        field("NODE_RANK", f"metadata.annotations['{fabric_pods.RANK_LABEL}']"),
        *variables(values),
    ]


@dataclass(frozen=True, kw_only=True)
class OrderedEnd:
    """The end of a job before that of its nodes, in seconds."""

    most: int  # from the start of its nodes until it is told to stop
    grace: int  # from its SIGTERM until its pods are killed


def ordered(run_seconds: int) -> OrderedEnd:
    """The end of a job whose nodes run for so many seconds; short runs have a shorter one."""
    margin = min(_MOST_MARGIN, run_seconds // _PART)
    return OrderedEnd(most=run_seconds - margin, grace=margin * _MOST_GRACE // _MOST_MARGIN)


# ------------------------------------------------------------------------------ the training

PROGRAM: Final = '''\
"""A fine-tuning that goes on where it stopped: PyTorch on all GPUs of some machines.

    torchrun train.py --checkpoints /mnt/data/fine-tune --data /mnt/data/texts

It learns to tell the next byte of the texts (`*.txt`) in the folder of `--data`, and begins with
the weights in the file of `--base`; without these it learns this file, and begins with none. The
first process saves every `--every` steps, and once more at SIGTERM, or when the file of `--stop` is
there; either ends all of them with exit code 75: saved, and to be begun again. Without a GPU it
runs on processors.
"""

from __future__ import annotations

import argparse
import os
import pickle
import signal
import sys
import time
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

KEPT = 2
STOPPED = 75
CONTEXT, BATCH = 16, 64  # bytes that the model sees, and rows of them


def model_of(width: int) -> torch.nn.Sequential:
    """What tells the next byte; `width` is a multiple of CONTEXT."""
    bytes_ = (torch.nn.Embedding(256, width // CONTEXT), torch.nn.Flatten())
    layers = [part for _ in range(4) for part in (torch.nn.Linear(width, width), torch.nn.ReLU())]
    return torch.nn.Sequential(*bytes_, *layers, torch.nn.Linear(width, 256))


def text_of(folder: Path | None) -> torch.Tensor:
    """All bytes that are learned from."""
    files = sorted(folder.glob("*.txt")) if folder else [Path(__file__)]
    text = b"".join(file.read_bytes() for file in files)
    if len(text) <= CONTEXT:
        sys.exit(f"{folder} has no *.txt with more than {CONTEXT} bytes")
    return torch.frombuffer(bytearray(text), dtype=torch.uint8).long()


def batch(text: torch.Tensor, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Rows of bytes, and the byte behind each; the same ones for the same seed."""
    random = torch.Generator().manual_seed(seed)
    begins = torch.randint(len(text) - CONTEXT, (BATCH, 1), generator=random)
    rows = text[begins + torch.arange(CONTEXT + 1)]
    return rows[:, :-1], rows[:, -1]


def newest(folder: Path) -> Path | None:
    """The newest checkpoint that can be read to its end; None where there are none at all."""
    files = sorted(folder.glob("checkpoint-*.pt"), reverse=True)
    for file in files:
        try:
            torch.load(file, map_location="cpu")
        except (OSError, EOFError, RuntimeError, pickle.UnpicklingError) as error:
            print(f"{file} is not whole: {error}", flush=True)
        else:
            return file
    if files:
        sys.exit(f"none of the checkpoints in {folder} can be read, and none is overwritten")
    return None


def load(folder: Path, device: torch.device, *, first: bool) -> dict[str, Any] | None:
    """The newest checkpoint, the same one for all processes; None where there is none."""
    found = [newest(folder) if first else None]
    dist.broadcast_object_list(found)
    if found[0] is None:
        return None
    kept: dict[str, Any] = torch.load(found[0], map_location=device)
    return kept


def save(folder: Path, step: int, model: torch.nn.Module, optimizer: torch.optim.SGD) -> None:
    """Write a checkpoint under a new name, which it has when it is whole."""
    folder.mkdir(parents=True, exist_ok=True)
    draft = folder / "draft"
    kept = {"step": step, "model": model.state_dict(), "optimizer": optimizer.state_dict()}
    torch.save(kept, draft)
    draft.replace(folder / f"checkpoint-{step:09}.pt")
    for old in sorted(folder.glob("checkpoint-*.pt"))[:-KEPT]:
        old.unlink()


def all_agree(device: torch.device, *, stop: bool) -> bool:
    """Whether any process is to stop: then all do, at the same step."""
    flag = torch.tensor([float(stop)], device=device)
    dist.all_reduce(flag)
    return bool(flag.item() > 0)


def bandwidth(device: torch.device, ranks: int) -> float:
    """The bus bandwidth of an all-reduce of 1 GiB, in GB/s: what the network carries."""
    data = torch.ones(2**28, device=device)
    for times in (2, 5):  # the first ones make connections
        torch.cuda.synchronize()
        begun = time.monotonic()
        for _ in range(times):
            dist.all_reduce(data)
    torch.cuda.synchronize()
    seconds = (time.monotonic() - begun) / times
    return data.nbytes / seconds * 2 * (ranks - 1) / ranks / 1e9


def asked() -> argparse.Namespace:
    """The options."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--checkpoints", type=Path, required=True)
    parser.add_argument("--data", type=Path, help="a folder of texts")
    parser.add_argument("--base", type=Path, help="a file of weights to begin with")
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--every", type=int, default=100, help="steps between checkpoints")
    parser.add_argument("--width", type=int, default=64, help="of the model")
    # Nobody else is on these machines.
    parser.add_argument("--stop", type=Path, default=Path("/tmp/stop"))  # noqa: S108
    return parser.parse_args()


def main() -> int:
    """Train to the last step, or until told to stop; the exit code."""
    options = asked()
    told: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: told.append(number))
    gpus = torch.cuda.is_available()
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if gpus else torch.device("cpu")
    if gpus:
        torch.cuda.set_device(device)
    dist.init_process_group("nccl" if gpus else "gloo")
    rank, ranks = dist.get_rank(), dist.get_world_size()
    text, model = text_of(options.data), model_of(options.width).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    step, kept = 0, load(options.checkpoints, device, first=rank == 0)
    if kept:
        step = kept["step"]
        model.load_state_dict(kept["model"])
        optimizer.load_state_dict(kept["optimizer"])
    elif options.base:
        model.load_state_dict(torch.load(options.base, map_location=device))
    parallel = torch.nn.parallel.DistributedDataParallel(model)
    if rank == 0:
        print(f"begins at step {step} with {ranks} processes", flush=True)
    stopping = False
    while step < options.steps and not stopping:
        begun = time.monotonic()
        rows, following = (it.to(device) for it in batch(text, step * ranks + rank))
        loss = torch.nn.functional.cross_entropy(parallel(rows), following)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        step += 1
        stopping = all_agree(device, stop=bool(told) or options.stop.exists())
        last = stopping or step == options.steps
        if rank == 0 and (last or step % options.every == 0):
            save(options.checkpoints, step, model, optimizer)
            took = time.monotonic() - begun
            print(f"step {step}: loss {loss.item():.4f}, {took:.3f} s", flush=True)
    # The others end after the first one has saved.
    dist.barrier()
    found = bandwidth(device, ranks) if gpus and not stopping else 0.0
    if found and rank == 0:
        print(f"{ranks} GPUs: all-reduce of 1 GiB at {found:.1f} GB/s (bus bandwidth)")
    if stopping:
        # torchrun tells of none of its exit codes but that it was not 0.
        options.stop.with_name(f"{options.stop.name}.done").touch()
    if rank == 0:
        print(f"{'stopped' if stopping else 'through'} at step {step}", flush=True)
    dist.destroy_process_group()
    return STOPPED if stopping else 0


if __name__ == "__main__":
    sys.exit(main())
'''
"""VMs run it too, as `examples/recipes/fine-tune/train.py`."""
