"""`Status --watch`: look again and again, and show what is news."""

from __future__ import annotations

import datetime as dt
import signal
from typing import TYPE_CHECKING, Final

from provision.documents.older_machine import OlderMachine
from provision.documents.status import Status
from provision.errors import Interrupted, ProvisionError
from provision.screens import jobs
from provision.screens import status as screen
from provision.screens.layout import Line, Look

if TYPE_CHECKING:
    from collections.abc import Callable

    from provision.context import Context

_INTERVAL: Final = 10.0
"""Seconds of cloud time between two looks."""
_SIGN_OF_LIFE: Final = 60.0
"""Seconds of cloud time after which something is said, where there is no terminal."""
_FAILURES: Final = 3
"""Looks in a row that may fail before the watch does."""


def watch(context: Context, first: Status, look: Callable[[Status], Status]) -> None:
    """Look until nothing is pending, or until Ctrl-C, which is no error here.

    Raises:
        ProvisionError: Several looks in a row have failed.
    """
    try:
        _watch(context, first, look)
    except Interrupted as interrupted:
        if interrupted.signum != signal.SIGINT:
            raise
    else:
        context.console.progress("Nothing is pending, so this watch ends")


def report(context: Context, found: Status) -> None:
    """Put a look into the report, with a limited number of everything unless all is asked for."""
    shown = found if context.full else found.short()
    context.report.status = shown
    context.report.out_of_date = [
        OlderMachine(name=name, differences=group.differences)
        for group in shown.out_of_date
        for name in group.names
    ]


def lines(context: Context) -> list[Line]:
    """What is in the report as lines for people."""
    found = context.report.status or Status()
    told = list(screen.lines(found, context.console.width, full=context.full))
    return [*told, *jobs.lines(context.report.jobs)] if context.report.jobs else told


def _watch(context: Context, found: Status, look: Callable[[Status], Status]) -> None:
    report(context, found)
    _show(context)
    silent = 0.0
    while found.is_pending:
        context.clock.pause(_INTERVAL)
        before, found = found, _look_again(context, found, look)
        report(context, found)
        if context.console.redraws or found.news != before.news:
            _show(context)
            silent = 0.0
            continue
        silent += _INTERVAL
        if silent >= _SIGN_OF_LIFE:
            context.console.progress(f"{_now()}  unchanged; Ctrl-C ends this watch")
            silent = 0.0


def _look_again(context: Context, before: Status, look: Callable[[Status], Status]) -> Status:
    """Look once more; what one look can't find out, a later one may.

    Raises:
        ProvisionError: Several looks in a row have failed.
    """
    for _ in range(_FAILURES - 1):
        try:
            return look(before)
        except ProvisionError as error:
            context.console.progress(f"{_now()}  this look failed, another follows: {error}")
            context.clock.pause(_INTERVAL)
    return look(before)


def _show(context: Context) -> None:
    """Show a look: over the last one on a terminal, elsewhere as a block."""
    title = Line(f"{_now()}, every {_INTERVAL:.0f} s; Ctrl-C ends this watch", Look.FAINT)
    if context.console.redraws:
        context.console.redraw([title, *lines(context)])
    else:
        context.console.show([title, *lines(context), Line("")], as_result=True)


def _now() -> str:
    return f"{dt.datetime.now(dt.UTC):%H:%M:%S} UTC"
