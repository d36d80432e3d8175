import contextlib
import io
import os
import pty
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from provision import console as console_module
from provision.codes import Code
from provision.console import Console
from provision.context import Context
from provision.documents.events import Output, WaitingEvent
from provision.documents.timeline import OnInterrupt, StageName
from provision.errors import Problem
from provision.screens import layout
from provision.time.clock import Clock

_SPEAK = """
import os, sys
from provision.console import Console
from provision.documents.events import Output
console = Console(output=Output(sys.argv[1] if sys.argv[1:] else "text"))
console.progress("progress")
console.raw("raw")
console.result("result")
console.document({"a": 1})
os.write(3, repr(console.unwritten).encode())
"""


def _spoken(*arguments: str, out: int, err: int) -> str:
    """What a program that speaks to these streams tells of its console in the end."""
    reader, writer = os.pipe()
    command = [sys.executable, "-c", f"import os; os.dup2({writer}, 3)\n{_SPEAK}", *arguments]
    done = subprocess.run(
        command,
        stdout=out,
        stderr=err,
        pass_fds=[writer],
        check=False,
        cwd=Path(__file__).parents[2],
    )
    os.close(writer)
    with os.fdopen(reader) as told:
        assert done.returncode == 0
        return told.read()


def test_what_the_image_lacks_is_named_as_for_elsewhere(capsys: pytest.CaptureFixture[str]) -> None:
    for fix, in_image, told in (
        ("list them with: gcloud compute zones list", True, True),
        ("run Create again, then: kubectl get pods", True, True),
        ("1. run: gcloud auth application-default login", True, False),
        ("set ZONE to another zone", True, False),
        ("list them with: gcloud compute zones list", False, False),
    ):
        Console(in_image=in_image).problems([Problem(what="something", fix=fix)], "Failed")
        said = capsys.readouterr().err
        assert ("in Cloud Shell or on your own machine" in said) == told


def _unread() -> int:
    reader, writer = os.pipe()
    os.close(reader)
    return writer


def test_a_result_that_nobody_reads_stops_nothing_and_one_without_room_is_known() -> None:
    for form in ([], ["json"]):
        assert _spoken(*form, out=_unread(), err=_unread()) == "None"
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full on this system")
    full = os.open("/dev/full", os.O_WRONLY)
    assert "No space left" in _spoken(out=full, err=subprocess.DEVNULL)
    # Progress that found no room is no trouble.
    assert _spoken(out=subprocess.DEVNULL, err=full) == "None"


def test_lines_of_a_screen_are_a_result_for_stdout_and_with_json_for_stderr(
    capsys: pytest.CaptureFixture[str],
) -> None:
    lines = [layout.Line("one"), layout.Line("two", layout.Look.BAD)]
    Console().show(lines, as_result=True)
    assert capsys.readouterr() == ("one\ntwo\n", "")
    Console(output=Output.JSON).show(lines, as_result=True)
    assert capsys.readouterr() == ("", "one\ntwo\n")
    Console().show(lines)
    assert capsys.readouterr() == ("", "one\ntwo\n")


def test_enter_agrees_and_the_end_of_the_input_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    agrees = {"\n": True, "y\n": True, "Yes\n": True, "n\n": False, "what?\n": False, "": False}
    for answer, agreed in agrees.items():
        monkeypatch.setattr(sys, "stdin", io.StringIO(answer))
        assert Console().go_on("Go on?") is agreed


