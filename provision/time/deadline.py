"""How long something is waited for, and how often it is looked at, in the time of Google Cloud."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final, TypeVar

from provision.errors import ClusterError
from provision.time.retries import PassingError

if TYPE_CHECKING:
    from collections.abc import Callable

    from provision.time.clock import Clock

T = TypeVar("T")

_SHORTEST: Final = 5.0
"""Seconds of wall time that every wait lasts at least, however fast the cloud's time runs."""


class Deadline:
    """A deadline, and the pauses until then.

    Args:
        seconds: Of cloud time, from now to the deadline.
        poll: Seconds of cloud time between two looks.
        clock: Google Cloud's.
    """

    def __init__(self, seconds: float, poll: float, clock: Clock) -> None:
        self._clock = clock
        self._poll = poll
        self._start = time.monotonic()
        self._end = self._start + max(clock.wall(seconds), _SHORTEST)

    @property
    def is_over(self) -> bool:
        """Whether the deadline has passed."""
        return time.monotonic() >= self._end

    @property
    def passed(self) -> float:
        """Seconds of cloud time since the start."""
        return self._clock.cloud(time.monotonic() - self._start)

    def shorten(self, seconds: float) -> None:
        """Wait no longer than that many seconds of cloud time from now, but for two more looks."""
        least = max(2 * self._clock.wall(self._poll), 0.1)
        self._end = min(self._end, time.monotonic() + max(self._clock.wall(seconds), least))

    def pause(self) -> None:
        """Let the time between two looks pass."""
        self._clock.pause(self._poll)

    def retry(self, attempt: Callable[[], T], doing: str) -> T:
        """Repeat an attempt while what hinders it may go by.

        Args:
            attempt: Raises a `PassingError` when it is hindered.
            doing: What it does, as the end of "Could not ... in time".

        Raises:
            ClusterError: The deadline has passed; it carries the last hindrance.
        """
        while True:
            try:
                return attempt()
            except PassingError as error:
                if self.is_over:
                    raise ClusterError(
                        f"Could not {doing} in time",
                        why=str(error),
                        fix="everything is kept: run Create again to go on",
                    ) from error
            self.pause()
