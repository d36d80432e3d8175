"""A training job on all GPUs of some nodes: torchrun in a JobSet, to be copied for one's own.

The program trains nothing of use: it shows that the processes find each other and over which
network, with the gradients of a model that is as large as one asks for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from provision.kinds.gke.kubernetes import fabric_pods, kueue
from provision.kinds.gke.kubernetes.pod_fabrics import FIRST

if TYPE_CHECKING:
    from provision.kinds.gke.kubernetes.facts import ClusterFacts, GpuPool
    from provision.kinds.gke.kubernetes.objects import Object

IMAGE: Final = "nvcr.io/nvidia/pytorch:25.01-py3"
"""NVIDIA's: its PyTorch takes the NCCL that the node brings, and it has what RDMA needs.

PyTorch's own wheels load the NCCL that they come with. CUDA 12.8 serves B200 as well.
"""

NAME: Final = "torchrun"
REPLICATED_JOB: Final = "w"
_SECONDS: Final = 3600
_KEPT: Final = 86400  # seconds for which an ended job's log can be read
_PORT: Final = 29500
_SET_LABEL: Final = "metadata.labels['jobset.sigs.k8s.io/jobset-name']"
_INDEX: Final = "metadata.annotations['batch.kubernetes.io/job-completion-index']"

_SCRIPT: Final = """\
set -eu
cat >/tmp/train.py <<'END'
import os
import time

import torch
import torch.distributed as dist

STEPS = 20
WIDTH = 8192

dist.init_process_group("nccl")
rank, ranks = dist.get_rank(), dist.get_world_size()
torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
model = torch.nn.Sequential(*[torch.nn.Linear(WIDTH, WIDTH) for _ in range(4)]).cuda()
model = torch.nn.parallel.DistributedDataParallel(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(STEPS):
    begun = time.monotonic()
    loss = model(torch.randn(64, WIDTH, device="cuda")).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    torch.cuda.synchronize()
    if rank == 0:
        print(f"step {step}: loss {loss.item():.4f}, {time.monotonic() - begun:.3f} s", flush=True)

# The gradients once more, alone: what the network carries.
data = torch.ones(2**28, device="cuda")
for number in range(7):
    if number == 2:
        torch.cuda.synchronize()
        begun = time.monotonic()
    dist.all_reduce(data)
torch.cuda.synchronize()
seconds = (time.monotonic() - begun) / 5
if rank == 0:
    bandwidth = data.nbytes / seconds * 2 * (ranks - 1) / ranks / 1e9
    print(f"{ranks} GPUs: all-reduce of 1 GiB at {bandwidth:.1f} GB/s (bus bandwidth)", flush=True)
dist.destroy_process_group()
END
exec torchrun --nnodes="${NNODES}" --nproc_per_node="${NPROC_PER_NODE}" \\
  --node_rank="${NODE_RANK}" --master_addr="${MASTER_ADDR}" --master_port="${MASTER_PORT}" \\
  /tmp/train.py
"""


def job_set(facts: ClusterFacts, pool: GpuPool, nodes: int) -> Object:
    """A torchrun job on all GPUs of `nodes` nodes of a pool."""
    pod = fabric_pods.template(facts, pool, _container(pool, nodes), fabric_pods.Kind.WHOLE)
    pod["spec"]["restartPolicy"] = "Never"
    job = {
        "parallelism": nodes,
        "completions": nodes,
        "completionMode": "Indexed",
        # If one node fails, the others wait forever, so the whole job must fail.
        "backoffLimit": 0,
        "template": pod,
    }
    return {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": kueue.job_metadata(facts, pool, f"{NAME}-", _SECONDS),
        "spec": {
            "ttlSecondsAfterFinished": _KEPT,
            "network": {"enableDNSHostnames": True},
            "replicatedJobs": [{"name": REPLICATED_JOB, "template": {"spec": job}}],
        },
    }


def _container(pool: GpuPool, nodes: int) -> Object:
    values: dict[str, Any] = {
        "NNODES": nodes,
        "NPROC_PER_NODE": pool.gpus,
        # The first pod's name, which JobSet makes.
        "MASTER_ADDR": f"$(JOB_SET)-{REPLICATED_JOB}-0-0.$(JOB_SET)",
        "MASTER_PORT": _PORT,
        "GLOO_SOCKET_IFNAME": FIRST,
        # The log then says "Using network ...".
        "NCCL_DEBUG": "INFO",
        "NCCL_DEBUG_SUBSYS": "INIT,NET",
    }
    return {
        "name": NAME,
        "image": IMAGE,
        "command": ["bash", "-c", _SCRIPT],
        "env": [
            {"name": "JOB_SET", "valueFrom": {"fieldRef": {"fieldPath": _SET_LABEL}}},
            {"name": "NODE_RANK", "valueFrom": {"fieldRef": {"fieldPath": _INDEX}}},
            *({"name": name, "value": str(value)} for name, value in values.items()),
        ],
    }
