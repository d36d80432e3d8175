"""Each story of `examples/`: Create, Status, Create again without changes, Destroy to nothing."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import requests
from dotenv import dotenv_values

from rehearsal.inventory import stays

if TYPE_CHECKING:
    from tests.runs.conftest import Rehearsal

EXAMPLES = Path(__file__).parents[2] / "examples"
STORIES = sorted(path for path in EXAMPLES.glob("*.list") if "gke" not in path.name)
QUICK = {"env", "a3-mega", "flex-start-h100", "ray-gcs-filestore"}
"""The least that can be asked for, networks of GPUs, a queue, and mounts with Ray."""
SLOW = pytest.mark.slow(sibling="tests/runs/test_examples.py::test_a_story_comes_stays_and_goes")
NOTHING = {"add": 0, "change": 0, "destroy": 0}


def _name(path: Path) -> str:
    return path.name.partition(".")[0]


def _settings(path: Path) -> dict[str, str]:
    return {name: value for name, value in dotenv_values(path).items() if value}


def _make_buckets(rehearsal: Rehearsal) -> None:
    """Make the buckets that the story takes for granted."""
    endpoint = rehearsal.environ["GOOGLE_STORAGE_CUSTOM_ENDPOINT"]
    mounts = rehearsal.settings.get("GCS_MOUNT_LIST", "").split(",")
    state = rehearsal.settings.get("TERRAFORM_GCS_PATH", "").removeprefix("gs://").split("/")[0]
    for name in filter(None, [state, *(mount.partition(":")[0].strip() for mount in mounts)]):
        answer = requests.post(
            f"{endpoint}b?project=my-project",
            json={"name": name, "location": "us-central1"},
            headers={"Authorization": "Bearer test"},
            timeout=10,
        )
        assert answer.ok, answer.text


def _make_reservation(rehearsal: Rehearsal) -> None:
    """Make the reservation that the story takes for granted."""
    asked = rehearsal.settings
    if "RESERVATION_NAME" in asked:
        count = int(asked["INSTANCE_COUNT"])
        rehearsal.reserve(asked["RESERVATION_NAME"], asked["VM_TYPE"], count, asked["ZONE"])


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, id=_name(path), marks=[] if _name(path) in QUICK else [SLOW])
        for path in STORIES
    ],
)
def test_a_story_comes_stays_and_goes(rehearsal: Rehearsal, path: Path) -> None:
    rehearsal.settings = _settings(path)
    _make_buckets(rehearsal)
    _make_reservation(rehearsal)
    before = rehearsal.resources()
    count = int(rehearsal.settings.get("INSTANCE_COUNT", "1"))

    created = rehearsal.run("Create")
    assert created.code == 0, created.said
    assert len(created.document["connection"]["vms"]) == count

    asked = len(rehearsal.requests())
    status = rehearsal.run("Status")
    assert status.code == 0, status.said
    assert rehearsal.writes(since=asked) == []
    vms = status.document["status"]["vms"]
    assert [(vm["status"], vm["startup"]["state"]) for vm in vms] == count * [("RUNNING", "done")]

    again = rehearsal.run("Create")
    assert again.code == 0, again.said
    assert again.document["changes"] == NOTHING
    assert "No changes" in again.said

    destroyed = rehearsal.run("Destroy")
    assert destroyed.code == 0, destroyed.said
    left = [line for line in rehearsal.resources() if not (stays(line) or "/logs/" in line)]
    assert left == [line for line in before if not stays(line)]
