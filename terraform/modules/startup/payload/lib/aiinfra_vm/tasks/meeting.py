"""How the processes of one measurement find each other, and hear that one of them is gone.

The first listens; each other connects, says a word that only this measurement has, and gets what
NCCL needs. The connections stay: where one breaks, all end, instead of waiting for NCCL for ever.
"""

from __future__ import annotations

import os
import socket
import sys
import threading
import time

_PAUSE = 0.5  # seconds between two tries to connect
BROKEN = 70
"""The exit code of a process that ends because another did."""
_NUMBER_BYTES = 4


def hold(
    address: tuple[str, int], word: bytes, token: bytes, others: int, seconds: float
) -> list[socket.socket]:
    """As the first: hand the token to all others.

    Raises:
        OSError: Not all of them came; the numbers of those that did not are in its text.
    """
    until = time.monotonic() + seconds
    missing: set[int] = set(range(1, others + 1))
    kept: list[socket.socket] = []
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as door:
        door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        door.bind(("", address[1]))
        door.listen(others or 1)
        while missing:
            left = until - time.monotonic()
            if left <= 0:
                raise OSError(f"processes {_listed(missing)} did not come within {seconds:.0f} s")
            door.settimeout(left)
            try:
                connection, _ = door.accept()
            except socket.timeout:
                continue
            number = _greeted(connection, word)
            if number is None:
                connection.close()
                continue
            connection.settimeout(None)
            missing.discard(number)
            kept.append(connection)
            _watch(connection, f"process {number} is gone")
    for connection in kept:
        connection.sendall(token)
    return kept


def join(
    address: tuple[str, int], word: bytes, number: int, size: int, seconds: float
) -> tuple[bytes, list[socket.socket]]:
    """As any other: the token, and the connection to the first for `part`.

    `size`: the token's, in bytes.

    Raises:
        OSError: The first does not answer, or not in time.
    """
    until = time.monotonic() + seconds
    while True:
        try:
            connection = socket.create_connection(address, timeout=max(1.0, seconds / 4))
            break
        except OSError as error:
            if time.monotonic() > until:
                raise OSError(f"{address[0]}:{address[1]} can't be reached: {error}") from error
            time.sleep(_PAUSE)
    # The first answers when all are there.
    connection.settimeout(seconds)
    connection.sendall(word + number.to_bytes(_NUMBER_BYTES, "big"))
    token = _read(connection, size)
    connection.settimeout(None)
    _watch(connection, "the first process is gone")
    return token, [connection]


def part(connections: list[socket.socket]) -> None:
    """Tell the others that this process is done, so that they don't mind its end."""
    for connection in connections:
        try:
            connection.sendall(b".")
        except OSError:
            """It was done before, and is gone."""


def _greeted(connection: socket.socket, word: bytes) -> int | None:
    """The number of who connected; None for a stranger."""
    connection.settimeout(10)
    try:
        said = _read(connection, len(word) + _NUMBER_BYTES)
    except OSError:
        return None
    if said[: len(word)] != word:
        return None
    return int.from_bytes(said[len(word) :], "big")


def _read(connection: socket.socket, size: int) -> bytes:
    found = b""
    while len(found) < size:
        more = connection.recv(size - len(found))
        if not more:
            raise OSError("the other end went away before all was said")
        found += more
    return found


def _watch(connection: socket.socket, words: str) -> None:
    """End this process when the other end of a connection does."""

    def until_it_breaks() -> None:
        try:
            # Nothing is said after the token, but that it is done.
            if connection.recv(1):
                return
        except OSError:
            """A connection that breaks has ended, too."""
        sys.stderr.write(f"{words}\n")
        sys.stderr.flush()
        os._exit(BROKEN)

    threading.Thread(target=until_it_breaks, daemon=True).start()


def _listed(numbers: set[int]) -> str:
    return ", ".join(map(str, sorted(numbers)))
