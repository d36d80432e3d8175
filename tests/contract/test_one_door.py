"""What lies in the state's bucket is read by its type, through one door.

Whoever may write to the bucket may have changed it. Each document that was read past the types was
one that somebody forgot: one of them sent the access token to a host that it named.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Final

import pytest

from provision.state import location
from provision.state.objects import Stored, Writer
from tests import stored

ROOT: Final = Path(__file__).parents[2]
TREES: Final = {
    path.relative_to(ROOT).as_posix(): ast.parse(path.read_text(encoding="utf-8"))
    for path in sorted((ROOT / "provision").rglob("*.py"))
}
DOOR: Final = "provision/state/folder.py"
IN_PODS: Final = "provision/kinds/gke/kubernetes/job_attendant.py"
"""A program of its own, which runs in pods with their rights."""
TYPED: Final = {"read", "change", "lock"}
"""The methods that get a content, and hand out what `_parsed` makes of it."""
WRITTEN: Final = ("vms/", "pods/", "ray/", "{}/")
"""The parts in which machines may write; `jobs/` and `files/` they only read (ADR 54)."""
STORED: Final = stored.found()


def _calls(tree: ast.AST, name: str) -> bool:
    """Whether something of this name is called, of whatever object."""
    found = (it.func for it in ast.walk(tree) if isinstance(it, ast.Call))
    return any(re.fullmatch(name, getattr(it, "attr", getattr(it, "id", ""))) for it in found)


def _names(tree: ast.AST) -> list[str]:
    """The texts of a module, and what it imports."""
    texts = [str(it.value) for it in ast.walk(tree) if isinstance(it, ast.Constant)]
    imports = (it for it in ast.walk(tree) if isinstance(it, ast.ImportFrom | ast.Import))
    return [*texts, *map(ast.unparse, imports)]


def test_no_module_but_the_folders_reads_an_object() -> None:
    others = {path: tree for path, tree in TREES.items() if path not in {DOOR, IN_PODS}}
    past = [
        path
        for path, tree in others.items()
        if _calls(tree, r"download_\w+|get_blob|list_blobs")
        or any("alt=media" in text or "google.cloud" in text for text in _names(tree))
    ]
    assert not past


def test_the_folder_hands_out_no_content_but_as_its_type() -> None:
    methods = [it for it in ast.walk(TREES[DOOR]) if isinstance(it, ast.FunctionDef)]
    assert [it.name for it in methods if _calls(it, r"download_\w+")] == ["_content"]
    getting = {it.name for it in methods if _calls(it, "_content")}
    assert getting == TYPED
    assert all(_calls(it, "_parsed") for it in methods if it.name in getting)


def test_an_object_is_declared_where_a_test_finds_it() -> None:
    hidden = [
        path
        for path, tree in TREES.items()
        for it in tree.body
        if not isinstance(it, ast.Assign | ast.AnnAssign) and _calls(it, "Stored")
    ]
    assert not hidden


@pytest.mark.parametrize("one", STORED.values(), ids=STORED)
def test_who_can_write_an_object_is_who_it_is_said_to_be_of(one: Stored[object]) -> None:
    machines = one.writer is Writer.MACHINES
    assert machines == (one.name.startswith(WRITTEN) and one.writer is not Writer.PEOPLE)
    assert not machines or one.name.startswith((*location.SHARED, "{}/"))
    assert 0 < one.largest <= 2**30
    assert 0 < one.most <= 10**6
