"""How the nodes of a cluster are: when they end, what is wrong with them, and what fixes that.

GKE repairs nodes that are not ready, where a pool has auto-repair, and never a GPU: it only marks
some of them. What a person can do depends on how the pool gets its nodes ("Manage AI-optimized GKE
clusters", read 2026-11-23: a fault is reported by label on nodes that are bound to a reservation).
"""

from __future__ import annotations

import collections
import datetime as dt
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from provision import words
from provision.documents import gke_status
from provision.documents.status import About, End, EndedBy, PoolMode, Trouble, Waiting
from provision.kinds import status
from provision.screens.layout import counted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from provision.kinds.gke.kubernetes.facts import ClusterFacts, GpuPool
    from provision.kinds.gke.kubernetes.nodes import Node, Nodes
    from provision.time.clock import Clock

_DRIVER_SECONDS: Final = 900
"""How long a new node may take until its GPUs are counted: its driver is installed meanwhile."""
_IN_COMMAND: Final = 8
_IN_TEXT: Final = 3
"""The number of nodes that are named."""
_BEGIN_NOW: Final = "cloud.google.com/perform-maintenance=true"
_FLEX: Final = frozenset({PoolMode.FLEX_START, PoolMode.FLEX_START_QUEUED})

# ------------------------------------------------------------------ when they end


def all_ends(facts: ClusterFacts | None, nodes: Sequence[Nodes], clock: Clock) -> Iterator[End]:
    """When the nodes of each GPU pool end; those of the others never do.

    `facts`: what Create has kept of the pools; None if no Create has.
    """
    others = {one.pool: one for one in nodes}
    free = 0
    for pool in facts.pools if facts else ():
        there = others.pop(pool.name, None)
        left = remaining(pool, there, clock)
        if there is not None and left is not None:
            (end,) = status.run_ends(left, "node", clock)
            yield replace(end, what=_named(there.each, pool.name))
        elif pool.max_run_seconds:
            yield End(
                what=f"each node of {pool.name}",
                how=EndedBy.RUN,
                words=f"{words.duration(pool.max_run_seconds)} after it came"
                + (", or when its job says" if pool.queued else ""),
            )
        elif there is not None:
            free += there.count
    free += sum(one.count for one in others.values())
    if free:
        yield status.never_ends(free, "node")
    for one in nodes:
        yield from _maintained(one, clock)


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
    run, ages = pool.max_run_seconds, [age(it(nodes.created), clock) for it in (min, max)]
    first, last = (max(0, int(run - it)) for it in ages)
    return first, last


def until(moment: str, clock: Clock) -> int:
    """Seconds of cloud time until a moment in RFC 3339 format; 0 for one in the past."""
    return int(clock.until(dt.datetime.fromisoformat(moment).timestamp()))


def age(moment: str, clock: Clock) -> float:
    """Seconds of cloud time since a moment in RFC 3339 format."""
    return clock.since(dt.datetime.fromisoformat(moment).timestamp())


def _maintained(nodes: Nodes, clock: Clock) -> Iterator[End]:
    """The announced maintenance of the hosts of a pool's nodes."""
    told = sorted(
        (
            (it.maintenance.begins, it)
            for it in nodes.each
            if it.maintenance and it.maintenance.begins and not it.maintenance.is_ongoing
        ),
        key=lambda it: it[0],
    )
    if not told:
        return
    names, first, last = [node.name for _, node in told], told[0][0], told[-1][0]
    early = _able(node for _, node in told)[:_IN_TEXT]
    more = f", or as soon as you say: kubectl label node {' '.join(early)} {_BEGIN_NOW}"
    some = ", ".join(names[:_IN_TEXT]) + (", ..." if len(names) > _IN_TEXT else "")
    yield End(
        what=f"{_named(names, nodes.pool)} ({some})",
        how=EndedBy.MAINTENANCE,
        first=first,
        last=last,
        first_seconds=until(first, clock),
        last_seconds=until(last, clock),
        words="Google maintains the host, which ends the pods on it" + (more if early else ""),
    )


def _named(nodes: Sequence[object], pool: str) -> str:
    return f"{counted(len(nodes), 'node')} of {pool}"


# ------------------------------------------------------------------ what is wrong with them


def nodes(
    pools: Sequence[Nodes], gpus: Mapping[str, int], clock: Clock
) -> tuple[gke_status.Node, ...]:
    """All nodes as Status tells them, those that need a look first, then those that end first.

    `gpus`: how many GPUs each node of a pool has; pools without are not in it.
    """
    found = [_told(node, it.pool, gpus.get(it.pool, 0), clock) for it in pools for node in it.each]
    return tuple(sorted(found, key=lambda it: (it.is_in_order, it.ends or "9", it.pool, it.name)))


def _told(node: Node, pool: str, gpus: int, clock: Clock) -> gke_status.Node:
    begins = node.maintenance.begins if node.maintenance else ""
    return gke_status.Node(
        name=node.name,
        pool=pool,
        ready=not node.unready,
        ends=node.ends or None,
        remaining_seconds=until(node.ends, clock) if node.ends else None,
        gpus=gpus or node.gpus,
        usable_gpus=node.usable,
        faults=faults(node, gpus, clock),
        cordoned=node.cordoned,
        maintenance=begins or None,
        maintenance_seconds=until(begins, clock) if begins else None,
    )


