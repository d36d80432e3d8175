"""Rows of an env.list and what is said of it, as text.

    A=1 B=2    -> A: words | more words    the one problem of A has all these words
    A=1 B=(2|3) ~> A: words                the one note of A has them, for both; no problem
    A=1        -- A, B                     nothing is said of A and B
    A=1        --                          there is no problem
    A=1        -- *                        there is no note either

`@NAME` is a part that several rows have. A line that is indented goes on with the row before. What
stands before `::` is what Google has, see `stand_in.Google.have`.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar, get_type_hints

import pytest
from pydantic import TypeAdapter

from provision.errors import Problem

if TYPE_CHECKING:
    from tests.unit.conftest import Given

T = TypeVar("T")
_ROW = re.compile(
    r"(?:(?P<world>.*) :: ?)?(?P<given>.*?)(?:^|\s)(?P<arrow>->|~>|--)(?:\s+(?P<told>.*))?"
)
_CHOICE = re.compile(r"\(([^()]*\|[^()]*)\)")


@dataclass(frozen=True)
class Row:
    """One env.list, beside the mandatory settings, and what is said of it."""

    environ: Mapping[str, str]
    arrow: str
    told: str
    world: str = ""

    def holds(self, given: Given) -> None:
        loaded = given(**self.environ).loaded
        self.is_said_by(loaded.problems, loaded.notes)

    def is_said_by(self, problems: Sequence[Problem], notes: Sequence[Problem]) -> None:
        if self.arrow == "--" and self.told in {"", "*"}:
            assert not problems
            assert not (self.told and notes), notes
            return
        if self.arrow == "--":
            said = {it.setting for it in (*problems, *notes)}
            assert not set(self.told.split(", ")) & said
            return
        setting, _, words = self.told.partition(": ")
        if self.arrow == "~>":
            assert not problems
        about = [it for it in (problems, notes)[self.arrow == "~>"] if it.setting == setting]
        texts = [f"{it.what}\n{it.why}\n{it.fix}" for it in about]
        assert any(all(part in text for part in words.split(" | ")) for text in texts), texts
        assert len(about) == 1, texts
        assert self.arrow == "~>" or all(it.why and it.fix for it in about)


def lines(table: str, parts: Mapping[str, object] | None = None) -> list[str]:
    """Its lines, each with those that are indented behind it; `@NAME` is a part, if there are."""
    found = re.sub(r"\n +", " ", re.sub(r"(?m)^#.*\n", "", table)).strip().splitlines()
    if parts is None:
        return found
    return [re.sub(r"@([A-Z_]{3,})", lambda part: str(parts[part[1]]), it) for it in found]


def made(type_: type[T], text: str = "", **more: Any) -> T:
    """A document of fields as "name=value", read by their types, and of others as they are."""
    types = get_type_hints(type_)
    fields: dict[str, Any] = dict(it.split("=", 1) for it in shlex.split(text))
    for name, value in fields.items():
        several = str(types[name]).startswith("tuple[")
        fields[name] = TypeAdapter(types[name]).validate_python(
            tuple(value.split(",")) if several else value
        )
    return type_(**fields | more)


def answers(table: str) -> dict[str, list[str]]:
    """What is written -> each of the answers behind an arrow."""
    return {asked: told for asked, *told in (it.split(" -> ") for it in lines(table))}


def rows(table: str, **parts: str) -> pytest.MarkDecorator:
    """Make the cases of a test of its rows."""
    made = [row for line in lines(table) if line for row in _of_line(line, parts)]
    return pytest.mark.parametrize("row", [row for _, row in made], ids=[text for text, _ in made])


def _of_line(line: str, parts: Mapping[str, str]) -> Iterator[tuple[str, Row]]:
    found = _ROW.fullmatch(re.sub(r"@(\w+)", lambda part: parts[part[1]], line))
    assert found is not None, line
    world = found["world"] or ""
    for text in _chosen(found["given"]):
        environ = dict(word.split("=", 1) for word in shlex.split(text))
        yield f"{world} {text}".strip(), Row(environ, found["arrow"], found["told"] or "", world)


def _chosen(text: str) -> Iterator[str]:
    """The texts with each of the choices in it."""
    choice = _CHOICE.search(text)
    if choice is None:
        yield text
        return
    for one in choice[1].split("|"):
        yield from _chosen(text[: choice.start()] + one + text[choice.end() :])
