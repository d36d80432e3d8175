"""The course of a job through Slurm, from histories of its queue and of what the VMs say."""

from __future__ import annotations

from typing import Any

import pytest
from aiinfra_vm import slurm_course
from aiinfra_vm.jobs import Array, Course, Phase, Report, Spec, State
from aiinfra_vm.members import Member
from aiinfra_vm.roster import Roster, Seat
from aiinfra_vm.slurm_course import Turn, World
from aiinfra_vm.slurm_queue import SIGNALLED, Entry

SPEC = Spec("train-1", ("python3", "train.py"), 2, 1, None, {}, "")
NODES = ("vm-2", "vm-0")  # not by name, as Slurm has them


def _roster(*present: bool) -> Roster:
    seats = (
        Seat(rank, Member(f"vm-{rank}", str(10 + rank), f"10.0.0.{rank}", ""), it)
        for rank, it in enumerate(present)
    )
    return Roster(len(present), 1, tuple(seats))


def _entry(state: str = "PENDING", attempt: int = 1, **more: Any) -> Entry:
    about: dict[str, Any] = {"job": "train-1", "number": "7", **more}
    if state not in ("PENDING", "CANCELLED"):
        about = {"nodes": NODES, **about}
    return Entry(user="aiinfra-job-03", name="train-1", state=state, attempt=attempt, **about)


class _Story:
    """A job, the queue, and what its VMs have said so far."""

    def __init__(self, spec: Spec = SPEC) -> None:
        self.course = Course(spec.name, since=1000.0)
        self.reports: dict[str, Report] = {}
        self.now = 1000.0
        self._spec = spec

    def goes_on(
        self,
        *queue: Entry,
        known: Roster | None = None,
        joined: int = 3,
        cancelled: bool = False,
        seconds: float = 3.0,
    ) -> Turn:
        self.now += seconds
        world = World(list(queue), known or _roster(True, True, True), joined, self.now)
        turn = slurm_course.follow(
            self.course, self._spec, self.reports, world, cancelled=cancelled
        )
        self.course = turn.course
        return turn

    def state(self, *queue: Entry, **more: Any) -> State:
        """How far it is then."""
        return self.goes_on(*queue, **more).course.state

    def say(self, who: int | str, phase: Phase, attempt: int = 1, **more: Any) -> None:
        """A VM, or a task, says how far it is."""
        name, number = (f"vm-{who}", str(10 + who)) if isinstance(who, int) else (who, "12")
        self.reports[name] = Report(attempt, number, phase, at=self.now, **more)

    def runs(self) -> _Story:
        assert self.goes_on().submit
        self.goes_on(_entry("RUNNING"))
        for rank in (0, 2):
            self.say(rank, Phase.RUNNING)
        self.goes_on(_entry("RUNNING"))
        assert self.course.state is State.RUNNING
        return self


def test_one_that_is_in_no_queue_is_put_there_and_one_that_is_there_is_not() -> None:
    story = _Story()
    assert story.goes_on().submit
    assert story.goes_on().submit  # as long as it is not seen there
    turn = story.goes_on(_entry(reason="Resources", gpus=16))
    assert not turn.submit
    assert (turn.course.state, turn.course.attempt) == (State.WAITING, 0)
    assert turn.course.why == "it waits for GPUs that are in use"


def test_it_runs_when_all_have_begun_with_the_ranks_that_they_tell() -> None:
    story = _Story().runs()
    ranks = [(it.rank, it.name, it.instance_id, it.address) for it in story.course.nodes]
    assert ranks == [(0, "vm-2", "12", "10.0.0.2"), (1, "vm-0", "10", "10.0.0.0")]
    story.say(0, Phase.RUNNING, rank=0)
    story.goes_on(_entry("RUNNING"))
    assert [(it.rank, it.name) for it in story.course.nodes] == [(0, "vm-0"), (1, "vm-2")]
    for spoiled in (0, 7):
        story.say(2, Phase.RUNNING, rank=spoiled)
        story.goes_on(_entry("RUNNING"))
        assert [(it.rank, it.name) for it in story.course.nodes] == [(0, "vm-0"), (1, "vm-2")]
    for rank in (0, 2):
        story.say(rank, Phase.ENDED, code=0)
    assert story.state(_entry("COMPLETED")) is State.SUCCEEDED


