"""Jobs whose programs a rehearsal really runs, on this machine: --rehearse=run-programs."""

import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from rehearsal.cloud import real_programs
from rehearsal.cloud.facts import bandwidths
from tests.runs.conftest import Ended, Rehearsal, Rehearse
from tests.waiting import until

MEETS = """\
import json, os, socket, sys, time
rank, number = int(os.environ["NODE_RANK"]), int(os.environ["NNODES"])
place = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
print(json.dumps(sorted(os.environ)), flush=True)
if rank == 0:
    server = socket.create_server(place)
    print("rank", rank, "of", number, "met", server.accept()[0].recv(9).decode())
else:
    for _ in range(100):
        try:
            link = socket.create_connection(place)
            break
        except OSError:
            time.sleep(0.05)
    link.send(b"rank 1")
    print("rank", rank, "gives up")
    sys.exit(int(sys.argv[1]))
"""
WAITS = "import os, time\nprint('pid', os.getpid(), flush=True)\ntime.sleep(100)\n"


@pytest.fixture
def run(standing: Rehearse, tmp_path: Path) -> Callable[..., Ended]:
    """Run a program on two VMs; its text, options, and arguments."""
    rehearsal: Rehearsal = standing({"INSTANCE_COUNT": "2"}, scenario="run-programs")
    rehearsal.settings["INSTANCE_COUNT"] = "2"
    folder = tmp_path / "code"
    folder.mkdir()

    def begin(text: str, *words: str, options: tuple[str, ...] = ()) -> Ended:
        (folder / "train.py").write_text(text)
        command = ("--", "python3", "train.py", *words)
        return rehearsal.run("Run", f"--copy={folder}", *options, behind=command)

    begin.rehearsal = rehearsal  # type: ignore[attr-defined]
    return begin


def test_programs_of_two_nodes_meet_and_know_nothing_of_the_caller(
    run: Callable[..., Ended], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HF_TOKEN", "secret")
    ended = run(MEETS, "0", options=("--env=LR=3",))
    assert ended.code == 0, ended.said
    (job,) = ended.document["jobs"]
    assert (job["state"], job["why"]) == ("succeeded", "")
    assert "rank 0 of 2 met rank 1" in ended.said
    assert "python3 train.py 0 runs on this machine, without GPUs" in ended.said
    names = json.loads(next(line for line in ended.said.splitlines() if line.startswith("[")))
    assert {"PATH", "HOME", "LR", "NNODES", "PET_NODE_RANK", "CUDA_VISIBLE_DEVICES"} <= set(names)
    assert not {"HF_TOKEN", "CLOUD_CLOCK_RATE", "PYTHONPATH"} & set(names)
    logs = run.rehearsal.run("Logs", "--rank=1", behind=("train-1",))  # type: ignore[attr-defined]
    assert "rank 1 gives up" in logs.said
    written = tmp_path / "jobs/np-deployment/train-1/1/folder/out.txt"
    written.write_text("of rank 1")
    to = ("train-1", "out.txt", str(tmp_path / "here"))
    fetched = run.rehearsal.run("Fetch", "--rank=1", behind=to)  # type: ignore[attr-defined]
    assert fetched.code == 0, fetched.said
    assert (tmp_path / "here/out.txt").read_text() == "of rank 1"


def test_the_node_that_fails_and_its_exit_code_are_the_programs_own(
    run: Callable[..., Ended],
) -> None:
    ended = run(MEETS, "7")
    assert ended.code == 8, ended.said
    assert "exit code 7, first on" in ended.problem["what"]
    assert "(rank 1)" in ended.problem["what"]
    assert "rank 1 gives up" in ended.problem["why"]


def test_a_program_is_ended_by_cancel_and_with_the_cloud(
    run: Callable[..., Ended], monkeypatch: pytest.MonkeyPatch
) -> None:
    rehearsal: Rehearsal = run.rehearsal  # type: ignore[attr-defined]

    def pids() -> list[str]:
        said = rehearsal.run("Logs", "--rank=all", behind=(name,)).said
        return [line.split()[-1] for line in said.splitlines() if " pid " in line]

    name = "train-1"
    assert run(WAITS, options=("--detach",)).code == 0
    until(lambda: len(pids()) == 2, pids)
    first, second = pids()
    assert Path("/proc", first).exists()
    with monkeypatch.context() as elsewhere:  # as another process, which knows of none of it
        elsewhere.setattr(real_programs, "_ATTEMPTS", {})
        elsewhere.setattr(real_programs, "_LOCKS", {})
        (job,) = rehearsal.run("Jobs", behind=(name,)).document["jobs"]
        assert job["state"] == "running", job
    assert Path("/proc", first).exists()
    assert rehearsal.run("Cancel", "--yes", behind=(name,)).code == 0
    until(lambda: not Path("/proc", first).exists() and not Path("/proc", second).exists(), pids)
    assert rehearsal.run("Jobs", behind=(name,)).document["jobs"][0]["state"] == "cancelled"

    name = "train-2"
    assert run(WAITS, options=("--detach",)).code == 0
    until(lambda: len(pids()) == 2, pids)
    real_programs.end()
    (job,) = rehearsal.run("Jobs", behind=(name,)).document["jobs"]
    assert job["state"] == "failed"
    assert real_programs.GONE in job["failure"]["cause"]


def test_a_job_goes_on_in_its_time_whatever_a_rehearsal_presumes(
    standing: Rehearse, tmp_path: Path
) -> None:
    rehearsal = standing(rate=0.02)
    folder = tmp_path / "code"
    folder.mkdir()
    command = ("--", "sleep", "100000")
    ended = rehearsal.run("Run", f"--copy={folder}", "--detach", behind=command)
    assert ended.code == 0, ended.said

    def state() -> object:
        (job,) = rehearsal.run("Jobs", behind=("sleep-1",)).document["jobs"]
        return job["state"]

    rehearsal.settings["GCS_MOUNT_LIST"] = "my-data:/mnt/data"
    until(lambda: state() == "running", state)
    time.sleep(bandwidths.HEARING * 0.02)
    rehearsal.presume()
    assert state() == "running"
