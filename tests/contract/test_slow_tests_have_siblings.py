"""What is left to `make test-all` has a cheaper test in `make test` that catches the same mistake.

When tests are collected the plugin looks closer still: a sibling with cases needs a quick one.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest

from tests import layers, plugin

TESTS = layers.TREE / "tests"


def _is_slow(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.mark.slow"


def _siblings() -> Iterator[tuple[str, str]]:
    """Of every mark: the file that has it, and what it names."""
    for path in sorted(TESTS.rglob("*.py")):
        text, file = path.read_text(encoding="utf-8"), path.relative_to(layers.TREE).as_posix()
        if "mark.slow(" not in text:
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Call) and _is_slow(node):
                named = {it.arg: it.value for it in node.keywords}.get("sibling")
                if isinstance(named, ast.Constant) and isinstance(named.value, str):
                    own = named.value.startswith("::")
                    yield file, f"{file}{named.value}" if own else named.value
                else:
                    yield file, ""


SIBLINGS = sorted(set(_siblings()))


@pytest.mark.parametrize(("file", "sibling"), SIBLINGS)
def test_a_slow_test_names_a_quick_one_that_exists(file: str, sibling: str) -> None:
    place, _, name = sibling.partition("::")
    assert name, f"{file}: a slow test names its sibling in full, as a text"
    assert layers.of(layers.TREE / place) in layers.chosen("quick")[0]
    tree = ast.parse((layers.TREE / place).read_text(encoding="utf-8"))
    functions = {it.name: it for it in tree.body if isinstance(it, ast.FunctionDef)}
    function = functions.get(name.partition("[")[0])
    assert function is not None, f"{file}: there is no {sibling}"
    assert not any(map(_is_slow, function.decorator_list)), f"{sibling} is slow itself"


def test_a_sibling_that_is_slow_in_all_its_cases_is_none() -> None:
    marks = [("tests/unit/a.py::b[1]", "tests/unit/a.py::c"), ("tests/unit/a.py::c[1]", "x.py::y")]
    (said,) = plugin.unsound(marks)
    assert "tests/unit/a.py::c is no test of `make test`" in said
    assert plugin.unsound([*marks, ("tests/unit/a.py::c[2]", None)]) == []


@dataclass
class Item:
    """As much of a collected test as the plugin looks at."""

    nodeid: str
    marks: list[pytest.Mark] = field(default_factory=list)
    callspec: str = "its row"

    @property
    def path(self) -> Path:
        return layers.TREE / self.nodeid.partition("::")[0]

    def add_marker(self, mark: pytest.MarkDecorator) -> None:
        self.marks.append(mark.mark)

    def get_closest_marker(self, name: str) -> pytest.Mark | None:
        return next((it for it in self.marks if it.name == name), None)


def test_of_rows_of_whole_runs_the_first_is_quick_unless_somebody_has_chosen() -> None:
    by_hand = [pytest.mark.slow.with_args(sibling="x").mark]
    rows = [Item(f"tests/runs/a.py::b[{row}]") for row in "123"]
    chosen = [
        Item("tests/runs/a.py::c[1]", by_hand),
        *(Item("tests/runs/a.py::c[2]") for _ in "12"),
    ]
    units = [Item(f"tests/unit/a.py::b[{row}]") for row in "12"]

    plugin.leave_rows_out(cast("Any", [*rows, *chosen, *units]))

    slow = [item.nodeid for item in (*rows, *chosen, *units) if item.marks]
    assert slow == ["tests/runs/a.py::b[2]", "tests/runs/a.py::b[3]", "tests/runs/a.py::c[1]"]
    assert rows[1].marks[0].kwargs == {"sibling": "tests/runs/a.py::b"}


def test_of_many_slow_rows_ci_has_one_in_four_unless_somebody_has_chosen() -> None:
    slow = pytest.mark.slow.with_args(sibling="x").mark
    many = [Item(f"tests/runs/a.py::b[{row}]", [slow]) for row in range(10)]
    few = [Item(f"tests/runs/a.py::c[{row}]", [slow]) for row in range(3)]
    chosen = [Item(f"tests/runs/a.py::d[{row}]", [slow]) for row in range(10)]
    chosen[7].add_marker(pytest.mark.every)

    plugin.leave_cells_out(cast("Any", [*many, *few, *chosen]))

    left_out = [it.nodeid for it in (*many, *few, *chosen) if it.get_closest_marker("every")]
    assert left_out == [
        *(f"tests/runs/a.py::b[{it}]" for it in (1, 2, 3, 5, 6, 7, 9)),
        chosen[7].nodeid,
    ]


def test_a_slow_test_without_a_sibling_is_refused() -> None:
    assert plugin.unsound([("tests/unit/a.py::b", "")]) == [
        "tests/unit/a.py::b is slow and names no sibling"
    ]