def test_one_that_is_through_before_anybody_looks_has_succeeded() -> None:
    story = _Story()
    story.goes_on()
    story.say(0, Phase.ENDED, code=0)
    story.goes_on(_entry("RUNNING"))
    story.say(2, Phase.ENDED, code=0)
    assert story.state(_entry("COMPLETED")) is State.SUCCEEDED


@pytest.mark.parametrize("before", [(), (_entry("RUNNING"),)])
def test_the_vms_that_slurm_names_of_one_that_ends_are_not_all_of_it(before: Any) -> None:
    story = _Story()
    for entry in before:
        story.goes_on(entry)
    story.say(2, Phase.ENDED, code=0)
    story.say(0, Phase.ENDED, code=127, ran=0.1)
    for left in (("vm-2",), ()):
        assert story.state(_entry("COMPLETING", nodes=left)) is not State.SUCCEEDED
    story.goes_on(_entry("FAILED"))
    assert story.state(_entry("FAILED")) is State.FAILED
    assert "rank 1 (vm-0), exit code 127" in story.course.events[0]


@pytest.mark.parametrize("last", [(), (_entry("NODE_FAIL", nodes=()),)])
def test_one_whose_vms_nobody_knows_is_begun_again_and_has_not_succeeded(last: Any) -> None:
    story = _Story()
    assert story.state(_entry("COMPLETING", nodes=())) is State.PREPARING
    assert story.state(*last) is State.WAITING
    assert story.course.failures == 0


@pytest.mark.parametrize(
    ("reason", "why"),
    [
        ("Resources", "it waits for VMs that are in use"),
        ("Priority", "eval-1 and 1 more are before it"),
        ("JobHeldUser", "somebody holds it: scontrol release 7"),
        (
            "ReqNodeNotAvail, Reserved for maintenance",
            "its VMs end before it would, or another job has them next: a shorter --time may begin",
        ),
        (
            "Nodes required for job are DOWN, DRAINED or reserved for jobs in higher priority",
            "it waits for VMs that are down or drained (Status names them)",
        ),
        ("", "Slurm has not looked at it yet"),
        ("Dependency", "Slurm: Dependency"),
    ],
)
def test_why_it_waits_is_said_in_words(reason: str, why: str) -> None:
    others = (
        Entry("9", "aiinfra-job-01", "eval-1", "PENDING", job="eval-1", priority=9),
        Entry("6", "ana", "mine", "PENDING", priority=5),
        Entry("4", "ben", "held", "PENDING", reason="JobHeldAdmin", priority=10),
        Entry("8", "ben", "later", "PENDING", priority=5),
    )
    story = _Story()
    story.goes_on(*others, _entry(reason=reason, priority=5))
    assert story.course.why == why


def test_one_for_which_the_group_is_too_small_or_not_whole_is_not_sent_to_slurm() -> None:
    story = _Story(SPEC._replace(nodes=4))
    assert not story.goes_on().submit
    assert story.course.why == "it wants 4 VMs, and the group is to have 3"
    story = _Story()
    assert not story.goes_on(joined=1).submit
    assert story.course.why == "1 of 2 VMs are there"


def test_a_failure_ends_it_on_all_and_is_followed_by_a_restart_after_a_pause() -> None:
    story = _Story(SPEC._replace(restart_on="any")).runs()
    story.say(0, Phase.ENDED, code=3, ran=20.0, tail="no")
    turn = story.goes_on(_entry("RUNNING"))
    # Its runner on the other VM reads that, and ends its program: Slurm signals nobody.
    assert (turn.course.state, turn.cancel) == (State.STOPPING, ())
    story.say(2, Phase.ENDED, code=143, told=True, ran=21.0)
    assert story.state(_entry("RUNNING")) is State.WAITING
    assert "rank 1 (vm-0), exit code 3; restart 1 of 1" in story.course.events[0]
    assert not story.goes_on(_entry("FAILED")).submit  # it pauses
    assert story.goes_on(_entry("FAILED"), seconds=10).submit
    story.goes_on(_entry("FAILED"), _entry("RUNNING", 2, number="8"))
    assert (story.course.state, story.course.attempt) == (State.PREPARING, 2)


