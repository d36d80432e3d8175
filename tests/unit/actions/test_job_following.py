"""What a job says is shown once, as it was written, however it was cut."""

from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from provision.actions import jobs
from provision.deployment.kind import Stranded
from provision.documents.job import Job, JobState, JobTasks
from provision.errors import ClusterError
from provision.kinds.gke.jobs import GkeJobs
from provision.kinds.vms.jobs import VmJobs


class _Log:
    """The logs of a job, by attempt."""

    def __init__(self, rank: int = 0, prefix: str = "", tail: int | None = None) -> None:
        self.attempts: dict[int, list[tuple[int, bytes]]] = {}
        self.shown: list[str] = []
        console = SimpleNamespace(output=self.shown.append, progress=self.shown.append)
        self._reader = jobs._Reader(cast("Any", self), cast("Any", console), rank, prefix, tail)

    def log(self, job: Job, attempt: int, rank: int, after: int) -> Iterator[tuple[int, bytes]]:
        del job, rank
        yield from [piece for piece in self.attempts.get(attempt, []) if piece[0] >= after]

    def read(self, attempt: int, tasks: JobTasks | None = None) -> None:
        job = Job(name="a-1", state=JobState.RUNNING, attempt=attempt, tasks=tasks, submitted="")
        self._reader.read(job)

    def end(self) -> None:
        self._reader.end()

    @property
    def bar(self) -> str:
        return self._reader.bar

    @property
    def held(self) -> int:
        """How much of a line that has not ended is kept."""
        return sum(len(it.line) for it in self._reader._said.values())


def test_lines_and_letters_that_were_cut_are_shown_whole_and_once() -> None:
    text = "größe 1\nzwei"
    log = _Log()
    log.attempts[1] = [(0, text.encode()[:3])]
    log.read(1)
    assert not log.shown
    log.attempts[1].append((3, text.encode()[3:]))
    log.read(1)
    log.read(1)
    assert log.shown == ["größe 1\n"]
    log.end()
    assert log.shown == ["größe 1\n", "zwei\n"]


def test_a_later_attempt_follows_the_rest_of_the_one_before() -> None:
    log = _Log()
    log.attempts = {1: [(0, b"one")], 2: [(0, b"two\n")]}
    log.read(2)
    assert log.shown == ["one\n", "two\n"]


def test_a_task_says_more_in_its_attempt_while_another_one_is_in_a_later_one() -> None:
    log, tasks = _Log(), JobTasks(first=1, last=8)
    log.attempts[1] = [(0, b"one\ntw")]
    log.read(1, tasks)
    log.attempts[1].append((6, b"o\nthr"))
    log.read(2, tasks)
    assert "".join(log.shown) == "one\ntwo\n"
    log.attempts[3] = [(0, b"again\n")]
    log.read(3, tasks)
    assert "".join(log.shown) == "one\ntwo\nthr\nagain\n"


def test_what_is_too_old_is_said_to_be_gone() -> None:
    log = _Log()
    log.attempts[1] = [(1_000_000, b"late\n")]
    log.read(1)
    assert log.shown == ["1,000,000 bytes of the log are too old, and are gone", "late\n"]


def test_a_bar_that_is_drawn_over_itself_is_a_sign_of_life_and_then_one_line() -> None:
    log = _Log()
    log.attempts[1] = [(0, b"loading\n\r 1%|#   |\r 50%|##  |\r 7")]
    log.read(1)
    assert log.shown == ["loading\n"]
    assert log.bar == "50%|##  |"
    log.attempts[1].append((32, b"5%|### |\r100%|####|\ndone\r\n"))
    log.read(1)
    assert log.shown == ["loading\n", "100%|####|\ndone\n"]
    assert not log.bar


def test_an_hour_of_a_bar_is_not_kept() -> None:
    log = _Log()
    log.attempts[1] = [(8 * at, b"\r%6d%%" % at) for at in range(10_000)]
    log.read(1)
    assert log.bar == "9998%"
    assert log.held < 20
    log.end()
    assert log.shown == ["  9999%\n"]


