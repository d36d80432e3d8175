"""What a job says: on its way into immutable pieces in the shared folder.

A piece is named by where in the log it begins and is written once, so that whoever reads knows what
is missing, and a request that is repeated doubles nothing.
"""

from __future__ import annotations

import os
import select
import threading
import time
from collections import deque
from typing import Callable

from aiinfra_vm import secrets, storage

LARGEST = 256 * 2**10
"""Bytes of a piece, at most."""
MOST = 256 * 2**20
"""Bytes that are kept of what one VM says in one attempt: the last ones."""
_AGE = 5.0  # seconds that what is said waits for more; for the first piece, a fifth of it
_PAUSE = 0.5  # seconds between looks at what is to be sent, and between two tries
_TAIL = 65536  # bytes


class Log:
    """The log of one attempt on this VM."""

    def __init__(
        self,
        folder: storage.Folder,
        prefix: str,
        values: list[bytes],
        age: float = _AGE,
        most: int = MOST,
    ) -> None:
        self._folder = folder
        self._prefix = prefix
        self._masking = secrets.Masking(values)
        self._age = age
        self._most = most
        self._guard = threading.Lock()
        self._waiting = b""
        self._since = 0.0
        self._pieces: deque[tuple[int, bytes]] = deque()
        self._sent: deque[tuple[storage.Version, int]] = deque()
        self._closed = threading.Event()
        self._threads: list[threading.Thread] = []
        self.size = 0
        self.tail = b""
        self.hear: Callable[[bytes], object] = len  # what else is told of all that is said

    def open(self) -> int:
        """Begin to read; the descriptor to write to."""
        source, sink = os.pipe()
        for what in ((self._read, (source,)), (self._send_on, ())):
            thread = threading.Thread(target=what[0], args=what[1], daemon=True)
            self._threads.append(thread)
            thread.start()
        return sink

    def mark(self, words: str) -> None:
        """Add a line of the tool's own."""
        with self._guard:
            begins = b"" if not self.tail or self.tail.endswith(b"\n") else b"\n"
            self._add(begins + f"=== aiinfra: {words} ===\n".encode())

    def close(self, drain: float, seconds: float) -> bool:
        """Wait until all is read, and sent; whether it is.

        `drain`: the most to wait for the end of the pipe, which a process left behind may keep.
        """
        self._threads[0].join(drain)
        self._closed.set()
        self._threads[1].join(seconds)
        return not self._threads[1].is_alive()

    def _read(self, source: int) -> None:
        chunk = b"-"
        while chunk and not self._closed.is_set():
            if not select.select([source], [], [], _PAUSE)[0]:
                continue
            chunk = os.read(source, 65536)
            said = self._masking.pass_on(chunk)
            with self._guard:
                self._add(said)
            self.hear(said)
        self._closed.set()

    def _add(self, said: bytes) -> None:
        if not self._waiting:
            self._since = time.monotonic()
        self._waiting += said
        self.tail = (self.tail + said)[-_TAIL:]
        while len(self._waiting) >= LARGEST:
            self._cut(LARGEST)

    def _cut(self, size: int) -> None:
        piece, self._waiting = self._waiting[:size], self._waiting[size:]
        self._pieces.append((self.size, piece))
        self.size += len(piece)
        # While Cloud Storage does not answer, the last ones are what is kept.
        while sum(len(it) for _, it in self._pieces) > self._most:
            self._pieces.popleft()

    def _send_on(self) -> None:
        while True:
            is_last = self._closed.is_set()
            with self._guard:
                age = self._age if self.size else self._age / 5
                if self._waiting and (is_last or time.monotonic() - self._since >= age):
                    self._cut(len(self._waiting))
                first = self._pieces[0] if self._pieces else None
            if first is None:
                if is_last:
                    return
                time.sleep(min(_PAUSE, self._age / 5))
                continue
            try:
                self._send(*first)
            except OSError:
                time.sleep(_PAUSE)
                continue
            with self._guard:
                if self._pieces and self._pieces[0] == first:
                    self._pieces.popleft()

    def _send(self, begins: int, piece: bytes) -> None:
        name = f"{self._prefix}{begins:015d}"
        # None: it is there, by a request whose answer was lost.
        made = self._folder.write(name, piece, over=storage.NOTHING)
        if made is not None:
            self._sent.append((made, len(piece)))
        while sum(size for _, size in self._sent) > self._most:
            oldest, _ = self._sent.popleft()
            self._folder.remove(oldest)
