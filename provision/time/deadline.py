"""Until when something is waited for, in cloud time, and when a request is sent to Google again."""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING, Final, TypeVar

from provision.codes import Code
from provision.errors import ClusterError

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    import tenacity

    from provision.time.clock import Clock

TRIES: Final = 8
_LONGEST_PAUSE: Final = 20.0  # seconds of cloud time

_FORBIDDEN: Final = 403
_RATES: Final = frozenset({"rateLimitExceeded", "userRateLimitExceeded"})
"""Compute Engine answers 403 with the first to more requests than a project may send in a minute,
where other APIs answer 429 (cloud.google.com/compute/api-quota, read 2026-11-23)."""
_TIMEOUT, _CONFLICT, _TOO_MANY, _SERVER_ERROR, _NOT_IMPLEMENTED = 408, 409, 429, 500, 501


class TransientError(Exception):
    """A transient error, with a message of one line."""

    def __init__(self, words: str) -> None:
        super().__init__(" ".join(words.split()))


def is_transient(code: int, reason: str, message: str) -> bool:
    """Whether an error is transient, so that a retry may succeed.

    Of the conflicts (409) only one with a running operation is transient: a name that is taken
    stays taken.
    """
    if code == _FORBIDDEN:
        return reason in _RATES
    if code == _CONFLICT:
        return reason == "operationInProgress" or "in progress" in message
    return code in (_TIMEOUT, _TOO_MANY) or (code >= _SERVER_ERROR and code != _NOT_IMPLEMENTED)


def policy(clock: Clock, tell: Callable[[str], None]) -> tenacity.Retrying:
    """Retry after a `TransientError`, with exponential backoff and jitter, up to `TRIES` times.

    Only for requests that are safe to retry: reads, deletions, and changes with an etag.
    """
    import tenacity  # noqa: PLC0415 - offline nothing is repeated

    def say(state: tenacity.RetryCallState) -> None:
        if state.outcome is not None:
            again = f"try {state.attempt_number + 1} of {TRIES}"
            tell(f"Request failed, retrying ({again}): {state.outcome.exception()}")

    pause = clock.wall(1.0)
    return tenacity.Retrying(
        retry=tenacity.retry_if_exception_type(TransientError),
        wait=tenacity.wait_random_exponential(multiplier=pause, max=_LONGEST_PAUSE * pause),
        stop=tenacity.stop_after_attempt(TRIES),
        before_sleep=say,
        reraise=True,
    )


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
