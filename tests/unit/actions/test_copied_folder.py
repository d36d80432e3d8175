"""What is said of the folder that travels, and before what."""

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from provision.actions import copied_folder


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder as people have it: an environment, data that git does not see, a link to more."""
    made = tmp_path / "project"
    (made / ".venv" / "bin").mkdir(parents=True)
    (made / ".venv" / "bin" / "python").symlink_to("/usr/bin/python3")
    (made / "data").symlink_to("/mnt/data")
    for name in (".gitignore", "train.py", "a.ckpt", "b.ckpt"):
        (made / name).write_text("*.ckpt\n")
    return made


def _packed(folder: Path, judge: Callable[..., None] = lambda *_: None) -> list[str]:
    said: list[str] = []
    context = SimpleNamespace(copy=folder, console=SimpleNamespace(progress=said.append))
    with copied_folder.packed(cast("Any", context), takes_files=True, judge=judge):
        return said


def test_a_project_folder_travels_without_its_environment_and_each_reason_has_a_line(
    project: Path,
) -> None:
    copied, usual, by_git, links = _packed(project)

    assert copied.startswith("2 files are copied to every VM, ")
    assert usual.startswith(f"Not copied from {project}: .venv/ (histories")
    assert by_git.startswith(f"Not copied from {project}, by .gitignore: a.ckpt, b.ckpt; ")
    assert links.startswith(f"Not copied from {project}: data, links that lead out")


def test_an_empty_folder_and_one_of_which_nothing_travels_are_said(tmp_path: Path) -> None:
    assert _packed(tmp_path) == [f"No file is copied: {tmp_path} is empty"]
    (tmp_path / ".env").write_text("x")
    assert _packed(tmp_path)[0] == f"No file is copied: {tmp_path} has none that travels"


def test_what_is_judged_is_what_travels_and_nothing_is_said_before(project: Path) -> None:
    def judge(entries: dict[str, int], why_not: Callable[[str], tuple[str, str]]) -> None:
        assert set(entries) == {".gitignore", "train.py"}
        assert why_not("train.py") == ("", "")
        for name, fix in {
            "a.ckpt": "an .aiinfraignore, even an empty one, takes the place of .gitignore",
            "data/a": "copy what it leads to",
            ".venv/bin/python": "take it along, by this line in .aiinfraignore, which takes the"
            " place of .gitignore: !/.venv/",
        }.items():
            why, told = why_not(name)
            assert name.partition("/")[0] in why
            assert told == fix
        raise InterruptedError

    with pytest.raises(InterruptedError):
        _packed(project, judge)
