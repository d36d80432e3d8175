"""What stands on a terminal while stages go on, and what is left there when they have ended."""

import contextlib
import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CTRL_C = b"\x03"
WORDS = "0 of 2 VMs run; us-central1-b has none now; Google's-long-word-that-nobody-breaks-apart"
# Two stages side by side, news, a sentence in between, and an end of each kind.
STORY = f"""
import contextlib, fcntl, sys, termios, time
if sys.stdin.isatty():
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)  # so that Ctrl-C on it is a signal
from provision import signals
from provision.console import Console
from provision.documents.timeline import OnInterrupt, StageName, StageState
from provision.errors import Interrupted, StillWaiting
from provision.time import stages
from provision.time.clock import Clock
stages._BEAT = 0.02
console = Console()
run = stages.Stages(Clock(), console, beats=True)
try:
    with signals.interruptible(), contextlib.suppress(StillWaiting):
        whole = run.begin(StageName.TERRAFORM, OnInterrupt.SAVES)
        whole.counts("0 of 34")
        with run.stage(StageName.CLUSTER, OnInterrupt.SAVES) as cluster:
            time.sleep(0.1)
            console.progress("A sentence in between.")
            cluster.counts("1 of 1")
        whole.counts("34 of 34")
        run.end(whole, StageState.DONE)
        with run.stage(StageName.MACHINES, OnInterrupt.STAYS_QUEUED) as machines:
            machines.deadline(7200, 10)
            machines.news({WORDS!r})
            time.sleep(float(sys.argv[1]))
            raise StillWaiting("not yet")
except Interrupted:
    pass
finally:
    run.close()
console.progress("The end.")
"""
CURSOR = re.compile(r"\x1b\[\??\d*[A-GHJKhl]")
COLOUR = re.compile(r"\x1b\[[\d;]*m")


def _told(columns: int, *, keys: bytes = b"", seconds: str = "0.2", **environ: str) -> str:
    """What is written to a terminal of so many columns, on which somebody types keys."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    own = {name: value for name, value in os.environ.items() if "COLOR" not in name}
    said = b""
    with subprocess.Popen(
        [sys.executable, "-c", STORY, seconds],
        env=own | {"TERM": "xterm-256color", "PYTHONPATH": str(ROOT)} | environ,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    ) as process:
        os.close(theirs)
        with contextlib.suppress(OSError):
            while part := os.read(ours, 4096):
                said += part
                if keys and b"us-central1-b" in said:
                    os.write(ours, keys)
                    keys = b""
        os.close(ours)
    assert process.returncode == 0, said
    return said.decode()


def _screen(said: str) -> list[str]:
    """The lines that stand on a terminal in the end, by the few codes that may be used."""
    rows, row, column = [""], 0, 0
    for part in re.findall(r"\x1b\[[^A-Za-z]*[A-Za-z]|\r|\n|[^\x1b\r\n]+", said):
        if part == "\r":
            column = 0
        elif part == "\n":
            row += 1
            rows += [""] if row == len(rows) else []
        elif part == "\x1b[2K":
            rows[row] = ""
        elif part == "\x1b[1A":
            row -= 1
        elif not COLOUR.fullmatch(part):
            assert not part.startswith("\x1b"), f"a code that nobody restores: {part!r}"
            rows[row] = rows[row][:column].ljust(column) + part
            column += len(part)
    return [line.rstrip() for line in rows]


@pytest.mark.parametrize("columns", [80, 100])
def test_in_the_end_each_stage_is_one_line_and_nothing_else_is_left(columns: int) -> None:
    said = _told(columns)
    screen = _screen(said)
    text = "\n".join(screen)
    assert screen[0] == "A sentence in between."
    assert re.fullmatch(r"  done  cluster +1 of 1 +\d:\d\d", screen[1])
    assert re.fullmatch(r"  done  Terraform +34 of 34 +\d:\d\d", screen[2])
    assert screen[3].startswith("  wait  machines")
    assert screen[-2:] == ["The end.", ""]
    assert "..." not in text
    assert "Ctrl-C" not in text
    assert max(map(len, screen)) <= columns
    for word in WORDS.split():
        assert word in text.split(), "a word was broken"


def test_while_stages_go_on_they_stand_there_with_their_time_and_what_an_interrupt_leaves() -> None:
    said = _told(80)
    assert re.search(
        r"  \.\.\.   Terraform +0 of 34 +\d:\d\d\r\n"
        r"  \.\.\.   cluster +\d:\d\d\r\n"
        r" +Ctrl-C lets Terraform save its state",
        COLOUR.sub("", said),
    )
    assert "Ctrl-C keeps everything, and the request stays in the queue" in said
    assert "of 2:00:00" in said


def test_ctrl_c_leaves_a_clean_terminal() -> None:
    screen = _screen(_told(80, keys=CTRL_C, seconds="60"))
    assert any(line.startswith("  stop  machines") for line in screen)
    assert not any(line.lstrip().startswith(("...", "Ctrl-C")) for line in screen)
    assert screen[-2:] == ["The end.", ""]


def test_no_color_has_live_rows_without_colours() -> None:
    said = _told(80, NO_COLOR="1")
    # Bold and dim are no colours, says no-color.org.
    assert not re.search(r"\x1b\[[\d;]*3\dm", said)
    assert "\x1b[2K" in said


@pytest.mark.parametrize("term", ["dumb", "unknown"])
def test_a_terminal_that_only_prints_gets_lines(term: str) -> None:
    said = _told(80, TERM=term)
    assert not CURSOR.search(said)
    assert not COLOUR.search(said)
    assert "  ...   machines" in said


@pytest.mark.parametrize("forced", [{}, {"FORCE_COLOR": "1"}])
def test_where_there_is_no_terminal_each_line_is_told_once(forced: dict[str, str]) -> None:
    own = {name: value for name, value in os.environ.items() if "COLOR" not in name}
    done = subprocess.run(
        [sys.executable, "-c", STORY, "0.2"],
        env=own | {"PYTHONPATH": str(ROOT)} | forced,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == ""
    assert bool(COLOUR.search(done.stderr)) == bool(forced)
    assert not CURSOR.search(done.stderr)
    lines = COLOUR.sub("", done.stderr).splitlines()
    marks = [found[1] for line in lines if (found := re.match(r"  (\S+)  +[A-Za-z]", line))]
    assert marks == ["done", "done", "...", "wait"]
    assert max(map(len, lines)) <= 100
