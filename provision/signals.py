"""The signals that ask the program to stop, and how that wish becomes an exception."""

from __future__ import annotations

import contextlib
import signal
import sys
import time
from typing import TYPE_CHECKING, Final, NoReturn

from provision.errors import Interrupted

if TYPE_CHECKING:
    from collections.abc import Iterator

SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Ctrl-C, `docker stop`, and a closed terminal."""

_SOON: Final = 0.01  # seconds until a signal comes again whose exception was lost
_TOO_LATE: Final = "ignored due to race condition"
"""What Python says of a signal that came just before it was to be ignored (3.10 and later,
Modules/signalmodule.c)."""

_asked: list[float] = []


def note_stop() -> None:
    """Somebody asks to stop, now."""
    _asked.append(time.monotonic())


def stopped_for() -> float:
    """Seconds since somebody has asked to stop; 0 if nobody has."""
    return time.monotonic() - _asked[0] if _asked else 0.0


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


@contextlib.contextmanager
def interruptible() -> Iterator[None]:
    """Raise `Interrupted` for the first signal that asks to stop.

    Later signals are ignored: a second one would cut the clean-up short, and after the action the
    program only has to report the result. A handler is needed in any case: PID 1 of a container
    does not get SIGTERM without one.

    A signal may come at any moment, so whoever catches `Interrupted` does that around the whole
    `with`: it may also be raised by its first and its last line.
    """
    _asked.clear()
    numbers = heeded()
    before = sys.unraisablehook

    def ignore() -> None:
        for number in numbers:
            signal.signal(number, signal.SIG_IGN)

    def interrupt(signum: int, _frame: object) -> NoReturn:
        ignore()
        note_stop()
        raise Interrupted(
            signum,
            "Interrupted; everything that was created is kept",
            fix="run Create again to continue, or Destroy to remove everything",
        )

    def heed() -> None:
        for number in numbers:
            signal.signal(number, interrupt)

    def unraisable(found: sys.UnraisableHookArgs) -> None:
        """Where Python can raise nothing, as in __del__, it drops the exception and goes on."""
        if isinstance(found.exc_value, Interrupted):
            signum = found.exc_value.signum
            signal.signal(signal.SIGALRM, lambda *_: signal.raise_signal(signum))
            heed()
            signal.setitimer(signal.ITIMER_REAL, _SOON)
        elif not (isinstance(found.exc_value, OSError) and _TOO_LATE in str(found.exc_value)):
            before(found)

    sys.unraisablehook = unraisable
    try:
        heed()
        yield
    finally:
        ignore()
        sys.unraisablehook = before
