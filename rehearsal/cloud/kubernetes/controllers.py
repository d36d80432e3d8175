"""What happens in a cluster automatically: all controllers, one look each, in order.

Nothing runs between requests. A request first lets each controller look at every moment since the
last one at which one of them had something to do, and then at its own. At each of them the looks
are repeated until they change nothing, as one controller's work is another's cause.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Final

from rehearsal.cloud.kubernetes import (
    batch,
    health,
    kueue,
    nodes,
    objects,
    pools,
    provisioning,
    ray,
    rollouts,
    scale_down,
    scale_up,
    scheduler,
    services,
    sets,
    volumes,
)
from rehearsal.cloud.wire import GoogleError

if TYPE_CHECKING:
    from collections.abc import Callable

    from rehearsal.cloud.kubernetes.objects import World

_AGENDA: Final = "compute/agenda"
"""Where Compute Engine has what will happen automatically, by moment."""

_LOOKS: Final[tuple[Callable[[World], None], ...]] = (
    volumes.look,
    services.look,
    nodes.look,
    health.look,
    kueue.look,
    provisioning.look,
    ray.look,
    sets.look,
    batch.look,
    scheduler.look,
    scale_up.look,
    scale_down.look,
    rollouts.look,
)
_ROUNDS: Final = 40
"""More than any chain of causes takes where everything happens at once."""
_MOMENTS: Final = 400
"""More moments than lie between two requests; what is left then happens at the request's own."""


def let_pass(world: World) -> None:
    """Let happen, each at its moment, what was due before the moment of a request."""
    for _ in range(_MOMENTS):
        moment = _next(world)
        if moment is None:
            return
        catch_up(world.at(moment))


def _next(world: World) -> float | None:
    """The first moment before that of a request at which something is due; it is taken off."""
    own = world.cluster.collection(objects.DUE)
    found = [world.store.first(own), world.store.first(_AGENDA) if pools.every(world) else None]
    moments = [float(it[0].partition(" ")[0]) for it in found if it is not None]
    moment = min(moments, default=world.now)
    if moment >= world.now:
        return None
    if found[0] is not None and float(found[0][0]) == moment:
        world.store.delete(own, found[0][0])
    return moment


def catch_up(world: World) -> None:
    """Let happen what is due at the moment of a request."""
    nodes.let_vms_live(world)
    for _ in range(_ROUNDS):
        before = world.version()
        for look in _LOOKS:
            # What Compute Engine refuses now is tried again with the next request.
            with contextlib.suppress(GoogleError):
                look(world)
        if world.version() == before:
            return
