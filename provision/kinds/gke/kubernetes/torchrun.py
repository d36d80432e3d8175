"""A training job on all GPUs of some nodes: torchrun in a JobSet, to be copied for one's own.

The program trains nothing of use: it shows that the processes find each other and over which
network, and how a job outlives its nodes. It saves what it did in the first bucket or share; all of
it begins again from there when a node is lost, when it is told to stop, and in its next run.

A job is told that its nodes' run ends by their age. Google documents no notice for the end of a
run, counts it from the VM's start, and deletes the VM. A container sees its node's uptime. So each
attempt of a job stops in time on the very nodes that it has, and begins nothing on nodes that are
about to go (ADR 58).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from provision.kinds.gke.kubernetes import fabric_pods, kueue, torch_training
from provision.kinds.gke.kubernetes.objects import field, labelled, variables
from provision.kinds.gke.kubernetes.pod_fabrics import FIRST

if TYPE_CHECKING:
    from provision.kinds.gke.kubernetes.facts import ClusterFacts, GpuPool
    from provision.kinds.gke.kubernetes.objects import Object

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
    trap 'exit {torch_training.STOPPED}' TERM
    sleep infinity & wait $!
  fi
  (sleep "${{left}}"; touch {torch_training.STOP_FILE}) & clock=$!
fi
"""
"""The lines of bash that tell the training to stop when its node is that old."""

# Ten minutes to save are what the autoscaler gives pods as well. The rest is for what passes
# between the VM's start, from which Google counts, and that of its kernel, and for the last step.
_MOST_GRACE: Final = 600
_MOST_MARGIN: Final = 900
_PART: Final = 4


def job_set(facts: ClusterFacts, pool: GpuPool, nodes: int) -> Object:
    """A torchrun job on all GPUs of `nodes` nodes of a pool."""
    pod = fabric_pods.template(facts, pool, _container(facts, pool, nodes), fabric_pods.Kind.WHOLE)
    end = ordered(kueue.run_seconds(pool, _SECONDS))
    pod["spec"] |= {"restartPolicy": "Never", "terminationGracePeriodSeconds": end.grace}
    codes = {"containerName": NAME, "operator": "In", "values": [torch_training.STOPPED]}
    lost = {"type": "DisruptionTarget", "status": "True"}
    # What is no failure of its own: a node that is lost or drained, and a stop in order.
    interruptions = [
        {"action": "FailJob", "onPodConditions": [lost]},
        {"action": "FailJob", "onExitCodes": codes},
    ]
    interrupted = {
        "name": "interrupted",
        "action": "RestartJobSetAndIgnoreMaxRestarts",
        "onJobFailureReasons": ["PodFailurePolicy"],
    }
    policy = {
        # Of failures of the program itself.
        "maxRestarts": 3,
        # The GPUs of a pod are free when it is gone, not when it is told to go.
        "restartStrategy": "BlockingRecreate",
        "rules": [interrupted],
    }
    return fabric_pods.job_set(
        kueue.job_metadata(facts, pool, f"{NAME}-", _SECONDS),
        pod,
        nodes,
        {"failurePolicy": policy, "ttlSecondsAfterFinished": _KEPT},
        {"podFailurePolicy": {"rules": interruptions}},
    )


def _script(facts: ClusterFacts) -> str:
    kept = [*(it.path for it in facts.buckets), *(it.path for it in facts.shares)]
    # One folder for each job: its restarts and its next run find it, another job does not.
    folder = f"{kept[0]}/checkpoints/${{JOB_SET}}" if kept else "/tmp/checkpoints"  # noqa: S108
    note = "" if kept else _NOTE
    # A shell gets the signals: torchrun would give its processes half a minute, not the pod's time.
    # The profile of A3 Mega makes NCCL say warnings alone.
    return f"""\
set -u
{_CLOCK}cat >/tmp/train.py <<'END'
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
    values = {
        "NNODES": nodes,
        "NPROC_PER_NODE": pool.gpus,
        # The first pod's name, which JobSet makes.
        "MASTER_ADDR": f"$(JOB_SET)-{fabric_pods.REPLICATED_JOB}-0-0.$(JOB_SET)",
        "MASTER_PORT": _PORT,
        "GLOO_SOCKET_IFNAME": FIRST,
        **_stop_age(pool),
    }
    return [
        labelled("JOB_SET", fabric_pods.SET_LABEL),
        field("NODE_RANK", f"metadata.annotations['{fabric_pods.RANK_LABEL}']"),
        *variables(values),
    ]


def _container(facts: ClusterFacts, pool: GpuPool, nodes: int) -> Object:
    return {
        "name": NAME,
        "image": IMAGE,
        "command": ["bash", "-c", _script(facts)],
        "env": launch_variables(pool, nodes),
    }


@dataclass(frozen=True, kw_only=True)
class OrderedEnd:
    """The end of a job before that of its nodes, in seconds."""

    most: int  # from the start of its nodes until it is told to stop
    grace: int  # from its SIGTERM until its pods are killed


def ordered(run_seconds: int) -> OrderedEnd:
    """The end of a job whose nodes run for so many seconds; short runs have a shorter one."""
    margin = min(_MOST_MARGIN, run_seconds // _PART)
    return OrderedEnd(most=run_seconds - margin, grace=margin * _MOST_GRACE // _MOST_MARGIN)


def _stop_age(pool: GpuPool) -> dict[str, int]:
    """The variable of a job on a pool; {} where its nodes' run has no end."""
    run = kueue.run_seconds(pool, _SECONDS) if pool.queued else pool.max_run_seconds
    return {STOP_AGE: ordered(run).most} if run else {}