def test_a_vm_that_is_lost_is_named_and_no_program_is_to_blame() -> None:
    story = _Story().runs()
    assert story.state(_entry("COMPLETING"), known=_roster(True, True, False)) is State.STOPPING
    story.say(0, Phase.ENDED, code=143, why="Slurm has ended it")
    assert story.state(_entry("NODE_FAIL")) is State.WAITING
    assert "rank 0 (vm-2), the VM vm-2 was lost" in story.course.events[0]
    assert story.goes_on(_entry("NODE_FAIL")).submit  # at once
    # Slurm takes minutes until it says so; what it still has of that attempt is cancelled.
    assert story.goes_on(_entry("RUNNING")).cancel == ("7",)


def test_an_attempt_that_slurm_lost_with_its_head_is_begun_again_and_is_no_failure() -> None:
    story = _Story(SPEC._replace(restarts=0)).runs()
    story.goes_on()
    assert (story.course.state, story.course.failures) == (State.WAITING, 0)
    turn = story.goes_on()
    assert turn.submit
    assert turn.course.attempt == 1  # so that the next is 2, which no VM has begun
    # Slurm has ended what it did not know.
    story = _Story(SPEC._replace(restarts=0)).runs()
    for rank in (0, 2):
        story.say(rank, Phase.ENDED, code=143, why=SIGNALLED)
    assert (story.state(), story.course.failures) == (State.WAITING, 0)
    # One that had begun before the head, and its course, knew of it.
    story = _Story()
    story.say(0, Phase.RUNNING)
    assert story.goes_on().course.attempt == 1


def test_what_slurm_brings_back_of_one_that_is_over_is_cancelled() -> None:
    story = _Story().runs()
    for rank in (0, 2):
        story.say(rank, Phase.ENDED, code=0)
    assert story.goes_on(_entry("RUNNING")).cancel == ()  # it is about to end
    turn = story.goes_on(_entry("RUNNING"), seconds=60)
    assert (turn.course.state, turn.cancel) == (State.SUCCEEDED, ("7",))


def test_one_that_was_sent_twice_runs_once() -> None:
    story = _Story()
    turn = story.goes_on(_entry(number="7"), _entry("RUNNING", number="8"))
    assert (turn.course.state, turn.cancel) == (State.PREPARING, ("7",))


def test_a_job_that_is_cancelled_leaves_the_queue_or_is_told_to_end() -> None:
    story = _Story()
    turn = story.goes_on(_entry(), cancelled=True)
    assert (turn.course.state, turn.cancel) == (State.CANCELLED, ("7",))
    story = _Story().runs()
    turn = story.goes_on(_entry("RUNNING"), cancelled=True)
    assert (turn.course.state, turn.cancel) == (State.STOPPING, ())
    for rank in (0, 2):
        story.say(rank, Phase.ENDED, code=143, told=True)
    assert story.state(_entry("COMPLETED"), cancelled=True) is State.CANCELLED


def test_one_that_somebody_cancels_in_slurm_is_cancelled_and_one_that_a_prolog_refuses_is_not() -> (
    None
):
    story = _Story()
    assert story.state(_entry("CANCELLED")) is State.CANCELLED
    story = _Story().runs()
    for rank in (0, 2):
        story.say(rank, Phase.ENDED, code=143, why="Slurm has ended it")
    story.goes_on(_entry("CANCELLED", nodes=NODES))
    assert story.state(_entry("CANCELLED", nodes=NODES)) is State.CANCELLED
    story = _Story()
    story.goes_on(_entry("CANCELLED", nodes=NODES))
    story.goes_on(_entry("CANCELLED", nodes=NODES))
    assert (story.course.state, story.course.failures) == (State.WAITING, 0)


