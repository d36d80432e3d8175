"""What a job says arrives whole and once, whatever Cloud Storage does, and without secrets."""

import os
import random
from typing import Any, cast

from aiinfra_vm import job_log, storage
from aiinfra_vm.job_log import Log

SECRET = b"tr0ub4dor&3"


class _Folder:
    """A folder whose requests fail, before or after they have had their effect."""

    def __init__(self, failures: float = 0.0) -> None:
        self.objects: dict[str, bytes] = {}
        self._failures = failures
        self._random = random.Random(7)  # noqa: S311 - no secret

    def write(self, name: str, piece: bytes, over: storage.Version) -> storage.Version | None:
        assert over == storage.NOTHING, "a piece is written once"
        if self._random.random() < self._failures:
            raise OSError("503")
        if name in self.objects:
            return None
        self.objects[name] = piece
        if self._random.random() < self._failures:
            raise OSError("its answer was lost")
        return storage.Version(name, 1, 1)

    def remove(self, version: storage.Version) -> None:
        del self.objects[version.name]

    @property
    def said(self) -> bytes:
        """All that there is, which must fit together."""
        found, after = b"", None
        for name in sorted(self.objects):
            begins = int(name.rpartition("/")[2])
            assert after in {None, begins}, "a piece is missing, or there twice"
            found += self.objects[name]
            after = begins + len(self.objects[name])
        return found


def _log(folder: _Folder, **more: Any) -> Log:
    return Log(cast("storage.Folder", folder), "logs/1/0/", [SECRET], age=0.01, **more)


def _say(log: Log, chunks: list[bytes]) -> None:
    sink = log.open()
    for chunk in chunks:
        os.write(sink, chunk)
    os.close(sink)
    assert log.close(10, 30)


def test_nothing_is_lost_and_nothing_doubled_while_storage_fails(monkeypatch: Any) -> None:
    monkeypatch.setattr(job_log, "_PAUSE", 0.001)
    monkeypatch.setattr(job_log, "LARGEST", 1000)
    folder = _Folder(failures=0.4)
    log = _log(folder)
    lines = [b"line %d\n" % number for number in range(5000)]
    _say(log, lines)
    assert folder.said == b"".join(lines)
    assert log.size == len(folder.said)
    assert max(map(len, folder.objects.values())) <= 1000
    assert log.tail.endswith(b"line 4999\n")


def test_of_what_is_too_much_the_last_is_kept_and_says_where_it_begins() -> None:
    folder = _Folder()
    log = _log(folder, most=3 * job_log.LARGEST)
    _say(log, [b"x" * 65536] * 40)
    assert len(folder.said) <= 3 * job_log.LARGEST
    first = min(folder.objects)
    assert int(first.rpartition("/")[2]) == log.size - len(folder.said) > 0


def test_a_secret_is_in_no_piece_and_not_in_the_last_lines() -> None:
    folder = _Folder()
    log = _log(folder)
    _say(log, [b"a ", SECRET[:4], SECRET[4:], b" b ", SECRET[:5], b"ble\n"])
    assert folder.said == log.tail == b"a *** b tr0ubble\n"


def test_a_line_of_the_tools_own_begins_a_line() -> None:
    folder = _Folder()
    log = _log(folder)
    sink = log.open()
    os.write(sink, b"no newline")
    while not log.tail:
        """It is read by a thread."""
    log.mark("SIGTERM: it was cancelled")
    os.close(sink)
    assert log.close(10, 30)
    assert folder.said == b"no newline\n=== aiinfra: SIGTERM: it was cancelled ===\n"
