"""The program without its start: forked from a process that has imported it already.

To import the program costs as much as most of its runs. What runs is `cli.main` in a process of
its own, with its own signals, streams and environment, as if Python had been started for it.
"""

import contextlib
import multiprocessing
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Final, Protocol

_IMPORTED: Final = ["tests.forked_imports"]


class Started(Protocol):
    """A run of the program that is under way."""

    @property
    def pid(self) -> int:
        """The id of its process."""

    def send_signal(self, number: int) -> None:
        """Send it a signal, unless it has ended."""

    def ended(self, timeout: float) -> int:
        """Its exit code, when it has ended.

        Raises:
            TimeoutError: It has not.
        """


@dataclass(frozen=True)
class Process:
    """The program as its users start it."""

    popen: subprocess.Popen[bytes]

    @property
    def pid(self) -> int:
        """The id of its process."""
        return self.popen.pid

    def send_signal(self, number: int) -> None:
        """Send it a signal, unless it has ended."""
        self.popen.send_signal(number)

    def ended(self, timeout: float) -> int:
        """Its exit code, when it has ended."""
        try:
            return self.popen.wait(timeout)
        except subprocess.TimeoutExpired as error:
            raise TimeoutError(str(error)) from error


@dataclass(frozen=True)
class Fork:
    """The program without its start."""

    process: BaseProcess

    @property
    def pid(self) -> int:
        """The id of its process."""
        assert self.process.pid is not None
        return self.process.pid

    def send_signal(self, number: int) -> None:
        """Send it a signal, unless it has ended."""
        if self.process.is_alive():
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def ended(self, timeout: float) -> int:
        """Its exit code, when it has ended."""
        self.process.join(timeout)
        if self.process.exitcode is None:
            raise TimeoutError(f"the program did not end within {timeout} s")
        return self.process.exitcode


def start(argv: Sequence[str], environ: Mapping[str, str], out: Path, err: Path) -> Fork:
    """Start the program."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(_IMPORTED)
    # Not a daemon: those may have no children, and this one has Terraform.
    process = context.Process(target=_run, args=(list(argv), dict(environ), str(out), str(err)))
    process.start()
    return Fork(process)


def _run(argv: list[str], environ: dict[str, str], out: str, err: str) -> None:
    """What the fork does."""
    for number, path in ((1, out), (2, err)):
        opened = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        os.dup2(opened, number)
        os.close(opened)
    # It reads the metadata server's address when it is imported, and each fork has another.
    assert "google.auth.compute_engine" not in sys.modules
    os.environ.clear()
    os.environ.update(environ)
    from provision import cli  # noqa: PLC0415 - imported long before the fork

    code = cli.main(argv, os.environ)
    sys.exit(code)
