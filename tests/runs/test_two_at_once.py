"""Two runs at the same time: one of them works, the other says so, and nothing is made twice."""

import contextlib
import os
import signal
from collections.abc import Iterator

import pytest

from rehearsal import session
from rehearsal.inventory import stays
from tests.chaos import processes
from tests.chaos.processes import Role
from tests.forked import Started
from tests.runs.conftest import Rehearsal, Rehearse


def _vms(rehearsal: Rehearsal) -> list[str]:
    return [line for line in rehearsal.resources() if "/instances/" in line]


@contextlib.contextmanager
def _held_up(rehearsal: Rehearsal, started: Started) -> Iterator[None]:
    """Stop a run's Terraform meanwhile, so that it keeps its lock however slow the machine is."""
    mark = f"{session.FOLDER_VARIABLE}={rehearsal.folder}"
    present = processes.of_run(mark, started.pid)
    (terraform,) = (pid for pid, role in present.items() if role is Role.TERRAFORM)
    os.kill(terraform, signal.SIGSTOP)
    yield
    os.kill(terraform, signal.SIGCONT)


SLOW = pytest.mark.slow(
    sibling="tests/runs/test_two_machines.py"
    "::test_what_another_machine_does_in_the_middle_of_a_run_is_neither_lost_nor_said_in_vain"
)


@SLOW
@pytest.mark.skipif(not processes.PROC.is_dir(), reason="finds processes by /proc")
def test_while_one_creates_another_run_is_told_who_is_at_work(rehearse: Rehearse) -> None:
    rehearsal = rehearse(rate=0.05)
    first = rehearsal.start("Create")
    rehearsal.when_asked("POST", "/instanceGroupManagers")
    with _held_up(rehearsal, first):
        refused = rehearsal.run("Create", "--yes")
    created = rehearsal.finish(first)
    assert created.code == 0, created.said
    assert refused.code == 5, refused.said
    assert "Another run is changing" in refused.problem["what"]
    assert len(_vms(rehearsal)) == 1


@SLOW
def test_of_two_creates_that_start_together_at_least_one_succeeds_and_nothing_is_made_twice(
    rehearsal: Rehearsal,
) -> None:
    both = [rehearsal.start("Create"), rehearsal.start("Create")]
    ended = [rehearsal.finish(one) for one in both]
    codes = sorted(one.code for one in ended)
    assert codes in ([0, 0], [0, 5]), [one.said for one in ended]
    assert len(_vms(rehearsal)) == 1
    again = rehearsal.run("Create")
    assert again.document["changes"] == {"add": 0, "change": 0, "destroy": 0}


@pytest.mark.slow(
    sibling="tests/runs/test_whose_it_is.py::test_row_2_a_second_state_touches_nothing_of_the_first"
)
def test_two_deployments_in_one_bucket_do_not_meet(rehearsal: Rehearsal) -> None:
    both = [rehearsal.start("Create"), rehearsal.start("Create", NAME_PREFIX="other")]
    ended = [rehearsal.finish(one) for one in both]
    assert [one.code for one in ended] == [0, 0], [one.said for one in ended]
    destroyed = rehearsal.run("Destroy", NAME_PREFIX="other")
    assert destroyed.code == 0, destroyed.said
    assert all("/np-vm" in line for line in _vms(rehearsal))
    assert rehearsal.run("Create").document["changes"] == {"add": 0, "change": 0, "destroy": 0}
    assert rehearsal.run("Destroy").code == 0
    assert [line for line in rehearsal.resources() if not stays(line)] == []
