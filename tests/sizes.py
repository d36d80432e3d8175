"""How large each part of the project is: `python -m tests.sizes > tests/contract/sizes.tsv`."""

from __future__ import annotations

import ast
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

TREE: Final = Path(__file__).parents[1]
_WHOLE: Final = ("bench", "smoke", "terraform")
"""Folders that are one part; of others each folder below is a part of its own."""
_DEEP: Final = ("provision/kinds", "provision/kinds/gke", "rehearsal/cloud")
"""Parts whose folders are parts again."""
_SUFFIXES: Final = (".py", ".tf", ".hcl", ".tfvars", ".sh")
_TESTS_OF_MODULES: Final = "terraform (tftest)"


@dataclass(frozen=True)
class Size:
    """How large a part is."""

    files: int = 0
    lines: int = 0
    code: int = 0  # lines without blank ones and docstrings: lines can't be packed to save some

    def __add__(self, other: Size) -> Size:
        return Size(self.files + other.files, self.lines + other.lines, self.code + other.code)

    @property
    def row(self) -> str:
        return f"{self.files}\t{self.lines}\t{self.code}"

    @classmethod
    def of(cls, path: Path) -> Self:
        """That of a file."""
        text = path.read_text(encoding="utf-8")
        lines = text.splitlines()
        blank = {number for number, line in enumerate(lines, 1) if not line.strip()}
        documented = _documented(text) if path.suffix == ".py" else set()
        return cls(1, len(lines), len(lines) - len(blank | documented))


def _documented(text: str) -> set[int]:
    """The numbers of the lines that docstrings take, those below a constant too."""
    found: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            found.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return found


def _part(path: Path) -> str:
    """The part that a file of the tree is in."""
    if path.name.endswith((".tftest.hcl", ".tfvars")):
        return _TESTS_OF_MODULES
    folders = [str(it) for it in reversed(path.parents)][1:]
    if path.parts[0] in _WHOLE:
        return folders[0]
    deepest = max((it for it in _DEEP if it in folders), key=len, default=folders[0])
    return folders[min(folders.index(deepest) + 1, len(folders) - 1)]


def measured(tree: Path = TREE) -> Mapping[str, Size]:
    """Each part's size, by its name."""
    found: defaultdict[str, Size] = defaultdict(Size)
    roots = ("provision", "rehearsal", "tests", *_WHOLE)
    for root in roots:
        for path in sorted((tree / root).rglob("*")):
            if path.suffix in _SUFFIXES and not {".terraform", "__pycache__"} & set(path.parts):
                found[_part(path.relative_to(tree))] += Size.of(path)
    return dict(sorted(found.items()))


def table(sizes: Mapping[str, Size]) -> Iterable[str]:
    """A line for each part, with its name, files, lines and lines of code."""
    yield "part\tfiles\tlines\tcode"
    for name, size in sizes.items():
        yield f"{name}\t{size.row}"


def parse(text: str) -> Mapping[str, Size]:
    """What `table` wrote."""
    rows = [line.split("\t") for line in text.splitlines()[1:]]
    return {name: Size(*map(int, numbers)) for name, *numbers in rows}


if __name__ == "__main__":
    sys.stdout.write("\n".join(table(measured())) + "\n")
