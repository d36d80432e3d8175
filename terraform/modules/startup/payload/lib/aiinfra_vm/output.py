"""What the user's command says: on its way into the journal and into a log that outlives boots."""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path

from aiinfra_vm import secrets

LOG = Path("/var/log/aiinfra/command.log")
_MARK = "=== aiinfra: "
_LARGEST = 100 * 2**20  # bytes, from which on the log is put aside
_KEPT = 3  # older logs
_DRAIN = 10  # seconds that what the command said last may take to get into the log
_TAIL = 65536  # bytes in which the last lines are looked for


def mark(words: str) -> None:
    """Write a line of the tool's own into the journal and the log."""
    log = _Log()
    _say(log, b"\n" * log.is_within_line() + f"{_MARK}{words} ===\n".encode())


def last() -> bytes:
    """The end of what the last attempt said, without the lines of the tool's own."""
    try:
        with LOG.open("rb") as log:
            log.seek(max(0, log.seek(0, os.SEEK_END) - _TAIL))
            lines = log.read().split(b"\n")
    except OSError:
        return b""
    begins = [at for at, line in enumerate(lines) if line.startswith((_MARK + "attempt").encode())]
    said = lines[begins[-1] + 1 :] if begins else lines
    return b"\n".join(line for line in said if not line.startswith(_MARK.encode()))


def start(values: list[bytes]) -> tuple[int, int]:
    """Start a process that passes on what is written to a descriptor, without secret values.

    It lives as long as somebody may write, which may be longer than this process.
    """
    source, sink = os.pipe()
    passing = os.fork()
    if passing == 0:
        os.close(sink)
        os.setsid()
        try:
            _pass_on(source, values)
        finally:
            os._exit(0)
    os.close(source)
    return passing, sink


def wait(passing: int) -> None:
    """Wait for the end of that process; a service that the command started may keep it."""
    deadline = time.monotonic() + _DRAIN
    with contextlib.suppress(ChildProcessError):
        while time.monotonic() < deadline and os.waitpid(passing, os.WNOHANG) == (0, 0):
            time.sleep(0.05)


class _Log:
    """The log, which is put aside when it is large, and never cut."""

    def __init__(self) -> None:
        self._file = self._open()

    def write(self, data: bytes) -> None:
        _write(self._file, data)
        if os.fstat(self._file).st_size >= _LARGEST:
            os.close(self._file)
            for number in range(_KEPT, 0, -1):
                newer = LOG.with_name(f"{LOG.name}.{number - 1}") if number > 1 else LOG
                with contextlib.suppress(FileNotFoundError):
                    newer.replace(LOG.with_name(f"{LOG.name}.{number}"))
            self._file = self._open()

    def is_within_line(self) -> bool:
        size = os.fstat(self._file).st_size
        return size > 0 and os.pread(self._file, 1, size - 1) != b"\n"

    @staticmethod
    def _open() -> int:
        try:
            return os.open(str(LOG), os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o640)
        except OSError:
            return os.open(os.devnull, os.O_RDWR)


def _say(log: _Log, data: bytes) -> None:
    """Write to log and journal; what can't be written is lost, and ends no training."""
    with contextlib.suppress(OSError):
        log.write(data)
    with contextlib.suppress(OSError):
        _write(1, data)


def _write(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]


def _pass_on(source: int, values: list[bytes]) -> None:
    masking, log = secrets.Masking(values), _Log()
    chunk = b"-"
    while chunk:
        chunk = os.read(source, 65536)
        _say(log, masking.pass_on(chunk))
