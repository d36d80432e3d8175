"""When a request to Google is sent again: one policy for all that this program asks itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    import tenacity

    from provision.time.clock import Clock

TRIES: Final = 8
_LONGEST_PAUSE: Final = 20.0  # seconds of cloud time

_TIMEOUT, _CONFLICT, _TOO_MANY, _SERVER_ERROR, _NOT_IMPLEMENTED = 408, 409, 429, 500, 501


class PassingError(Exception):
    """An answer that may be another one next time, in one line."""

    def __init__(self, words: str) -> None:
        super().__init__(" ".join(words.split()))


def is_passing(code: int, reason: str, message: str) -> bool:
    """Whether an answer may be another one next time.

    Args:
        code: The HTTP status.
        reason: Google's `reason` of the error. Of the conflicts only one with another operation
            goes by: a name that is taken stays taken.
        message: Google's words.
    """
    if code == _CONFLICT:
        return reason == "operationInProgress" or "in progress" in message
    return code in (_TIMEOUT, _TOO_MANY) or (code >= _SERVER_ERROR and code != _NOT_IMPLEMENTED)


def policy(clock: Clock, tell: Callable[[str], None]) -> tenacity.Retrying:
    """Try again after a `PassingError`, ever more slowly and at random, but not for ever.

    Only for requests that may be repeated: reads, deletions, and changes under an etag.

    Args:
        clock: Google Cloud's.
        tell: Takes one line whenever a request is to be repeated.
    """
    import tenacity  # noqa: PLC0415 - offline nothing is repeated

    def say(state: tenacity.RetryCallState) -> None:
        if state.outcome is not None:
            again = f"try {state.attempt_number + 1} of {TRIES}"
            tell(f"Google is busy, trying again ({again}): {state.outcome.exception()}")

    pause = clock.wall(1.0)
    return tenacity.Retrying(
        retry=tenacity.retry_if_exception_type(PassingError),
        wait=tenacity.wait_random_exponential(multiplier=pause, max=_LONGEST_PAUSE * pause),
        stop=tenacity.stop_after_attempt(TRIES),
        before_sleep=say,
        reraise=True,
    )
