"""When nodes end automatically, or are down for the maintenance of their hosts."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

from provision import words
from provision.documents.status import End, EndedBy
from provision.kinds import status
from provision.screens.layout import counted

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from provision.kinds.gke.kubernetes.facts import ClusterFacts, GpuPool
    from provision.kinds.gke.kubernetes.nodes import Nodes
    from provision.time.clock import Clock


def of(facts: ClusterFacts | None, nodes: Sequence[Nodes], clock: Clock) -> list[End]:
    """When the nodes of each GPU pool end; those of the others never do.

    `facts`: what Create has kept of the pools; None if no Create has.
    """
    others = {one.pool: one for one in nodes}
    found: list[End] = []
    free = 0
    for pool in facts.pools if facts else ():
        there = others.pop(pool.name, None)
        left = remaining(pool, there, clock)
        if there is not None and left is not None:
            found.append(_end(f"{counted(there.count, 'node')} of {pool.name}", left, clock))
        elif pool.max_run_seconds:
            found.append(_each(pool))
        elif there is not None:
            free += there.count
    free += sum(one.count for one in others.values())
    if free:
        found.append(status.never_ends(free, "node"))
    for one in nodes:
        found += _maintained(one, clock)
    return found


def remaining(pool: GpuPool | None, nodes: Nodes | None, clock: Clock) -> tuple[int, int] | None:
    """Seconds of cloud time until Google deletes the nodes of a pool that go first and last.

    GKE says on a node when that is. Without that, the pool's run duration counts (rule F7); in a
    queued pool each request has its own. `pool`: the pool; None for one that Create has not kept.
    """
    if pool is None or nodes is None:
        return None
    if nodes.ends:
        return until(nodes.ends[0], clock), until(nodes.ends[-1], clock)
    if pool.queued or not (pool.max_run_seconds and nodes.created):
        return None
    run = pool.max_run_seconds
    return _rest(run, min(nodes.created), clock), _rest(run, max(nodes.created), clock)


def until(moment: str, clock: Clock) -> int:
    """Seconds of cloud time until a moment; 0 for one in the past.

    `moment`: the moment, in RFC 3339 format.
    """
    return int(clock.until(dt.datetime.fromisoformat(moment).timestamp()))


def _rest(run: float, since: str, clock: Clock) -> int:
    passed = clock.since(dt.datetime.fromisoformat(since).timestamp())
    return max(0, int(run - passed))


def _end(what: str, left: tuple[int, int], clock: Clock) -> End:
    first, last = left
    return End(
        what=what,
        how=EndedBy.RUN,
        first=status.moment(first, clock),
        last=status.moment(last, clock),
        first_seconds=first,
        last_seconds=last,
    )


def _each(pool: GpuPool) -> End:
    longest = words.duration(pool.max_run_seconds or 0)
    other = ", or when its job says" if pool.queued else ""
    return End(
        what=f"each node of {pool.name}",
        how=EndedBy.RUN,
        words=f"{longest} after it came{other}",
    )


def _maintained(nodes: Nodes, clock: Clock) -> Iterator[End]:
    """The announced maintenance of the hosts of a pool's nodes."""
    told = [
        (node.maintenance.begins, node)
        for node in nodes.each
        if node.maintenance and node.maintenance.begins and not node.maintenance.is_ongoing
    ]
    if not told:
        return
    told.sort(key=lambda it: it[0])
    names = [node.name for _, node in told]
    what = f"{counted(len(told), 'node')} of {nodes.pool}"
    first, last = told[0][0], told[-1][0]
    early = [node.name for _, node in told if node.maintenance and node.maintenance.can_begin_now]
    more = (
        ", or as soon as you say: kubectl label node"
        f" {' '.join(early[:_MOST])} cloud.google.com/perform-maintenance=true"
        if early
        else ""
    )
    yield End(
        what=f"{what} ({', '.join(names[:_MOST])}{', ...' if len(names) > _MOST else ''})",
        how=EndedBy.MAINTENANCE,
        first=first,
        last=last,
        first_seconds=until(first, clock),
        last_seconds=until(last, clock),
        words=f"Google maintains the host, which ends the pods on it{more}",
    )


_MOST = 3
"""The number of nodes that are named."""
