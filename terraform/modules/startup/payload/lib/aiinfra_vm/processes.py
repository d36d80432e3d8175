"""Ends the user's command in an order that leaves its programs the time to save their work."""

from __future__ import annotations

import contextlib
import os
import signal
from dataclasses import dataclass, field
from pathlib import Path

_PROC = Path("/proc")
_SHELLS = frozenset({"bash", "dash", "ksh", "sh", "zsh"})
_HANDLED = 1 << (signal.SIGTERM - 1)


@dataclass
class Ending:
    """The end of a command: SIGTERM to its programs first, and to its shells when those are over.

    A shell dies of SIGTERM at once, and leaves the program that it waits for behind; one that did
    not would go on with the next line. So shells stand still until their programs have ended.
    Of the programs, those that handle SIGTERM come first: `train.py | tee log` needs its tee for
    as long as it saves. What a program started is its own to tell: workers that load data must
    outlive the last checkpoint. But for torchrun, which kills its workers 30 seconds after it was
    told itself (torch 2.9.1, elastic/multiprocessing/api.py): the workers, known by the LOCAL_RANK
    that it gives them, are told first, and it when they have ended.
    """

    root: int  # the first process of the command, which is a shell
    _told: set[int] = field(default_factory=set)

    def go_on(self) -> None:
        """Send the signals that are due now; to be called again and again until all have ended."""
        programs, shells, workers = self._look()
        if self._told.intersection(programs + workers):
            return
        if programs:
            _send(signal.SIGSTOP, shells)
            # Workers that don't handle it are left to torchrun, which ends all when one ends so.
            first = [] if self._told else list(filter(_handles_sigterm, workers))
            due = first or list(filter(_handles_sigterm, programs)) or programs
            self._told.update(due)
            _send(signal.SIGTERM, due)
        else:
            _send(signal.SIGTERM, shells)
            _send(signal.SIGCONT, shells)

    def _look(self) -> tuple[list[int], list[int], list[int]]:
        """The programs that shells have started, those shells, and torchrun's workers."""
        children = _children()
        programs, shells, waiting = [], [], [self.root]
        while waiting:
            process = waiting.pop()
            if _field(process, "Name") in _SHELLS:
                shells.append(process)
                waiting += children.get(process, [])
            elif process != self.root:
                programs.append(process)
        workers: list[int] = []
        waiting = [it for it in programs if not _is_worker(it)]
        while waiting:
            for process in children.get(waiting.pop(), []):
                # What a worker has started has its environment, too.
                (workers if _is_worker(process) else waiting).append(process)
        return programs, shells, workers


def _is_worker(process: int) -> bool:
    try:
        return b"\0LOCAL_RANK=" in b"\0" + (_PROC / str(process) / "environ").read_bytes()
    except OSError:
        return False


def _send(number: signal.Signals, to: list[int]) -> None:
    for process in to:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, number)


def _children() -> dict[int, list[int]]:
    """The living children of each process."""
    found: dict[int, list[int]] = {}
    for folder in _PROC.iterdir():
        if folder.name.isdigit() and not _field(int(folder.name), "State").startswith("Z"):
            parent = _field(int(folder.name), "PPid")
            if parent:
                found.setdefault(int(parent), []).append(int(folder.name))
    return found


def _handles_sigterm(process: int) -> bool:
    return bool(int(_field(process, "SigCgt") or "0", 16) & _HANDLED)


def _field(process: int, name: str) -> str:
    """A field of /proc/PID/status; "" where the process is gone."""
    try:
        text = (_PROC / str(process) / "status").read_text("utf-8", "replace")
    except OSError:
        return ""
    lines = (line.partition(":") for line in text.splitlines())
    return next((value.strip() for key, _, value in lines if key == name), "")
