"""What happens in a cluster by itself: all controllers, one look each, in order.

Nothing runs between requests. A request lets each controller look at what is there and at the
moment; looks are repeated until they change nothing, as one controller's work is another's cause.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Final

from rehearsal.cloud.kubernetes import (
    batch,
    kueue,
    nodes,
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

_LOOKS: Final[tuple[Callable[[World], None], ...]] = (
    volumes.look,
    services.look,
    nodes.look,
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


def catch_up(world: World) -> None:
    """Let happen what is due by the moment of a request."""
    nodes.let_vms_live(world)
    for _ in range(_ROUNDS):
        before = world.version()
        for look in _LOOKS:
            # What Compute Engine refuses now is tried again with the next request.
            with contextlib.suppress(GoogleError):
                look(world)
        if world.version() == before:
            return
