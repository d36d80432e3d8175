"""A command as a child process: run to its end, whatever the signals."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Final

from provision import signals

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

_TAIL: Final = 256 * 1024
"""Bytes of output that are kept for reading diagnostics from."""


@dataclass(frozen=True)
class Ended:
    """How a command ended.

    Attributes:
        code: Its exit code; negative: minus the signal that killed it.
        output: What it said, as far as it was kept.
        interrupted_by: The signal that this program was sent meanwhile.
    """

    code: int
    output: bytes
    interrupted_by: int | None


@dataclass(frozen=True, kw_only=True)
class Command:
    """What to run.

    Attributes:
        argv: The command line.
        folder: Where it works.
        environ: All of its environment.
        inherited: Open files that it has too.
    """

    argv: Sequence[str]
    folder: Path
    environ: Mapping[str, str]
    inherited: tuple[int, ...] = ()


def run(
    command: Command, tell: Callable[[str], None], write: Callable[[bytes], None] | None
) -> Ended:
    """Run a command to its end, whatever the signals.

    Args:
        command: What to run.
        tell: Takes a sentence about an interrupt.
        write: Both streams go there as they come, and their last part is returned; without it
            stdout is returned whole and stderr only when the command fails.
    """
    with (
        _forwarded_signals(tell) as forwarded,
        subprocess.Popen(  # noqa: S603 - our own argument list
            command.argv,
            cwd=command.folder,
            env=command.environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT if write else subprocess.PIPE,
            pass_fds=command.inherited,
            # Its own session: the terminal's Ctrl-C reaches us alone, and we pass it on once.
            start_new_session=True,
        ) as child,
    ):
        forwarded.to(child)
        output = _drain(child, write)
        code = child.wait()
        if code < 0:
            _end_plugins(child)
    return Ended(code, output, forwarded.received)


def _end_plugins(child: subprocess.Popen[bytes]) -> None:
    """End what a killed Terraform has left over: nobody writes down any more what plugins make."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)


class _Forwarded:
    """Signals on their way to a child: the first that asks to stop becomes one SIGINT."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        self.received: int | None = None
        self._tell = tell
        self._child: subprocess.Popen[bytes] | None = None
        self._voices: list[threading.Thread] = []

    def to(self, child: subprocess.Popen[bytes]) -> None:
        """Name the child; a signal that came before it did is passed on now."""
        self._child = child
        if self.received is not None:
            child.send_signal(signal.SIGINT)

    def handle(self, signum: int, _frame: object) -> None:
        """Take a signal."""
        if self.received is not None:
            # A second interrupt would make Terraform leave at once, and lose what it is making.
            self._say("Still stopping, so that nothing is lost. Please wait.")
            return
        self.received = signum
        if self._child is not None:
            self._child.send_signal(signal.SIGINT)
        # The google provider hears no interrupt while a Filestore instance is being made.
        self._say(
            "Stopping: Terraform finishes what it has begun and saves the state."
            " That can take some minutes."
        )

    def finish_saying(self) -> None:
        """Wait until all is said."""
        for voice in self._voices:
            voice.join()

    def _say(self, text: str) -> None:
        """Speak from a thread: a stream refuses a write from a handler that cut into another."""
        voice = threading.Thread(target=self._tell, args=(text,))
        voice.start()
        self._voices.append(voice)


@contextlib.contextmanager
def _forwarded_signals(tell: Callable[[str], None]) -> Iterator[_Forwarded]:
    forwarded = _Forwarded(tell)
    previous = {number: signal.signal(number, forwarded.handle) for number in signals.heeded()}
    try:
        yield forwarded
    finally:
        forwarded.finish_saying()
        # After an interrupt the run is only put in order, and no second one cuts that short.
        if forwarded.received is None:
            for number, handler in previous.items():
                signal.signal(number, handler)


def _drain(child: subprocess.Popen[bytes], write: Callable[[bytes], None] | None) -> bytes:
    """Read the child's streams to their end; at once, so that no full pipe can stop it."""
    assert child.stdout is not None  # noqa: S101 - we asked for a pipe
    if write is not None:
        kept = b""
        while chunk := child.stdout.read1(65536):  # type: ignore[attr-defined]  # it is buffered
            write(chunk)
            kept = (kept + chunk)[-_TAIL:]
        return kept
    assert child.stderr is not None  # noqa: S101 - we asked for a pipe
    errors: list[bytes] = []
    reader = threading.Thread(target=_read_all, args=(child.stderr, errors), daemon=True)
    reader.start()
    output = child.stdout.read()
    reader.join()
    return output if child.wait() == 0 else output + b"".join(errors)


def _read_all(stream: IO[bytes], into: list[bytes]) -> None:
    into.append(stream.read())
