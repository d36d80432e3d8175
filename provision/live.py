"""The last rows of a terminal, which are rewritten as time goes by.

The cursor stays where it is and is never hidden, so there is nothing that a killed run leaves to be
restored.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from provision.screens.layout import Line

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import TextIO

_ROW: Final = "\r\x1b[2K"
_UP: Final = "\x1b[1A\x1b[2K"
_WITHOUT_CODES: Final = frozenset({"", "dumb", "unknown"})
"""Values of TERM for terminals that only print."""


def is_possible(stream: TextIO, environ: Mapping[str, str]) -> bool:
    """Whether rows can be rewritten: on a terminal that knows how to."""
    return stream.isatty() and environ.get("TERM", "").lower() not in _WITHOUT_CODES


class Live:
    """The rows.

    `print_line`: prints a line with its look; the second argument is what follows it. `columns`:
    asks for the terminal's columns; None if it does not say.
    """

    def __init__(
        self,
        write: Callable[[str], object],
        print_line: Callable[[Line, str], None],
        columns: Callable[[], int | None],
    ) -> None:
        self._write = write
        self._print = print_line
        self._columns = columns
        self._drawn = 0
        self._rows: tuple[Line, ...] = ()

    def become(self, rows: Sequence[Line]) -> None:
        """Show these rows in the place of those that are there."""
        if tuple(rows) != self._rows or not self._drawn:
            self.erase()
            self._rows = tuple(rows)
            self.draw()

    def erase(self) -> None:
        """Take the rows off the terminal, so that something else can be printed in their place."""
        if self._drawn:
            self._write(_ROW + _UP * (self._drawn - 1))
        self._drawn = 0

    def draw(self) -> None:
        """Show the rows, below all that was printed before."""
        # A row that fills the last column makes some terminals begin another.
        room = (self._columns() or 1 << 16) - 1
        for number, row in enumerate(self._rows, 1):
            end = "" if number == len(self._rows) else "\n"
            self._print(Line(row.text[:room], row.look), end)
            self._drawn = number