@pytest.mark.parametrize("ask", [Console.ask, Console.go_on])
def test_the_time_of_an_answer_is_none_of_the_run_s_nor_of_a_simulated_cloud_s(
    ask: Callable[[Console, str], bool], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    moment = [1000.0]
    monkeypatch.setattr(time, "time", lambda: moment[0])
    monkeypatch.setattr(time, "monotonic", lambda: moment[0])
    console = Console()
    console.clock = Clock(0.02, tmp_path / "clock")

    def typed() -> str:
        moment[0] += 120
        return "yes\n"

    monkeypatch.setattr(console_module, "_typed", typed)
    assert ask(console, "Go on?")
    # Of its ten seconds it has waited for the cloud in none.
    run = SimpleNamespace(begun=990.0, stages=SimpleNamespace(ahead=0.0), console=console)
    assert cast("Any", Context.seconds).fget(run) == 10
    assert console.clock.now() == 1000


def test_a_note_that_the_plan_has_a_line_for_is_an_event_and_no_line(
    capsys: pytest.CaptureFixture[str],
) -> None:
    chosen = Problem(setting="IMAGE_FAMILY_NAME", what="not set", code=Code.CHOSEN)
    Console(output=Output.NDJSON).notes([chosen], but=Code.CHOSEN)
    out, err = capsys.readouterr()
    assert ('"chosen"' in out, err) == (True, "")
    Console().notes([chosen])
    assert "IMAGE_FAMILY_NAME  not set" in capsys.readouterr().err


def test_prose_breaks_at_blanks_on_a_terminal_and_nowhere_else(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    why = "Google took the machines away, and " + 30 * "its group makes them again "
    problem = Problem(
        setting="ZONE", what="it is " + 30 * "full ", why=why, fix="gcloud " + 120 * "x"
    )
    Console().problems([problem], "Create failed")
    piped = capsys.readouterr().err
    assert len(piped.splitlines()) == 4

    monkeypatch.setattr(Console, "_columns", staticmethod(lambda: 80))
    monkeypatch.setenv("FORCE_COLOR", "1")
    Console().problems([problem], "Create failed")
    shown = [re.sub(r"\x1b\[[0-9;]*m", "", it) for it in capsys.readouterr().err.splitlines()]
    assert [line for line in shown if len(line) > 80] == ["      fix: gcloud " + 120 * "x"]
    assert " ".join(" ".join(shown).split()) == " ".join(piped.split())


class NoRows:
    """The rows of a terminal on which nothing is drawn."""

    def erase(self) -> None:
        pass

    draw = erase


def test_a_sign_of_life_between_two_stages_is_a_line_on_a_terminal_too(
    capsys: pytest.CaptureFixture[str],
) -> None:
    usual: dict[str, Any] = {"words": "trying to look at the cluster", "passed": 61}
    usual |= {"on_interrupt": OnInterrupt.KEEPS, "is_news": False}
    line = "  ...   this run        goes on for 1:01; trying to look at the cluster; Ctrl-C keeps"
    for stage, asks, told in (
        (None, False, True),
        (None, True, False),  # nobody writes over a question
        (StageName.MACHINES, False, False),  # it has its row
    ):
        console = Console()
        console._live = cast("Any", NoRows())
        with console._asking() if asks else contextlib.nullcontext():
            console.happened(WaitingEvent(time="2026-11-23T00:00:00.000Z", stage=stage, **usual))
        assert (line in capsys.readouterr().err) == told


_DRAW = """
from provision.console import Console
from provision.screens.layout import Line
console = Console()
assert console.redraws
console.redraw([Line("broken"), Line("well")])
console.redraw([Line(f"line {number}") for number in range(99)])
"""


def test_a_terminal_is_drawn_over_from_its_first_place_and_cut_at_its_end() -> None:
    terminal, program = pty.openpty()
    done = subprocess.run(
        [sys.executable, "-c", _DRAW],
        stdin=subprocess.DEVNULL,
        stdout=program,
        env=os.environ | {"LINES": "10", "COLUMNS": "80", "TERM": "xterm"},
        check=False,
        cwd=Path(__file__).parents[2],
    )
    os.close(program)
    drawn = os.read(terminal, 10_000).decode()
    os.close(terminal)
    assert done.returncode == 0
    first, second = drawn.split("\x1b[H")[1:]
    assert first.splitlines() == ["broken\x1b[K", "well\x1b[K", "\x1b[J"]
    lines = second.splitlines()
    assert lines[0] == "line 0\x1b[K"
    assert len(lines) == 8 + 1
    assert "... 91 more lines" in lines[-2]


@pytest.mark.parametrize("typed", ["y yes", "y y", "y", "no", "Yes"])
def test_who_types_y_where_the_whole_word_is_wanted_is_asked_for_it_once(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], typed: str
) -> None:
    answers = iter(f"{it}\n" for it in typed.split())
    monkeypatch.setattr(console_module, "_typed", lambda: next(answers, ""))

    assert Console(output=Output.TEXT).ask("Delete np?") is typed.lower().endswith("yes")
    assert list(answers) == []
    assert capsys.readouterr().err.count("whole word") == typed.startswith("y")
