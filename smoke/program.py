"""Starting the program for one step: within its time, in order when it is to stop."""

from __future__ import annotations

import contextlib
import json
import re
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from smoke.steps import Step

_ENTRYPOINT: Final = Path(__file__).parents[1] / "entrypoint.py"
_GRACE: Final = 600.0
"""Seconds in which an interrupted program waits for what is under way and saves the state."""


@dataclass(frozen=True)
class Ended:
    """How a step ended."""

    code: int  # the exit code; negative after a kill
    seconds: float  # how long it took
    document: dict[str, Any]  # the program's JSON; {} where there was none
    trouble: str  # what went wrong, for people; "" for nothing


def run(step: Step, environ: Mapping[str, str], folder: Path) -> Ended:
    """Run the program for a step, and stop it in order when its time is over.

    Raises:
        KeyboardInterrupt: Ctrl-C; the program has ended in order before.
    """
    name = re.sub(r"\W+", "-", f"{step.deployment}-{step.about}").lower()
    env_list = folder / f"{name}.list"
    lines = (f"{key}={value}\n" for key, value in step.settings.items())
    env_list.write_text("".join(lines), encoding="utf-8")
    out, err = folder / f"{name}.json", folder / f"{name}.log"
    options = ["--env-file", str(env_list), "--output", "json", *step.options]
    began = time.monotonic()
    with out.open("wb") as result, err.open("wb") as said:
        process = subprocess.Popen(  # noqa: S603 - our own program
            [sys.executable, str(_ENTRYPOINT), *options, step.action],
            env=dict(environ),
            stdin=subprocess.DEVNULL,
            stdout=result,
            stderr=said,
            start_new_session=True,  # Ctrl-C is for us: we stop it once, and in order
        )
        late = not _wait(process, step.seconds)
    seconds = time.monotonic() - began
    document: dict[str, Any] = {}
    with contextlib.suppress(ValueError):
        document = json.loads(out.read_text(encoding="utf-8"))
    code = process.returncode
    trouble = f"it was stopped after {step.minutes:g} minutes; " if late else ""
    if code or late:
        trouble += _problems(document) or f"exit code {code}; its words are in {err}"
    return Ended(code, seconds, document, trouble)


def _wait(process: subprocess.Popen[bytes], seconds: float) -> bool:
    """Wait for a process; whether it ended within its time."""
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        _stop(process)
        return False
    except KeyboardInterrupt:
        _stop(process)
        raise
    return True


def _stop(process: subprocess.Popen[bytes]) -> None:
    """Interrupt a process once, and wait until it has cleaned up."""
    process.send_signal(signal.SIGINT)
    deadline = time.monotonic() + _GRACE
    while process.poll() is None:
        with contextlib.suppress(KeyboardInterrupt, subprocess.TimeoutExpired):
            process.wait(1)
        if time.monotonic() > deadline:
            process.kill()


def _problems(document: Mapping[str, Any]) -> str:
    return "; ".join(str(it.get("what", "")) for it in document.get("problems", []))
