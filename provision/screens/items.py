"""The items of Status: a name at the left, a text beside it, and more below."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from provision import printable, words
from provision.screens import layout
from provision.screens.layout import Line, Look

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

LABEL: Final = 9
"""Columns of the names at the left."""


def duration(seconds: float) -> str:
    """A duration, whose number and unit stay on one line."""
    return words.duration(seconds).replace(" ", layout.GLUE)


def item(label: str, text: str, width: int, look: Look = Look.PLAIN) -> Iterator[Line]:
    """A text with its name at the left."""
    lead = f"  {label.ljust(LABEL)}"
    yield from layout.wrapped(text, width, first=lead + "  ", rest=" " * (len(lead) + 2), look=look)


def below(texts: Iterable[str], width: int, look: Look = Look.PLAIN) -> Iterator[Line]:
    """More about the text above."""
    lead = " " * (LABEL + 6)
    for text in texts:
        # Nothing in it may begin as a hint does.
        yield from layout.wrapped(printable.line(text), width, first=lead, rest=lead, look=look)


def hint(name: str, text: str, width: int) -> Iterator[Line]:
    """What to do about the text above; nothing for ""."""
    lead = " " * (LABEL + 6)
    if text:
        rest = lead + " " * (len(name) + 2)
        yield from layout.wrapped(text, width, first=f"{lead}{name}: ", rest=rest)


def listed(table: list[list[str]], width: int) -> Iterator[Line]:
    """A list of things, in columns."""
    for line in layout.columns(table):
        yield from layout.wrapped(line, width, first=" " * 4, rest=" " * 8)
