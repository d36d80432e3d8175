"""What is kept of a job, as the bucket has it: how long it ran, and what that cost."""

from decimal import Decimal
from types import SimpleNamespace
from typing import Any, cast

import pytest

from provision.actions.jobs import _read, _Reader
from provision.documents.job import Job, JobState, JobTasks
from provision.kinds.job_folder import JobFolder
from provision.kinds.vms.jobs import VmJobs
from provision.state.folder import StateFolder
from tests.table import cases
from tests.unit.memory_folder import MemoryFolder

BEGAN = 1_795_000_000.0
ASKED = {
    "command": ["sh", "-c", "...", "aiinfra-setup", "pip install a", "", "python3", "train.py"],
    "env": {"B": "secret", "A": "1"},
    "machine": {"type": "g2-standard-24", "gpus": 2, "hourly": "2.00"},
    "nodes": 3,
}


def _spent(asked: dict[str, Any], began: str | None, ended: str | None = None) -> Job:
    clock = SimpleNamespace(now=lambda: BEGAN + 1800, cloud=lambda seconds: seconds)
    folder = JobFolder(cast("Any", None), "vms", cast("Any", clock))
    job = folder.record("train-1", asked)
    return folder.spent(Job(**{**vars(job), "began": began, "ended": ended}), asked)


def test_a_job_is_told_as_somebody_wrote_it_and_without_values() -> None:
    job = _spent(ASKED, None)
    assert job.command == ("python3", "train.py")
    assert (job.env, job.machine_type, job.gpus) == (("A", "B"), "g2-standard-24", 2)
    assert "secret" not in str(job)
    assert (job.ran, job.cost) == (None, None)


def test_its_machines_cost_what_they_did_when_it_was_submitted_for_as_long_as_it_ran() -> None:
    began = "2026-11-18T11:06:40Z"
    going = _spent(ASKED, began)
    assert (going.ran, going.cost) == (1800.0, Decimal("3.00"))
    over = _spent(ASKED, began, "2026-11-18T12:06:40Z")
    assert (over.ran, over.cost) == (3600.0, Decimal("6.00"))


def test_what_many_tasks_say_is_asked_of_those_that_have_said_more() -> None:
    shown: list[str] = []
    console = SimpleNamespace(output=shown.append, progress=shown.append)
    logs = "vms/jobs/a-1/logs"
    folder = MemoryFolder({f"{logs}/1/{it}/{0:015d}": f"it {it}\n" for it in range(1, 4)})
    jobs = VmJobs(folder, cast("Any", None))
    readers = [_Reader(jobs, cast("Any", console), it, f"[{it}] ") for it in range(1, 5)]
    tasks = JobTasks(first=1, last=4)
    job = Job(name="a-1", state=JobState.RUNNING, attempt=2, tasks=tasks, submitted="")
    _read(jobs, job, readers)
    assert shown == ["[1] it 1\n", "[2] it 2\n", "[3] it 3\n"]
    folder.files |= {f"{logs}/1/2/{5:015d}": "more\n", f"{logs}/2/3/{0:015d}": "again\n"}
    folder.files[f"{logs}/1/4/no/number"] = folder.files[f"{logs}/x"] = ""
    folder.looked.clear()
    _read(jobs, job, readers)
    assert shown[3:] == ["[2] more\n", "[3] again\n"]
    assert folder.looked == [
        f"{logs}/",
        *(f"{logs}/1/2/", f"{logs}/1/2/{5:015d}"),
        *(f"{logs}/2/3/", f"{logs}/2/3/{0:015d}"),
    ]
    # Of what talks for hours, a list of each task costs less.
    folder.files |= {f"{logs}/1/1/{5 + it:015d}": "" for it in range(4000)}
    assert jobs.newest(job) is None


@cases(
    """
pieces | changes | silent
{a-1/logs/1/0/000: 100, a-1/logs/1/0/700: 900} | {} | 900
{a-1/logs/1/0/000: 100, a-1/logs/1/1/000: 1700} | {} | 1700
{} | {} | 1800
# It has begun again, and said nothing since.
{a-1/logs/1/0/000: 300} | {attempt: 2} | 1500
{a-1/logs/1/0/000: 300, a-1/logs/2/0/000: 1790} | {attempt: 2} | 10
{a-1/logs/1/0/000: 9000} | {} | 0
{a-1/logs/1/0/000: 100} | {state: succeeded} | null
{} | {attempt: 0} | null
"""
)
def test_a_job_that_runs_is_silent_since_rank_0_last_said_something(
    pieces: dict[str, int], changes: dict[str, Any], silent: float | None
) -> None:
    files = MemoryFolder({f"vms/jobs/{name}": b"." for name in pieces})
    files.times = {f"vms/jobs/{name}": BEGAN + at for name, at in pieces.items()}
    clock = SimpleNamespace(now=lambda: BEGAN + 1800, cloud=lambda seconds: seconds)
    folder = JobFolder(files, "vms", cast("Any", clock))
    state = JobState(changes.pop("state", "running"))
    began = "2026-11-18T11:06:40Z"
    of = {"attempt": 1, "began": began, "submitted": began, **changes}
    assert folder.heard(Job(name="a-1", state=state, **of)).silent == silent


@pytest.mark.parametrize("hourly", ["", "1e9999", "-5", "NaN", 7.0, None, "9" * 30])
def test_a_price_that_is_none_is_not_counted(hourly: object) -> None:
    asked = ASKED | {"machine": {"type": "a", "hourly": hourly}}
    job = _spent(asked, "2026-11-18T11:06:40Z")
    assert job.ran == 1800.0
    assert job.cost is None or hourly == 7.0


@pytest.mark.parametrize(
    ("credentials", "caller"),
    [
        ({"service_account_email": "a@p.iam.gserviceaccount.com"}, "a@p.iam.gserviceaccount.com"),
        ({"service_account_email": "default", "account": ""}, ""),
        ({"account": "somebody@example.com"}, "somebody@example.com"),
    ],
)
def test_who_asks_is_known_where_the_credentials_say_it(
    credentials: dict[str, str], caller: str
) -> None:
    folder = SimpleNamespace(_credentials=SimpleNamespace(**credentials))
    get = cast("property", vars(StateFolder)["caller"]).fget
    assert get is not None
    assert get(cast("Any", folder)) == caller
