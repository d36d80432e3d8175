"""What is wrong with nodes and their GPUs, and what fixes it.

GKE repairs nodes that are not ready, where a pool has auto-repair, and never a GPU: it only marks
some of them. What a person can do depends on how the pool gets its nodes ("Manage AI-optimized GKE
clusters", read 2026-11-23: a fault is reported by label on nodes that are bound to a reservation).
"""

from __future__ import annotations

import collections
import datetime as dt
from typing import TYPE_CHECKING, Any, Final

from provision.documents import gke_status
from provision.documents.status import About, PoolMode, Trouble, Waiting
from provision.kinds.gke import node_ends
from provision.screens.layout import counted

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from provision.kinds.gke.kubernetes.nodes import Node, Nodes
    from provision.time.clock import Clock

_DRIVER_SECONDS: Final = 900
"""How long a new node may take until its GPUs are counted: its driver is installed meanwhile."""
_MOST: Final = 8
"""The number of nodes in a command."""


def nodes(
    pools: Sequence[Nodes], gpus: Mapping[str, int], clock: Clock
) -> tuple[gke_status.Node, ...]:
    """All nodes as Status tells them, those that need a look first, then those that end first.

    `gpus`: how many GPUs each node of a pool has; pools without are not in it.
    """
    found = [
        _told(node, pool.pool, gpus.get(pool.pool, 0), clock)
        for pool in pools
        for node in pool.each
    ]
    found.sort(key=lambda it: (it.is_in_order, it.ends or "9", it.pool, it.name))
    return tuple(found)


def _told(node: Node, pool: str, gpus: int, clock: Clock) -> gke_status.Node:
    begins = node.maintenance.begins if node.maintenance else ""
    return gke_status.Node(
        name=node.name,
        pool=pool,
        ready=not node.unready,
        ends=node.ends or None,
        remaining_seconds=node_ends.until(node.ends, clock) if node.ends else None,
        gpus=gpus or node.gpus,
        usable_gpus=node.usable,
        faults=faults(node, gpus, clock),
        cordoned=node.cordoned,
        maintenance=begins or None,
        maintenance_seconds=node_ends.until(begins, clock) if begins else None,
    )


def faults(node: Node, gpus: int, clock: Clock) -> tuple[str, ...]:
    """What is wrong with a node that is ready or may be; () for nothing."""
    found = []
    if node.xids:
        found.append(f"a GPU is broken (XID {', '.join(node.xids)})")
    if node.recent:
        found.append(f"a GPU told of an error in the last hour (XID {', '.join(node.recent)})")
    if not node.unready and node.gpus < gpus and not _is_new(node, clock):
        found.append(f"{node.gpus} of {counted(gpus, 'GPU')} there")
    if node.usable < node.gpus:
        found.append(f"{node.usable} of {counted(node.gpus, 'GPU')} usable")
    if node.maintenance and node.maintenance.is_repair:
        found.append(f"Google found a fault ({', '.join(node.maintenance.reasons)})")
    if node.reported:
        found.append(f"reported to Google ({node.reported})")
    return tuple(found)


def _is_new(node: Node, clock: Clock) -> bool:
    if not node.created:
        return False
    created = dt.datetime.fromisoformat(node.created).timestamp()
    return clock.since(created) < _DRIVER_SECONDS


# ------------------------------------------------------------------ what Status tells of them


def troubles(
    pool: Nodes, gpus: int, document: Mapping[str, Any], mode: PoolMode | None, clock: Clock
) -> Iterator[Trouble]:
    """What is broken about the nodes of a pool: GPUs first, then nodes that are not ready.

    `document`: the pool as Google's API returns it. `mode`: how its nodes are got; None if not
    known.
    """
    alike: dict[tuple[str, ...], list[Node]] = collections.defaultdict(list)
    for node in pool.each:
        found = faults(node, gpus, clock)
        if found:
            alike[found].append(node)
    for found, them in alike.items():
        is_theirs = all(node.reported or _is_repaired(node) for node in them)
        yield Trouble(
            about=About.POOL,
            what=f"{counted(len(them), 'node')} of {pool.pool} with a fault: {'; '.join(found)}",
            count=len(them),
            names=tuple(node.name for node in them),
            why=(them[0].name,) if len(them) == 1 else (),
            fix=_sooner(them) if is_theirs else _mend(them, document, mode),
            by_itself=is_theirs,
        )
    unready = [node for node in pool.each if node.unready]
    if unready:
        yield Trouble(
            about=About.POOL,
            what=f"{counted(len(unready), 'node')} of {pool.pool} not ready",
            count=len(unready),
            names=tuple(node.name for node in unready),
            why=tuple(node.unready for node in unready),
            fix=_if_it_stays_so(unready, document, mode),
            by_itself=True,
        )


