"""Programs that a rehearsal really runs: their limits, and what is left out."""

import io
import subprocess
import sys
import tarfile
import time
from pathlib import Path

import pytest

from rehearsal.cloud import real_programs
from rehearsal.cloud.real_programs import Attempt, Wanted
from tests.waiting import until


def _attempt(folder: Path, *command: str, archive: bytes | None = None) -> Attempt:
    return Attempt(Wanted("train-1", 1, command, 1, {}, archive), folder)


def _ended(attempt: Attempt) -> Attempt:
    until(lambda: attempt.is_over, lambda: attempt.said, pace=0.01)
    return attempt


def test_a_program_that_runs_for_too_long_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(real_programs, "LONGEST", 0.1)
    began = time.monotonic()
    ended = _ended(_attempt(tmp_path, "sleep", "60"))
    assert time.monotonic() - began < 30
    assert (ended.why, ended.failed, ended.code(0)) == (real_programs.TOO_LONG, None, 143)


@pytest.mark.parametrize(
    ("command", "code"), [(["true"], 0), (["sh", "-c", "exit 9"], 9), (["torchrum"], 127)]
)
def test_exit_codes_are_those_of_a_shell(tmp_path: Path, command: list[str], code: int) -> None:
    ended = _ended(_attempt(tmp_path, *command))
    assert (ended.code(0), ended.failed) == (code, 0 if code else None)


def test_no_packages_are_installed_and_it_says_so(tmp_path: Path) -> None:
    setup = ["bash", "-c", "exit 1", "aiinfra-setup", "a", "b"]
    ended = _ended(_attempt(tmp_path, *setup, "echo", "hello"))
    assert ended.code(0) == 0
    first, second = ended.said[0].decode().splitlines()
    assert "echo hello runs on this machine" in first
    assert first.endswith("with the packages of this machine")
    assert second == "hello"


def test_a_folder_writes_nowhere_else(tmp_path: Path) -> None:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        archive.addfile(tarfile.TarInfo("../../escaped"))
    with pytest.raises(tarfile.TarError):
        _attempt(tmp_path / "job", "true", archive=packed.getvalue())
    assert not list(tmp_path.rglob("escaped"))


@pytest.mark.parametrize(
    ("nodes", "image", "on_ray", "words"),
    [
        (4, "", False, ""),
        (5, "", False, "on 4 nodes at most"),
        (1, "docker.io/a:b", False, "no container"),
        (1, "", True, "and none of Ray"),
    ],
)
def test_what_is_not_run_has_a_reason(nodes: int, image: str, on_ray: bool, words: str) -> None:  # noqa: FBT001 - a row
    found = real_programs.refusal(nodes, image, on_ray=on_ray)
    assert words in found
    assert bool(found) == bool(words)


def test_who_began_programs_is_another_process_as_long_as_it_lives(tmp_path: Path) -> None:
    text = (
        "import pathlib, sys; from rehearsal.cloud import real_programs\n"
        "print(real_programs.owner(pathlib.Path(sys.argv[1])), flush=True); input()"
    )
    mine = real_programs.owner(tmp_path)
    assert not real_programs.is_anothers(tmp_path, mine)
    with subprocess.Popen(
        [sys.executable, "-c", text, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        name = (other.stdout or io.BytesIO()).readline().decode().strip()
        assert real_programs.is_anothers(tmp_path, name)
        other.kill()
    assert not real_programs.is_anothers(tmp_path, name)
    real_programs.end()
    assert not real_programs.is_anothers(tmp_path, mine)


def test_a_task_says_how_many_run_at_a_time_where_a_cluster_would_run_more(tmp_path: Path) -> None:
    task = Wanted("train-1", 1, ["true"], 1, {"JOB_INDEX": "3"}, None)
    (said,) = _ended(Attempt(task, tmp_path)).said
    assert said.endswith(b"without GPUs; of its tasks 4 at a time, whatever has room\n")
