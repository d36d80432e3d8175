"""The commit of a folder, of real repositories, some of which want to run something."""

import subprocess
from pathlib import Path

import pytest

from provision.files import commit


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with one commit."""
    _git(tmp_path, "init", "--quiet")
    (tmp_path / "src").mkdir()
    (tmp_path / "src/train.py").write_text("print(1)\n")
    (tmp_path / ".gitattributes").write_text("* filter=own\n")
    _git(tmp_path, "add", "--all")
    who = ("-c", "user.name=a", "-c", "user.email=a@b")
    _git(tmp_path, *who, "commit", "--quiet", "--message", "first")
    return tmp_path


def _git(folder: Path, *words: str) -> str:
    done = subprocess.run(
        ["git", *words],  # noqa: S607 - the system's own
        cwd=folder, check=True, capture_output=True, text=True,
    )  # fmt: skip
    return done.stdout.strip()


def test_a_folder_is_of_its_commit_and_dirty_where_it_has_more_or_else(repository: Path) -> None:
    head = _git(repository, "rev-parse", "HEAD")
    assert commit.of(repository) == commit.of(repository / "src") == head
    (repository / "notes.txt").write_text("")
    assert commit.of(repository) == f"{head}-dirty"
    assert commit.of(repository / "src") == head, "only the folder itself is meant"
    (repository / "src/train.py").write_text("print(2)\n")
    _git(repository, "add", "src")
    assert commit.of(repository / "src") == f"{head}-dirty"


def test_what_is_no_repository_or_has_no_commit_has_none(tmp_path: Path) -> None:
    assert commit.of(tmp_path) == ""
    _git(tmp_path, "init", "--quiet")
    assert commit.of(tmp_path) == ""


@pytest.mark.parametrize(
    "own", ["core.fsmonitor", "filter.own.clean", "filter.own.process", "include.path"]
)
def test_nothing_is_run_that_the_repository_names(
    repository: Path, own: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    trace, program = elsewhere / "trace", elsewhere / "program"
    program.write_text(f"#!/bin/sh\ntouch {trace}\ncat\n")
    program.chmod(0o755)
    if own == "include.path":
        (elsewhere / "config").write_text(f'[filter "own"]\n\tclean = {program}\n')
        program = elsewhere / "config"
    _git(repository, "config", own, str(program))
    (repository / "src/train.py").write_text("print(2)\n")
    assert commit.of(repository).endswith("-dirty")
    assert not trace.exists()
    _git(repository, "status")
    assert trace.exists(), "git itself would have run it"