def _is_repaired(node: Node) -> bool:
    """Whether Google itself has found the fault, and will repair the host."""
    return node.maintenance is not None and node.maintenance.is_repair


def _sooner(them: Sequence[Node]) -> str:
    """How to have Google repair hosts earlier than it says; "" where it does not let one."""
    able = [it.name for it in them if it.maintenance and it.maintenance.can_begin_now][:_MOST]
    if not able:
        return ""
    return (
        "Google repairs the host; to have it begin now, which ends the jobs on the node:\n"
        f"kubectl label node {' '.join(able)} cloud.google.com/perform-maintenance=true"
    )


def waiting(pool: Nodes) -> Iterator[Waiting]:
    """What Google is doing with the nodes of a pool."""
    maintained = [it for it in pool.each if it.maintenance and it.maintenance.is_ongoing]
    leaving = [it for it in pool.each if it.is_leaving and it not in maintained]
    for them, what in (
        (maintained, "under maintenance by Google"),
        (leaving, "about to be stopped"),
    ):
        if them:
            yield Waiting(
                about=About.POOL,
                what=f"{counted(len(them), 'node')} of {pool.pool} {what}",
                count=len(them),
                names=tuple(node.name for node in them),
                why=tuple(node.name for node in them[:1]) if len(them) == 1 else (),
            )


def _mend(them: Sequence[Node], document: Mapping[str, Any], mode: PoolMode | None) -> str:
    """What to do about nodes with broken GPUs."""
    names = " ".join(node.name for node in them[:_MOST])
    lines = [
        "keep new pods off it; the jobs on it end with its VM, and lose what is not saved:",
        f"kubectl cordon {names}",
    ]
    if mode is PoolMode.RESERVATION_BOUND:
        xid = any(node.xids or node.recent for node in them)
        fault = "XID" if xid else "unspecified"
        return "\n".join(
            [
                *lines,
                "then report the fault, for another host of the reservation:",
                f"kubectl label node {names} cloud.google.com/fault-behavior={fault}",
            ]
        )
    lines += ["then have its VM replaced:", *_commands(them, document, mode)]
    if mode in {PoolMode.FLEX_START, PoolMode.FLEX_START_QUEUED}:
        lines.append("with flex start only your account team can report the host to Google")
    return "\n".join(lines)


def _if_it_stays_so(
    them: Sequence[Node], document: Mapping[str, Any], mode: PoolMode | None
) -> str:
    """What to do about nodes that are not ready; "" where GKE repairs them."""
    if (document.get("management") or {}).get("autoRepair"):
        return ""
    commands = _commands(them, document, mode)
    return "\n".join(["if it stays so, have its VM replaced:", *commands]) if commands else ""


def _commands(
    them: Sequence[Node], document: Mapping[str, Any], mode: PoolMode | None
) -> Iterator[str]:
    """What has the VMs of nodes replaced, through the groups of their pool.

    A node that kubectl deletes may leave its VM behind, which is billed. In a pool of a fixed size
    the group recreates the VM; one that scales gets another node when pods want one, and VMs of
    flex start can't be recreated.
    """
    scales = (document.get("autoscaling") or {}).get("enabled")
    again = not scales and mode not in {PoolMode.FLEX_START, PoolMode.FLEX_START_QUEUED}
    verb = "recreate-instances" if again else "delete-instances"
    for url in document.get("instanceGroupUrls") or []:
        zone = url.partition("/zones/")[2].partition("/")[0]
        names = [node.name for node in them if node.zone == zone][:_MOST]
        if names:
            project = url.partition("/projects/")[2].partition("/")[0]
            yield (
                f"gcloud compute instance-groups managed {verb} {url.rpartition('/')[2]}"
                f" --zone {zone} --project {project} --instances={','.join(names)}"
            )
