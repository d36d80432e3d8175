"""What stands in the drawing of a topology: blocks of words and little pictures, and lines."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from provision.screens.page.html import tag

if TYPE_CHECKING:
    import xml.etree.ElementTree as ET
    from collections.abc import Iterator

_PAD: Final = 14
_TITLE: Final = 14
_LINE: Final = 12
_TITLE_STEP: Final = 19
_LINE_STEP: Final = 17
# Of the widest of the usual fonts: text in SVG does not wrap automatically.
_TITLE_WIDTH: Final = 9.3
_LINE_WIDTH: Final = 7.1

_CELL: Final = 10
_CELL_STEP: Final = 13
_IN_A_ROW: Final = 4
_TICK_STEP: Final = 4
_TILE_GAP: Final = 14
MOST_TILES: Final = 16
"""So many machines of a pool are drawn; a number stands for the others."""


@dataclass(frozen=True)
class Tiles:
    """A picture of machines: a tile each, a cell for each GPU, a tick for each interface."""

    first: int  # the machines that are there when Create is done
    most: int  # the machines that there can be; the others are dashed
    gpus: int
    interfaces: int  # the network interfaces of each

    @property
    def _shown(self) -> int:
        return min(self.most, MOST_TILES)

    @property
    def _columns(self) -> int:
        # Two rows from four on, so that eight GPUs are a tile of four by two.
        return max(1, min(self.gpus, _IN_A_ROW) if self.gpus != _IN_A_ROW else 2)

    @property
    def _tile(self) -> tuple[int, int]:
        """Width and height of a tile."""
        rows = max(1, -(-self.gpus // self._columns))
        high = max(rows * _CELL_STEP + 9, self.interfaces * _TICK_STEP + 6)
        return self._columns * _CELL_STEP + 9, high

    def _per_row(self, width: int) -> int:
        return max(1, (width + _TILE_GAP - 6) // (self._tile[0] + _TILE_GAP))

    def height(self, width: int) -> int:
        """The height of all tiles within a width."""
        rows = -(-self._shown // self._per_row(width))
        more = _LINE_STEP if self.most > self._shown else 0
        return rows * (self._tile[1] + 10) + more

    def drawn(self, x: int, y: int, width: int) -> Iterator[ET.Element]:
        """The tiles, from their upper left corner."""
        wide, high = self._tile
        per_row = self._per_row(width)
        for number in range(self._shown):
            row, column = divmod(number, per_row)
            left, top = x + 6 + column * (wide + _TILE_GAP), y + row * (high + 10)
            yield self._machine(left, top, is_there=number < self.first)
        if self.most > self._shown:
            bottom = y + self.height(width) - 4
            yield tag("text", f"and {self.most - self._shown:,} more", x=x, y=bottom, class_="line")

    def _machine(self, x: int, y: int, *, is_there: bool) -> ET.Element:
        wide, high = self._tile
        drawn = tag("g", class_="machine" if is_there else "machine later")
        drawn.append(tag("rect", x=x, y=y, width=wide, height=high, rx=4, class_="tile"))
        top = y + (high - self.interfaces * _TICK_STEP) / 2 + 1
        for number in range(self.interfaces):
            kind = "nic" if number == 0 else "nic gpu"
            at = top + number * _TICK_STEP
            drawn.append(tag("rect", x=x - 5, y=at, width=5, height=2, class_=kind))
        rows = max(1, -(-self.gpus // self._columns))
        top = y + (high - rows * _CELL_STEP + 3) / 2
        for number in range(self.gpus):
            row, column = divmod(number, self._columns)
            at, down = x + 6 + column * _CELL_STEP, top + row * _CELL_STEP
            drawn.append(tag("rect", x=at, y=down, width=_CELL, height=_CELL, rx=2, class_="cell"))
        return drawn


@dataclass(frozen=True)
class Block:
    """A box with a title, lines, and perhaps a picture of machines."""

    kind: str  # its class in the style sheet
    title: str
    lines: tuple[str, ...] = ()  # what stands below the title
    tiles: Tiles | None = None  # the machines in it; None for none

    def _texts(self, width: int) -> Iterator[tuple[str, int, str]]:
        """Every line of text: its class, the step to it, and itself."""
        room = width - 2 * _PAD
        for text in textwrap.wrap(self.title, int(room / _TITLE_WIDTH)):
            yield "title", _TITLE_STEP, text
        for line in self.lines:
            for text in textwrap.wrap(line, int(room / _LINE_WIDTH)):
                yield "line", _LINE_STEP, text

    def height(self, width: int) -> int:
        """How high it is at a width."""
        tiles = self.tiles.height(width - 2 * _PAD) + 8 if self.tiles else 0
        return 2 * _PAD - 4 + sum(step for _, step, _ in self._texts(width)) + tiles

    def drawn(self, x: int, y: int, width: int) -> ET.Element:
        """It, from its upper left corner."""
        high = self.height(width)
        group = tag("g", class_=f"block {self.kind}")
        group.append(tag("rect", x=x, y=y, width=width, height=high, rx=10, class_="box"))
        group.append(tag("rect", x=x, y=y + 10, width=4, height=high - 20, rx=2, class_="edge"))
        down = y + _PAD - 6
        for kind, step, text in self._texts(width):
            down += step
            group.append(tag("text", text, x=x + _PAD, y=down, class_=kind))
        if self.tiles:
            group.extend(self.tiles.drawn(x + _PAD, down + 14, width - 2 * _PAD))
        return group
