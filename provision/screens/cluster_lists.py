"""The lists of a GKE cluster's Status: its nodes, and the jobs that run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from provision.documents.gke_status import JobState
from provision.screens import items

if TYPE_CHECKING:
    from collections.abc import Iterator

    from provision.documents.gke_status import GkeCluster, Node, Workload
    from provision.screens.layout import Line

_MOST: Final = 10
"""The number of jobs that are listed without --full."""
_TOLD: Final = frozenset(
    {JobState.GIVEN_UP, JobState.PENDING, JobState.WAITING_FOR_NODES, JobState.STARTING}
)
"""The states of jobs that stand above already, as broken or waiting."""


def lines(found: GkeCluster, width: int, *, full: bool) -> Iterator[Line]:
    """The nodes with --full, and the jobs that run or have ended."""
    if full and found.nodes:
        yield from items.item("nodes", f"{len(found.nodes):,} listed", width)
        table = [[node.name, node.pool, _node(node)] for node in found.nodes]
        yield from items.listed(table, width)
    total = sum(count for state, count in found.jobs.items() if JobState(state) not in _TOLD)
    yield from _jobs("jobs", found.workloads, total, width, full=full)
    outside = [job for job in found.outside if job.state not in _TOLD]
    yield from _jobs("no queue", outside, len(outside), width, full=full)


def _node(node: Node) -> str:
    parts = ["ready" if node.ready else "not ready", *node.faults]
    if node.cordoned:
        parts.append("cordoned")
    if node.remaining_seconds is not None:
        parts.append(f"{items.duration(node.remaining_seconds)} left ({node.ends})")
    if node.maintenance_seconds is not None:
        begins = items.duration(node.maintenance_seconds)
        parts.append(f"Google stops it in {begins} to maintain its host ({node.maintenance})")
    return "; ".join(parts)


def _jobs(
    label: str, jobs: tuple[Workload, ...] | list[Workload], total: int, width: int, *, full: bool
) -> Iterator[Line]:
    """The jobs that run or have ended; those that wait or failed stand above."""
    if not total:
        return
    going = [job for job in jobs if job.state not in _TOLD]
    shown = going if full else going[:_MOST]
    more = "; --full lists all" if len(shown) < total else ""
    yield from items.item(label, f"{len(shown):,} of {total:,} listed{more}", width)
    yield from items.listed([[job.name, _state(job), _place(job)] for job in shown], width)
    for job in shown if full else ():
        yield from items.below([f"{job.name}: {it}" for it in job.interruptions], width)
        yield from items.hint(f"log of {job.name}", job.log, width)


def _state(job: Workload) -> str:
    pods = job.pods
    if pods is None or job.state is not JobState.RUNNING:
        return str(job.state)
    count = pods.ready
    return f"{job.state}, {count:,} {'pod' if count == 1 else 'pods'}"


def _place(job: Workload) -> str:
    found = f"on {', '.join(job.pools)}" if job.pools else ""
    if job.nodes_end_seconds is not None:
        found += f", {items.duration(job.nodes_end_seconds)} left"
    if job.stops_seconds is not None:
        found += f", limit {items.duration(job.stops_seconds)}"
    return found
