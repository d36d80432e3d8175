"""What the head asks of Slurm, and writes, for the jobs of Run."""

import json
import os
import time
from types import SimpleNamespace
from typing import Any, cast

import pytest
from aiinfra_vm import (
    configuration,
    idle,
    jobs,
    slurm_course,
    slurm_ends,
    slurm_jobs,
    slurm_others,
    slurm_queue,
    storage,
)
from aiinfra_vm.slurm_jobs import SlurmJobs, user_of
from aiinfra_vm.slurm_queue import Entry, Node, Refused, Request

from provision.kinds.vms.jobs import VmJobs
from provision.time.clock import Clock
from tests.unit.memory_folder import MemoryFolder


class Folder:
    """An object's content by its name; each write is a new generation."""

    def __init__(self) -> None:
        self.objects: dict[str, tuple[bytes, storage.Version]] = {}
        self.written: list[str] = []
        self.listed = 0

    def put(self, name: str, document: Any) -> None:
        text = document if isinstance(document, bytes) else storage.encoded(document)
        before = self.objects.get(name)
        generation = before[1].generation + 1 if before else 1
        self.objects[name] = text, storage.Version(name, generation, 1)

    def read(self, name: str, unless: int = 0) -> Any:
        found = self.objects.get(name)
        if found and found[1].generation == unless:
            raise storage.Unchanged
        return found

    def write(self, name: str, document: Any, over: storage.Version | None = None) -> Any:
        found = self.objects.get(name)
        there = found[1].generation if found else 0
        if over is not None and over.generation != there:
            return None
        self.put(name, document)
        self.written.append(name)
        return self.objects[name][1]

    def list(self, prefix: str) -> Any:
        self.listed += 1
        return [it for name, (_, it) in self.objects.items() if name.startswith(prefix)]


