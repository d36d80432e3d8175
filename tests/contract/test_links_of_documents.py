"""What documents point at is there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[2]
DOCUMENTS: Final = sorted(
    [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "terraform").rglob("*.md")]
)
LINK: Final = re.compile(r"\]\((?!https?://|#)(?P<path>[^)#\s]+)")


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_link_of_a_document_leads_to_something(path: Path) -> None:
    text = path.read_text(encoding="utf-8")

    dead = [link for link in LINK.findall(text) if not (path.parent / link).exists()]

    assert not dead


def test_every_page_is_reached_from_the_readme() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    reached = {(ROOT / link).resolve() for link in LINK.findall(readme)}
    pages = {*(ROOT / "docs" / "how-to").iterdir(), *(ROOT / "docs" / "explanation").iterdir()}

    assert pages <= reached


def test_every_example_is_in_the_readme() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")

    assert {f"examples/{path.name}" for path in (ROOT / "examples").glob("*.list")} <= set(
        LINK.findall(readme)
    )
