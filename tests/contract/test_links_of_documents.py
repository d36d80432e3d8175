"""What documents point at is there."""

import re
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[2]
DOCUMENTS: Final = sorted(
    [
        *ROOT.glob("*.md"),
        ROOT / "rehearsal" / "README.md",
        *(
            page
            for folder in ("docs", "examples", "terraform")
            for page in (ROOT / folder).rglob("*.md")
        ),
    ]
)
SHELVES: Final = ("tutorial", "how-to", "reference", "explanation")
LINK: Final = re.compile(r"\]\((?!https?://|#)(?P<path>[^)#\s]+)")


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_link_of_a_document_leads_to_something(path: Path) -> None:
    text = path.read_text(encoding="utf-8")

    dead = [link for link in LINK.findall(text) if not (path.parent / link).exists()]

    assert not dead


def _reached(page: Path) -> set[Path]:
    links = LINK.findall(page.read_text(encoding="utf-8"))
    return {(page.parent / link.partition("#")[0]).resolve() for link in links}


def test_every_page_is_in_the_index_and_the_readme_leads_to_it() -> None:
    index = ROOT / "docs" / "index.md"
    shelves = (*SHELVES, "development")
    pages = {page for folder in shelves for page in (ROOT / "docs" / folder).glob("*.md")}

    assert pages <= _reached(index)
    assert index in _reached(ROOT / "README.md")


def test_the_readme_is_one_screen_more_or_less() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")

    assert len(readme.splitlines()) <= 60
    assert readme.count("](") <= 25


def test_the_changes_are_short_until_there_is_a_release() -> None:
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")

    assert changes.count("\n## ") == 1
    assert len(changes.splitlines()) <= 60


def test_what_makers_read_is_on_a_shelf_of_its_own() -> None:
    docs = ROOT / "docs"
    shelves = {page.relative_to(docs).parts[0] for page in docs.rglob("*") if page.is_file()}

    assert shelves == {*SHELVES, "development", "index.md", "rehearsal.svg"}


def test_every_example_is_in_the_page_of_examples() -> None:
    examples = ROOT / "examples"

    assert set(examples.glob("**/*.list")) <= _reached(examples / "README.md")
    assert examples / "README.md" in _reached(ROOT / "README.md")
