"""The codes of problems: each is used, documented, and told with an exit code that it has."""

import ast
import inspect
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from provision import errors
from provision.codes import Code
from provision.documents import schema
from provision.errors import Interrupted, ProvisionError
from provision.google.refusals import Refusal

ROOT = Path(__file__).parents[2]
ERRORS = [
    kind
    for _, kind in inspect.getmembers(errors, inspect.isclass)
    if issubclass(kind, ProvisionError) and not issubclass(kind, Interrupted)
]


@pytest.fixture(scope="module")
def trees() -> dict[str, ast.Module]:
    """The modules of the program, by their paths."""
    return {
        str(path.relative_to(ROOT)): ast.parse(path.read_text(encoding="utf-8"))
        for path in sorted((ROOT / "provision").rglob("*.py"))
    }


def _named_codes(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Name)
            and node.value.id == "Code"
        ):
            yield node.attr


def test_no_code_is_without_use(trees: dict[str, ast.Module]) -> None:
    used = {
        name
        for path, tree in trees.items()
        if path != "provision/codes.py"
        for name in _named_codes(tree)
    }
    assert set(Code.__members__) - used == set()


# Errors give their problems the usual code of their class.
def test_whoever_tells_of_a_problem_says_its_code(trees: dict[str, ast.Module]) -> None:
    silent = [
        f"{path}:{node.lineno}"
        for path, tree in trees.items()
        if path != "provision/errors.py"
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "Problem"
        and "code" not in {keyword.arg for keyword in node.keywords}
    ]
    assert silent == [], "a Problem that has no code"


@pytest.mark.parametrize("kind", ERRORS)
def test_the_usual_code_of_an_error_has_its_exit_code(kind: type[ProvisionError]) -> None:
    assert kind.exit_code in kind.usual_code.exits


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_has_a_code_for_each_of_its_exit_codes(signum: int) -> None:
    error = Interrupted(signum, "w")
    assert error.exit_code in error.usual_code.exits


def test_each_refusal_of_googles_has_a_code_of_its_own() -> None:
    assert len({refusal.code for refusal in Refusal}) == len(Refusal)


def test_stock_out_and_quota_are_told_apart() -> None:
    assert Refusal.STOCKOUT.code.is_retryable
    assert not Refusal.QUOTA.code.is_retryable


@pytest.mark.parametrize("code", Code)
def test_a_code_is_written_as_programs_like_it(code: Code) -> None:
    assert code.value == code.name.lower().replace("_", "-")
    for text in (code.meaning, code.remedy):
        assert text
        assert text[-1] != "."
        assert "|" not in text


def test_the_page_of_problems_is_made_from_the_codes() -> None:
    kept = (ROOT / "docs" / "reference" / "problems.md").read_text(encoding="utf-8")
    assert kept == schema.problems_page(), "renew it: make docs"
