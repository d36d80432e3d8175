"""What a VM removes before a job gets its folder, and what it keeps."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from aiinfra_vm import disk_health, job_room, jobs
from aiinfra_vm.jobs import Course, State

DAY = 86_400.0
# Each has a folder: how its job ended, and how many days ago.
JOBS = {
    "done-1": (State.SUCCEEDED, 2),
    "old-1": (State.CANCELLED, 9),
    "failed-1": (State.FAILED, 30),
    "failed-2": (State.FAILED, 5),
    "today-1": (State.SUCCEEDED, 0.5),
    "on-1": (State.RUNNING, 20),
}


class Folder:
    """That of the VMs."""

    def read(self, name: str) -> Any:
        found = {jobs.course_of(it): about for it, about in JOBS.items()}.get(name)
        if found is None:
            return None
        state, days = found
        course = Course(name.split("/")[1], state, since=time.time() - days * DAY)
        return json.dumps(course.document()).encode(), 1


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folders of jobs, each of which has ten percent of the disk."""
    there = tmp_path / "jobs"
    for name in (*JOBS, "unknown-1"):
        (there / name).mkdir(parents=True)

    def percent(_: object) -> int:
        every = [
            *there.iterdir(),
            *(it.parent for it in (tmp_path / job_room.PACKAGES).glob("*/made")),
        ]
        return 20 + 10 * sum(it.is_dir() for it in every)

    monkeypatch.setattr(disk_health, "percent", percent)
    return there


def _environment(home: Path, name: str, days: float) -> Path:
    made = home.parent / job_room.PACKAGES / name / "made"
    made.parent.mkdir(parents=True)
    made.touch()
    os.utime(made, (0, time.time() - days * DAY))
    return made.parent


def _made(home: Path) -> list[str]:
    # One that was never finished, and a lock of another, stand in nobody's way.
    (home.parent / job_room.PACKAGES / "0-half").mkdir(parents=True, exist_ok=True)
    (home.parent / job_room.PACKAGES / "0.lock").touch()
    went = job_room.make(home, home.parent, Folder(), os.getpid)  # type: ignore[arg-type]
    return [it.partition(": ")[2] for it in went]


def test_a_disk_with_room_keeps_all(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk_health, "percent", lambda _: job_room.FULL - 1)
    _environment(home, "a", 90)
    assert _made(home) == []
    assert _made(home / "none") == []


def test_the_oldest_go_first_and_failed_ones_last_until_there_is_room(home: Path) -> None:
    assert _made(home) == ["the folder of old-1, which ended 9.0 days ago",
                           "the folder of done-1, which ended 2.0 days ago"]  # fmt: skip
    assert (home / "old-1.gone").read_text() == (
        "the VM removed the folder of old-1: its disk was 90 % full\n"
    )
    for name in ("more-1", "more-2", "more-3", "more-4"):
        (home / name).mkdir()
    assert [it.split()[3] for it in _made(home)] == ["failed-1,", "failed-2,"]
    # What is young, runs, or is known to nobody stays, though the disk is full.
    assert {"today-1", "on-1", "unknown-1"} < {it.name for it in home.iterdir()}


def test_environments_that_no_process_uses_go_before_any_folder(home: Path) -> None:
    idle, used, new = (_environment(home, *it) for it in (("a", 3), ("b", 3), ("c", 0.5)))
    job = [sys.executable, "-c", "print(1, flush=True); input()"]
    with subprocess.Popen(
        job, env={"VIRTUAL_ENV": str(used)}, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as running:
        assert running.stdout
        running.stdout.readline()
        went = _made(home)
        running.communicate()
    assert went[0] == "an environment of packages that no job has used for 3.0 days"
    assert [it.exists() for it in (idle, used, new)] == [False, True, True]
    assert len(went) == 5, went


def test_a_folder_in_which_a_program_has_its_home_stays_whatever_is_said_of_its_job(
    home: Path,
) -> None:
    job = [sys.executable, "-c", "print(1, flush=True); input()"]
    with subprocess.Popen(
        job, env={"HOME": f"{home}/old-1/.home"}, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as running:
        assert running.stdout
        running.stdout.readline()
        went = _made(home)
        running.communicate()
    assert [it.split()[3] for it in went] == ["done-1,", "failed-1,"]
    assert (home / "old-1").is_dir()


def test_what_the_user_of_a_job_may_not_remove_is_not_said_to_be_gone(home: Path) -> None:
    idle = _environment(home, "a", 3)
    idle.chmod(0o500)
    idle.parent.chmod(0o500)

    def become() -> None:
        if os.geteuid() == 0:
            os.setuid(65534)

    went = job_room.make(home, home.parent, Folder(), become)  # type: ignore[arg-type]
    idle.parent.chmod(0o700)
    idle.chmod(0o700)
    assert [it.partition(": ")[2].split()[3] for it in went] == ["old-1,", "done-1,", "failed-1,"]
    assert (idle / "made").exists()


_MOUNTED = """
import os, pathlib, subprocess, sys
from tests.unit.vm import test_job_room as own
there = pathlib.Path(sys.argv[1])
subprocess.run(["mount", "-t", "tmpfs", "bucket", there / "old-1/data"], check=True)
(there / "old-1/data/kept").touch()
own.disk_health.percent = lambda _: 90
print(own.job_room.make(there, there.parent, own.Folder(), os.getpid))
print((there / "old-1/data/kept").exists())
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="root alone mounts")
def test_what_somebody_has_mounted_in_a_folder_stays(home: Path) -> None:
    (home / "old-1/data").mkdir()
    (home / "old-1/model.pt").touch()
    path = os.pathsep.join(sys.path)
    done = subprocess.run(
        ["/usr/bin/unshare", "--mount", sys.executable, "-c", _MOUNTED, home],
        env={**os.environ, "PYTHONPATH": path}, stdout=subprocess.PIPE, text=True, check=True,
    )  # fmt: skip
    went, is_kept = done.stdout.splitlines()
    assert is_kept == "True"
    assert "the folder of done-1" in went
    assert "old-1" not in went
    assert not (home / "old-1/model.pt").exists()


def test_a_folder_at_which_nobody_may_look_keeps_no_other_one_from_going(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    look, removed = Path.stat, subprocess.run

    def stat(path: Path, **how: Any) -> os.stat_result:
        if path.name == "old-1":  # as a mount by FUSE does to root
            raise PermissionError(path)
        return look(path, **how)

    def run(command: list[str], **how: Any) -> Any:
        return None if command[-1].endswith("/old-1") else removed(command, **how)

    monkeypatch.setattr(Path, "stat", stat)
    monkeypatch.setattr(subprocess, "run", run)
    monkeypatch.setattr(disk_health, "percent", lambda _: 90)
    went = job_room.make(home, home.parent, Folder(), os.getpid)  # type: ignore[arg-type]

    assert "done-1" in " ".join(went)
    assert not (home / "done-1").exists()
    assert not (home / "old-1.gone").exists()
