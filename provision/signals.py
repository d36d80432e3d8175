"""The signals that ask the program to stop."""

from __future__ import annotations

import signal
from typing import Final

SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Ctrl-C, `docker stop`, and a closed terminal."""


def heeded() -> tuple[signal.Signals, ...]:
    """The signals to handle: all, but not an ignored SIGHUP, with which the run should continue.

    nohup ignores SIGHUP on purpose. An ignored SIGINT is handled nevertheless, because shells start
    background processes that way.
    """
    return tuple(
        number
        for number in SIGNALS
        if number is not signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN
    )
