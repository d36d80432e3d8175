"""How a job is told that its nodes' run ends: Kueue stops it before, in order.

Google documents no notice for the end of a run, and deletes the VMs. Kueue's own limit counts from
a job's admission, when its nodes have just been granted, and stops it as an eviction does: SIGTERM
to all pods, and time to save. Whoever deletes its workload then lets its next run begin (ADR 41).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

LABEL: Final = "kueue.x-k8s.io/max-exec-time-seconds"
"""The label of a job that says after how many seconds Kueue stops it."""

# Ten minutes to save are what the autoscaler gives pods as well. The rest is for what passes
# between the start of the first VM, from which Google counts, and the admission.
_MOST_GRACE: Final = 600
_MOST_MARGIN: Final = 900
_PART: Final = 4


@dataclass(frozen=True, kw_only=True)
class OrderedEnd:
    """The end of a job before that of its nodes, in seconds.

    Attributes:
        most: From its admission to its SIGTERM.
        grace: From there until its pods are killed.
    """

    most: int
    grace: int


def ordered(run_seconds: int) -> OrderedEnd:
    """The end of a job whose nodes run for so many seconds; short runs have a shorter one."""
    margin = min(_MOST_MARGIN, run_seconds // _PART)
    return OrderedEnd(most=run_seconds - margin, grace=margin * _MOST_GRACE // _MOST_MARGIN)
