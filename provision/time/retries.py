"""When a request to Google is retried: one policy for all requests that this program sends."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

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
