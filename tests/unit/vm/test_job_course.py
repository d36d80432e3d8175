"""The course of a job, from histories of what its VMs say."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import pytest
from aiinfra_vm import job_course, job_guard, jobs, programs
from aiinfra_vm.jobs import Course, Phase, Report, Spec, State
from aiinfra_vm.members import Member
from aiinfra_vm.roster import Roster, Seat

SPEC = Spec("train-1", ("python3", "train.py"), None, 1, None, {}, "")


def _roster(*present: bool, lives: tuple[int, ...] = (1, 1, 1)) -> Roster:
    seats = tuple(
        Seat(rank, Member(f"vm-{rank}", str(10 * lives[rank] + rank), f"10.0.0.{rank}", ""), it)
        for rank, it in enumerate(present)
    )
    return Roster(len(present), 1, seats)


ALL = _roster(True, True, True)


class _Story:
    """A job and what its VMs have said so far."""

    def __init__(self, spec: Spec = SPEC) -> None:
        self.course = Course(spec.name)
        self.reports: dict[str, Report] = {}
        self.now = 1000.0
        self._spec = spec

    def goes_on(
        self, known: Roster = ALL, *, cancelled: bool = False, host: str | None = None
    ) -> State:
        self.now += 1
        about = (self.course, self._spec, known, self.reports, self.now)
        self.course = job_course.follow(*about, cancelled=cancelled, host=host)
        return self.course.state

    @property
    def nodes(self) -> list[tuple[int, str]]:
        return [(node.rank, node.name) for node in self.course.nodes]

    def stops(self, *ranks: int, **more: Any) -> None:
        """These were told to end, and did."""
        for rank in ranks:
            self.say(rank, Phase.ENDED, **{"code": 143, "told": True, **more})

    def say(self, rank: int, phase: Phase, **more: Any) -> None:
        more = {"at": self.now, **more}
        told = Report(self.course.attempt, str(10 + rank), phase, **more)
        self.reports[f"vm-{rank}"] = told

    def runs(self) -> _Story:
        assert self.goes_on() is State.PREPARING
        for rank in range(3):
            self.say(rank, Phase.READY)
        assert self.goes_on() is State.RUNNING
        return self


def test_all_begin_together_or_none_does() -> None:
    story = _Story()
    assert story.goes_on(_roster(True, False, True)) is State.WAITING
    assert story.course.why == "2 of 3 VMs are there"
    assert story.goes_on() is State.PREPARING
    for rank in (0, 2):
        story.say(rank, Phase.READY)
        assert story.goes_on() is State.PREPARING
    story.say(1, Phase.READY)
    assert story.goes_on() is State.RUNNING
    assert story.nodes == [(0, "vm-0"), (1, "vm-1"), (2, "vm-2")]


def test_fewer_nodes_are_those_of_the_first_ranks_that_are_there() -> None:
    story = _Story(SPEC._replace(nodes=2))
    assert story.goes_on(_roster(True, False, True)) is State.PREPARING
    assert story.nodes == [(0, "vm-0"), (1, "vm-2")]
    more = _Story(SPEC._replace(nodes=4))
    assert more.goes_on() is State.WAITING
    assert more.course.why == "it wants 4 VMs, and the group is to have 3"


def test_where_ray_is_it_runs_on_the_head_alone_whichever_vm_that_is() -> None:
    story = _Story()
    for nobody in ("", "110"):  # before there is a head, and when it was a life of before
        assert story.goes_on(host=nobody) is State.WAITING
        assert story.course.why == "Ray's head is not there"
    assert story.goes_on(_roster(True, True, False), host="12") is State.WAITING
    assert story.goes_on(_roster(False, True, True), host="12") is State.PREPARING
    assert story.nodes == [(0, "vm-2")]
    story.say(2, Phase.READY)
    assert story.goes_on() is State.RUNNING


def test_it_has_succeeded_when_all_have() -> None:
    story = _Story().runs()
    for rank in range(3):
        assert story.goes_on() is State.RUNNING
        story.say(rank, Phase.ENDED, code=0)
    assert story.goes_on() is State.SUCCEEDED


def test_the_first_that_failed_is_named_whoever_is_heard_of_first() -> None:
    story = _Story(SPEC._replace(restarts=0)).runs()
    story.say(2, Phase.ENDED, code=1, at=1500.0, tail="a peer died")
    assert story.goes_on() is State.STOPPING
    story.say(1, Phase.ENDED, code=3, at=1400.0, tail="no module")
    assert story.goes_on() is State.STOPPING
    story.say(0, Phase.ENDED, code=143, at=1300.0, told=True)
    assert story.goes_on() is State.FAILED
    failure = story.course.failure
    assert failure is not None
    assert (failure.rank, failure.vm, failure.code, failure.tail) == (1, "vm-1", 3, "no module")
    assert story.course.events == ("attempt 1 failed: rank 1 (vm-1), exit code 3",)


def test_a_failure_is_followed_by_as_many_restarts_as_were_asked_for() -> None:
    story = _Story()
    for attempt, follows in ((1, State.WAITING), (2, State.FAILED)):
        story.runs()
        assert story.course.attempt == attempt
        story.say(0, Phase.ENDED, code=1)
        story.goes_on()
        story.stops(1, 2)
        assert story.goes_on() is follows
    assert story.course.events[0].endswith("restart 1 of 1")


def test_of_a_vm_that_is_lost_after_a_notice_the_notice_is_told() -> None:
    story = _Story().runs()
    story.say(1, Phase.RUNNING, why="Google takes this VM back (preemption)")
    assert story.goes_on() is State.RUNNING
    for _ in range(2):
        story.goes_on(_roster(True, False, True))
        story.stops(0, 2, why="another VM of the job failed")
    assert story.course.events == (
        "attempt 1 failed: rank 1 (vm-1), Google takes this VM back (preemption); restart 1 of 1",
    )


def test_a_vm_that_is_lost_is_named_and_not_its_peers_that_fail_of_it() -> None:
    story = _Story().runs()
    story.say(0, Phase.ENDED, code=1, tail="connection reset")
    assert story.goes_on() is State.STOPPING
    story.say(2, Phase.ENDED, code=143, told=True)
    assert story.goes_on(_roster(True, False, True)) is State.WAITING
    assert story.course.events == (
        "attempt 1 failed: rank 1 (vm-1), the VM vm-1 was lost, or does not answer; restart 1 of 1",
    )
    # Its group makes it again, under the same name.
    assert story.goes_on(_roster(True, False, True)) is State.WAITING
    assert story.goes_on(_roster(True, True, True, lives=(1, 2, 1))) is State.PREPARING
    assert (story.course.attempt, story.course.nodes[1].instance_id) == (2, "21")


def test_what_can_not_be_prepared_fails_at_once_whatever_restarts_are_left() -> None:
    story = _Story()
    story.goes_on()
    story.say(0, Phase.READY)
    story.say(1, Phase.REFUSED, why="the checksum differs")
    assert story.goes_on() is State.STOPPING
    story.stops(0, 2, code=None, why="it was called off")
    assert story.goes_on() is State.FAILED
    assert story.course.events == ("attempt 1 failed: rank 1 (vm-1), the checksum differs",)


def test_the_end_of_its_time_ends_it_and_no_restart_follows() -> None:
    story = _Story(SPEC._replace(seconds=60)).runs()
    assert story.course.ends == (story.course.began or 0) + 60
    story.stops(0, 1, 2, told=False, why="--time is over", final=True)
    story.goes_on()
    assert story.goes_on() is State.FAILED


def test_time_that_ends_while_a_restart_waits_for_vms_ends_it_too() -> None:
    story = _Story(SPEC._replace(seconds=60)).runs()
    story.say(0, Phase.ENDED, code=1)
    story.goes_on()
    story.stops(1, 2)
    assert story.goes_on(_roster(True, True, False)) is State.WAITING
    story.now += 100
    assert story.goes_on(_roster(True, True, False)) is State.FAILED


@pytest.mark.parametrize("ready", [0, 2, 3])
def test_it_can_be_cancelled_at_any_moment(ready: int) -> None:
    story = _Story()
    assert story.goes_on() is State.PREPARING
    for rank in range(ready):
        story.say(rank, Phase.READY)
    story.goes_on()
    assert story.goes_on(cancelled=True) is State.STOPPING
    story.stops(0, 1, 2)
    assert story.goes_on(cancelled=True) is State.CANCELLED
    assert _Story().goes_on(cancelled=True) is State.CANCELLED, "before it began"
    # VMs that say nothing are waited for no longer than they may take.
    silent = _Story().runs()
    assert silent.goes_on(cancelled=True) is State.STOPPING
    silent.now += job_course.STOPPING
    assert silent.goes_on(cancelled=True) is State.CANCELLED


def test_how_busy_the_gpus_of_a_job_are_is_the_mean_of_its_vms_and_of_its_attempt() -> None:
    story = _Story().runs()
    assert story.course.gpu_use is None
    story.say(0, Phase.RUNNING, gpu_use=90)
    story.say(1, Phase.RUNNING, gpu_use=45)
    story.say(2, Phase.RUNNING)
    story.goes_on()
    assert story.course.gpu_use == 68
    story.say(1, Phase.ENDED, code=1, ran=1e6)
    story.goes_on()
    assert story.course.gpu_use == 68, "what it was when it failed"
    story.stops(0, 2)
    story.goes_on()
    story.now += 60
    story.runs()
    assert (story.course.attempt, story.course.gpu_use) == (2, None)


@pytest.mark.parametrize(("gpus", "use"), [(None, 68), (2, 68), (1, None)])
def test_how_busy_gpus_are_that_others_use_is_not_said(
    monkeypatch: pytest.MonkeyPatch, gpus: int | None, use: int | None
) -> None:
    done = subprocess.CompletedProcess("nvidia-smi", 0, b"90\n46\n")
    monkeypatch.setattr(programs, "ask", lambda *_: done)
    guard = job_guard.Guard([], 0, has_gpus=True, has_fabric=False, pace=1.0)
    guard.gpus = gpus
    guard.look()
    assert guard.gpu_use == use


def test_a_course_is_read_as_it_was_written() -> None:
    story = _Story().runs()
    story.say(0, Phase.RUNNING, gpu_use=100)
    story.goes_on()
    story.say(1, Phase.ENDED, code=3, cause="a disk is full", tail="öd")
    story.goes_on()
    course = story.course
    assert jobs.course(json.dumps(course.document()).encode()) == course
    report = story.reports["vm-1"]
    assert jobs.report(json.dumps(report.document()).encode()) == report


@pytest.mark.parametrize(
    "change",
    [
        *({"command": []}, {"command": "rm -rf /"}, {"command": ["a\0b"]}, {"nodes": 0}),
        *({"env": {"a b": "c"}}, {"env": {"A": 1}}, {"files": "../../state"}, {"name": "train-2"}),
    ],
)
def test_a_job_that_is_not_as_the_tool_writes_it_is_none(change: dict[str, object]) -> None:
    sound = {"name": "train-1", "command": ["true"], "env": {}, "nodes": 1, "restarts": 0}
    assert jobs.spec(json.dumps(sound).encode(), "train-1").command == ("true",)
    with pytest.raises(ValueError, match=r"."):
        jobs.spec(json.dumps(sound | change).encode(), "train-1")


@pytest.mark.parametrize("address", ["$(reboot)", "10.0.0.1\nLD_PRELOAD=/tmp/x", "::1"])
def test_a_course_with_an_address_that_is_none_is_not_followed(address: str) -> None:
    document = _Story().runs().course.document()
    document["nodes"][0]["address"] = address
    with pytest.raises(ValueError, match=r"."):
        jobs.course(json.dumps(document).encode())


def _after(restart_on: str = "", **failure: Any) -> Course:
    """What follows when rank 0 fails, and the others are told to end."""
    story = _Story(SPEC._replace(restart_on=restart_on)).runs()
    story.say(0, Phase.ENDED, **failure)
    story.goes_on()
    story.stops(1, 2)
    story.goes_on()
    return story.course


@pytest.mark.parametrize(
    ("restart_on", "code", "ran", "follows"),
    [
        *(("", 1, 4.0, State.FAILED), ("", 1, 601.0, State.WAITING), ("", 1, None, State.WAITING)),
        *(("", 127, 601.0, State.FAILED), ("lost", 1, 601.0, State.FAILED)),
        *(("any", 127, 4.0, State.WAITING), ("lost", 1, None, State.WAITING)),
    ],
)
def test_a_program_that_fails_begins_again_if_the_next_attempt_may_end_otherwise(
    restart_on: str, code: int, ran: float | None, follows: State
) -> None:
    course = _after(restart_on, code=code, ran=ran)
    assert course.state is follows
    assert ("--restart-on any" in course.events[0]) == (follows is State.FAILED)


def test_a_machine_that_google_takes_back_is_no_failure_of_the_program_whoever_ends_first() -> None:
    story = _Story().runs()
    story.say(0, Phase.ENDED, code=1, ran=4.0, at=1400.0, tail="connection reset")
    story.goes_on()
    taken = "Google takes this VM back (preemption)"
    story.say(1, Phase.ENDED, code=143, ran=5.0, at=1401.0, why=taken)
    story.stops(2)
    assert story.goes_on() is State.WAITING
    assert taken in story.course.events[0]


def test_between_failures_of_the_program_there_is_more_and_more_time() -> None:
    story = _Story(SPEC._replace(restarts=9, restart_on="any"))
    pauses = []
    for _ in range(7):
        story.runs()
        story.say(0, Phase.ENDED, code=1, ran=4.0)
        story.goes_on()
        story.stops(1, 2)
        assert story.goes_on() is State.WAITING
        ended = story.now
        while story.goes_on() is State.WAITING:
            assert "it begins again" in story.course.why
        pauses.append(story.now - ended)
        story.course = story.course._replace(state=State.WAITING, attempt=story.course.attempt - 1)
    assert pauses == [10, 20, 40, 80, 160, 300, 300]


def test_a_vm_that_is_lost_before_the_next_attempt_begins_is_counted_once() -> None:
    story = _Story().runs()
    story.goes_on(_roster(True, False, True))
    story.stops(0, 2)
    assert story.goes_on(_roster(True, False, True)) is State.WAITING
    assert story.goes_on() is State.PREPARING
    assert story.goes_on(_roster(True, False, True)) is State.STOPPING
    story.stops(0, 2, code=None)
    assert story.goes_on(_roster(True, False, True)) is State.WAITING
    assert story.course.failures == 1
