"""The story of one cluster, told by the program itself: `aiinfra-rehearsal story`.

Four machines with H200, and RDMA between them, wait in Google's queue, as their zone has none at
first; they come and start up, a program runs on them, and Destroy leaves nothing. The program is
really run, on this machine. What is shown is what the product and the program print; only the lines
that begin with "$" are from here.
"""

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rehearsal import clock, picture, session
from rehearsal.cloud import real_programs

_SETTINGS: Final = {
    "PROJECT_ID": "my-project",
    "NAME_PREFIX": "h200",
    "ZONE": "us-central1-b",
    "VM_TYPE": "a3-ultragpu-8g",
    "INSTANCE_COUNT": "4",
    "NETWORK_CONFIG": "multi_nic_network",
    "ENABLE_FLEX_START": "yes",
    "MAX_RUN_DURATION": "2d",
    "ENABLE_NOTEBOOK": "no",
}
_ENV_LIST: Final = "env.list"
_SCRIPT: Final = "train.py"
_PROGRAM: Final = """\
import os, time
rank, nodes = os.environ["NODE_RANK"], os.environ["NNODES"]
for step in range(1, 4):
    time.sleep(1)
    print(f"rank {rank} of {nodes}: step {step}, loss {1 / step:.2f}", flush=True)
"""
_CLOUD, _WORK = "cloud", "work"
_REPORT: Final = "rehearsal.html"
COLUMNS: Final = 100
_TITLE: Final = (
    "A rehearsal in a terminal: an env.list becomes a cluster of four machines with H200, which"
    " waits in Google's queue; a program runs on all of them; Destroy leaves nothing"
)
_RATE: Final = "0.01"
"""Seconds of ours for one of Google's: five minutes in the queue are three seconds."""

_NOT_THE_STORYS: Final = frozenset(_SETTINGS) | {"ACTION"}


@dataclass(frozen=True)
class Act:
    """One run of the program."""

    action: str
    scenario: str = ""  # what the simulated cloud practises; "" for nothing
    reports: bool = False  # whether the run writes the report
    through: str = ""  # the command that its output goes through, to show less; "" for none
    behind: tuple[str, ...] = ()  # what stands behind the action

    @property
    def arguments(self) -> list[str]:
        """The program's arguments."""
        rehearse = f"--rehearse={self.scenario}" if self.scenario else "--rehearse"
        more = ["--report", _REPORT] if self.reports else []
        return ["--env-file", _ENV_LIST, rehearse, "--yes", *more, self.action, *self.behind]


ACTS: Final = (
    Act("Create", "queue", reports=True),
    Act("Run", real_programs.SCENARIO, through="tail -n +7", behind=("--", "python3", _SCRIPT)),
    Act("Destroy", through="tail -n +4"),
)


class Screen:
    """Where the story is told, and kept with its colours if there is to be a picture."""

    def __init__(self, *, keeps: bool = False) -> None:
        self._keeps = keeps
        self.lines: list[str] = []

    def say(self, text: str) -> None:
        """Show lines of our own; what is typed stands out in a picture."""
        sys.stdout.write(f"{text}\n")
        sys.stdout.flush()
        self.lines += [
            f"\x1b[36m{line}\x1b[0m" if line.startswith("$") else line for line in text.split("\n")
        ]

    def run(self, command: list[str], folder: Path, environ: Mapping[str, str]) -> int:
        """Run a program, and show what it prints; returns its exit code."""
        if not self._keeps:
            return subprocess.run(command, cwd=folder, env=environ, check=False).returncode  # noqa: S603 - our own program
        coloured = {**environ, "FORCE_COLOR": "1", "COLUMNS": str(COLUMNS)}
        with subprocess.Popen(  # noqa: S603 - our own program
            command,
            cwd=folder,
            env=coloured,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
        ) as process:
            for line in process.stdout or ():
                sys.stdout.write(line)
                sys.stdout.flush()
                self.lines.append(line.rstrip("\n"))
        return process.returncode


def tell(report: Path, environ: Mapping[str, str], screen: Screen) -> int:
    """Tell the story."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="story-") as folder:
        lines = [f"{name}={value}" for name, value in _SETTINGS.items()]
        work = Path(folder, _WORK)
        work.mkdir()
        (work / _ENV_LIST).write_text("\n".join(lines) + "\n", encoding="utf-8")
        (work / _SCRIPT).write_text(_PROGRAM, encoding="utf-8")
        surroundings = {
            **{name: value for name, value in environ.items() if name not in _NOT_THE_STORYS},
            session.FOLDER_VARIABLE: str(Path(folder, _CLOUD)),
            clock.VARIABLE: environ.get(clock.VARIABLE) or _RATE,
            "PYTHONPATH": session.python_path(environ),
        }
        # The cloud ends with the story, so nobody has to be told where it is kept: it is not new.
        Path(folder, _CLOUD).mkdir()
        Path(folder, _CLOUD, session.DATABASE).touch()
        screen.say(f"$ cat {_ENV_LIST}")
        for line in textwrap.wrap(" ".join(lines), COLUMNS, break_on_hyphens=False):
            screen.say(line)
        for act in ACTS:
            piped = f" 2>&1 | {act.through}" if act.through else ""
            screen.say(f"\n$ aiinfra {shlex.join(act.arguments)}{piped}")
            command = [sys.executable, "-m", "provision", *act.arguments]
            shell = ["bash", "-o", "pipefail", "-c", f'"$@"{piped}', "bash"]
            code = screen.run([*shell, *command], work, surroundings)
            if code:
                return code
        screen.say("$ aiinfra-rehearsal show")
        code = screen.run([sys.executable, "-m", "rehearsal", "show"], work, surroundings)
        shutil.copyfile(work / _REPORT, report)
    screen.say(
        f"Told in {time.monotonic() - began:.0f} s. The report, to open in a browser: {report}"
    )
    return code


def main(report: Path, drawing: Path | None) -> int:
    """Tell the story on this terminal."""
    screen = Screen(keeps=drawing is not None)
    code = tell(report, os.environ, screen)
    if drawing is not None and not code:
        drawing.write_text(picture.svg(screen.lines, _TITLE, COLUMNS), encoding="utf-8")
    return code
