"""No part of the project grows unnoticed: sizes.tsv says how large each may be."""

from pathlib import Path

import pytest

from tests import sizes
from tests.sizes import Size

TABLE = Path(__file__).with_name("sizes.tsv")
_SPARE = 150
"""Lines that a part may be smaller than its row: a row that is never lowered holds nothing."""
_REMEDY = (
    "Take out as much as comes in. If what it brings is worth more, raise the row of sizes.tsv in"
    " the same commit, and say in docs/development/mass.md what it brings"
)

ALLOWED = sizes.parse(TABLE.read_text(encoding="utf-8"))
MEASURED = sizes.measured()


def test_each_part_has_a_row() -> None:
    assert list(ALLOWED) == list(MEASURED)


@pytest.mark.parametrize("part", ALLOWED)
def test_no_part_is_larger_than_its_row(part: str) -> None:
    now, most = MEASURED[part], ALLOWED[part]
    assert now.files <= most.files, _REMEDY
    assert now.lines <= most.lines, _REMEDY
    assert now.code <= most.code, _REMEDY


@pytest.mark.parametrize("part", ALLOWED)
def test_a_row_is_lowered_when_its_part_has_shrunk(part: str) -> None:
    spare = ALLOWED[part].lines - MEASURED[part].lines
    assert spare <= _SPARE, "python -m tests.sizes > tests/contract/sizes.tsv"


def test_docstrings_and_blank_lines_are_no_code(tmp_path: Path) -> None:
    file = tmp_path / "some.py"
    file.write_text('"""Two\n\nparagraphs."""\n\nX = 1\n"""Beside."""\n# a comment\n')
    assert Size.of(file) == Size(files=1, lines=7, code=2)


def test_each_part_is_told_of_in_mass_md() -> None:
    text = (sizes.TREE / "docs/development/mass.md").read_text(encoding="utf-8")
    assert [part for part in ALLOWED if f"`{part}`" not in text] == []
