"""Everything the simulated cloud remembers: JSON documents and bytes in one SQLite file.

Several processes may serve the same file: each request is one transaction that begins with the
write lock, so that what it reads is what it changes.
"""

import contextlib
import json
import sqlite3
import threading
import weakref
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

_TABLES = """
CREATE TABLE IF NOT EXISTS document (
    collection TEXT NOT NULL,
    name TEXT NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (collection, name)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS content (
    collection TEXT NOT NULL,
    name TEXT NOT NULL,
    body BLOB NOT NULL,
    PRIMARY KEY (collection, name)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS counter (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
"""

_LAST = "\U0010ffff"  # sorts behind everything a name can go on with


class Store:
    """One transaction's view of the cloud's memory.

    A document has a collection ("compute/networks") and a name within it
    ("projects/p/global/networks/n"). What is returned is the caller's own copy; `put` keeps it.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def get(self, collection: str, name: str) -> dict[str, Any] | None:
        """The document, or None."""
        row = self._connection.execute(
            "SELECT body FROM document WHERE collection = ? AND name = ?", (collection, name)
        ).fetchone()
        return None if row is None else json.loads(row[0])

    def put(self, collection: str, name: str, body: dict[str, Any]) -> None:
        """Keep a document, in place of one of that name."""
        self._connection.execute(
            "INSERT OR REPLACE INTO document VALUES (?, ?, ?)", (collection, name, json.dumps(body))
        )

    def delete(self, collection: str, name: str) -> None:
        """Forget a document and its content, if there is one."""
        for table in ("document", "content"):
            self._connection.execute(
                f"DELETE FROM {table} WHERE collection = ? AND name = ?",  # noqa: S608 - two constants
                (collection, name),
            )

    def list(self, collection: str, prefix: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
        """Names and documents of a collection whose names begin with the prefix, in their order."""
        rows = self._connection.execute(
            "SELECT name, body FROM document WHERE collection = ? AND name >= ? AND name < ?"
            " ORDER BY name",
            (collection, prefix, prefix + _LAST),
        ).fetchall()
        for name, body in rows:
            yield name, json.loads(body)

    def first(self, collection: str) -> tuple[str, dict[str, Any]] | None:
        """The name and the document that come first in a collection; None when it is empty."""
        row = self._connection.execute(
            "SELECT name, body FROM document WHERE collection = ? ORDER BY name LIMIT 1",
            (collection,),
        ).fetchone()
        return None if row is None else (row[0], json.loads(row[1]))

    def collections(self) -> Sequence[str]:
        """The names of the collections that hold a document."""
        rows = self._connection.execute("SELECT DISTINCT collection FROM document ORDER BY 1")
        return [name for (name,) in rows]

    def content(self, collection: str, name: str) -> bytes | None:
        """The bytes kept under that name, or None."""
        row = self._connection.execute(
            "SELECT body FROM content WHERE collection = ? AND name = ?", (collection, name)
        ).fetchone()
        return None if row is None else bytes(row[0])

    def put_content(self, collection: str, name: str, body: bytes) -> None:
        """Keep bytes, in place of those of that name."""
        self._connection.execute(
            "INSERT OR REPLACE INTO content VALUES (?, ?, ?)", (collection, name, body)
        )

    def count(self, name: str) -> int:
        """The next number of a counter, from 1."""
        row = self._connection.execute(
            "INSERT INTO counter VALUES (?, 1)"
            " ON CONFLICT (name) DO UPDATE SET value = value + 1 RETURNING value",
            (name,),
        ).fetchone()
        return int(row[0])


class Database:
    """The SQLite file; made with its folder's rights when missing.

    One connection serves all threads of a process, one transaction after the other: SQLite lets
    only one write at a time anyway, and waiting for a lock of Python's is quicker than its polling.
    A transaction within a transaction of the same thread is a deadlock.
    """

    def __init__(self, path: Path) -> None:
        self._lock = threading.Lock()
        # 60 s: a request never holds the file for long, but a loaded machine may stall one.
        self._connection = sqlite3.connect(
            path, timeout=60, isolation_level=None, check_same_thread=False
        )
        self._close = weakref.finalize(self, self._connection.close)
        self._connection.execute("PRAGMA journal_mode = WAL")
        # What a killed process has committed stays; only a power cut may take the last moments.
        self._connection.execute("PRAGMA synchronous = NORMAL")
        self._connection.executescript(_TABLES)

    @contextlib.contextmanager
    def transaction(self, *, kept: bool = True) -> Iterator[Store]:
        """A store whose changes are kept together at the end, or not at all."""
        with self._lock:
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield Store(self._connection)
                self._connection.execute("COMMIT" if kept else "ROLLBACK")
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise

    def close(self) -> None:
        """Release the file; the object is of no use afterwards."""
        with self._lock:  # SQLite crashes where a thread still reads
            self._close()
