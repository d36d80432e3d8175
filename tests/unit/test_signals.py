"""A signal may come at any moment: the run ends with its own words, its document and its code."""

from __future__ import annotations

import importlib
import json
import os
import signal
import subprocess
import sys
import textwrap
import traceback
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Final

from provision import cli, signals
from provision.errors import ExitCode

ROOT = Path(__file__).parents[2]
# What a fork would import, every fork would.
for _module in ("provision.intake", "rich.console", "rich.text"):
    importlib.import_module(_module)
_RIM: Final = {cli.__file__: "line", signals.__file__: "opcode"}
"""The files in which a signal comes -> between what of theirs."""
_FEWEST: Final = 50  # places that the rim has at least


def _run(lines: str) -> tuple[int, str]:
    """Run lines within `interruptible` in a Python of their own; its code, and its stderr."""
    program = f"""\
import signal, sys, threading, time
from provision import signals
from provision.errors import Interrupted
try:
    with signals.interruptible():
{textwrap.indent(lines, " " * 8)}
except Interrupted as error:
    sys.exit(error.exit_code)
"""
    environ = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, env=environ, check=False, capture_output=True, timeout=600)
    return done.returncode, done.stderr.decode()


def test_a_signal_while_a_thread_starts_is_no_failure_of_the_thread() -> None:
    assert _run("""\
start = threading._start_new_thread
def started(*arguments):
    start(*arguments)
    signal.raise_signal(signal.SIGTERM)
threading._start_new_thread = started
try:
    threading.Thread(target=lambda: None).start()
finally:
    time.sleep(0.1)""") == (ExitCode.TERMINATED, "")


def test_a_signal_where_python_can_raise_nothing_comes_again() -> None:
    assert _run("""\
class Dying:
    def __del__(self):
        signal.raise_signal(signal.SIGINT)
dying = Dying()
del dying
time.sleep(20)""") == (ExitCode.INTERRUPTED, "")


def test_what_else_python_can_not_raise_is_still_told() -> None:
    code, said = _run("""\
class Dying:
    def __del__(self):
        raise ValueError("this one's")
dying = Dying()
del dying""")
    assert code == 0
    assert "this one's" in said


def test_a_signal_that_is_too_late_is_not_worth_a_word() -> None:
    assert _run("""\
from types import SimpleNamespace
late = OSError("Signal 15 ignored due to race condition")
sys.unraisablehook(SimpleNamespace(exc_type=OSError, exc_value=late, object=None))""") == (0, "")


def test_a_second_signal_while_the_first_is_handled_changes_nothing() -> None:
    assert _run("""\
change, sent = signal.signal, []
def changed(number, handler):
    if handler is signal.SIG_IGN and not sent:
        sent.append(number)
        signal.raise_signal(signal.SIGTERM)
    return change(number, handler)
signal.signal = changed
signal.raise_signal(signal.SIGINT)""") == (ExitCode.TERMINATED, "")


class _Blow:
    """Sends a signal when the n-th place of the rim is reached for the first time."""

    def __init__(self, nth: int) -> None:
        self._left = nth
        self._seen: set[tuple[object, int]] = set()
        self.has_struck = False

    def __call__(self, frame: FrameType, event: str, _: object) -> _Blow | None:
        between = _RIM.get(frame.f_code.co_filename)
        if between is None:
            return None
        frame.f_trace_opcodes = True
        place = (frame.f_code, frame.f_lasti)
        # Before there is a handler, a signal ends the process, and Python has no say in that.
        heeded = signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL
        if event == between and heeded and place not in self._seen:
            self._seen.add(place)
            self._left -= 1
            if self._left == 0:
                self.has_struck = True
                signal.raise_signal(signal.SIGTERM)
        return self


@dataclass(frozen=True)
class _Ended:
    """How a fork of this process ended that ran the program under a blow."""

    has_struck: bool
    code: int
    out: str
    err: str


def _struck(nth: int, folder: Path) -> _Ended:
    child = os.fork()
    if child == 0:
        try:
            for number, name in ((1, "out"), (2, "err")):
                os.dup2(os.open(folder / name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
            sys.stdout, sys.stderr = os.fdopen(1, "w"), os.fdopen(2, "w")
            sys.unraisablehook = sys.__unraisablehook__
            for number in signals.SIGNALS:
                signal.signal(number, signal.SIG_DFL)
            blow = _Blow(nth)
            sys.settrace(blow)
            code = cli.main(["Validate", "--output", "json"], {})
            sys.settrace(None)
            (folder / "struck").write_text("yes" if blow.has_struck else "")
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
        except BaseException:  # noqa: BLE001 - the fork of a test may go no further
            traceback.print_exc(file=sys.__stderr__)
            os._exit(99)
    _, status = os.waitpid(child, 0)
    said = [(folder / name).read_text() for name in ("struck", "out", "err")]
    return _Ended(bool(said[0]), os.waitstatus_to_exitcode(status), said[1], said[2])


def test_a_signal_at_any_place_of_the_rim_ends_the_run_in_order(tmp_path: Path) -> None:
    codes = set()
    for nth in range(1, 1000):
        (tmp_path / "struck").write_text("?")
        ended = _struck(nth, tmp_path)
        assert "Traceback" not in ended.err, (nth, ended)
        assert json.loads(ended.out)["exit_code"] == ended.code, (nth, ended)
        codes.add(ended.code)
        if not ended.has_struck:
            break
    # Without settings the run ends soon; what comes after its end is ignored.
    assert codes == {ExitCode.TERMINATED, ExitCode.USAGE}
    assert nth > _FEWEST
