"""What the tool tells a group of VMs, and reads of what they have agreed on."""

import datetime as dt
import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from provision.deployment.kind import Stranded
from provision.documents.job import Job, JobState
from provision.documents.vm_status import StartupStep
from provision.errors import SettingsError
from provision.kinds.vms import agent
from provision.kinds.vms.jobs import MAY_ASK, VmJobs
from provision.screens import jobs as screen
from provision.spec.job import JobSpec
from provision.state.objects import Change
from provision.time.clock import Clock
from tests.unit.kinds.cases import having, problem_of
from tests.unit.memory_folder import MemoryFolder, watching


def _cloud(folder: MemoryFolder) -> Any:
    return having(folder=folder)


def _spec(size: int) -> Any:
    group = having(size=having(first=size))
    return having(group=group)


def test_the_number_of_vms_is_written_once_and_accounts_and_faults_are_read() -> None:
    folder = MemoryFolder()
    for size in (3, 3, 4):
        agent.tell_size(_cloud(folder), _spec(size), is_new=False)
    assert folder.written == ['{"instance_count": 3}', '{"instance_count": 4}']
    seat = AWAY | {"faults": ["NVRM: Xid 79"]}
    folder = MemoryFolder({"vms/roster.json": json.dumps({"members": [seat]})})
    (found,) = agent.heard(_cloud(folder)).seats.values()
    assert (found.rank, found.faults) == (None, ("NVRM: Xid 79",))
    members = [
        {"instance_id": "1", "account": "103271949540120710052", "present": False},
        {"instance_id": "2", "account": "1; rm -rf ~"},
        {"instance_id": "3", "account": None},
    ]
    folder = MemoryFolder({"vms/roster.json": json.dumps({"members": members})})
    assert agent.accounts(folder) == {"1": "103271949540120710052"}


@pytest.mark.parametrize(
    ("renewed", "said"),
    [
        ("2026-11-28T20:00:30Z", ()),
        ("2026-11-28T21:00:00Z", ("its clock is 1 h 0 min ahead of Google's",)),
        ("2026-11-27T20:00:00Z", ("its clock is 1 d 0 h behind Google's",)),
        ("soon", ()),
        (None, ()),
    ],
)
def test_a_clock_that_is_wrong_is_seen_in_what_a_vm_writes(
    renewed: str | None, said: tuple[str, ...]
) -> None:
    at = dt.datetime(2026, 11, 28, 20, tzinfo=dt.UTC).timestamp()
    beats = {"np-vm-a": Change(at, {"renewed": renewed} if renewed else {})}
    heard = agent.Heard({}, beats, {})
    assert heard.clock("np-vm-a") == said
    assert heard.clock("np-vm-b") == ()


@pytest.mark.parametrize(
    "text",
    [None, "", "[]", "no JSON", '{"members": {"a": 1}}', '{"members": [{"name": "a"}]}'],
    ids=str,
)
def test_a_roster_that_is_missing_or_spoiled_ranks_nobody(text: str | None) -> None:
    folder = MemoryFolder({} if text is None else {"vms/roster.json": text})
    assert agent.heard(_cloud(folder)).seats == {}
    assert agent.accounts(folder) == {}


AWAY = {"name": "a", "rank": 0, "present": False}
MINUTE = 60.0


def _silence(
    *,
    seat: dict[str, object] | None = None,
    beat: float | None = None,
    step: str = "done",
    age: float = 60 * MINUTE,
) -> str:
    """What is said of a VM, all of whose moments are so many seconds ago."""
    now = time.time()
    folder = MemoryFolder(now=now - (beat or 0))
    if seat is not None:
        folder.files["vms/roster.json"] = json.dumps({"members": [seat]})
    if beat is not None:
        folder.files["vms/members/a.json"] = "{}"
    heard = agent.heard(_cloud(folder))
    steps = {"agent": StartupStep(state=step)} if step else {}
    return heard.silence("a", steps, _moment(now - age), Clock())


