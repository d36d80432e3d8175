"""A training job on all GPUs of some nodes: torchrun in a JobSet, to be copied for one's own.

The program trains nothing of use: it shows that the processes find each other and over which
network, and how a job outlives its nodes. It saves what it did in the first bucket or share; all of
it begins again from there when a node is lost, when it is told to stop, and in its next run.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, Final

from provision.kinds.gke.kubernetes import fabric_pods, kueue, run_ends, torch_training
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
_KEPT: Final = 86400  # seconds for which an ended job is there; its log goes with its nodes
_PORT: Final = 29500
_STEPS: Final = 500
_WIDTH: Final = 8192  # a gigabyte of gradients, so that the network has something to carry
_NOTE: Final = """\
echo 'No bucket or share is mounted: checkpoints go with the pod, and each attempt starts over.'
"""
_FAILURE_POLICY: Final[dict[str, Any]] = {
    # Of failures of the program itself.
    "maxRestarts": 3,
    # The GPUs of a pod are free when it is gone, not when it is told to go.
    "restartStrategy": "BlockingRecreate",
    "rules": [
        {
            "name": "interrupted",
            "action": "RestartJobSetAndIgnoreMaxRestarts",
            "onJobFailureReasons": ["PodFailurePolicy"],
        }
    ],
}
_SET_LABEL: Final = "metadata.labels['jobset.sigs.k8s.io/jobset-name']"
_INDEX: Final = "metadata.annotations['batch.kubernetes.io/job-completion-index']"


def job_set(facts: ClusterFacts, pool: GpuPool, nodes: int) -> Object:
    """A torchrun job on all GPUs of `nodes` nodes of a pool."""
    pod = fabric_pods.template(facts, pool, _container(facts, pool, nodes), fabric_pods.Kind.WHOLE)
    end = run_ends.ordered(kueue.run_seconds(pool, _SECONDS))
    pod["spec"] |= {"restartPolicy": "Never", "terminationGracePeriodSeconds": end.grace}
    metadata = kueue.job_metadata(facts, pool, f"{NAME}-", _SECONDS)
    job = {
        "parallelism": nodes,
        "completions": nodes,
        "completionMode": "Indexed",
        # If one node fails, the others wait forever, so the whole job must fail.
        "backoffLimit": 0,
        "podFailurePolicy": {"rules": _interruptions()},
        "template": pod,
    }
    return {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": metadata,
        "spec": {
            "failurePolicy": copy.deepcopy(_FAILURE_POLICY),
            "ttlSecondsAfterFinished": _KEPT,
            "network": {"enableDNSHostnames": True},
            "replicatedJobs": [{"name": REPLICATED_JOB, "template": {"spec": job}}],
        },
    }


def _interruptions() -> list[Object]:
    """What is no failure of the job's own: a node that is lost or drained, and a stop in order."""
    codes = {"containerName": NAME, "operator": "In", "values": [torch_training.STOPPED]}
    lost = {"type": "DisruptionTarget", "status": "True"}
    return [
        {"action": "FailJob", "onPodConditions": [lost]},
        {"action": "FailJob", "onExitCodes": codes},
    ]


def _script(facts: ClusterFacts) -> str:
    kept = [*(it.path for it in facts.buckets), *(it.path for it in facts.shares)]
    # One folder for each job: its restarts and its next run find it, another job does not.
    folder = f"{kept[0]}/checkpoints/${{JOB_SET}}" if kept else "/tmp/checkpoints"  # noqa: S108
    note = "" if kept else _NOTE
    # A shell gets the signals: torchrun would give its processes half a minute, not the pod's time.
    # The profile of A3 Mega makes NCCL say warnings alone.
    return f"""\
set -u
{run_ends.CLOCK}cat >/tmp/train.py <<'END'
{torch_training.PROGRAM}END
trap 'told=yes; touch {torch_training.STOP_FILE}' TERM
# The log then says "Using network ..."; the script of TCPXO has set something else.
export NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,NET
{note}torchrun --nnodes="${{NNODES}}" --nproc_per_node="${{NPROC_PER_NODE}}" \\
  --node_rank="${{NODE_RANK}}" --master_addr="${{MASTER_ADDR}}" --master_port="${{MASTER_PORT}}" \\
  /tmp/train.py --checkpoints {folder} --steps {_STEPS} --width {_WIDTH} &
# A signal ends a wait, not the training.
told=yes
while [ "${{told}}" = yes ]; do told=no; wait $!; code=$?; done
# torchrun has no exit code but 1 for a program that stopped.
for told in {torch_training.STOP_FILE} {torch_training.STOPPED_FILE}; do
  [ "${{code}}" = 0 ] || [ ! -e "${{told}}" ] || code={torch_training.STOPPED}
done
[ -z "${{clock}}" ] || kill "${{clock}}"
exit "${{code}}"
"""


def launch_variables(pool: GpuPool, nodes: int) -> list[Object]:
    """What the processes of a job find each other by: the variables of a pod of a JobSet."""
    values: dict[str, Any] = {
        "NNODES": nodes,
        "NPROC_PER_NODE": pool.gpus,
        # The first pod's name, which JobSet makes.
        "MASTER_ADDR": f"$(JOB_SET)-{REPLICATED_JOB}-0-0.$(JOB_SET)",
        "MASTER_PORT": _PORT,
        "GLOO_SOCKET_IFNAME": FIRST,
        **run_ends.variable(pool, _SECONDS),
    }
    return [
        {"name": "JOB_SET", "valueFrom": {"fieldRef": {"fieldPath": _SET_LABEL}}},
        {"name": "NODE_RANK", "valueFrom": {"fieldRef": {"fieldPath": _INDEX}}},
        *({"name": name, "value": str(value)} for name, value in values.items()),
    ]


def _container(facts: ClusterFacts, pool: GpuPool, nodes: int) -> Object:
    return {
        "name": NAME,
        "image": IMAGE,
        "command": ["bash", "-c", _script(facts)],
        "env": launch_variables(pool, nodes),
    }
