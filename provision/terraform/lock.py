"""Terraform's lock on a state: who holds it, and what to do about it."""

from __future__ import annotations

import datetime as dt
import getpass
import re
import socket
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from provision.errors import StateError

if TYPE_CHECKING:
    from collections.abc import Mapping

_FIELDS = ("Path", "Operation", "Who", "Created", "ID")
_LINE = re.compile(rf"^\s*({'|'.join(_FIELDS)}):\s*(.*?)\s*$", re.MULTILINE)


@dataclass(frozen=True)
class Lock:
    """A lock that somebody holds.

    Attributes:
        url: The object that is the lock: "gs://...".
        operation: What it is held for, in Terraform's words.
        who: "user@host".
        created: Since when, as Terraform writes it.
        id: Tells it from every other lock.
        generation: The object's generation, where it was read from the bucket; else 0.
    """

    url: str
    operation: str
    who: str
    created: str
    id: str
    generation: int = 0

    @property
    def host(self) -> str:
        """Where its holder runs; "" when the lock does not say."""
        return self.who.rpartition("@")[2] if "@" in self.who else ""

    @classmethod
    def of(cls, info: Mapping[str, str]) -> Self:
        """From the fields of Terraform's lock info."""
        path, operation, who, created, own_id = (
            str(info.get(name) or "unknown") for name in _FIELDS
        )
        return cls(path, operation, who, created, own_id)

    @classmethod
    def in_text(cls, text: str) -> Self | None:
        """From what Terraform prints when it can't have the lock; None without its lock info."""
        info = dict(_LINE.findall(text))
        return cls.of(info) if "Path" in info else None

    def error(self) -> StateError:
        """What to tell who wanted the lock."""
        return StateError(
            f"Somebody else is at work on this deployment: {self.who} since {self.created}",
            why=f"the Terraform state is locked ({self.operation})",
            fix="wait until that run has ended; if it is gone for good, free the lock with:"
            f" gcloud storage rm {self.url}",
        )

    def stale_error(self) -> StateError:
        """What to tell who wanted the lock while its holder is known to be dead."""
        return StateError(
            f"A run that was killed has left this deployment locked: {self.who} since"
            f" {self.created}",
            why=f"the Terraform state is locked ({self.operation}), and no process of that run,"
            " which was on this machine, lives any more",
            fix="run it again with --yes: that frees the lock and goes on",
        )


def info(url: str, operation: str) -> dict[str, str]:
    """Lock info for a lock of our own, in Terraform's form, so that Terraform can tell of it."""
    now = dt.datetime.now(dt.UTC)
    return {
        "ID": str(uuid.uuid4()),
        "Operation": operation,
        "Info": "",
        "Who": f"{getpass.getuser()}@{socket.gethostname()}",
        "Version": "",
        "Created": f"{now:%Y-%m-%dT%H:%M:%S.%fZ}",
        "Path": url,
    }
