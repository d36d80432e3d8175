"""The story of one cluster, told by the program itself: `python -m rehearsal story`.

Sixteen machines with H100 wait in Google's queue, as their zone has none at first; they come and
start up, a second Create changes nothing, and Destroy leaves nothing. What is shown is what the
program prints; only the lines that begin with "$" are from here.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rehearsal import clock, session

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_SETTINGS: Final = {
    "PROJECT_ID": "my-project",
    "NAME_PREFIX": "h100",
    "ZONE": "us-central1-a",
    "VM_TYPE": "a3-highgpu-8g",
    "INSTANCE_COUNT": "16",
    "IMAGE_FAMILY_NAME": "pytorch-2-9-cu129-ubuntu-2404-nvidia-580",
    "NETWORK_CONFIG": "multi_nic_network",
    "ENABLE_FLEX_START": "yes",
    "MAX_RUN_DURATION": "2d",
    "ENABLE_NOTEBOOK": "no",
}
_ENV_LIST: Final = "env.list"
_RATE: Final = "0.01"
"""Seconds of ours for one of Google's: five minutes in the queue are three seconds."""

_NOT_THE_STORYS: Final = frozenset(_SETTINGS) | {"ACTION"}


@dataclass(frozen=True)
class Act:
    """One run of the program.

    Attributes:
        action: The action.
        scenario: What the simulated cloud practises; "" for nothing.
        reports: Whether the run writes the report.
    """

    action: str
    scenario: str = ""
    reports: bool = False

    def arguments(self, report: Path) -> list[str]:
        """The program's arguments."""
        rehearse = f"--rehearse={self.scenario}" if self.scenario else "--rehearse"
        more = ["--report", str(report)] if self.reports else []
        return ["--env-file", _ENV_LIST, rehearse, "--yes", *more, self.action]


ACTS: Final = (Act("Create", "queue", reports=True), Act("Create"), Act("Destroy"))


def tell(report: Path, environ: Mapping[str, str], say: Callable[[str], None]) -> int:
    """Tell the story.

    Args:
        report: The file for the report of the first Create.
        environ: The caller's environment.
        say: Shows a line.

    Returns:
        The exit code of the first run that failed, or 0.
    """
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="story-") as folder:
        lines = [f"{name}={value}" for name, value in _SETTINGS.items()]
        Path(folder, _ENV_LIST).write_text("\n".join(lines) + "\n", encoding="utf-8")
        surroundings = {
            **{name: value for name, value in environ.items() if name not in _NOT_THE_STORYS},
            session.FOLDER_VARIABLE: str(Path(folder, "cloud")),
            clock.VARIABLE: environ.get(clock.VARIABLE) or _RATE,
            "PYTHONPATH": session.python_path(environ),
        }
        say(f"$ xargs < {_ENV_LIST}")
        say(" ".join(lines))
        for act in ACTS:
            arguments = act.arguments(report.absolute())
            shown = act.arguments(report)
            say(f"\n$ aiinfra {shlex.join(shown)}")
            code = _run([sys.executable, "-m", "provision", *arguments], folder, surroundings)
            if code:
                return code
        say("\n$ python -m rehearsal show")
        code = _run([sys.executable, "-m", "rehearsal", "show"], folder, surroundings)
    say(f"\nAll of that took {time.monotonic() - began:.0f} s. Its report is in {report}: look.")
    return code


def _run(command: list[str], folder: str, environ: Mapping[str, str]) -> int:
    return subprocess.run(command, cwd=folder, env=dict(environ), check=False).returncode  # noqa: S603 - our own program


def main(report: Path) -> int:
    """Tell the story on this terminal."""

    def say(line: str) -> None:
        sys.stdout.write(f"{line}\n")
        sys.stdout.flush()

    return tell(report, os.environ, say)
