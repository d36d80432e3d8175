"""Where states are looked for in a bucket to mount, and what is said where that takes too long."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from provision.preflight import named


class Answers:
    """A bucket with these objects; a page has one entry."""

    def __init__(self, *names: str) -> None:
        self.names = names
        self.lists = 0

    def folders(self, _bucket: str, prefix: str, page: str) -> tuple[list[str], str]:
        self.lists += 1
        rests = [it.removeprefix(prefix) for it in self.names if it.startswith(prefix)]
        below = sorted({f"{prefix}{it.split('/')[0]}/" for it in rests if "/" in it})
        number = int(page or 0)
        more = str(number + 1) if number + 1 < len(below) else ""
        return below[number : number + 1], more

    def begins_any(self, _bucket: str, path: str) -> bool:
        return any(it.startswith(path) for it in self.names)


def _found(answers: Answers) -> str | None:
    ctx = cast("Any", SimpleNamespace(answers=answers))
    return named._of_deployment(ctx, "my-data")


RECORD = "np-deployment/deployment.json"
DATA = ("a/1.tar", "b/c/2.tar", "my-deployment/notes.txt")


@pytest.mark.parametrize("above", ["", "clusters/", "b/", "b/c/d/"])
def test_a_state_is_found_as_deep_as_states_are_looked_for(above: str) -> None:
    assert _found(Answers(*DATA, above + RECORD)) == f"{above}np-deployment/"


def test_a_bucket_without_a_state_has_none() -> None:
    assert _found(Answers(*DATA)) == ""
    assert _found(Answers(*DATA, f"a/b/c/d/{RECORD}")) == ""


def test_what_is_not_looked_at_is_not_called_empty() -> None:
    many = Answers(*(f"f{number}/x" for number in range(1000)))
    assert _found(many) is None
    assert many.lists == named._MOST
