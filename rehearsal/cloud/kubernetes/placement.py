"""Which group of which pool takes all pods of a ProvisioningRequest, or why none does.

The order of the reasons is that of GKE's autoscaler's published source (2026-08-21): the first that
any pool has is told.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from rehearsal.cloud.kubernetes import backoff, pools, reasons

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rehearsal.cloud.kubernetes.objects import World
    from rehearsal.cloud.kubernetes.pools import Pool
    from rehearsal.cloud.kubernetes.reasons import Said

_ZONE: Final = "topology.kubernetes.io/zone"
_LARGEST_GROUP: Final = 2000
_QUEUED_TOLERATION: Final = {"key": pools.QUEUED, "operator": "Exists", "effect": "NoSchedule"}


@dataclass(frozen=True)
class Place:
    """Where the nodes are to come."""

    pool: Pool
    group: str  # the path of its group in Compute Engine
    count: int  # how many nodes


@dataclass(frozen=True)
class PodSet:
    """Some equal pods."""

    spec: Mapping[str, Any]  # what each is made of
    count: int  # how many


class Obstacle(enum.Enum):
    """Why a pool can't grow now."""

    FULL = enum.auto()
    TOO_SMALL = enum.auto()
    AT_REST = enum.auto()
    UNFIT = enum.auto()


def choose(world: World, sets: Sequence[PodSet], *, last: bool) -> Place | Said:
    """Find a group for all pods, or say why there is none.

    `last`: whether the request fails now. One that needs more than what is left of a pool is told
    until then that there is no pool: the autoscaler passes over it in silence.
    """
    sets = [PodSet(_copy(it.spec), it.count) for it in sets]
    found: dict[Obstacle, list[str]] = {}
    unfit: dict[str, Sequence[str]] = {}
    for pool in pools.every(world):
        if not pool.queued:
            continue
        problems = [problem for it in sets for problem in pool.obstacles(it.spec)]
        if problems:
            unfit[pool.name] = list(dict.fromkeys(problems))
            continue
        place = _within(world, pool, sets)
        if isinstance(place, Place):
            return place
        found.setdefault(place, []).append(pool.name)
    full = [*found.get(Obstacle.FULL, []), *(found.get(Obstacle.TOO_SMALL, []) if last else [])]
    if full:
        return reasons.full(full)
    if Obstacle.AT_REST in found:
        return reasons.in_backoff(found[Obstacle.AT_REST])
    if unfit:
        return reasons.unschedulable(unfit)
    return reasons.NO_POOL


def _copy(spec: Mapping[str, Any]) -> dict[str, Any]:
    """A pod as the autoscaler tries it: it tolerates queued nodes, and may be on any request's."""
    selector = {
        key: value
        for key, value in (spec.get("nodeSelector") or {}).items()
        if key != pools.REQUEST
    }
    tolerations = [*(spec.get("tolerations") or []), _QUEUED_TOLERATION]
    return {**spec, "nodeSelector": selector, "tolerations": tolerations}


def _within(world: World, pool: Pool, sets: Sequence[PodSet]) -> Place | Obstacle:
    count = sum(pool.nodes_for(it.spec, it.count) for it in sets)
    obstacles = []
    for group in _groups(pool, sets):
        room = room_in(world, pool, group)
        if room <= 0:
            obstacles.append(Obstacle.FULL)
        elif backoff.holds(world, group):
            obstacles.append(Obstacle.AT_REST)
        elif room < count:
            obstacles.append(Obstacle.TOO_SMALL)
        else:
            return Place(pool, group, count)
    return min(obstacles, key=lambda it: it.value, default=Obstacle.UNFIT)


def _groups(pool: Pool, sets: Sequence[PodSet]) -> Iterator[str]:
    """The groups of a pool in the zones that the pods may be in."""
    zones = {(it.spec.get("nodeSelector") or {}).get(_ZONE) for it in sets} - {None}
    for group in pool.groups:
        if not zones or zones == {group.split("/zones/")[1].split("/")[0]}:
            yield group


def room_in(world: World, pool: Pool, group: str) -> int:
    """How many more nodes a group may have: what the pool's groups have been asked for counts."""
    own = pools.size_of(world, group)
    others = pools.size(world, pool) - own
    return min(pool.most - others, _LARGEST_GROUP) - own