def _moment(at: float) -> str:
    return dt.datetime.fromtimestamp(at, dt.UTC).isoformat()


def test_a_vm_is_heard_of_by_its_heart_or_by_the_others_and_silent_soon_after_its_start() -> None:
    assert not _silence(seat=AWAY, beat=2 * MINUTE)
    assert not _silence(seat=None, beat=2 * MINUTE), "it is more than the group is to have"
    found = _silence(seat=AWAY | {"present": True}, beat=12 * MINUTE)
    assert found == "has not been heard of for 12 min"
    since = _moment(time.time() - 20 * MINUTE)
    assert _silence(seat=AWAY | {"since": since}) == "has not been heard of for 20 min"
    assert _silence(seat=AWAY) == "has not been heard of"
    assert not _silence(seat=AWAY | {"present": True}), "it is about to be listed"
    assert not _silence(age=4 * MINUTE)
    assert _silence(age=6 * MINUTE) == "has not been heard of"
    assert not _silence(step="failed"), "its step says why"


@pytest.mark.parametrize("since", [7, "x", "9999-99-99", None], ids=str)
def test_a_moment_that_is_none_makes_no_vm_heard_of(since: object) -> None:
    assert _silence(seat=AWAY | {"since": since}) == "has not been heard of"


@pytest.mark.parametrize("step", ["", "running", "skipped"])
def test_a_vm_that_is_not_to_say_anything_yet_or_at_all_is_not_silent(step: str) -> None:
    """VMs of an earlier version have no such step; a VM that was made again has not come to it."""
    assert not _silence(seat=AWAY, step=step)
    assert not _silence(beat=12 * MINUTE, step=step)


@pytest.mark.parametrize("text", ["", "[]", '{"state": 7}', "no JSON"])
def test_an_answer_that_a_program_has_spoiled_is_a_failure(text: str) -> None:
    answer = agent.Answer.of(text.encode())
    assert answer.is_over
    assert answer.failure == "failed: its answer can't be read"


ASKED = json.dumps(
    {"name": "train-1", "nodes": None, "restarts": 1, "submitted": "2026-11-23T10:00:00.000Z"}
)
JOB, INDEX, NOW, RAY = "jobs/train-1.json", "jobs/index.json", "vms/job.json", "ray/jobs.json"


def _jobs(texts: dict[str, str], lost: str = "", stranded: Stranded | None = None) -> VmJobs:
    """The jobs of a folder, by the texts of its objects; `lost`: why VMs hear of none."""
    return VmJobs(MemoryFolder(dict(texts)), Clock(), watching(lost, stranded))


def _train(name: str, text: str, *, lost: str = "", **more: str) -> Job:
    """The job of Run, in a folder with one more object."""
    found = _jobs({JOB: ASKED, name: text, **more}, lost).find("train-1")
    assert found is not None
    return found


@pytest.mark.parametrize("text", ["", "[", "[]", "null", '{"name": "other-1"}', '{"jobs": [1]}'])
def test_what_is_spoiled_is_a_job_of_which_nobody_has_heard(text: str) -> None:
    found = _train(NOW, text)
    assert found.state is JobState.WAITING
    assert "have not taken note" in found.why


@pytest.mark.parametrize("course", ["{}", '{"name": "train-1", "state": "waiting"}'])
def test_a_job_of_which_vms_can_not_hear_says_so_until_it_is_under_way(course: str) -> None:
    why = "np-vm-a acts as x, a service account that was deleted"
    found = _train(NOW, course, lost=why)
    assert (found.state, found.why) == (JobState.WAITING, why)
    running = _train(NOW, course.replace("waiting", "running"), lost=why)
    assert (running.why == why) == (course == "{}")