@pytest.mark.parametrize("ends", [1, 2, 3])
def test_one_that_somebody_cancels_is_not_begun_again_while_slurm_ends_it(ends: int) -> None:
    for after, state in (("CANCELLED", State.CANCELLED), ("TIMEOUT", State.WAITING)):
        story = _Story().runs()
        for rank in (0, 2):
            story.say(rank, Phase.ENDED, code=143, why=SIGNALLED)
        for _ in range(ends):
            assert story.state(_entry("COMPLETING")) is State.STOPPING
        assert story.state(_entry(after, nodes=NODES)) is state
    # Not for ever: a VM may hang.
    story = _Story().runs()
    story.say(0, Phase.ENDED, code=143, why=SIGNALLED)
    story.goes_on(_entry("COMPLETING"))
    assert story.state(_entry("COMPLETING"), seconds=150) is State.WAITING


def test_one_whose_runner_can_not_begin_fails_instead_of_being_tried_for_ever() -> None:
    story = _Story()
    story.goes_on(_entry("FAILED", reason="NonZeroExitCode"))
    assert (
        story.state(_entry("FAILED"), _entry("FAILED", 2, reason="NonZeroExitCode")) is State.FAILED
    )
    assert "it could not begin: FAILED NonZeroExitCode (Slurm)" in story.course.events[1]


def test_one_without_a_limit_that_slurm_has_given_one_gets_none_again() -> None:
    story = _Story()
    assert story.goes_on(_entry("RUNNING", limit="30:00")).lengthen == ("7",)
    assert story.goes_on(_entry("RUNNING", limit="UNLIMITED")).lengthen == ()
    story = _Story(SPEC._replace(seconds=1500))
    assert story.goes_on(_entry("RUNNING", limit="30:00")).lengthen == ()


ARRAY = SPEC._replace(nodes=None, gpus=1, array=Array(0, 3, None), restart_on="any")


def _tasks(*states: str, attempt: int = 1) -> list[Entry]:
    """Those of an array, from 0; "" for one that the queue does not have."""
    return [
        _entry(
            state, attempt, number=f"7_{index}", task=index,
            **({"nodes": ("vm-2",)} if state != "PENDING" else {}),
        )
        for index, state in enumerate(states)
        if state
    ]  # fmt: skip


def test_an_array_counts_its_tasks_and_begins_again_those_that_failed() -> None:
    story = _Story(ARRAY)
    turn = story.goes_on()
    assert (turn.submit, turn.tasks) == (True, (0, 1, 2, 3))
    assert story.state(*_tasks("PENDING", "PENDING", "PENDING", "PENDING")) is State.WAITING
    story.say("task-0", Phase.ENDED, code=0)
    story.say("task-1", Phase.RUNNING)
    story.goes_on(*_tasks("COMPLETED", "RUNNING", "PENDING", "PENDING"))
    assert (story.course.state, story.course.nodes) == (State.RUNNING, ())
    counts = {"waiting": 2, "running": 1, "succeeded": 1, "failed": 0, "cancelled": 0}
    assert story.course.tasks == counts

    for index, code in ((1, 5), (2, 0), (3, 0)):
        story.say(f"task-{index}", Phase.ENDED, code=code, ran=9.0)
    old = _tasks("COMPLETED", "FAILED", "COMPLETED", "COMPLETED")
    assert story.state(*old) is State.WAITING
    expected = "attempt 1: 1 of 4 tasks failed, first task 1 (vm-2), exit code 5; restart 1 of 1"
    assert story.course.events == (expected,)
    turn = story.goes_on(*old, seconds=20)
    assert (turn.submit, turn.tasks) == (True, (1,))

    story.say("task-1", Phase.RUNNING, attempt=2)
    story.goes_on(*_tasks("", "RUNNING", attempt=2), *old)
    assert (story.course.state, story.course.attempt) == (State.RUNNING, 2)
    story.say("task-1", Phase.ENDED, attempt=2, code=5, ran=9.0)
    assert story.state(*_tasks("", "FAILED", attempt=2), *old) is State.FAILED
    failure = story.course.failure
    assert failure is not None
    assert (failure.vm, failure.rank, failure.code) == ("vm-2", 1, 5)
    assert story.course.tasks == {**counts, "waiting": 0, "running": 0, "succeeded": 3, "failed": 1}


