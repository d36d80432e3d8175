"""Deadlines and poll intervals, in cloud time."""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING, Final, TypeVar

from provision.codes import Code
from provision.errors import ClusterError
from provision.time.retries import TransientError

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from provision.time.clock import Clock

T = TypeVar("T")

_SHORTEST: Final = 5.0
"""The least seconds of wall time until a deadline, however fast the cloud's clock runs."""


class Deadline:
    """A deadline, with a poll interval for the time until then.

    `poll`: poll interval in seconds of cloud time. `waits`: names what is waited for while it is;
    None where a stage does.
    """

    def __init__(
        self,
        seconds: float,
        poll: float,
        clock: Clock,
        waits: Callable[[str], AbstractContextManager[None]] | None = None,
    ) -> None:
        self._waits = waits
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

    @property
    def most(self) -> float:
        """Seconds of cloud time from the start to the deadline."""
        return self._clock.cloud(self._end - self._start)

    def shorten(self, seconds: float) -> None:
        """Move the deadline to this many seconds of cloud time from now, if that is earlier.

        There is always time left for two more polls.
        """
        least = max(2 * self._clock.wall(self._poll), 0.1)
        self._end = min(self._end, time.monotonic() + max(self._clock.wall(seconds), least))

    def pause(self) -> None:
        """Sleep for one poll interval."""
        self._clock.pause(self._poll)

    def retry(self, attempt: Callable[[], T], doing: str) -> T:
        """Repeat an attempt until it succeeds, as long as its errors are transient.

        `doing`: what the attempt does; it completes "Could not ... in time".

        Raises:
            ClusterError: The deadline has passed; the last transient error is its reason.
        """
        with self._waits(f"trying to {doing}") if self._waits else contextlib.nullcontext():
            while True:
                try:
                    return attempt()
                except TransientError as error:
                    if self.is_over:
                        raise ClusterError(
                            f"Could not {doing} in time",
                            code=Code.NOT_IN_TIME,
                            why=str(error),
                            fix="everything is kept: run Create again to continue",
                        ) from error
                self.pause()
