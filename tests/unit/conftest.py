"""Ways to load settings that leave only what a test is about."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

import pytest

from provision.codes import Code
from provision.console import Console
from provision.errors import Problem
from provision.intake import Loaded, load
from provision.spec import cluster
from provision.spec.cluster import VmSpec
from tests import output_schema
from tests.unit import fixes

MANDATORY = {"PROJECT_ID": "my-project", "NAME_PREFIX": "np", "ZONE": "us-central1-a"}


def vm_spec(**environ: str) -> VmSpec:
    """What an env.list asks for that has what is mandatory for VMs, and these."""
    loaded = load(MANDATORY | environ)
    assert loaded.settings is not None, loaded.problems
    return cluster.vms(loaded.settings)


class Case:
    """What became of the mandatory settings and some more."""

    def __init__(self, loaded: Loaded) -> None:
        self.loaded = loaded

    def __getitem__(self, variable: str) -> Any:
        """The effective value of a variable."""
        return self.loaded.effective[variable]

    def private(self, variable: str) -> Any:
        """The value of a variable that is shown nowhere."""
        return getattr(self.loaded.settings, variable.lower())

    def problem(self, setting: str) -> Problem:
        """The one problem about this variable."""
        (found,) = [problem for problem in self.loaded.problems if problem.setting == setting]
        return found

    def note(self, setting: str) -> Problem:
        """The one note about this variable."""
        (found,) = [note for note in self.loaded.notes if note.setting == setting]
        return found

    @property
    def refused(self) -> set[str]:
        """The variables that have a problem."""
        return {problem.setting for problem in self.loaded.problems}

    @property
    def noted(self) -> set[str]:
        """The variables that have a note."""
        return {note.setting for note in self.loaded.notes}


class Given(Protocol):
    """Loads variables of the process environment."""

    def __call__(self, **environ: str) -> Case: ...


class InFile(Protocol):
    """Loads lines of an env file."""

    def __call__(
        self, lines: str | bytes, flags: Mapping[str, str] | None = None, **environ: str
    ) -> Case: ...


@pytest.fixture
def given() -> Given:
    """Load the mandatory settings and these."""

    def loaded(**environ: str) -> Case:
        case = Case(load(MANDATORY | environ))
        _try_fixes(MANDATORY | environ, case.loaded)
        return case

    return loaded


def _try_fixes(environ: Mapping[str, str], loaded: Loaded) -> None:
    """Do what each fix says, as somebody who pastes it: its problem is gone, and it brings none.

    What is left out of an env.list, or has no effect beside what was written, is another line to
    write; and a value that is none has hidden what it contradicts.
    """
    told = loaded.problems or loaded.notes
    for problem in told:
        name, before = problem.setting, {(it.setting, it.what) for it in loaded.problems}
        hides = problem.code in {Code.INVALID_VALUE, Code.UNKNOWN_SETTING, Code.WITHOUT_EFFECT}
        for written, removed in fixes.ways(problem):
            gone = {*removed, *([name] if problem.code is Code.UNKNOWN_SETTING else ())}
            if not environ.keys() >= set(removed):
                continue  # it was meant by another name, which is a problem of its own
            lines = {it: text for it, text in environ.items() if it not in gone} | dict(written)
            after = load(lines)
            left = after.problems if loaded.problems else (*after.problems, *after.notes)
            assert (name, problem.what) not in {(it.setting, it.what) for it in left}, (
                f"{problem.fix} leaves {environ} as it was"
            )
            for it in after.problems:
                is_more = it.code in {Code.MISSING_SETTING, Code.WITHOUT_EFFECT}
                if hides:
                    is_more = is_more or it.setting not in written or it.code is not problem.code
                else:
                    is_more = is_more and it.setting not in written
                assert is_more or (it.setting, it.what) in before, (
                    f"{problem.fix} in {environ} brings: {it.setting} {it.what}"
                )


@pytest.fixture
def in_file(tmp_path: Path) -> InFile:
    """Load an env file of these lines; the environment has the mandatory settings."""

    def loaded(lines: str | bytes, flags: Mapping[str, str] | None = None, **environ: str) -> Case:
        path = tmp_path / "env.list"
        path.write_bytes(lines if isinstance(lines, bytes) else lines.encode())
        return Case(load(MANDATORY | environ, path, flags=flags or {}))

    return loaded


@pytest.fixture(autouse=True)
def _documents_are_as_the_schema_says(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every document that a unit test prints is compared with the schema."""
    printed = Console.document

    def document(self: Console, document: Mapping[str, Any]) -> None:
        output_schema.require(json.loads(json.dumps(document)))
        printed(self, document)

    monkeypatch.setattr(Console, "document", document)
