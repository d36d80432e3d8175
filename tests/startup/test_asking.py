"""What Test and Run ask, real agents of VMs do: both ends, on the simulated Cloud Storage."""

import json
import os
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import cast

import pytest
from google.oauth2.credentials import Credentials

from provision.documents.job import Job, JobState
from provision.documents.timeline import StageName
from provision.files import archive as files
from provision.kinds.vms import agent
from provision.kinds.vms import jobs as vm_jobs
from provision.spec.job import JobSpec
from provision.state.folder import StateFolder
from provision.state.location import Place, StateLocation
from provision.time.clock import Clock
from provision.time.stages import Progress
from tests.startup import test_agents
from tests.startup.sandbox import PAYLOAD
from tests.startup.test_agents import BUCKET, FOLDER, State, Vm, boot, state
from tests.startup.test_jobs import World

__all__ = ["boot", "state"]  # the fixtures

GPU = "GPU-0, Tesla T4, 580.95.05, 0, 0, No"


class _Place:
    """The place of the deployment."""

    project_id, region, zone, name_prefix = "rehearsal-host", "us-central1", "us-central1-a", "np"


@pytest.fixture
def folder(state: State) -> StateFolder:
    """The state folder, as the program has it."""
    return StateFolder(
        StateLocation(BUCKET, FOLDER, is_default=False),
        cast("Place", _Place()),
        Credentials("token"),
        {"GOOGLE_STORAGE_CUSTOM_ENDPOINT": state.url},
    )


@pytest.fixture(autouse=True)
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a VM's programs are, and a driver that answers."""
    place = tmp_path / "programs"
    shutil.copytree(PAYLOAD / "lib", place / "lib", ignore=shutil.ignore_patterns("__pycache__"))
    (place / "config.json").write_text(json.dumps({"fabric": None}))
    smi = tmp_path / "bin/nvidia-smi"
    smi.parent.mkdir()
    smi.write_text(f"#!/bin/sh\ncase $1 in --query-gpu=*) echo '{GPU}';; *) exit 2;; esac\n")
    smi.chmod(0o755)
    monkeypatch.setenv("PATH", f"{smi.parent}:{os.environ['PATH']}")


def _ask(
    folder: StateFolder, kind: str, vms: dict[str, str], seconds: int = 600
) -> dict[str, agent.Answer]:
    # A hundredth of the time, as the agents have it.
    progress = Progress(Clock(0.01), lambda _: None)
    with progress.stage(StageName.TEST) as stage:
        return agent.ask(folder, stage, kind, {}, vms=vms, seconds=seconds)


def test_every_vm_checks_itself_and_answers_and_the_folder_is_left_clean(
    state: State,
    folder: StateFolder,
    boot: Callable[..., Vm],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "programs/lib"))
    for name in ("vm-1", "vm-2"):
        boot(name)
    answers = _ask(folder, "check", {"vm-1": "1", "vm-2": "1"})
    assert {name: (it.state, it.failure) for name, it in answers.items()} == {
        "vm-1": ("done", ""),
        "vm-2": ("done", ""),
    }
    assert [gpu["name"] for gpu in answers["vm-1"].answer["gpus"]] == ["Tesla T4"]
    assert not [name for name in state.names() if "task" in name or "results" in name]


def test_who_was_made_again_says_nothing_and_what_is_unknown_is_refused(
    folder: StateFolder, boot: Callable[..., Vm]
) -> None:
    boot("vm-1", 2)
    assert _ask(folder, "check", {"vm-1": "1"})["vm-1"].failure == "does not answer"
    answer = _ask(folder, "shell", {"vm-1": "2"})["vm-1"]
    assert answer.failure.startswith("does not know what it was asked for")


def test_what_run_submits_the_agents_run_and_what_it_says_comes_back_whole(
    state: State, folder: StateFolder, tmp_path: Path
) -> None:
    world = World(tmp_path / "world", state)
    try:
        world.group("vm-1", "vm-2")
        code = tmp_path / "code"
        code.mkdir()
        (code / "count.sh").write_text("for it in $(seq 100000); do echo $GREETING $it; done\n")
        archive = files.pack(code, tmp_path)
        jobs = vm_jobs.VmJobs(folder, Clock())
        command = ("bash", "count.sh")
        name = jobs.submit(JobSpec(name="count", command=command, env={"GREETING": "hej"}), archive)
        done = _over(jobs, name)

        assert (name, done.state, done.machines) == (
            "count-1",
            JobState.SUCCEEDED,
            ("vm-1", "vm-2"),
        )
        pieces = list(jobs.log(done, 1, 0, 0))
        said = b"".join(piece for _, piece in pieces)
        assert [begins for begins, _ in pieces][1:] == [
            sum(len(it) for _, it in pieces[:number]) for number in range(1, len(pieces))
        ]
        assert said.decode().splitlines() == [f"hej {it}" for it in range(1, 100_001)]
        (_, last) = pieces[-1]
        assert list(jobs.log(done, 1, 0, len(said) - len(last))) == [pieces[-1]]

        # Two at the same moment get names and places of their own.
        again = JobSpec(name="count", command=("sleep", "900"))
        with ThreadPoolExecutor(4) as pool:
            names = list(pool.map(lambda _: jobs.submit(again, None), range(4)))
        assert sorted(names) == [f"count-{number}" for number in range(2, 6)]
        for waiting in jobs.names()[1:]:
            jobs.cancel(cast("Job", jobs.find(waiting)))
        assert {_over(jobs, it).state for it in names} == {JobState.CANCELLED}
        assert folder.read(vm_jobs.INDEX)
        assert jobs.submit(again, None) == "count-6"
        (left,) = folder.read(vm_jobs.INDEX) or [{}]
        assert left == {"name": "count-6", "cancelled": False}, "those that are over are out"
    finally:
        world.close()


def _over(jobs: vm_jobs.VmJobs, name: str) -> Job:
    """A job once it is over."""
    test_agents._wait(lambda: cast("Job", jobs.find(name)).state.is_over)
    return cast("Job", jobs.find(name))