@pytest.mark.parametrize(
    ("state", "left", "failures", "shown", "final", "kind"),
    [
        ("running", 0, 1, JobState.WAITING, False, "none"),
        ("running", 0, 2, JobState.FAILED, True, "none"),
        ("running", 0, 2, JobState.WAITING, False, "slurm"),  # its queue goes with its head
        ("preparing", 0, 2, JobState.WAITING, False, "none"),
        ("running", 1, 2, JobState.RUNNING, False, "none"),
        ("waiting", 1, 2, JobState.WAITING, False, "none"),
    ],
)
def test_a_job_without_machines_waits_whatever_was_last_heard_of_it(  # noqa: PLR0913, PLR0917 - a case
    state: str,
    left: int,
    failures: int,
    shown: JobState,
    final: bool,  # noqa: FBT001 - a case
    kind: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lost = Stranded(what="z-a has no x available now", left=left)
    course = {"name": "train-1", "state": state, "attempt": 3, "failures": failures}
    texts = {JOB: json.dumps(json.loads(ASKED) | {"restarts": 2}), NOW: json.dumps(course)}
    record = having(settings={"ORCHESTRATOR_TYPE": kind})
    monkeypatch.setattr(MemoryFolder, "record", lambda _: record)
    jobs = _jobs(texts, stranded=lost)
    job = jobs.find("train-1")
    assert job is not None
    assert (job.state, lost.what in job.why) == (shown, shown is not JobState.RUNNING)
    found = jobs.stranded(job)
    assert found is not None
    assert (found.what, found.final) == (lost.what, final)


@pytest.mark.parametrize(
    ("seconds", "limit", "words"),
    [
        (None, None, "until it ends: $528 a day, which --time limits"),
        (3600, None, "until --time (1 hour) is over"),
        (None, 43200, "until it ends"),
    ],
)
def test_what_a_job_takes_of_vms_that_are_there_has_its_price(
    seconds: int | None, limit: int | None, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = {"type": "a3-highgpu-8g", "gpus": 8, "hourly": "11.00"}
    folder = MemoryFolder({"vms/group.json": '{"instance_count": 4}'})
    record = having(settings={"MAX_RUN_DURATION": limit})
    monkeypatch.setattr(folder, "record", lambda: record)
    jobs = VmJobs(folder, Clock(), watching(), lambda: machine)
    found = jobs.needs(JobSpec(name="train", command=("true",), nodes=2, seconds=seconds))
    assert found
    assert found.words == f"The job takes 2 of 4 VMs, 16 GPUs, there already at $22.00/h, {words}"
    assert not found.more


@pytest.mark.parametrize(
    ("knows", "age", "asked", "told"),
    [
        (None, 60, {"mounts": ("m",)}, "--mount"),
        ("image secrets", 60, {"mounts": ("m",), "image": "i", "secrets": ("s",)}, "--mount"),
        ("image", 60, {"secrets": ("s",), "mounts": ("m",)}, "--secret, --mount"),
        (None, 60, {"image": "i", "restart_on": "any"}, ""),
        (None, 60, {}, ""),
        (" ".join(MAY_ASK), 60, dict.fromkeys(MAY_ASK, ("x",)), ""),
        (None, 600, {"mounts": ("m",)}, ""),  # it is gone
    ],
)
def test_a_job_that_asks_for_what_a_living_vm_does_not_know_is_refused(
    knows: str | None, age: float, asked: dict[str, Any], told: str
) -> None:
    beat = "vms/members/np-vm-a.json"
    folder = MemoryFolder({beat: "{}"}, now=time.time() - age)
    folder.notes[beat] = {} if knows is None else {"knows": knows}
    spec = JobSpec(name="train", command=("true",), **asked)
    jobs = VmJobs(folder, Clock())
    if not told:
        jobs._require_known(spec)
        return
    problem = problem_of(SettingsError, jobs._require_known, spec)
    assert problem.what == f"np-vm-a is of an older version, which may not know {told}"
    assert problem.fix.startswith("Create --replace-vms")


_ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=6,
)


@given(st.fixed_dictionaries({}, optional=dict.fromkeys(
    ("state", "why", "nodes", "attempt", "since", "began", "ends", "failure", "events"), _ANY
)))  # fmt: skip
def test_any_course_at_all_is_shown_as_something(course: dict[str, Any]) -> None:
    try:
        text = json.dumps({**course, "name": "train-1"}, allow_nan=False)
    except ValueError:
        return
    found = _train(NOW, text)
    assert screen.words(found) is not None
    assert screen.whole(found)
    assert screen.lines([found])


def test_a_job_names_the_one_before_it_or_how_it_failed_with_code_cause_and_machine() -> None:
    order = {INDEX: json.dumps({"jobs": [{"name": "first-1"}, {"name": "train-1"}]})}
    found = _train(NOW, json.dumps({"name": "first-1", "state": "running"}), **order)
    assert (found.place, found.why) == (1, "first-1 is before it")
    over = json.dumps({"name": "first-1", "state": "succeeded"})
    assert _train("vms/jobs/first-1/course.json", over, **order).place == 0
    failure = {"vm": "vm-b", "rank": 1, "code": 137, "cause": "out of memory", "tail": "x"}
    course = {"name": "train-1", "state": "failed", "failure": failure, "since": 1.0}
    found = _train("vms/jobs/train-1/course.json", json.dumps(course))
    assert screen.words(found) == "exit code 137: out of memory, first on vm-b (rank 1)"
    assert found.ended == "1970-01-01T00:00:01.000Z"


def test_a_job_whose_run_was_killed_before_it_had_a_place_can_be_cancelled() -> None:
    folder = MemoryFolder({
        JOB: ASKED,
        INDEX: json.dumps({"jobs": [{"name": "first-1"}]}),
    })  # fmt: skip
    jobs = VmJobs(folder, Clock(), watching())
    job = jobs.find("train-1")
    assert job is not None
    assert job.state is JobState.WAITING
    for _ in range(2):
        jobs.cancel(job)
        assert json.loads(folder.files[INDEX])["jobs"] == [
            {"name": "first-1", "cancelled": False},
            {"name": "train-1", "cancelled": True},
        ]


def _of_ray(*jobs: tuple[object, object, object]) -> dict[str, str]:
    """What others run on Ray: name, state, and since when."""
    told = [dict(zip(("name", "state", "since"), job, strict=True)) for job in jobs]
    return {RAY: json.dumps({"jobs": told})}


def test_what_others_run_on_ray_is_listed_first_and_cancelled_by_rays_own_command() -> None:
    others = _of_ray(
        ("raysubmit_x", "RUNNING", 1764000000.5),
        ("02000000", "PENDING", 0),
        ("train-1", "RUNNING", 0),
    )
    jobs = _jobs({JOB: ASKED} | others)
    assert jobs.names() == ["raysubmit_x", "02000000", "train-1"]
    running, pending, ours = (jobs.find(name) for name in jobs.names())
    assert running
    assert pending
    assert ours
    assert (running.state, pending.state) == (JobState.RUNNING, JobState.WAITING)
    assert running.began == running.submitted == "2025-11-24T16:00:00.500Z"
    assert pending.began is None
    assert "have not taken note" in ours.why
    text = "\n".join(line.text for line in screen.lines([running, pending]))
    assert text.count("ray job logs") == 2
    assert "0 machines" not in text
    jobs = _jobs(_of_ray(("raysubmit_x", "RUNNING", 1)))
    job = jobs.find("raysubmit_x")
    assert job is not None
    with pytest.raises(SettingsError) as caught:
        jobs.cancel(job)
    assert "ray job stop raysubmit_x" in (caught.value.problems[0].fix or "")


@given(_ANY, _ANY, _ANY)
def test_any_job_of_others_at_all_is_shown_as_something_or_not_at_all(
    name: object, state: object, since: object
) -> None:
    for one in (state, "RUNNING"):
        try:
            jobs = _jobs(_of_ray((name, one, since)))
        except ValueError:
            return
        assert screen.lines([it for it in map(jobs.find, jobs.names()) if it])
