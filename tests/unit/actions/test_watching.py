"""A watch shows what is news, ends when nothing is pending, and takes Ctrl-C for its end."""

import dataclasses
import json
import re
import signal
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from provision.actions import status
from provision.console import Console
from provision.context import Context
from provision.documents import plain
from provision.documents.status import About, Older, Status, Trouble, Waiting
from provision.errors import CheckError, Interrupted
from provision.report import Report
from provision.screens.layout import Line
from provision.settings.model import Settings
from provision.time.clock import Clock

STARTS = Waiting(about=About.START_UP, what="np-vm-a is at the step ray", seconds=10)
PENDING = Status(kind="mig", words="VM group", name="np", zone="us-central1-a", waiting=(STARTS,))
LATER = dataclasses.replace(PENDING, waiting=(dataclasses.replace(STARTS, seconds=20),))
DONE = dataclasses.replace(PENDING, waiting=())


class Sleepless(Clock):
    """A clock that waits for nothing."""

    def pause(self, seconds: float) -> None:
        """Do not wait."""


class Terminal(Console):
    """A console on a terminal, which remembers what was drawn."""

    def __init__(self) -> None:
        super().__init__()
        self.drawn: list[list[str]] = []

    @property
    def redraws(self) -> bool:
        return True

    def redraw(self, lines: Any) -> None:
        self.drawn.append([line.text for line in lines])


def _context(console: Console | None = None, **changes: Any) -> Context:
    settings = Settings(
        {"action": "Status", "project_id": "my-project", "name_prefix": "np", "zone": "us-east1-b"}
    )
    return Context(
        settings=settings,
        environ={},
        clock=Sleepless(),
        console=console or Console(),
        report=Report(action="Status"),
        watch=True,
        **changes,
    )


def _looks(*found: Status | BaseException) -> Callable[[Status], Status]:
    left: Iterator[Status | BaseException] = iter(found)

    def look(_before: Status) -> Status:
        one = next(left)
        if isinstance(one, BaseException):
            raise one
        return one

    return look


def _blocks(said: str) -> list[str]:
    return re.findall(r"^\d\d:\d\d:\d\d UTC, every 10 s.*$", said, re.MULTILINE)


def test_without_a_terminal_a_block_comes_only_with_news(
    capsys: pytest.CaptureFixture[str],
) -> None:
    context = _context()
    status.watch(context, PENDING, _looks(LATER, PENDING, LATER, DONE))
    said = capsys.readouterr()
    assert len(_blocks(said.out)) == 2
    assert "np-vm-a is at the step ray" in said.out
    assert "Nothing is pending" in said.err
    assert context.report.status == DONE


def test_a_long_silence_is_broken_by_a_sign_of_life(capsys: pytest.CaptureFixture[str]) -> None:
    status.watch(_context(), PENDING, _looks(*[LATER] * 13, DONE))
    assert capsys.readouterr().err.count("unchanged") == 2


def test_a_terminal_is_drawn_over_at_each_look() -> None:
    console = Terminal()
    status.watch(_context(console), PENDING, _looks(LATER, LATER, DONE))
    assert len(console.drawn) == 4
    assert any("in order" in line for line in console.drawn[-1])


def test_a_cluster_in_which_nothing_is_pending_is_shown_once() -> None:
    console = Terminal()
    status.watch(_context(console), DONE, _looks())
    assert len(console.drawn) == 1


def test_what_may_mend_itself_is_watched_and_what_may_not_is_not() -> None:
    trouble = Trouble(about=About.MACHINES, what="no room", by_itself=True)
    broken = dataclasses.replace(DONE, trouble=(trouble,))
    assert broken.is_pending
    for_good = dataclasses.replace(trouble, by_itself=False)
    assert not dataclasses.replace(DONE, trouble=(for_good,)).is_pending


def test_ctrl_c_ends_a_watch_without_an_error_and_other_signals_do_not() -> None:
    context = _context(Terminal())
    status.watch(context, PENDING, _looks(LATER, Interrupted(signal.SIGINT, "stopped")))
    assert context.report.status == LATER
    with pytest.raises(Interrupted):
        status.watch(context, PENDING, _looks(Interrupted(signal.SIGTERM, "stopped")))


def test_a_look_may_fail_but_not_three_in_a_row(capsys: pytest.CaptureFixture[str]) -> None:
    lost = CheckError("no answer")
    status.watch(_context(), PENDING, _looks(lost, lost, LATER, lost, DONE))
    assert capsys.readouterr().err.count("this look failed, another follows: no answer") == 3
    with pytest.raises(CheckError):
        status.watch(_context(), PENDING, _looks(lost, lost, lost))


def test_out_of_date_machines_are_few_in_the_report_and_all_with_full() -> None:
    names = tuple(f"np-vm-{number}" for number in range(1000))
    older = tuple(
        Older(differences=(f"labels {number}",), count=1000, names=names) for number in range(20)
    )
    found = dataclasses.replace(DONE, out_of_date=older)
    short, whole = _context(), _context(full=True)
    status.report(short, found)
    status.report(whole, found)
    assert len(whole.report.out_of_date or ()) == 20_000
    assert len(json.dumps(plain(short.report.out_of_date), indent=2)) < 8_000


def _shown(lines: list[Line]) -> list[str]:
    return [line.text for line in lines]


def test_the_lines_are_those_of_the_report(capsys: pytest.CaptureFixture[str]) -> None:
    context = _context()
    status.report(context, DONE)
    assert _shown(status.lines(context))[0].startswith("np   VM group in us-central1-a")
    assert capsys.readouterr().out == ""
