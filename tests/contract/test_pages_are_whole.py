"""Pages look the same on GitHub and on the site: tables, lists, anchors; none is a wall."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.contract.test_links_of_documents import DOCUMENTS, ROOT

_FENCE: Final = re.compile(r"^(```+|~~~+).*?^\1\s*$", re.MULTILINE | re.DOTALL)
_SEPARATOR: Final = re.compile(r"\|( *:?-+:? *\|)+$")
_ITEM: Final = re.compile(r"([*-]|1\.) +\S")
_ANCHOR: Final = re.compile(r"\]\((?!\w+:)(?P<path>[^)#\s]*)#(?P<anchor>[^)\s]+)\)")
_MOST_WORDS: Final = 120
_TO_BE_READ: Final = [
    ROOT / "README.md",
    *sorted((ROOT / "docs/tutorial").glob("*.md")),
    *sorted((ROOT / "docs/how-to").glob("*.md")),
]

on_each_page = pytest.mark.parametrize(
    "path", DOCUMENTS, ids=[str(path.relative_to(ROOT)) for path in DOCUMENTS]
)


def _blocks(path: Path) -> Iterator[list[str]]:
    """The paragraphs, lists and tables of a page, without what it shows as code."""
    text = _FENCE.sub("", path.read_text(encoding="utf-8"))
    text = re.sub(r"^<!--.*-->$", "", text, flags=re.MULTILINE)
    text = re.sub(r"^#.*$", "\n", text, flags=re.MULTILINE)  # a heading ends with its line
    for block in re.split(r"\n\s*\n", text):
        lines = [line for line in block.strip("\n").splitlines() if line.strip()]
        if lines and not lines[0].startswith("    "):
            yield lines


@on_each_page
def test_no_table_is_torn(path: Path) -> None:
    torn = []
    for lines in _blocks(path):
        rows = [line.strip() for line in lines if line.lstrip().startswith("|")]
        widths = {len(re.findall(r"(?<!\\)\|", row)) for row in rows}
        separated = len(rows) > 1 and _SEPARATOR.match(rows[1])
        if rows and (len(rows) < len(lines) or not separated or len(widths) > 1):
            torn.append(rows[0])

    assert not torn, "a blank line, another number of columns, or a line that is no row"


@on_each_page
def test_a_list_begins_a_block_of_its_own(path: Path) -> None:
    glued = [
        lines[at]
        for lines in _blocks(path)
        for at in range(1, len(lines))
        if _ITEM.match(lines[at]) and not any(_ITEM.match(line) for line in lines[:at])
    ]

    assert not glued, "the site's Markdown needs a blank line before the first item"


def _anchors(path: Path) -> set[str]:
    headings = re.findall(r"^#+ +(.*?) *$", _FENCE.sub("", path.read_text("utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", it.lower()).replace(" ", "-") for it in headings}


@on_each_page
def test_every_anchor_of_a_link_is_a_heading(path: Path) -> None:
    dead = [
        link[0]
        for link in _ANCHOR.finditer(path.read_text(encoding="utf-8"))
        if (target := path.parent / link["path"] if link["path"] else path).suffix == ".md"
        and link["anchor"] not in _anchors(target)
    ]

    assert not dead


@pytest.mark.parametrize("path", _TO_BE_READ, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_paragraph_is_a_wall_of_words(path: Path) -> None:
    walls = []
    for lines in _blocks(path):
        if not lines[0].startswith("|"):
            items = re.split(r"\n(?=\s*(?:[*-]|\d+\.) )", "\n".join(lines))
            walls += [it[:60] for it in items if len(it.split()) > _MOST_WORDS]

    assert not walls, f"more than {_MOST_WORDS} words: a paragraph answers one question"
