"""What the one door to a deployment's folder lets through."""

import dataclasses
import json

import pytest

from provision.codes import Code
from provision.documents import json_object
from provision.errors import StateError
from provision.state import objects
from provision.state.objects import Stored, Writer
from tests.unit.kinds.cases import problem_of
from tests.unit.memory_folder import MemoryFolder

FACTS = Stored("facts/{}.json", Writer.PROGRAM, json_object.read, fix="make {url} again")
TOLD = dataclasses.replace(FACTS, writer=Writer.MACHINES, parse=objects.said)
GOOD = '{"a": 1}'


def test_an_object_is_read_as_its_type_and_none_is_nothing() -> None:
    folder = MemoryFolder({"facts/x.json": GOOD, "facts/y.json": GOOD})

    assert folder.read(FACTS, "x") == {"a": 1}
    assert folder.read(FACTS, "z") is None
    assert folder.all(FACTS) == {"x": {"a": 1}, "y": {"a": 1}}


@pytest.mark.parametrize("content", ["", "[]", "{", b"\xff"], ids=repr)
def test_a_damaged_object_is_refused_with_what_mends_it_or_says_nothing(
    content: str | bytes,
) -> None:
    folder = MemoryFolder({"facts/x.json": content})

    problem = problem_of(StateError, folder.read, FACTS, "x")
    url = "gs://b/np-deployment/facts/x.json"
    assert problem.what == f"{url} can't be read"
    assert (problem.code, problem.fix) == (Code.STATE_UNREADABLE, f"make {url} again")
    assert folder.read(TOLD, "x") == {}


def test_no_more_is_read_of_an_object_than_its_type_can_have() -> None:
    """Whoever may write there may write a terabyte."""
    folder = MemoryFolder({"facts/x.json": json.dumps({"a": "x" * 100})})

    with pytest.raises(StateError) as caught:
        folder.read(dataclasses.replace(FACTS, largest=100), "x")
    assert caught.value.problems[0].why == "it has more than 100 bytes"
    assert folder.read(dataclasses.replace(TOLD, largest=100), "x") == {}
    assert folder.read(dataclasses.replace(FACTS, largest=109), "x") == {"a": "x" * 100}


def test_only_so_many_objects_of_a_form_are_looked_at_and_none_of_another_form() -> None:
    names = ["facts/a.json", "facts/b.json", "facts/b/c.json", "facts/.json", "facts/c.txt"]
    folder = MemoryFolder(dict.fromkeys([*names, "facts/\x1b[2J.json"], GOOD))

    assert folder.names(FACTS) == ["a", "b"]
    assert folder.names(FACTS, first="b") == ["b"]
    assert folder.names(dataclasses.replace(FACTS, most=1)) == ["a"]
    assert set(folder.changed(FACTS)) == set(folder.created(FACTS)) == {"a", "b"}


@pytest.mark.parametrize("part", ["", "..", "a/b", "../../other-deployment/cluster", "\x00"])
def test_no_part_of_a_name_leads_elsewhere(part: str) -> None:
    folder = MemoryFolder({f"facts/{part}.json": GOOD})

    assert folder.read(FACTS, part) is None
    assert not folder.looked


def test_a_change_gets_what_is_there_as_its_type_and_nothing_that_is_spoiled() -> None:
    index = Stored("index.json", Writer.PROGRAM, objects.said)
    folder = MemoryFolder({"index.json": GOOD})

    folder.change(index, lambda found: json.dumps({"was": found}), "application/json")
    assert folder.read(index) == {"was": {"a": 1}}
    folder.files["index.json"] = "["
    folder.change(index, lambda found: json.dumps({"was": found}), "application/json")
    assert folder.read(index) == {"was": {}}
