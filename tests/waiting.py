"""Waits of tests for what happens beside them: long enough for a machine that is busy."""

import time
from collections.abc import Callable

SECONDS = 600
"""Below pytest's limit for a test, which tells less. Only a test that fails waits so long."""


def until(
    is_so: Callable[[], object],
    said: Callable[[], object] = lambda: "it did not happen",
    *,
    seconds: float = SECONDS,
    pace: float = 0.05,
) -> None:
    """Wait until something is so, and fail where it never is."""
    deadline = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < deadline, said()
        time.sleep(pace)
