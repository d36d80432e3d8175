"""What users read keeps to the words of the glossary in CONTRIBUTING.md."""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[2]
_ROW: Final = re.compile(r"^\| (?!say |---)[^|]+ \| ([^|]+) \|$", re.MULTILINE)
NOT: Final = [
    word.strip()
    for row in _ROW.findall((ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"))
    for word in row.split(",")
]
_NOT: Final = re.compile(rf"\b(?:{'|'.join(map(re.escape, NOT))})\b", re.IGNORECASE)
PAGES: Final = sorted(
    [
        *(ROOT / name for name in ("README.md", "CHANGELOG.md", "SECURITY.md")),
        *(ROOT / "examples").rglob("*.md"),
        *(ROOT / "docs").glob("*.md"),
        *(ROOT / "provision").rglob("*.tsv"),  # words of help, codes and checks
        *(
            page
            for shelf in ("tutorial", "how-to", "reference", "explanation")
            for page in (ROOT / "docs" / shelf).glob("*.md")
        ),
    ]
)
MODULES: Final = sorted(
    [*(ROOT / "provision").rglob("*.py"), *(ROOT / "terraform/modules/startup").rglob("*.py")]
)


def test_the_glossary_is_read() -> None:
    assert {"anew", "let go", "no machine ends by that"} < set(NOT)


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_page_uses_the_words_of_the_glossary(page: Path) -> None:
    text = " ".join(page.read_text(encoding="utf-8").split())

    assert [text[it.start() - 30 : it.end() + 30] for it in _NOT.finditer(text)] == []


def test_messages_docstrings_and_comments_use_the_words_of_the_glossary() -> None:
    found = [
        f"{module.relative_to(ROOT)}:{line}: {text}"
        for module in MODULES
        for line, text in _said(module.read_text(encoding="utf-8"))
        if _NOT.search(text)
    ]

    assert found == []


def _said(source: str) -> Iterator[tuple[int, str]]:
    """The strings and comments of a module, each with its line."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, " ".join(node.value.split())
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string
