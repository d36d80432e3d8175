"""What others say never acts on a terminal, wherever it is shown."""

import io
import json
import re
from collections.abc import Callable
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from provision import words
from provision.console import Console
from provision.documents import plain
from provision.documents.events import MessageEvent, Output, WaitingEvent
from provision.documents.timeline import OnInterrupt, StageName
from provision.errors import Problem
from provision.report import Report
from provision.screens import layout, status
from provision.screens.page.html import tag, written
from provision.settings.masking import Veil
from provision.terraform.log import Log

HOSTILE: Final = (
    "x\x1b]0;title\x07\x1b[2J\x1b[31mred\x1b]52;c;cm0=\x1b\\ \x9b2K\x85\r\x00\x7f\t|"
    "\u202egnp.exe\u2066\u200b\u2028\ufeff\U000e0041\ud800\nDestroyed 6 resources"
)
CONTROLS: Final = re.compile(
    "[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff\U000e0041]"
)
FORGED: Final = "\nDestroyed 6 resources"
EVENT: Final = WaitingEvent(
    time="2026-01-01T00:00:00Z",
    stage=StageName.MACHINES,
    words=HOSTILE,
    passed=1.0,
    on_interrupt=OnInterrupt.KEEPS,
    is_news=True,
)


def _controls(said: str) -> list[str]:
    """The control characters of a text, in a form that can be told."""
    return [ascii(it) for it in CONTROLS.findall(said)]


def _document(problem: Problem) -> dict[str, Any]:
    document: dict[str, Any] = plain(Report(action="Plan", problems=[problem]).document(1))
    return document


def _said_everywhere(console: Console, said: str) -> None:
    """Say a text in the ways that a console has."""
    problem = Problem(setting=said, what=said, why=said, fix=f"gcloud x {said}", lock_id=said)
    console.progress(said)
    console.problems([problem], "Failed")
    console.notes([problem])
    console.result(said)
    console.show([layout.Line(said)])
    console.show([layout.Line(said)], as_result=True)
    console.show(status.below([said], 80))
    console.raw(said)
    console.happened(MessageEvent(time="now", words=said))
    console.document(_document(problem))


@pytest.mark.parametrize("output", list(Output))
@pytest.mark.parametrize("colours", ["", "1"])
def test_nothing_that_a_console_says_has_a_control_character(
    output: Output,
    colours: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("FORCE_COLOR", colours)
    console = Console(output=output)

    _said_everywhere(console, HOSTILE)
    try:
        dict[str, str]()[HOSTILE]
    except KeyError:
        console.traceback()
    monkeypatch.setattr("sys.stdin", io.StringIO("no\nno\n"))
    console.ask(HOSTILE)
    console.go_on(HOSTILE)

    for said in capsys.readouterr():
        plain = words.COLOUR.sub("", said) if colours else said
        assert _controls(plain) == []


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(st.characters(), max_size=40))
def test_any_text_through_a_console_gives_no_control_character(
    capsys: pytest.CaptureFixture[str], said: str
) -> None:
    for output in Output:
        _said_everywhere(Console(output=output), said)

    assert [_controls(it) for it in capsys.readouterr()] == [[], []]


@given(st.text(st.characters(), max_size=40))
def test_what_is_printable_stays_so_and_one_line_is_one(said: str) -> None:
    assert _controls(words.printable(said)) == []
    assert words.printable(words.printable(said)) == words.printable(said)
    assert len(words.printable_line(said).splitlines()) <= 1


def test_what_acts_is_seen_and_all_else_is_left() -> None:
    for said, shown in {
        "naïve 東京 2\xa0GB — …": "naïve 東京 2\xa0GB — …",
        "a\x1b[31mb": r"a\x1b[31mb",
        "a\u202eb": r"a\u202eb",
        "one\r\ntwo\rthree": "one\ntwo\\rthree",
        "a\tb": "a       b",
    }.items():
        assert words.printable(said) == shown


def test_a_newline_in_a_line_of_ours_forges_none(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    console = Console()
    ways: list[Callable[[], object]] = [
        lambda: console.problems([Problem(what=HOSTILE)], "Failed"),
        lambda: console.notes([Problem(setting=HOSTILE, what="")]),
        lambda: console.progress(HOSTILE),
        lambda: console.show([layout.Line(HOSTILE)], as_result=True),
        lambda: console.show(map(layout.Line, layout.columns([["name", HOSTILE]]))),
        lambda: console.ask(HOSTILE),
    ]
    for say in ways:
        monkeypatch.setattr("sys.stdin", io.StringIO("no\n"))
        say()
        told = "".join(capsys.readouterr())
        assert "Destroyed 6 resources" in told
        assert FORGED not in told


def test_a_reason_of_many_lines_keeps_them_below_its_name(
    capsys: pytest.CaptureFixture[str],
) -> None:
    Console().problems([Problem(what="it failed", why="one\ntwo\n      fix: rm")], "Failed")

    assert capsys.readouterr().err.splitlines()[2:] == [
        "      why: one",
        "           two",
        "                 fix: rm",
    ]


def test_rows_that_are_written_anew_have_no_code_of_others(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("provision.console._is_possible", lambda *_: True)
    console = Console()

    console.refresh([EVENT])

    shown = re.sub(r"\r\x1b\[2K|\x1b\[1A\x1b\[2K", "", capsys.readouterr().err)
    assert _controls(shown) == []
    assert r"\x1b]0;title" in shown


def test_json_has_the_text_itself_in_ascii(capsys: pytest.CaptureFixture[str]) -> None:
    Console(output=Output.JSON).document(_document(Problem(what=HOSTILE)))

    out = capsys.readouterr().out
    assert out.isascii()
    assert json.loads(out)["problems"][0]["what"] == HOSTILE


def test_terraforms_colours_stay_on_a_terminal_and_nothing_else_does() -> None:
    shown: list[str] = []
    log = Log(shown.append, Veil())
    log.write(f"\x1b[1m\x1b[31mError: {HOSTILE}\x1b[0m\n".encode("utf-8", "replace"))
    log.end()

    assert "".join(shown).startswith("\x1b[1m\x1b[31mError: x\\x1b]0;title")
    assert _controls(words.COLOUR.sub("", "".join(shown))) == []
    assert _controls(log.text) == []


def test_terraforms_colours_go_where_ours_go(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    Console().raw("\x1b[31mred\x1b[2J\n")
    assert capsys.readouterr().err == "\x1b[31mred\\x1b[2J\n"


def test_the_report_has_no_character_that_turns_text_around() -> None:
    page = written(tag("html", tag("body", HOSTILE, title=HOSTILE)))

    assert _controls(page) == []
    assert r"\u202egnp.exe" in page