def test_the_last_lines_are_those_of_the_last_attempt_and_what_follows_is_whole() -> None:
    log = _Log(rank=3, prefix="[3] ", tail=2)
    log.attempts = {1: [(0, b"early\n")], 2: [(0, b"one\ntwo\nthree\n")]}
    log.read(2)
    assert log.shown == ["[3] two\n[3] three\n"]
    log.attempts[2].append((14, b"four\nfive\nsix\n"))
    log.read(2)
    assert log.shown[1:] == ["[3] four\n[3] five\n[3] six\n"]


def test_what_is_silent_for_an_hour_is_said_with_what_to_look_at() -> None:
    runs = Job(name="a-1", state=JobState.RUNNING, machines=("vm-1",), attempt=1, submitted="")
    vms = cast("Any", SimpleNamespace(inside=lambda job: VmJobs.inside(cast("Any", None), job)))
    found = [replace(runs, silent=silent) for silent in (None, 0.0, 3599.0, 2 * 3600.0)]
    (problem,) = jobs._worth_a_look(vms, found)
    assert problem.what == "Rank 0 of a-1 has said nothing for 2 h 0 min"
    assert "aiinfra Logs a-1 --rank all --tail 5" in problem.fix
    assert problem.fix.endswith("aiinfra Ssh vm-1, and there nvidia-smi")


@pytest.mark.parametrize(
    ("ray", "label"),
    [(False, "jobset.sigs.k8s.io/jobset-name"), (True, "app.kubernetes.io/instance")],
)
def test_inside_a_pod_is_where_its_gpus_are_seen(ray: bool, label: str) -> None:  # noqa: FBT001 - a case
    ours = cast("Any", SimpleNamespace(asked=lambda _: {"ray": ray}))
    runs = Job(name="a-1", state=JobState.RUNNING, attempt=1, submitted="")
    assert f"get pods -l {label}" in GkeJobs.inside(ours, runs)


@pytest.mark.parametrize("final", [True, False])
def test_whoever_follows_a_job_that_failed_changes_nothing_and_is_told_of_restarts(
    final: bool,  # noqa: FBT001 - a case
) -> None:
    failed = Job(name="a-1", state=JobState.FAILED, why="lost", attempt=1, submitted="")
    lost = Stranded(what="0 of 2 VMs run", left=0, final=final)
    there = cast("Any", SimpleNamespace(stranded=lambda _: lost))  # and no way to cancel
    context = cast("Any", SimpleNamespace(console=SimpleNamespace(progress=str)))
    with pytest.raises(ClusterError, match="a-1 failed: lost") as told:
        jobs._ended(context, there, failed, [])
    assert ("--restarts" in told.value.problems[0].fix) is final


def test_machines_that_nothing_asks_google_for_are_not_said_to_come_again() -> None:
    job = Job(name="a-1", state=JobState.WAITING, attempt=1, submitted="")
    told = jobs._who_brings(job, Stranded(what="np has no group of VMs", left=0, here=True))
    assert "nothing asks Google for them" in told.why
    assert told.fix == "aiinfra Run --again a-1 --create has them come, here first"
    told = jobs._who_brings(job, Stranded(what="0 of 2 VMs run", left=0))
    assert "may have some here again" in told.why
    assert told.fix.endswith("another way of CAPACITY")


def test_a_loss_counts_on_while_the_queue_lets_a_job_in_that_has_no_machines() -> None:
    lost = Stranded(what="0 of 2 nodes run", left=0)
    deadline = SimpleNamespace(is_over=False)
    context = SimpleNamespace(progress=SimpleNamespace(deadline=lambda *_: deadline))
    there = SimpleNamespace(stranded=lambda _: lost)
    loss = jobs._Loss(cast("Any", context), cast("Any", there), 600.0)

    def look(state: JobState) -> Stranded | None:
        return loss.look(Job(name="a-1", state=state, submitted=""))

    assert look(JobState.WAITING) is None
    deadline.is_over = True
    assert look(JobState.PREPARING) is lost
    assert look(JobState.RUNNING) is None
