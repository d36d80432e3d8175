"""How a job is told that its nodes' run ends: its pods know it by the age of their node.

Google documents no notice for the end of a run, counts it from the VM's start, and deletes the VM.
A container sees its node's uptime. So each attempt of a job stops in time on the very nodes that it
has, and begins nothing on nodes that are about to go (ADR 58).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from provision.kinds.gke.kubernetes import kueue, torch_training

if TYPE_CHECKING:
    from provision.kinds.gke.kubernetes.facts import GpuPool

LABEL: Final = "kueue.x-k8s.io/max-exec-time-seconds"
"""The label of a job that says after how many seconds Kueue stops it, all its attempts together."""

STOP_AGE: Final = "NODE_STOP_AGE"
"""The variable that says at which age of its node, in seconds, a job stops."""

CLOCK: Final = f"""\
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


@dataclass(frozen=True, kw_only=True)
class OrderedEnd:
    """The end of a job before that of its nodes, in seconds."""

    most: int  # from the start of its nodes until it is told to stop
    grace: int  # from its SIGTERM until its pods are killed


def ordered(run_seconds: int) -> OrderedEnd:
    """The end of a job whose nodes run for so many seconds; short runs have a shorter one."""
    margin = min(_MOST_MARGIN, run_seconds // _PART)
    return OrderedEnd(most=run_seconds - margin, grace=margin * _MOST_GRACE // _MOST_MARGIN)


def variable(pool: GpuPool, seconds: int) -> dict[str, int]:
    """The variable of a job on a pool that asks for nodes for so many seconds; {} for no end."""
    run = kueue.run_seconds(pool, seconds) if pool.queued else pool.max_run_seconds
    return {STOP_AGE: ordered(run).most} if run else {}
