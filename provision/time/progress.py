"""What every wait needs: Google Cloud's clock, and somebody to tell how it goes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from provision.time.deadline import Deadline

if TYPE_CHECKING:
    from collections.abc import Callable

    from provision.time.clock import Clock


@dataclass(frozen=True)
class Progress:
    """The clock and the voice of a run.

    Attributes:
        clock: Google Cloud's.
        tell: Takes a sentence whenever there is news.
    """

    clock: Clock
    tell: Callable[[str], None]

    def deadline(self, seconds: float, poll: float) -> Deadline:
        """A deadline in so many seconds of cloud time, with a look every `poll` seconds of it."""
        return Deadline(seconds, poll, self.clock)
