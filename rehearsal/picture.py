"""What a terminal showed, as a picture: an SVG that loads nothing, for a page that tells of it."""

import itertools
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Sequence
from typing import Final

_CONTROL: Final = re.compile(r"\x1b\[([0-9;]*)([A-Za-z])|\x1b\][^\x07]*\x07|[\x00-\x08\x0b-\x1a]")
_FONT: Final = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace"
_SIZE: Final = 13
_ADVANCE: Final = 7.83  # the width of a character: 0.602 of the size, as the usual fonts have it
_STEP: Final = 19
_PAD: Final = 18
_BAR: Final = 34

_GROUND, _INK = "#10161d", "#d7dee6"
_STYLES: Final = {
    1: "font-weight: 700; fill: #ffffff",
    2: "fill: #8b98a5",
    31: "fill: #ff8f86",
    32: "fill: #63d297",
    33: "fill: #eec06a",
    34: "fill: #86b4ff",
    35: "fill: #cda6ff",
    36: "fill: #6fd3df",
}
"""A code of the terminal's (ECMA-48, "select graphic rendition") -> what it looks like."""


def svg(lines: Sequence[str], title: str, columns: int = 100) -> str:
    """A terminal with these lines."""
    shown = [row for line in lines for row in _rows(list(_runs(line)), columns)]
    width = round(columns * _ADVANCE + 2 * _PAD)
    height = _BAR + len(shown) * _STEP + _PAD
    root = ET.Element(
        "svg",
        {
            "xmlns": "http://www.w3.org/2000/svg",
            "viewBox": f"0 0 {width} {height}",
            "width": str(width),
            "height": str(height),
            "role": "img",
            "aria-labelledby": "title",
        },
    )
    ET.SubElement(root, "title", {"id": "title"}).text = title
    ET.SubElement(root, "style").text = _sheet()
    frame = {"width": str(width), "height": str(height), "rx": "10", "fill": _GROUND}
    ET.SubElement(root, "rect", frame)
    for number, colour in enumerate(("#ff5f57", "#febc2e", "#28c840")):
        at = {"cx": str(20 + 18 * number), "cy": "18", "r": "5.5", "fill": colour}
        ET.SubElement(root, "circle", at)
    for number, row in enumerate(shown):
        down = str(_BAR + 8 + number * _STEP)
        text = ET.SubElement(root, "text", {"x": str(_PAD), "y": down, "xml:space": "preserve"})
        for codes, part in row:
            named = {"class": " ".join(f"c{code}" for code in sorted(codes))} if codes else {}
            ET.SubElement(text, "tspan", named).text = part
    return ET.tostring(root, encoding="unicode") + "\n"


def _sheet() -> str:
    plain = f"text {{ font: {_SIZE}px {_FONT}; fill: {_INK}; white-space: pre }}"
    return " ".join([plain, *(f".c{code} {{ {style} }}" for code, style in _STYLES.items())])


def _runs(line: str) -> Iterator[tuple[frozenset[int], str]]:
    """The parts of a line that look alike: their codes, and their text."""
    codes: frozenset[int] = frozenset()
    done = 0
    for found in _CONTROL.finditer(line):
        if line[done : found.start()]:
            yield codes, line[done : found.start()]
        done = found.end()
        if found[2] == "m":
            for code in map(int, filter(None, found[1].split(";"))):
                codes = codes | {code} if code in _STYLES else frozenset()
            if not found[1]:
                codes = frozenset()
    if line[done:]:
        yield codes, line[done:]


def _rows(
    runs: Sequence[tuple[frozenset[int], str]], columns: int
) -> list[list[tuple[frozenset[int], str]]]:
    """The runs of one line as rows that are no wider than the terminal, broken at blanks."""
    text = "".join(part for _, part in runs)
    breaks, row = [], 0
    while len(text) - row > columns:
        blank = text.rfind(" ", row, row + columns + 1)
        row = blank + 1 if blank > row and text[row:blank].strip() else row + columns
        breaks.append(row)
    rows: list[list[tuple[frozenset[int], str]]] = [[]]
    at = 0
    for codes, part in runs:
        cuts = [it - at for it in breaks if at <= it < at + len(part)]
        for number, (begin, end) in enumerate(itertools.pairwise([0, *cuts, len(part)])):
            if number:
                rows.append([])
            if part[begin:end]:
                rows[-1].append((codes, part[begin:end]))
        at += len(part)
    return rows