def faults(node: Node, gpus: int, clock: Clock) -> tuple[str, ...]:
    """What is wrong with a node that is ready or may be; () for nothing."""
    is_new = bool(node.created) and age(node.created, clock) < _DRIVER_SECONDS
    lacks = not node.unready and node.gpus < gpus and not is_new
    repair = node.maintenance if _is_repaired(node) else None
    recent = f"a GPU told of an error in the last hour (XID {', '.join(node.recent)})"
    found = (
        node.xids and f"a GPU is broken (XID {', '.join(node.xids)})",
        node.recent and recent,
        lacks and f"{node.gpus} of {counted(gpus, 'GPU')} there",
        node.usable < node.gpus and f"{node.usable} of {counted(node.gpus, 'GPU')} usable",
        repair and f"Google found a fault ({', '.join(repair.reasons)})",
        node.reported and f"reported to Google ({node.reported})",
    )
    return tuple(it for it in found if it)


def _is_repaired(node: Node) -> bool:
    """Whether Google itself has found the fault, and will repair the host."""
    return node.maintenance is not None and node.maintenance.is_repair


def troubles(
    pool: Nodes, gpus: int, document: Mapping[str, Any], mode: PoolMode | None, clock: Clock
) -> Iterator[Trouble]:
    """What is broken about the nodes of a pool: GPUs first, then nodes that are not ready.

    `document`: the pool as Google's API returns it. `mode`: how its nodes are got; None if not
    known.
    """
    alike: dict[tuple[str, ...], list[Node]] = collections.defaultdict(list)
    for node in pool.each:
        alike[faults(node, gpus, clock)].append(node)
    alike.pop((), None)
    for found, them in alike.items():
        is_googles = all(node.reported or _is_repaired(node) for node in them)
        yield Trouble(
            about=About.POOL,
            what=f"{_named(them, pool.pool)} with a fault: {'; '.join(found)}",
            count=len(them),
            names=tuple(node.name for node in them),
            why=(them[0].name,) if len(them) == 1 else (),
            fix=_sooner(them) if is_googles else _replace(them, document, mode),
            by_itself=is_googles,
        )
    them = [node for node in pool.each if node.unready]
    if them:
        repairs = (document.get("management") or {}).get("autoRepair")
        commands = [] if repairs else _commands(them, document, mode)
        yield Trouble(
            about=About.POOL,
            what=f"{_named(them, pool.pool)} not ready",
            count=len(them),
            names=tuple(node.name for node in them),
            why=pool.unready,
            fix="\n".join(["if it stays so, have its VM replaced:", *commands] if commands else ()),
            by_itself=True,
        )


def waiting(pool: Nodes) -> Iterator[Waiting]:
    """What Google is doing with the nodes of a pool."""
    maintained = [it for it in pool.each if it.maintenance and it.maintenance.is_ongoing]
    leaving = [it for it in pool.each if it.is_leaving and it not in maintained]
    for them, doing in (
        (maintained, "under maintenance by Google"),
        (leaving, "about to be stopped"),
    ):
        if them:
            names = tuple(node.name for node in them)
            what, why = f"{_named(them, pool.pool)} {doing}", names if len(names) == 1 else ()
            yield Waiting(about=About.POOL, what=what, count=len(them), names=names, why=why)


def _able(nodes: Iterable[Node]) -> list[str]:
    """The nodes whose maintenance one may have begin earlier."""
    return [it.name for it in nodes if it.maintenance and it.maintenance.can_begin_now]


def _sooner(them: Sequence[Node]) -> str:
    """How to have Google repair hosts earlier than it says; "" where it does not let one."""
    able = " ".join(_able(them)[:_IN_COMMAND])
    how = "Google repairs the host; to have it begin now, which ends the jobs on the node:"
    return f"{how}\nkubectl label node {able} {_BEGIN_NOW}" if able else ""


def _replace(them: Sequence[Node], document: Mapping[str, Any], mode: PoolMode | None) -> str:
    """What to do about nodes with broken GPUs."""
    names = " ".join(node.name for node in them[:_IN_COMMAND])
    lines = [
        "keep new pods off it; the jobs on it end with its VM, and lose what is not saved:",
        f"kubectl cordon {names}",
    ]
    if mode is PoolMode.RESERVATION_BOUND:
        fault = "XID" if any(node.xids or node.recent for node in them) else "unspecified"
        lines += [
            "then report the fault, for another host of the reservation:",
            f"kubectl label node {names} cloud.google.com/fault-behavior={fault}",
        ]
    else:
        lines += ["then have its VM replaced:", *_commands(them, document, mode)]
    if mode in _FLEX:
        lines.append("with flex start only your account team can report the host to Google")
    return "\n".join(lines)


def _commands(
    them: Sequence[Node], document: Mapping[str, Any], mode: PoolMode | None
) -> list[str]:
    """What has the VMs of nodes replaced, through the groups of their pool.

    A node that kubectl deletes may leave its VM behind, which is billed. In a pool of a fixed size
    the group recreates the VM; one that scales gets another node when pods want one, and VMs of
    flex start can't be recreated.
    """
    scales = (document.get("autoscaling") or {}).get("enabled")
    verb = "delete-instances" if scales or mode in _FLEX else "recreate-instances"
    found = []
    for url in document.get("instanceGroupUrls") or []:
        project, _, zone, _, group = url.partition("/projects/")[2].split("/")
        names = [node.name for node in them if node.zone == zone][:_IN_COMMAND]
        if names:
            found.append(
                f"gcloud compute instance-groups managed {verb} {group}"
                f" --zone {zone} --project {project} --instances={','.join(names)}"
            )
    return found