def test_how_busy_the_gpus_of_an_array_are_is_the_mean_of_the_tasks_that_run() -> None:
    story = _Story(ARRAY)
    for index, use in enumerate((10, 90, 70)):
        story.say(f"task-{index}", Phase.RUNNING, gpu_use=use)
    story.say("task-0", Phase.ENDED, code=5, gpu_use=10, ran=9.0)
    for use, told in ((70, 80), (62, 80), (60, 75)):
        story.say("task-2", Phase.RUNNING, gpu_use=use)
        story.goes_on(*_tasks("FAILED", "RUNNING", "RUNNING", "PENDING"))
        assert story.course.gpu_use == told
    for index in (1, 2, 3):
        story.say(f"task-{index}", Phase.ENDED, code=0, gpu_use=90)
    story.goes_on(*_tasks("FAILED", "COMPLETED", "COMPLETED", "COMPLETED"))
    assert story.course.gpu_use == 75, "what it was when the last ended"
    story.say("task-0", Phase.RUNNING, attempt=2)
    story.goes_on(*_tasks("RUNNING", attempt=2), seconds=60)
    assert story.course.attempt == 2
    assert story.course.gpu_use is None


def test_a_task_that_would_fail_again_fails_the_array_when_the_others_are_through() -> None:
    story = _Story(ARRAY._replace(restart_on="", restarts=3))
    story.say("task-1", Phase.ENDED, code=5, ran=9.0)
    assert story.state(*_tasks("RUNNING", "FAILED", "NODE_FAIL", "PENDING")) is State.RUNNING
    for index in (0, 3):
        story.say(f"task-{index}", Phase.ENDED, code=0)
    assert story.state(*_tasks("COMPLETED", "FAILED", "NODE_FAIL", "COMPLETED")) is State.WAITING
    assert story.goes_on().tasks == (2,)  # its VM was lost
    story.say("task-2", Phase.ENDED, attempt=2, code=0)
    story.goes_on(*_tasks("", "", "RUNNING", attempt=2))
    assert story.state(*_tasks("", "", "COMPLETED", attempt=2)) is State.FAILED
    failure = story.course.failure
    assert failure is not None
    assert failure.rank == 1


def test_an_array_that_slurm_has_lost_is_begun_again_but_for_what_is_through() -> None:
    story = _Story(ARRAY)
    for index in (0, 1):
        story.say(f"task-{index}", Phase.ENDED, code=0)
    story.say("task-2", Phase.RUNNING)
    story.goes_on(*_tasks("COMPLETED", "COMPLETED", "RUNNING", "PENDING"))
    story.say("task-2", Phase.ENDED, code=143, why=SIGNALLED)
    story.goes_on()
    assert (story.course.state, story.course.failures) == (State.WAITING, 0)
    assert story.goes_on().tasks == (2, 3)


def test_an_array_that_is_cancelled_begins_none_of_the_rest() -> None:
    story = _Story(ARRAY)
    story.say("task-0", Phase.ENDED, code=0)
    story.goes_on(*_tasks("COMPLETED", "RUNNING", "PENDING", "PENDING"))
    turn = story.goes_on(*_tasks("COMPLETED", "RUNNING", "PENDING", "PENDING"), cancelled=True)
    assert (turn.course.state, turn.cancel) == (State.STOPPING, ("7_2", "7_3"))
    story.say("task-1", Phase.ENDED, code=143, told=True)
    off = ("COMPLETED", "FAILED", "CANCELLED", "CANCELLED")
    assert story.state(*_tasks(*off), cancelled=True) is State.CANCELLED
    assert story.course.tasks is not None
    assert (story.course.tasks["succeeded"], story.course.tasks["cancelled"]) == (1, 2)
