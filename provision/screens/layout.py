"""How lines for people are laid out: wrapped at blanks, in columns, none over the width.

What has to be copied, a command or a URL, stays whole on one line, however long that is.
"""

from __future__ import annotations

import enum
import re
import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from provision import words

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

WIDEST: Final = 100
"""Columns of a line where there is no terminal, and on a wide one."""
GLUE: Final = "\xa0"
"""A blank at which no line is broken, as between a number and its unit; it is shown as a blank."""
NARROWEST: Final = 60
"""Columns of a line on a terminal that is narrower still."""
_COMMANDS: Final = re.compile(
    r"(?:^|(?<=[\s(]))(?:gcloud|gsutil|kubectl|docker|pip|terraform|aiinfra|curl|bash|python3?) "
)
_QUOTED: Final = re.compile(r"`[^`]+`")

LABEL: Final = 11
"""Columns of the names of rows, with the blanks behind them."""


class Look(enum.Enum):
    """What a line stands out by, on a terminal with colours."""

    PLAIN = ""
    TITLE = "bold"
    GOOD = "green"
    WARN = "bold yellow"
    BAD = "bold red"
    FAINT = "dim"


@dataclass(frozen=True)
class Line:
    """One line for people."""

    text: str  # the text, without a newline
    look: Look = Look.PLAIN  # what it stands out by


@dataclass(frozen=True)
class Row:
    """A row of a screen: its name, a text that is wrapped, and what stands at its right end."""

    label: str  # "" for one that continues the row before
    text: str
    right: str = ""
    look: Look = Look.PLAIN

    def lines(self, width: int) -> Iterator[Line]:
        """The row, wrapped."""
        lead = f"  {self.label}".ljust(LABEL + 2)
        room = width - (len(self.right) + 2 if self.right else 0)
        for number, line in enumerate(
            wrapped(self.text, room, first=lead, rest=" " * len(lead), look=self.look)
        ):
            if number == 0 and self.right:
                yield Line(line.text + self.right.rjust(width - len(line.text)), self.look)
            else:
                yield line


def width_of(columns: int | None) -> int:
    """The columns to lay out for, by those of the terminal; None where there is none."""
    return WIDEST if not columns else max(NARROWEST, min(WIDEST, columns))


def wrapped(
    text: str, width: int, *, first: str = "", rest: str = "", look: Look = Look.PLAIN
) -> Iterator[Line]:
    """A text in lines that break only at blanks."""
    lead = first
    # What stands between backticks within a sentence is copied from there, whole.
    whole = _QUOTED.sub(lambda it: it[0].replace(" ", GLUE), text)
    for paragraph in whole.splitlines() or [""]:
        for line in _broken(paragraph, width, lead, rest):
            yield Line(unglued(line.rstrip()), look)
            lead = rest


def unglued(text: str) -> str:
    """A text as it is shown, with plain blanks."""
    return text.replace(GLUE, " ")


def _broken(text: str, width: int, first: str, rest: str) -> list[str]:
    """One paragraph in lines; a command in it stays whole from its first word on."""
    if len(first) + len(text) <= width:
        return [first + text]
    command = _COMMANDS.search(text)
    if command is None:
        return _filled(text, width, first, rest)
    prose = text[: command.start()].rstrip()
    if not prose:
        return [first + text]
    return [*_filled(prose, width, first, rest), rest + text[command.start() :]]


def _filled(text: str, width: int, first: str, rest: str) -> list[str]:
    return textwrap.wrap(
        text,
        width,
        initial_indent=first,
        subsequent_indent=rest,
        break_long_words=False,
        break_on_hyphens=False,
    ) or [first]


def rows(
    table: Iterable[tuple[str, str]], width: int, *, indent: str = "  ", gap: int = 2
) -> Iterator[Line]:
    """A table with a column of short names and one of texts, which is wrapped."""
    kept = list(table)
    column = max((len(name) for name, _ in kept), default=0) + gap
    for name, text in kept:
        lead = indent + name.ljust(column)
        yield from wrapped(text, width, first=lead, rest=" " * len(lead))


def ended(left: str, right: str, width: int) -> list[Line]:
    """A line with something at its right end, or two lines if both do not fit into one."""
    if not right:
        return list(wrapped(left, width, rest="    "))
    if len(left) + 2 + len(right) <= width:
        return [Line(unglued(left) + right.rjust(width - len(left)))]
    return [*wrapped(left, width, rest="    "), Line(f"    {right}")]


def columns(table: Sequence[Sequence[str]], gap: int = 2) -> list[str]:
    """The cells of a table, aligned; the last column is not filled up."""
    if not table:
        return []
    widths = [max(len(row[column]) for row in table) for column in range(len(table[0]))]
    return [
        (" " * gap).join(cell.ljust(size) for cell, size in zip(row, widths, strict=True)).rstrip()
        for row in table
    ]


def glued(number: int, noun: str) -> str:
    """A number of things, between which and their noun no line is broken."""
    return words.counted(number, noun).replace(" ", GLUE)
