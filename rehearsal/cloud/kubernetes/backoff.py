"""The rest that GKE's autoscaler gives to a group that could not grow.

Source: its published source (2026-08-21): 5 minutes, twice as long after each failure that follows,
30 minutes at most; all is forgotten 3 hours after the last failure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from rehearsal.cloud.kubernetes.objects import World

_RESTS: Final = "groups at rest"
# Seconds of cloud time.
_FIRST: Final = 300.0
_LONGEST: Final = 1800.0
_REMEMBERED: Final = 10_800.0


def note(world: World, group: str) -> None:
    """Let a group rest after a failure; one at rest goes on as it was."""
    if holds(world, group):
        return
    collection = world.cluster.collection(_RESTS)
    before = world.store.get(collection, group)
    seconds = _FIRST
    if before is not None and before["failed"] + _REMEMBERED * world.request.rate > world.now:
        seconds = min(before["seconds"] * 2, _LONGEST)
    until = world.request.after(seconds)
    kept = {"failed": world.now, "seconds": seconds, "until": until}
    world.store.put(collection, group, kept)
    world.wake(until)


def holds(world: World, group: str) -> bool:
    """Whether a group is at rest."""
    found = world.store.get(world.cluster.collection(_RESTS), group)
    return found is not None and bool(found["until"] > world.now)