class Queue:
    """Slurm, as far as it is asked."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.submitted: list[Request] = []
        self.cancelled: list[str] = []
        self.said: list[tuple[Any, ...]] = []
        self.refuses = ""

    def jobs(self) -> list[Entry]:
        return list(self.entries)

    def nodes(self) -> list[Node]:
        return [Node(f"vm-{number}", "idle", "", 8, 0) for number in range(3)]

    def submit(self, request: Request, environment: dict[str, str]) -> None:
        assert environment["PYTHONPATH"]
        if request.name == "stuck-1":
            raise OSError("sbatch: timed out")
        if self.refuses:
            raise Refused(self.refuses)
        self.submitted.append(request)

    def cancel(self, numbers: Any) -> None:
        self.cancelled.extend(numbers)

    def lengthen(self, number: str) -> None:
        self.said.append(("lengthen", number))

    def drain(self, node: str, why: str) -> None:
        self.said.append(("drain", node, why))

    def reserve(self, node: str, begins: float) -> None:
        self.said.append(("reserve", node, begins))


class World:
    """A head, its queue, and the state folder."""

    def __init__(self) -> None:
        self.wanted, self.shared, self.queue = Folder(), Folder(), Queue()
        members = [
            {"rank": it, "present": True, "name": f"vm-{it}", "instance_id": str(10 + it),
             "address": f"10.0.0.{it}", "boot": ""}
            for it in range(3)
        ]  # fmt: skip
        self.shared.put("roster.json", {"nnodes": 3, "generation": 1, "members": members})
        self.ask()
        self.head = self.another()

    def another(self) -> SlurmJobs:
        return SlurmJobs(*cast("Any", (self.wanted, self.shared, self.queue)))

    def ask(self, *names: str, cancelled: bool = False, **more: Any) -> None:
        for name in names:
            self.wanted.put(f"{name}.json", {"name": name, "command": ["true"], **more})
        listed = [{"name": name, "cancelled": cancelled} for name in names]
        self.wanted.put("index.json", {"jobs": listed})

    def course(self, name: str) -> jobs.Course:
        return jobs.course(self.shared.objects[jobs.course_of(name)][0])


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    """A head of three VMs with eight GPUs each."""
    monkeypatch.setattr(configuration, "load", lambda: {"gpus": {"count": 8}})
    return World()


def test_each_job_has_a_user_of_its_own_and_the_same_for_each_attempt(world: World) -> None:
    # Two names that would have the same.
    first = user_of("train-1", [])
    twin = next(f"a-{it}" for it in range(10_000) if user_of(f"a-{it}", []) == first)
    world.ask("train-1", twin, nodes=1)
    world.head.tend()
    users = {it.name: it.user for it in world.queue.submitted}
    assert users["train-1"] == first
    assert users[twin] != first
    own = [Entry("7", first, "train-1", "RUNNING", job="train-1", attempt=1)]
    assert user_of("train-1", own) == first
    assert user_of(twin, own) != first
    assert user_of(twin, [own[0]._replace(state="COMPLETED")]) == first


def test_a_job_waits_for_a_user_where_all_have_a_job(world: World) -> None:
    names = [f"train-{it}" for it in range(70)]
    world.ask(*names, nodes=1)
    world.head.tend()
    assert len({it.user for it in world.queue.submitted}) == len(world.queue.submitted) == 64
    (why,) = {world.course(it).why for it in names[64:]}
    assert why == "Slurm has 64 jobs of Run already, and each has a user of its own"


def test_it_asks_for_whole_vms_or_for_parts_and_for_whole_minutes(world: World) -> None:
    world.ask("train-1", seconds=3601)
    world.head.tend()
    (whole,) = world.queue.submitted
    assert (whole.nodes, whole.gpus, whole.all_gpus, whole.minutes) == (3, None, 8, 66)
    array = {"first": 0, "last": 63, "most": 8}
    world.ask("eval-1", gpus=1, array=array)
    world.head.tend()
    part = world.queue.submitted[-1]
    assert (part.nodes, part.gpus, part.minutes, part.array) == (1, 1, None, "0-63%8")


def test_a_course_is_written_only_when_it_has_changed_and_over_nobodys_newer_one(
    world: World,
) -> None:
    world.ask("train-1")
    world.head.tend()
    world.queue.entries = [
        Entry(
            "7",
            "aiinfra-job-01",
            "train-1",
            "PENDING",
            job="train-1",
            attempt=1,
            reason="Resources",
        )
    ]
    for _ in range(3):
        world.head.tend()
    assert world.shared.written == ["jobs/train-1/course.json"] * 2
    # Another head has gone on; this one, which is none any longer, leaves it so, and reads it.
    later = world.course("train-1")._replace(why="of another head")
    world.shared.put("jobs/train-1/course.json", later.document())
    world.queue.entries[0] = world.queue.entries[0]._replace(reason="BeginTime")
    world.head.tend()
    assert world.course("train-1").why == "of another head"
    world.head.tend()
    assert world.course("train-1").why == "it begins again in a moment"


def test_what_vms_say_is_looked_at_seldom_but_never_late(world: World) -> None:
    world.ask("train-1", nodes=1)
    entry = Entry("7", "aiinfra-job-01", "train-1", "PENDING", job="train-1", attempt=1)
    world.queue.entries = [entry]
    for _ in range(3):
        world.head.tend()
    assert world.shared.listed == 1
    world.queue.entries = [entry._replace(state="RUNNING", nodes=("vm-1",))]
    report = {"attempt": 1, "instance_id": "11", "phase": "running"}
    world.shared.put("jobs/train-1/nodes/vm-1.json", report)
    for _ in range(4):
        world.head.tend()
    assert world.course("train-1").state is jobs.State.RUNNING
    assert world.shared.listed <= 3
    world.shared.put("jobs/train-1/nodes/vm-1.json", report | {"phase": "ended", "code": 0})
    world.queue.entries = [entry._replace(state="COMPLETED", nodes=("vm-1",))]
    world.head.tend()
    assert world.course("train-1").state is jobs.State.SUCCEEDED


def test_a_head_that_knows_nothing_finds_the_jobs_in_the_queue(world: World) -> None:
    world.ask("train-1")
    world.head.tend()
    entry = Entry("7", "aiinfra-job-01", "train-1", "PENDING", job="train-1", attempt=1)
    world.queue.entries = [entry]
    world.another().tend()
    assert len(world.queue.submitted) == 1
    # Its copy of Slurm's state was older than the job.
    world.queue.entries = []
    world.another().tend()
    assert [(it.name, it.attempt) for it in world.queue.submitted] == [("train-1", 1)] * 2


def test_what_slurm_refuses_waits_with_its_words_and_is_asked_again_later(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.ask("train-1")
    world.queue.refuses = "Requested node configuration is not available"
    world.head.tend()
    assert world.course("train-1").why == f"Slurm refuses it: {world.queue.refuses}"
    world.queue.refuses = ""
    world.head.tend()
    assert not world.queue.submitted
    monkeypatch.setattr(slurm_jobs, "_AGAIN", 0.0)
    world.head.tend()
    assert len(world.queue.submitted) == 1


def test_what_nobody_wants_is_cancelled_and_the_jobs_of_others_are_not(world: World) -> None:
    world.queue.entries = [
        Entry("7", "aiinfra-job-01", "old-1", "RUNNING", job="old-1", attempt=1),
        Entry("8", "ana", "mine", "RUNNING"),
    ]
    world.head.tend()
    assert world.queue.cancelled == ["7"]
    world.ask("train-1", cancelled=True)
    world.head.tend()
    assert world.course("train-1").state is jobs.State.CANCELLED
    assert not world.queue.submitted


def test_what_a_job_has_sent_itself_ends_with_it_and_not_before(world: World) -> None:
    own = Entry("7", "aiinfra-job-01", "train-1", "RUNNING", job="train-1", attempt=1)
    sent = Entry("8", "aiinfra-job-01", "more", "PENDING")
    world.ask("train-1")
    world.queue.entries = [own, sent, Entry("9", "ana", "mine", "RUNNING")]
    world.head.tend()
    assert world.queue.cancelled == []
    world.queue.entries[0] = own._replace(state="COMPLETED")
    world.head.tend()
    assert world.queue.cancelled == ["8"]


def test_whatever_attempt_a_program_claims_the_next_one_is_found_in_the_queue(
    world: World,
) -> None:
    world.ask("train-1")
    told = jobs.Report(10**6, "10", jobs.Phase.ENDED, 0, at=time.time())
    world.shared.put(jobs.report_of("train-1", "vm-0"), told.document())
    world.head.tend()
    (request,) = world.queue.submitted
    (comment,) = (it for it in slurm_queue.options(request) if it.startswith("--comment="))
    found = slurm_queue.COMMENT.fullmatch(comment.partition("=")[2])
    assert found
    assert found.groups() == ("train-1", str(10**6 + 1))


def test_one_that_can_not_be_read_does_not_keep_the_others(world: World) -> None:
    world.ask("stuck-1", "bad-1", "good-1")
    world.wanted.put("bad-1.json", {"name": "bad-1", "command": []})
    with pytest.raises(OSError, match="stuck-1: sbatch: timed out"):
        world.head.tend()
    assert world.course("bad-1").state is jobs.State.FAILED
    assert [it.name for it in world.queue.submitted] == ["good-1"]


def test_a_course_that_speaks_of_another_job_is_begun_again_and_harms_neither(
    world: World,
) -> None:
    world.ask("train-1", "other-1", nodes=1)
    spoiled = jobs.Course("other-1", jobs.State.SUCCEEDED, since=1.0)
    world.shared.put(jobs.course_of("train-1"), spoiled.document())
    world.head.tend()
    assert [it.name for it in world.queue.submitted] == ["train-1", "other-1"]
    assert world.course("train-1").name == "train-1"


@pytest.mark.parametrize(
    ("of_report", "of_course"),
    [
        ('"why": ' + "[" * 100_000, '"why": ' + '{"a":' * 100_000),
        ('"doubts": 5}', '"events": 5}'),
        ('"at": NaN}', '"since": Infinity}'),
        (f'"ran": {"9" * 400}}}', f'"began": {"9" * 400}}}'),
    ],
    ids=["deep", "lists", "no_numbers", "huge"],
)
def test_what_somebody_has_spoiled_is_nobodys_word_and_does_not_end_the_head(
    world: World, of_report: str, of_course: str
) -> None:
    world.ask("train-1", "other-1", nodes=1)
    report = f'{{"attempt": 1, "phase": "running", {of_report}'
    world.shared.put("jobs/train-1/nodes/vm-1.json", report.encode())
    course = f'{{"name": "other-1", "state": "failed", {of_course}'
    world.shared.put(jobs.course_of("other-1"), course.encode())
    world.head.tend()
    assert [it.attempt for it in world.queue.submitted] == [1, 1]


def test_the_tool_is_told_of_the_vms_and_of_the_jobs_of_others(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slurm_others, "_EVERY", 0.0)
    others = slurm_others.SlurmOthers(*cast("Any", (world.shared, world.queue)))
    about: dict[str, Any] = {"nodes": ("vm-1",), "wants": 1, "gpus": 2, "since": 1795934258.0}
    world.queue.entries = [
        Entry("12_3", "ana", "train.sh", "COMPLETING", task=3, **about),
        Entry("7", "aiinfra-job-01", "train-1", "RUNNING", job="train-1", attempt=1),
        Entry("11", "ana", "over", "COMPLETED"),
        Entry("13", "bo", "", "PENDING", reason="ReqNodeNotAvail, May be reserved for other job"),
    ]
    others.tell()
    others.tell()
    assert sorted(world.shared.written) == ["jobs.json", "nodes.json"]
    told = json.loads(world.shared.objects["jobs.json"][0])
    expected: dict[str, Any] = {
        "name": "12_3",
        "user": "ana",
        "title": "train.sh",
        "state": "RUNNING",
        "why": "",
    }
    expected |= {"since": "2026-11-29T06:37:38Z", "nodes": 1, "gpus": 2}
    waits = {"name": "13", "user": "bo", "title": "", "state": "PENDING", "gpus": 0}
    waits |= {"why": slurm_course._KEPT, "since": told["jobs"][1]["since"], "nodes": 1}
    assert told == {"jobs": [expected, waits]}
    nodes = json.loads(world.shared.objects["nodes.json"][0])
    assert nodes["nodes"][0] == {
        "name": "vm-0", "state": "idle", "reason": "", "gpus": 8, "gpus_in_use": 0,
    }  # fmt: skip


def test_a_vm_says_when_it_ends_and_begins_nothing_after_googles_notice() -> None:
    queue = Queue()
    ends = slurm_ends.Ends("vm-1", 2000.0, cast("Any", queue))
    ends.tend()
    ends.tend()
    assert queue.said == [("reserve", "vm-1", 2000.0)]
    ends.notice("Google takes this VM back (preemption)")
    ends.tend()
    expected = ("drain", "vm-1", "aiinfra: Google takes this VM back (preemption)")
    assert queue.said[1:] == [expected]


def test_what_waits_for_nobody_is_work(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = Entry("7", "ana", "mine", "PENDING", reason="Resources")
    for state, reason, is_work in (
        ("PENDING", "Resources", True),
        ("RUNNING", "", True),
        ("PENDING", "JobHeldUser", False),
        ("PENDING", "PartitionNodeLimit", False),
        ("COMPLETED", "", False),
    ):
        found = [entry._replace(state=state, reason=reason)]
        monkeypatch.setattr(slurm_queue, "jobs", lambda found=found: found)
        monkeypatch.setattr(idle, "_said", lambda *_: "")
        monkeypatch.setattr(os, "getloadavg", lambda: (0.0, 0.0, 0.0))
        assert bool(idle.work(False, True)) is is_work, (state, reason)


def test_what_the_head_and_the_vms_write_of_tasks_is_what_the_tool_reads(world: World) -> None:
    world.ask("eval-1", gpus=1, array={"first": 4, "last": 6, "most": None})
    world.head.tend()
    own = Entry("7_4", "aiinfra-job-01", "eval-1", "RUNNING", 4, "eval-1", 1, nodes=("vm-1",))
    later = own._replace(number="7_6", task=6, state="PENDING", nodes=(), reason="Resources")
    world.queue.entries = [own, own._replace(number="7_5", task=5), later]
    for index, code in ((4, None), (5, 3)):
        phase = jobs.Phase.RUNNING if code is None else jobs.Phase.ENDED
        told = jobs.Report(1, "101", phase, code, at=time.time() - 60, ran=code and 60.0)
        world.shared.put(jobs.report_of("eval-1", jobs.task(index)), told.document())
    world.head.tend()
    other = slurm_others._document(own._replace(number="9", user="ana", job=""), [])
    files = {f"jobs/{name}": it for name, (it, _) in world.wanted.objects.items()}
    files |= {f"vms/{name}": it for name, (it, _) in world.shared.objects.items()}
    files["vms/slurm/jobs.json"] = storage.encoded({"jobs": [other]})
    folder = MemoryFolder(cast("Any", files))
    record = SimpleNamespace(settings={"ORCHESTRATOR_TYPE": "slurm"})
    monkeyed: Any = folder
    monkeyed.record = lambda: record
    tool = VmJobs(folder, Clock())

    found = tool.find("eval-1")
    assert found is not None
    tasks = tool.whole(found).tasks
    assert tasks is not None
    assert (found.state, tasks.running, tasks.which_failed) == ("running", 2, (5,))
    theirs = tool.find("9")
    assert theirs is not None
    assert (theirs.by, theirs.state) == ("ana", "running")
