"""Runs the user's command, an attempt at a time, and reports what becomes of it.

The unit aiinfra-command.service runs `pause` and then `run` for each attempt; the step `command`
of the start-up asks `due` at each boot.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

from aiinfra_vm import (
    attempts,
    configuration,
    notices,
    output,
    peers,
    report,
    secrets,
)
from aiinfra_vm.attempt import Attempt
from aiinfra_vm.attempts import History, Restart, State

AGAIN = 75
"""The exit code with which systemd runs the unit once more."""
SKIPPED = 77
"""The exit code of `due` when there is nothing to do, as startup.sh has it."""

_KEPT = Path("/var/lib/aiinfra/command.json")
_SCRIPT = Path("/opt/aiinfra/startup-command")
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_STEADY = 60.0  # seconds that an attempt after a failure lives before it is said to run
_SHUTDOWN = "the VM goes down, or somebody stopped aiinfra-command.service"


def _boot() -> str:
    return _BOOT_ID.read_text().strip()


def _restart() -> Restart:
    return Restart(configuration.load()["restart"])


def due() -> int:
    """Say why the command is not begun at this boot, if so."""
    history = attempts.load(_KEPT)
    refusal = history.refusal(_restart(), _boot())
    if not refusal:
        return 0
    if history.state is State.DONE:
        sys.stderr.write(f"{refusal}\n")
        return SKIPPED
    sys.stderr.buffer.write(output.last() + f"\n{refusal}\n".encode())
    return 1


def pause() -> None:
    """Wait until the next attempt is due; at the first of a boot, that is at once."""
    history = attempts.load(_KEPT)
    if history.boot == _boot():
        # A clock that was set back makes no pause longer.
        time.sleep(min(max(0.0, history.due - time.time()), 1.5 * history.pause))


def run() -> int:
    """Make one attempt, and report it.

    The exit code: 0 when the command succeeded or was stopped, 1 when it failed for good, 75 for
    one attempt more.
    """
    restart, history = _restart(), attempts.load(_KEPT)
    if history.state is State.RUNNING and history.boot == _boot():
        # This very program was killed, and systemd has started it again.
        history = history.ended_with(128 + signal.SIGKILL, time.time())
        if not history.goes_on(restart):
            return _finish(history, restart, "the program that runs it was killed")
    try:
        values = secrets.of_all()
    except secrets.Unreadable as error:
        return _unreadable(history, restart, str(error))
    attempt = Attempt(output.mark, _SHUTDOWN)
    signal.signal(signal.SIGTERM, attempt.stop)
    history = history.begun(_boot(), time.time())
    _keep(history)
    output.mark(f"attempt {history.attempt} begins at {report.now()}, boot {history.boot}")
    notices.watch(attempt.notice, notices.run_ends())
    running = threading.Timer(_STEADY, _tell, ("running", history, ""))
    running.daemon = True
    if history.failures:
        # It may fail again: what was told of the failure stays until this attempt lasts.
        running.start()
    passing, sink = output.start(list(values.values()))
    code = attempt.run(["/bin/bash", str(_SCRIPT)], _environment(values), sink)
    output.wait(passing)
    running.cancel()
    if attempt.why:
        history = history.stopped(code, attempt.why, time.time())
    else:
        history = history.ended_with(code, time.time())
    return _finish(history, restart)


def _keep(history: History) -> None:
    try:
        attempts.save(_KEPT, history)
    except OSError as error:  # no reason to end a training
        output.mark(f"what became of the attempt can't be kept: {error}")


def _environment(values: dict[str, bytes]) -> dict[bytes, bytes]:
    own = {**peers.launchers(os.environ), **os.environ}
    environment = {os.fsencode(name): os.fsencode(text) for name, text in own.items()}
    environment.pop(b"PYTHONPATH", None)  # of this very program
    if configuration.value("ray.version"):
        # As in login shells: without the token Ray lets nobody in.
        environment.setdefault(b"RAY_AUTH_MODE", b"token")
        environment.setdefault(b"RAY_AUTH_TOKEN_PATH", b"/run/aiinfra-ray/token")
    environment.update({name.encode(): value for name, value in values.items()})
    return environment


def _unreadable(history: History, restart: Restart, why: str) -> int:
    history = history.not_begun(time.time())
    _keep(history)
    words = f"{why}\nSTARTUP_COMMAND was not begun: it lacks its SECRETS"
    again = restart is not Restart.NEVER
    _tell("failing" if again else "failed", history, words, "" if again else "failed")
    return AGAIN if again else 1


def _finish(history: History, restart: Restart, why: str = "") -> int:
    _keep(history)
    again = history.goes_on(restart)
    words = _ending(history) + (f" ({why})" if why else "")
    if again:
        pause = round(history.due - history.ended, 2)
        words += f", attempt {history.attempt}; begun again after {pause:g} seconds"
    output.mark(f"{words}, at {report.now()}")
    said = report.tail(output.last())
    detail = f"{said}\n{words}" if said else words
    if history.state is State.FAILED:
        sys.stderr.write(f"{detail}\n")  # which is shown on the console, too
    if history.state is State.STOPPED:
        _tell("stopped", history, detail)
    elif again:
        _tell("failing" if history.state is State.FAILED else "running", history, detail)
    else:
        state = "done" if history.state is State.DONE else "failed"
        _tell(state, history, "" if state == "done" else detail, state)
    return AGAIN if again else int(history.state is State.FAILED)


def _ending(history: History) -> str:
    seconds = history.ended - history.began
    how = f"STARTUP_COMMAND ended with exit code {history.code}"
    number = (history.code or 0) - 128
    if number in set(map(int, signal.Signals)):
        how += f" ({signal.Signals(number).name})"
    if history.state is State.STOPPED:
        how += f", having been told to, as {history.why}"
    return f"{how}, after {seconds:.0f} s"


def _tell(state: str, history: History, detail: str, whole: str = "") -> None:
    """Report the step, and what becomes of the start-up; what can't be reported is in the log."""
    document: dict[str, Any] = {
        "state": state,
        "at": report.now(),
        "detail": report.tail(detail.encode()),
        "attempt": history.attempt,
        "failures": history.failures,
        "code": history.code,
    }
    with contextlib.suppress(OSError):
        report.tell_step("command", document, whole, at_once=state == "stopped")


def main() -> int:
    """`due`, `pause` or `run`."""
    (what,) = sys.argv[1:]
    if what == "due":
        return due()
    if what == "pause":
        pause()
        return 0
    return run()


if __name__ == "__main__":
    sys.exit(main())
