"""A command on a terminal of its own, which is as wide as a pipe: 0 columns."""

import contextlib
import os
import pty
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

CTRL_C = b"\x03"


def typed(
    command: Sequence[str],
    environ: Mapping[str, str],
    *,
    when: bytes = b"",
    keys: bytes | signal.Signals = b"",
    folder: Path | None = None,
) -> tuple[int, str]:
    """Run a command to its end.

    `keys`: ... somebody types this, once; or the program gets this signal, as from a terminal that
    is its own.
    """
    said = b""
    with _on_terminal(command, environ, folder) as (process, ours):
        for part in _parts(ours):
            said += part
            if not keys or when not in said:
                continue
            if isinstance(keys, signal.Signals):
                process.send_signal(keys)
            else:
                os.write(ours, keys)
            keys = b""
    return process.returncode, said.decode("utf-8", "replace")


def hung_up(
    command: Sequence[str], environ: Mapping[str, str], *, when: bytes, until: bytes
) -> None:
    """Run a command, and close its terminal while it runs.

    An engine's client passes SIGHUP on to its container, and ends as soon as it can't write what
    that prints: a terminal that is closed at once may be the faster of the two. `until`: ... and
    its terminal is closed when this says that the signal has come through.
    """
    said = b""
    with _on_terminal(command, environ) as (process, ours):
        heard = False
        for part in _parts(ours):
            said += part
            if not heard and when in said:
                # What the system does to whoever runs on a terminal that is closed.
                process.send_signal(signal.SIGHUP)
                heard = True
            if heard and until in said:
                break
    assert until in said, said


@contextlib.contextmanager
def _on_terminal(
    command: Sequence[str], environ: Mapping[str, str], folder: Path | None = None
) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        command, env=environ, cwd=folder, stdin=theirs, stdout=theirs, stderr=theirs
    ) as process:
        os.close(theirs)
        try:
            yield process, ours
        finally:
            os.close(ours)


def _parts(terminal: int) -> Iterator[bytes]:
    """What is written to a terminal, until its other end is closed."""
    with contextlib.suppress(OSError):  # how the system says so
        while part := os.read(terminal, 4096):
            yield part
