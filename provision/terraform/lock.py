"""Terraform's lock on a state: who holds it, and what to do about it."""

from __future__ import annotations

import contextlib
import datetime as dt
import getpass
import os
import re
import socket
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from provision.codes import Code
from provision.documents import json_object
from provision.errors import StateError

if TYPE_CHECKING:
    from collections.abc import Mapping

_FIELDS = ("Path", "Operation", "Who", "Created", "ID")
_MOMENT = re.compile(r"(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d)")
_ID = re.compile(r"[A-Za-z0-9-]{1,64}")
_LINE = re.compile(rf"^\s*({'|'.join(_FIELDS)}):\s*(.*?)\s*$", re.MULTILINE)


@dataclass(frozen=True)
class Lock:
    """A lock that somebody holds."""

    url: str  # the lock object, "gs://..."
    operation: str  # the operation that holds it, in Terraform's words
    who: str  # the holder, "user@host"
    created: str  # when it was taken, as Terraform writes it
    id: str
    generation: int = 0  # the object's generation if it was read from the bucket; otherwise 0

    @classmethod
    def of(cls, info: Mapping[str, str]) -> Self:
        """Make it from the fields of Terraform's lock info."""
        path, operation, who, created, own_id = (
            str(info.get(name) or "unknown") for name in _FIELDS
        )
        # People copy the ID into a command.
        return cls(path, operation, who, created, own_id if _ID.fullmatch(own_id) else "unknown")

    @classmethod
    def read(cls, text: bytes, url: str) -> Self:
        """Read the lock object; what can't be read of it is unknown, but a lock it is.

        `text`: its content, which anybody may have written who may write there.
        """
        try:
            found = json_object.read(text)
        except ValueError:
            found = {}
        return cls.of({name: json_object.text(found.get(name)) for name in _FIELDS} | {"Path": url})

    @classmethod
    def in_text(cls, text: str) -> Self | None:
        """Read it from Terraform's error message; None if that has no lock info."""
        info = dict(_LINE.findall(text))
        return cls.of(info) if "Path" in info else None

    @property
    def taken(self) -> float | None:
        """When it was taken (Unix epoch), by its own word; None if that says nothing."""
        found = _MOMENT.match(self.created)
        if found is None:
            return None
        with contextlib.suppress(ValueError):
            return dt.datetime.fromisoformat(f"{found[1]}T{found[2]}+00:00").timestamp()
        return None

    def error(self) -> StateError:
        """The error for a run that can't get the lock."""
        return StateError(
            f"Another run is changing this deployment: {self.who} since {self.created}",
            code=Code.STATE_LOCKED,
            why=f"the Terraform state is locked ({self.operation})",
            fix="wait until that run has ended; if you are sure that it is dead, run the same"
            f" action again with --break-lock {self.id}",
            lock_id=self.id,
        )

    def stale_error(self) -> StateError:
        """The error for a run that can't get the lock because a dead run left it."""
        return StateError(
            f"A killed run left this deployment locked: {self.who} since {self.created}",
            code=Code.STALE_LOCK,
            why=f"the Terraform state is locked ({self.operation}), and no process of that run,"
            " which was on this machine, is left",
            fix="run the same action again with --yes: it releases the lock and continues",
            lock_id=self.id,
        )


def _user() -> str:
    """Who runs this; a container may run as a number that has no name."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return f"uid-{os.getuid()}"


def holder() -> str:
    """Who holds a lock of this run: "user@host"."""
    return f"{_user()}@{socket.gethostname()}"


def info(url: str, operation: str, own_id: str) -> dict[str, str]:
    """Lock info for a lock of our own, in Terraform's format, so that Terraform can report it."""
    now = dt.datetime.now(dt.UTC)
    return {
        "ID": own_id,
        "Operation": operation,
        "Info": "",
        "Who": holder(),
        "Version": "",
        "Created": f"{now:%Y-%m-%dT%H:%M:%S.%fZ}",
        "Path": url,
    }
