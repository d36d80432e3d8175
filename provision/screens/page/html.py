"""A small way to write HTML and SVG: a tree of elements, in which every text is only a text.

Below it are words and numbers that several parts of the page have in common.

What escapes is the standard library's serializer, so no value can become markup. What hides
credentials, and then what no text may do, goes over every text and attribute of the tree before.
What a drawing or a bar shows stands in a table, too.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from typing import TYPE_CHECKING, Final, TypeAlias

from provision import words
from provision.screens import amounts

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence
    from decimal import Decimal

    from provision.documents.cost import Amount
    from provision.documents.topology import Machines

Child: TypeAlias = "ET.Element | str | None"
"""What an element can contain; None is left out."""

_RAW: Final = frozenset({"style"})  # elements whose text is ours, and not read as markup


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
        return words.printable(veil(text))

    for element in root.iter():
        if element.text and element.tag not in _RAW:
            element.text = shown(element.text)
        if element.tail:
            element.tail = shown(element.tail)
        for name, value in element.attrib.items():
            element.set(name, shown(value))
    return "<!doctype html>\n" + ET.tostring(root, encoding="unicode", method="html") + "\n"


def share(part: float, of: float, *, after: float = 0.0, kind: str = "") -> ET.Element:
    """A cell with a bar, for the eye alone."""
    if not part:
        return tag("td", class_="bar", aria_hidden="true")
    whole = of or 1
    style = f"margin-left:{100 * after / whole:.1f}%;width:{100 * part / whole:.1f}%"
    return tag(
        "td", tag("span", class_=kind or None, style=style), class_="bar", aria_hidden="true"
    )


def table(
    caption: str,
    heads: Sequence[str],
    rows: Iterable[Sequence[ET.Element | str]],
    total: Sequence[ET.Element | str] = (),
    *,
    numbers: Collection[str] = (),
) -> ET.Element:
    """A table whose first column names its rows; on a narrow page, a list of its rows."""
    head = tag("tr")
    for name in heads:
        kind = "number" if name in numbers else None
        made = tag("th", name, scope="col", class_=kind) if name else tag("td")
        head.append(made)
    made = tag("table", tag("caption", caption), tag("thead", head), class_="wide")
    made.append(tag("tbody", *(_row(heads, row, numbers) for row in rows)))
    if total:
        made.append(tag("tfoot", _row(heads, total, numbers)))
    return made


def _row(
    heads: Sequence[str], row: Sequence[ET.Element | str], numbers: Collection[str]
) -> ET.Element:
    made = tag("tr")
    for column, (head, value) in enumerate(zip(heads, row, strict=True)):
        it = value if not isinstance(value, str) else tag("td", value)
        if column == 0:
            it = tag("th", *([it.text] if it.text else []), *it, scope="row")
        elif head:
            it.set("data-label", head)
        if head in numbers:
            it.set("class", " ".join(filter(None, ["number", it.get("class")])))
        made.append(it)
    return made


TIMES: Final = "\N{MULTIPLICATION SIGN}"


def titled(text: str) -> str:
    """A text that begins with a capital letter."""
    return text[:1].upper() + text[1:]


def money(usd: Decimal | None) -> str:
    """An amount in US dollars, such as "$7.82"; "unknown" for None, and never 0 for it."""
    return "unknown" if usd is None else amounts.usd(usd)


def per_day(amount: Amount) -> str:
    """A sum per day; what there is to know of it stands at the sum per hour."""
    return f"{amounts.usd(amount.per_day)} a day"


def ends(pool: Machines) -> str:
    """When machines end, in words."""
    if pool.max_run_seconds is None:
        return "at Destroy only"
    return f"{amounts.span(pool.max_run_seconds)} after it came"
