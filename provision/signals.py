"""The signals that ask the program to stop."""

from __future__ import annotations

import signal
from typing import Final

SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Ctrl-C, docker stop, a terminal that was closed."""


def heeded() -> tuple[signal.Signals, ...]:
    """Those that count now: whoever has SIGHUP ignored (nohup) wants the run to go on.

    An ignored SIGINT means nothing of that kind: shells start what is in the background so.
    """
    return tuple(
        number
        for number in SIGNALS
        if number is not signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN
    )
