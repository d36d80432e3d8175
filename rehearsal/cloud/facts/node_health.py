"""What becomes of a node whose GPU fails."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from rehearsal.cloud import facts

_FACTS: Final = facts.read("node_health")

FAILS_AFTER: Final[float] = _FACTS["believed"]["seconds_until_a_gpu_fails"]
"""How long a node is ready before one of its GPUs fails, in seconds of cloud time."""


@dataclass(frozen=True)
class Failure:
    """How a GPU fails."""

    xid: int  # the XID that the driver tells
    takes_the_gpu_away: bool  # whether the device plugin gives the GPU to no more pods


FAILURES: Final[Mapping[str, Failure]] = {
    name: Failure(it["xid"], it["takes_the_gpu_away"]) for name, it in _FACTS["scenarios"].items()
}
"""By scenario."""
