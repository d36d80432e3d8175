"""Patterns of a `.gitignore`, matched as git does: each path alone, from the top down.

Whoever walks a tree asks for each folder, and does not enter one that stays. So a pattern says
nothing of what is below what it matches: else `*`, `!*/`, `!*.py` would keep every program back.
"""

from __future__ import annotations

import fnmatch
import functools
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_ANY: Final = "**"
"""Stands for any number of parts of a path."""


@dataclass(frozen=True)
class _Pattern:
    parts: Sequence[str]
    stays: bool
    only_folders: bool


class Patterns:
    """The patterns of one file, or of several that count as one."""

    def __init__(self, lines: Iterable[str]) -> None:
        found = (_read(line) for line in lines if not line.startswith("#"))
        self._last_first = [it for it in found if it.parts][::-1]
        # Most names end like no pattern: one look at them costs a tenth of one at each.
        ends = [fnmatch.translate(it.parts[-1]) for it in self._last_first]
        self._ends = re.compile("|".join(ends))

    def __bool__(self) -> bool:
        return bool(self._last_first)

    def keep_back(self, name: str, *, is_folder: bool) -> bool | None:
        """Whether something stays behind, by the last pattern that matches; None if none does."""
        names = name.split("/")
        if not self._ends.match(names[-1]):
            return None
        for it in self._last_first:
            if (is_folder or not it.only_folders) and _match(it.parts, names):
                return it.stays
        return None


def literal(name: str, *, is_folder: bool) -> str:
    """The pattern that matches this path and no other."""
    escaped = re.sub(r"([\\*?\[]| $)", r"\\\1", name)
    printable = "".join(char if char.isprintable() else "?" for char in escaped)
    return f"/{printable}{'/' if is_folder else ''}"


def _read(line: str) -> _Pattern:
    text = re.sub(r"(?<!\\) +$", "", line.removesuffix("\r"))
    named = text.removeprefix("!")
    bare = named.removesuffix("/")
    # With a slash in it, a pattern is a path from here; without, a name anywhere below.
    parts = bare.removeprefix("/").split("/") if "/" in bare else [_ANY, bare] if bare else []
    return _Pattern([_part(it) for it in parts], stays=named == text, only_folders=bare != named)


def _part(text: str) -> str:
    """A part as `fnmatch` reads it, which knows no backslash, and `[!` alone as a negation."""
    plain = re.sub(r"\\(.)", lambda it: f"[{it[1]}]" if it[1] in "*?[" else it[1], text)
    return _ANY if re.fullmatch(r"\*\*+", text) else plain.replace("[^", "[!")


def _match(parts: Sequence[str], names: Sequence[str]) -> bool:
    if not parts or not names:
        return not parts and not names
    if parts[0] != _ANY:
        return _regex(parts[0]).match(names[0]) is not None and _match(parts[1:], names[1:])
    # At the end it is whatever is below; elsewhere it may be nothing, too.
    return len(parts) == 1 or any(_match(parts[1:], names[it:]) for it in range(len(names)))


@functools.cache
def _regex(part: str) -> re.Pattern[str]:
    return re.compile(fnmatch.translate(part))
