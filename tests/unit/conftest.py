"""Ways to load settings that leave only what a test is about."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

import pytest

from provision.console import Console
from provision.errors import Problem
from provision.intake import Loaded, load
from tests import output_schema

MANDATORY = {"PROJECT_ID": "my-project", "NAME_PREFIX": "np", "ZONE": "us-central1-a"}


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
        return Case(load(MANDATORY | environ))

    return loaded


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
