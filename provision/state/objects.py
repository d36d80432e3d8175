"""What lies in a deployment's folder, and the one way to read it: as a `Stored`, by its type.

Whoever may write to the bucket may have changed any of it: people by the bucket's roles, and some
of it every program on a VM or in a pod. So an object has a form of name, a size, a number of its
kind and a reader that holds it to its type, all in the line that declares it, beside that type.
`StateFolder` hands out nothing else. tests/contract/test_one_door.py finds these lines, and
tests/unit/test_any_document.py tries each with damage. What Google can say is asked of Google.
"""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from provision.documents import json_object

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

T_co = TypeVar("T_co", covariant=True)

RESTORE: Final = (
    "restore an older version of that object: gcloud storage ls --all-versions {url} lists them,"
    " and gcloud storage cp '{url}#NUMBER' {url} brings one back"
)
_HOLE: Final = "{}"
MANY: Final = 10**6


class Writer(enum.Enum):
    """Who writes an object, beside those who have a role on the bucket."""

    PROGRAM = "this program"
    TERRAFORM = "Terraform"
    MACHINES = "any program on the deployment's VMs, or in its pods"
    PEOPLE = "whoever keeps it"


@dataclass(frozen=True)
class Stored(Generic[T_co]):
    """An object of the folder, or all objects of one form."""

    name: str  # in the folder; "{}" is a part that differs
    writer: Writer
    # makes the type of the content; raises ValueError where it is damaged, but for MACHINES, whose
    # programs may spoil it at any time: that counts as not said
    parse: Callable[..., T_co]
    fix: str = RESTORE  # what a person does about a damaged one; "{url}" is where it is
    largest: int = 2**20  # bytes that are read of one
    most: int = 10_000  # how many of this form are looked at
    part: str = "[A-Za-z0-9][A-Za-z0-9._-]{0,127}"  # what may stand for "{}"

    def at(self, *parts: str) -> str:
        """The name of one object."""
        return self.name.format(*parts)

    def fits(self, *parts: str) -> bool:
        """Whether an object can have these parts in its name."""
        return all(re.fullmatch(self.part, it) for it in parts)

    def start(self, *parts: str) -> str:
        """How the names begin of all objects that differ in their last part."""
        return self.name.rpartition(_HOLE)[0].format(*parts)

    @property
    def glob(self) -> str:
        """What all names of this form match, as Cloud Storage has it (objects.list, matchGlob)."""
        return self.name.replace(_HOLE, "*")

    def last(self, name: str, *parts: str) -> str | None:
        """The last part of an object's name; None for one of another form."""
        start, end = self.start(*parts), self.name.rpartition(_HOLE)[2]
        part = name.removeprefix(start).removesuffix(end)
        return part if self.fits(part) and self.at(*parts, part) == name else None


@dataclass(frozen=True)
class Change:
    """The last change of an object, or of its metadata, as a list has it."""

    at: float  # when it was (Unix epoch)
    # its metadata, which is text that whoever may change the object may have spoiled
    notes: Mapping[str, str]


def text(content: bytes) -> str:
    """What people may read, whatever it is."""
    return content.decode("utf-8", "replace")


def said(content: bytes | str) -> dict[str, Any]:
    """What a machine says; nothing if a program there has spoiled it."""
    try:
        return json_object.read(content)
    except ValueError:
        return {}
