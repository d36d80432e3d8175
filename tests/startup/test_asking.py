"""What Test asks, real agents of VMs do: both ends of a task, on the simulated Cloud Storage."""

from __future__ import annotations

import json
import os
import shutil
from typing import TYPE_CHECKING, cast

import pytest
from google.oauth2.credentials import Credentials

from provision.documents.timeline import StageName
from provision.kinds.vms import tasks
from provision.state.folder import StateFolder
from provision.state.location import StateLocation
from provision.time.clock import Clock
from provision.time.progress import Progress
from tests.startup.sandbox import PAYLOAD
from tests.startup.test_agents import BUCKET, FOLDER, State, Vm, boot, state

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from provision.state.location import Place

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
) -> dict[str, tasks.Answer]:
    # A hundredth of the time, as the agents have it.
    progress = Progress(Clock(0.01), lambda _: None)
    with progress.stage(StageName.TEST) as stage:
        return tasks.ask(folder, stage, kind, {}, vms=vms, seconds=seconds)


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
