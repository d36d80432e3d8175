"""What the tests of jobs run: clusters of each kind, a folder, and the lines of commands."""

import time
from pathlib import Path
from typing import Any

import pytest

from tests.runs.conftest import Ended, Rehearsal, Rehearse

TWO = {"INSTANCE_COUNT": "2"}
GKE = {"ORCHESTRATOR_TYPE": "gke", "VM_TYPE": "g2-standard-24", **TWO}
RAY = {"ORCHESTRATOR_TYPE": "ray", **TWO}
RAYJOB = {**GKE, "ENABLE_RAY_OPERATOR": "yes"}
KINDS = {"none": TWO, "ray": RAY, "gke": GKE, "gke_ray": RAYJOB}
QUICK = {"none"}
SLOW = pytest.mark.slow(
    sibling="tests/runs/test_jobs.py::test_a_folder_runs_on_all_vms_and_what_it_says_is_shown_once"
    "[none]"
)
QUEUED = {
    "ORCHESTRATOR_TYPE": "gke",
    "VM_TYPE": "g2-standard-24",
    "ENABLE_QUEUED_PROVISIONING": "yes",
    "GKE_MAX_NODE_COUNT": "4",
}
TRAIN = """\
import time
print("epoch 1")
time.sleep(900)
print("epoch 2")
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of code."""
    made = tmp_path / "code"
    made.mkdir()
    (made / "train.py").write_text(TRAIN)
    return made


@pytest.fixture(
    params=[name if name in QUICK else pytest.param(name, marks=SLOW) for name in KINDS]
)
def there(request: pytest.FixtureRequest, standing: Rehearse) -> Any:
    """Make a rehearsal with a cluster of two machines, of each kind."""
    settings = KINDS[request.param]

    def make(**how: Any) -> Rehearsal:
        rehearsal = standing(settings, **how)
        rehearsal.settings |= settings
        return rehearsal

    return make


def run(rehearsal: Rehearsal, *words: str, folder: Path | None = None, **settings: str) -> Ended:
    return rehearsal.finish(begin(rehearsal, *words, folder=folder, **settings))


def fetch(rehearsal: Rehearsal, name: str, path: str = ".", *options: str) -> Ended:
    behind = (name, path, str(rehearsal.folder / "here"))
    return rehearsal.run("Fetch", *options, behind=behind)


def begin(rehearsal: Rehearsal, *words: str, folder: Path | None = None, **settings: str) -> Any:
    empty = rehearsal.folder / "empty"
    empty.mkdir(exist_ok=True)
    copied = f"--copy={folder or empty}"
    on_ray = ["--ray"] if "ENABLE_RAY_OPERATOR" in rehearsal.settings else []
    return rehearsal.start("Run", copied, *on_ray, **settings, behind=words)


def when(rehearsal: Rehearsal, started: Any, words: str) -> None:
    """Wait until a started program has said something."""
    deadline = time.monotonic() + 600
    while words not in rehearsal.said(started):
        assert time.monotonic() < deadline, rehearsal.said(started)
        time.sleep(0.05)


def job_of(ended: Ended) -> dict[str, Any]:
    (job,) = ended.document["jobs"]
    assert isinstance(job, dict)
    return job
