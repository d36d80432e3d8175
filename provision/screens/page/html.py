"""A small way to write HTML and SVG: a tree of elements, in which every text is only a text.

What escapes is the standard library's serializer, so no value can become markup. What hides
credentials, and then what no text may do, goes over every text and attribute of the tree before.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from typing import TYPE_CHECKING, Final, TypeAlias

from provision import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

Child: TypeAlias = "ET.Element | str | None"
"""What an element can contain; None is left out."""

_RAW: Final = frozenset({"style"})
"""Elements whose text is ours, and not read as markup."""


def tag(name: str, /, *children: Child, **attributes: object) -> ET.Element:
    """Make an element.

    `attributes`: `class_` is "class", and `stroke_width` is "stroke-width"; one that is None or
    False is left out, and one that is True has its own name as its value.
    """
    made = ET.Element(name)
    for key, value in attributes.items():
        if value is not None and value is not False:
            written = key.rstrip("_").replace("_", "-")
            made.set(written, written if value is True else str(value))
    append(made, children)
    return made


def append(element: ET.Element, children: Iterable[Child]) -> None:
    """Add elements and texts at the end of an element."""
    for child in children:
        if child is None:
            continue
        if not isinstance(child, str):
            element.append(child)
        elif len(element):
            element[-1].tail = (element[-1].tail or "") + child
        else:
            element.text = (element.text or "") + child


def written(root: ET.Element, veil: Callable[[str], str] = str) -> str:
    """The whole document as text."""

    def shown(text: str) -> str:
        return printable.text(veil(text))

    for element in root.iter():
        if element.text and element.tag not in _RAW:
            element.text = shown(element.text)
        if element.tail:
            element.tail = shown(element.tail)
        for name, value in element.attrib.items():
            element.set(name, shown(value))
    return "<!doctype html>\n" + ET.tostring(root, encoding="unicode", method="html") + "\n"
