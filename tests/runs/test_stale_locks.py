"""The lock of a run that was killed: freed by --yes, and only once none of its processes lives."""

import os
import signal

import pytest

from rehearsal import session
from tests.chaos import processes
from tests.chaos.processes import Role
from tests.runs.conftest import Rehearsal, Rehearse
from tests.waiting import until

LOCK = "b/aiinfra-terraform-my-project/o/np-deployment/terraform/state/default.tflock"

SLOW = pytest.mark.slow(sibling="::test_a_lock_whose_holder_may_live_is_released_by_its_id_alone")


def _terraform_alone(rehearsal: Rehearsal) -> int:
    """Kill the tool in the middle of a Create; its Terraform, stopped, lives on."""
    started = rehearsal.start("Create")
    rehearsal.when_asked("POST", "/instanceGroupManagers")
    mark = f"{session.FOLDER_VARIABLE}={rehearsal.folder}"
    present = processes.of_run(mark, started.pid)
    (terraform,) = (pid for pid, role in present.items() if role is Role.TERRAFORM)
    os.kill(terraform, signal.SIGSTOP)
    started.send_signal(signal.SIGKILL)
    started.ended(60)
    return terraform


def _end(rehearsal: Rehearsal, terraform: int) -> None:
    os.kill(terraform, signal.SIGKILL)
    mark = f"{session.FOLDER_VARIABLE}={rehearsal.folder}"
    until(lambda: not processes.of_run(mark, 0), lambda: "the plugin outlives Terraform")


@SLOW
@pytest.mark.skipif(not processes.PROC.is_dir(), reason="finds processes by /proc")
@pytest.mark.parametrize("action", ["Create", "Destroy"])
def test_yes_frees_the_lock_once_the_last_process_of_its_run_is_dead(
    rehearse: Rehearse, action: str
) -> None:
    rehearsal = rehearse(real=True, rate=0.05)
    terraform = _terraform_alone(rehearsal)
    alive = rehearsal.run(action, "--yes")
    assert alive.code == 5
    assert "Another run is changing" in alive.problem["what"]
    assert LOCK in rehearsal.objects()

    _end(rehearsal, terraform)
    dead = rehearsal.run(action)
    assert dead.code == 5
    assert "A killed run left" in dead.problem["what"]
    assert "with --yes" in dead.problem["fix"]
    assert LOCK in rehearsal.objects()

    agreed = rehearsal.run(action, "--yes")
    assert agreed.code == 0, agreed.said
    assert "Released the lock" in agreed.said
    assert [name for name in rehearsal.objects() if name == LOCK or "/runs/" in name] == []


def test_a_lock_whose_holder_may_live_is_released_by_its_id_alone(standing: Rehearse) -> None:
    rehearsal = standing(scenario="lock-held")
    locked = rehearsal.run("Create", "--yes").problem
    _, _, own_id = locked["fix"].rpartition("--break-lock ")
    assert (locked["code"], locked["lock_id"]) == ("state-locked", own_id)

    other = rehearsal.run("Create", "--break-lock", "00000000-0000-0000-0000-000000000000")
    assert other.code == 5
    assert LOCK in rehearsal.objects()

    named = rehearsal.run("Create", "--break-lock", own_id)
    assert named.code == 0, named.said
    assert "ann@laptop" in named.said
    assert LOCK not in rehearsal.objects()
