"""A lock is called stale only when its holder is provably dead."""

import dataclasses
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest

from provision.errors import StateError
from provision.state import liveness
from provision.state.folder import StateFolder
from provision.state.liveness import Machine, Note, Presence
from provision.terraform.lock import Lock


class Folder:
    """A state folder in memory."""

    def __init__(self) -> None:
        self.files: dict[str, str] = {}
        self.held: Lock | None = None

    def write(self, name: str, text: str, _content_type: str) -> None:
        self.files[name] = text

    def texts(self, prefix: str) -> dict[str, str]:
        return {name: text for name, text in self.files.items() if name.startswith(prefix)}

    def remove(self, name: str) -> None:
        del self.files[name]

    def lock(self) -> Lock | None:
        return self.held

    @property
    def as_folder(self) -> StateFolder:
        return cast("StateFolder", self)


HERE = Machine(host="here", boot="boot-1", files="mnt:[1]")


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch) -> Folder:
    monkeypatch.setattr(Machine, "here", lambda: HERE)
    return Folder()


def _lock(own_id: str = "1") -> Lock:
    return Lock("gs://b/lock", "Create", "ann@here", "2026-11-21", own_id)


def _is_stale(folder: Folder, lock: Lock) -> bool:
    return liveness.is_stale(folder.as_folder, lock)


def _note(folder: Folder, file: Path, **elsewhere: str) -> None:
    machine = dataclasses.replace(HERE, **elsewhere)
    folder.write(
        "runs/dead.json", Note(machine=machine, alive=str(file), lock_id="1").document(), ""
    )


def _left_behind(folder: Folder, tmp_path: Path, **elsewhere: str) -> None:
    """What a run leaves behind that was killed: its note, and its file with nobody's lock."""
    file = tmp_path / "alive"
    file.touch()
    _note(folder, file, **elsewhere)


def test_a_run_that_was_killed_here_or_whose_folder_is_gone_is_over(
    folder: Folder, tmp_path: Path
) -> None:
    assert not _is_stale(folder, _lock()), "without any note of a run"
    _left_behind(folder, tmp_path)
    assert _is_stale(folder, _lock())
    # A lock that the dead run did not take, as that of a Terraform that somebody runs by hand.
    assert not any(_is_stale(folder, _lock(own_id)) for own_id in ("2", "", "unknown"))
    _note(folder, tmp_path / "gone" / "alive")
    assert _is_stale(folder, _lock())
    # A file that may not be opened proves nothing.
    (tmp_path / "file").touch()
    _note(folder, tmp_path / "file" / "alive")
    assert not _is_stale(folder, _lock())


@pytest.mark.parametrize(
    "elsewhere", [{"boot": "boot-2"}, {"files": "mnt:[2]"}], ids=["other start", "other container"]
)
def test_what_is_on_another_machine_of_that_name_can_not_be_known(
    folder: Folder, tmp_path: Path, elsewhere: dict[str, str]
) -> None:
    _left_behind(folder, tmp_path, **elsewhere)
    assert not _is_stale(folder, _lock())


@pytest.mark.parametrize("name", ["boot", "files"])
def test_without_ids_a_missing_file_proves_nothing_but_a_free_one_does(
    folder: Folder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    unknown = dataclasses.replace(HERE, **{name: ""})
    monkeypatch.setattr(Machine, "here", lambda: unknown)
    _note(folder, tmp_path / "gone", **{name: ""})
    assert not _is_stale(folder, _lock())
    _left_behind(folder, tmp_path, **{name: ""})
    assert _is_stale(folder, _lock())


def test_notes_of_runs_that_hold_other_locks_have_no_say(folder: Folder, tmp_path: Path) -> None:
    _left_behind(folder, tmp_path)
    folder.files["runs/other.json"] = "{}"
    elsewhere = dataclasses.replace(HERE, host="laptop")
    note = Note(machine=elsewhere, alive="/nowhere/alive", lock_id="2")
    folder.write("runs/elsewhere.json", note.document(), "")
    assert _is_stale(folder, _lock())


def test_while_one_process_of_a_run_lives_it_is_not_over(folder: Folder, tmp_path: Path) -> None:
    """The tool is dead, and Terraform, which has inherited the file, is not."""
    with liveness.announced(folder.as_folder, tmp_path) as run:
        child = _child_with(run.alive)
        left = dict(folder.files)
    folder.files = left
    try:
        assert not _is_stale(folder, _lock(run.lock_id))
    finally:
        child.communicate()
    assert _is_stale(folder, _lock(run.lock_id))


def _child_with(descriptor: int) -> subprocess.Popen[bytes]:
    """A process that has the descriptor, and ends when its stdin does."""
    return subprocess.Popen(
        [sys.executable, "-c", "import sys; sys.stdin.read()"],
        stdin=subprocess.PIPE,
        pass_fds=(descriptor,),
    )


def test_a_run_takes_its_note_away_and_those_of_dead_ones(folder: Folder, tmp_path: Path) -> None:
    _note(folder, tmp_path / "gone" / "alive")
    _other(folder)
    with liveness.announced(folder.as_folder, tmp_path):
        assert len(folder.files) == 3
    assert set(folder.files) == {"runs/other.json"}


def _other(folder: Folder) -> None:
    other = Note(
        machine=dataclasses.replace(HERE, boot="boot-2"), alive="/nowhere/alive", lock_id="3"
    )
    folder.write("runs/other.json", other.document(), "")


def _fail(folder: Folder, root: Path, meanwhile: Callable[[Presence], None]) -> None:
    """A run that fails, after something has happened to it."""

    def run() -> None:
        with liveness.announced(folder.as_folder, root) as presence:
            meanwhile(presence)
            raise RuntimeError

    with pytest.raises(RuntimeError):
        run()


@pytest.mark.parametrize(("lock", "stays"), [("none", False), ("another", False), ("own", True)])
def test_the_note_of_a_run_that_failed_stays_while_it_has_the_lock(
    folder: Folder, tmp_path: Path, lock: str, stays: object
) -> None:
    def meets(run: Presence) -> None:
        folder.held = {"none": None, "another": _lock(), "own": _lock(run.lock_id)}[lock]

    _fail(folder, tmp_path, meets)
    assert bool(folder.files) is stays


def test_a_run_that_lost_track_of_its_terraform_leaves_word_for_the_next_one(
    folder: Folder, tmp_path: Path
) -> None:
    roots = [tmp_path / name for name in ("first", "second", "third")]
    for root in roots:
        root.mkdir()

    def loses_track(run: Presence) -> None:
        run.has_lost_track = True

    _fail(folder, roots[0], loses_track)
    with liveness.announced(folder.as_folder, roots[1]) as after:
        assert after.follows_dead
    assert folder.files == {}
    with liveness.announced(folder.as_folder, roots[2]) as later:
        assert not later.follows_dead


def test_a_note_that_can_not_be_removed_changes_nothing_about_how_a_run_ended(
    folder: Folder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> None:
        raise StateError("not now")

    with liveness.announced(folder.as_folder, tmp_path):
        monkeypatch.setattr(folder, "texts", refuse)
        monkeypatch.setattr(folder, "remove", refuse)
    monkeypatch.undo()
    (tmp_path / "alive").unlink()
    _fail(folder, tmp_path, lambda _: monkeypatch.setattr(folder, "lock", refuse))


def test_the_descriptor_is_for_those_alone_to_whom_it_is_given(
    folder: Folder, tmp_path: Path
) -> None:
    with liveness.announced(folder.as_folder, tmp_path) as run:
        assert not os.get_inheritable(run.alive)
