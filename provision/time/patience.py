"""How long something is waited for, and how often it is looked at, in the time of Google Cloud."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from provision.time import clock

if TYPE_CHECKING:
    from collections.abc import Mapping

_SHORTEST_POLL: Final = 0.05
_SHORTEST: Final = 5.0
"""Seconds of ours that are waited at least, however fast the cloud's time runs."""


class Patience:
    """A deadline, and the pauses until then.

    Args:
        seconds: Of cloud time, from now to the deadline.
        poll: Seconds of cloud time between two looks.
        environ: For the clock's rate.
    """

    def __init__(self, seconds: float, poll: float, environ: Mapping[str, str]) -> None:
        self._environ = environ
        self._pause = max(poll * clock.rate(environ), _SHORTEST_POLL)
        self._start = time.monotonic()
        self._end = self._start + max(seconds * clock.rate(environ), _SHORTEST)

    @property
    def is_over(self) -> bool:
        """Whether the deadline has passed."""
        return time.monotonic() >= self._end

    @property
    def passed(self) -> float:
        """Seconds of cloud time since the start."""
        return clock.cloud_seconds(time.monotonic() - self._start, self._environ)

    def shorten(self, seconds: float) -> None:
        """Wait no longer than that many seconds of cloud time from now."""
        end = time.monotonic() + max(seconds * clock.rate(self._environ), 2 * self._pause)
        self._end = min(self._end, end)

    def pause(self) -> None:
        """Let the time between two looks pass."""
        time.sleep(self._pause)
