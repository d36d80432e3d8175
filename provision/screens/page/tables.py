"""Tables of the page: what a drawing or a bar shows stands in one, too."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provision.screens.page.html import tag

if TYPE_CHECKING:
    import xml.etree.ElementTree as ET
    from collections.abc import Collection, Iterable, Sequence


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
