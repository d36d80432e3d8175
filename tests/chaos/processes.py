"""The processes of one run of the program: which there are, and what each is. Linux only."""

import enum
import os
import signal
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final

PROC: Final = Path("/proc")


class Role(enum.Enum):
    """What a process is to a run."""

    TOOL = "tool"
    TERRAFORM = "terraform"
    PLUGIN = "plugin"


def of_run(mark: str, tool: int) -> dict[int, Role]:
    """The processes of a run that live, by their ids.

    `mark`: "NAME=value" of the environment, which children inherit and no other run has. `tool`:
    the tool's process id. Its children are Terraforms, all others plugins.
    """
    wanted = b"\0" + os.fsencode(mark) + b"\0"
    found = {}
    for folder in PROC.glob("[0-9]*"):
        # A process may end at any moment, and those of others can't be read.
        with suppress(OSError):
            # A zombie has no environment left.
            if wanted in b"\0" + (folder / "environ").read_bytes():
                pid = int(folder.name)
                found[pid] = _role(pid, _parent(folder), tool)
    return found


def kill(pids: Iterable[int]) -> None:
    """End processes with SIGKILL."""
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _role(pid: int, parent: int, tool: int) -> Role:
    if pid == tool:
        return Role.TOOL
    return Role.TERRAFORM if parent == tool else Role.PLUGIN


def _parent(folder: Path) -> int:
    # The name, in brackets, may hold anything; state and parent follow it.
    return int((folder / "stat").read_text().rpartition(")")[2].split()[1])
