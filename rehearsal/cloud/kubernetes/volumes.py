"""Claims of volumes that name their volume: both are bound as soon as they are there."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rehearsal.cloud.kubernetes.objects import World


def look(world: World) -> None:
    """Bind claims."""
    claims = world.kind("v1", "persistentvolumeclaims")
    volumes = world.kind("v1", "persistentvolumes")
    for claim in world.each(claims) if claims else ():
        name = (claim.get("spec") or {}).get("volumeName", "")
        volume = world.get(volumes, "", name) if volumes else None
        if claims is None or volumes is None:
            return
        phase = "Pending" if volume is None else "Bound"
        world.put(claims, {**claim, "status": {**(claim.get("status") or {}), "phase": phase}})
        if volume is not None:
            world.put(volumes, {**volume, "status": {"phase": "Bound"}})
