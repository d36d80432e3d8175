"""Jobs of a group whose queue is Slurm's: side by side, in parts of machines, and with tasks."""

import json
from decimal import Decimal
from typing import Any, cast

import pytest

from provision.documents.job import Job, JobState
from provision.errors import ClusterError, SettingsError
from provision.kinds.vms.jobs import VmJobs
from provision.screens import jobs as screen
from provision.settings.job_options import JobArray
from provision.spec.job import JobSpec
from provision.time.clock import Clock
from tests.unit.kinds.cases import having
from tests.unit.memory_folder import MemoryFolder

MACHINE = {"type": "a3-highgpu-8g", "gpus": 8, "hourly": "11.00"}
ASKED = {"name": "s-1", "nodes": 1, "gpus": None, "array": None, "restarts": 1, "machine": MACHINE}
SWEEP = {**ASKED, "gpus": 1, "array": {"first": 0, "last": 63, "most": 8}}
COUNTS = {"waiting": 4, "running": 8, "succeeded": 50, "failed": 2, "cancelled": 0}
ROSTER = {"members": [{"name": "vm-b", "instance_id": "7", "rank": 1}]}


def _jobs(files: dict[str, Any], kind: str = "slurm") -> VmJobs:
    texts: dict[str, str | bytes] = {name: json.dumps(it) for name, it in files.items()}
    folder = MemoryFolder(texts)
    record = having(settings={"ORCHESTRATOR_TYPE": kind}, project_id="p", zone="z")
    folder.record = lambda: record  # type: ignore[method-assign]
    return VmJobs(folder, Clock(), machine=lambda: MACHINE)


def _course(state: str, **more: Any) -> dict[str, Any]:
    return {"name": "s-1", "state": state, "attempt": 1, "began": 1e9, "since": 1e9 + 60, **more}


def _found(asked: dict[str, Any], course: dict[str, Any] | None, **files: Any) -> Job:
    told = {"vms/jobs/s-1/course.json": course} if course else {}
    job = _jobs({"jobs/s-1.json": asked, **told, **files}).find("s-1")
    assert job is not None
    return job


def test_each_job_is_as_far_as_its_own_course_and_waits_for_what_that_says() -> None:
    order = {"jobs/index.json": {"jobs": [{"name": it} for it in ("a-1", "s-1")]}}
    earlier = {**order, "vms/jobs/a-1/course.json": {"name": "a-1", "state": "running"}}
    waits = _course("waiting", attempt=0, began=None, why="a-1 has the GPUs (Resources)")
    job = _found(ASKED, waits, **earlier)
    assert (job.state, job.why, job.place) == (JobState.WAITING, waits["why"], 1)
    assert _found(ASKED, _course("running"), **earlier).place == 0
    assert "have not taken note" in _found(ASKED, None, **earlier).why
    # A course that is there tells of no end.
    courses = {"jobs/s-1.json": ASKED, "vms/jobs/s-1/course.json": _course("running"), **order}
    assert list(_jobs(courses).unfinished(every=True)) == ["a-1", "s-1"]
    courses["vms/jobs/s-1/course.json"] = _course("failed")
    assert list(_jobs(courses).unfinished(every=True)) == ["a-1"]
    # What is no state tells of no end either, and is not passed over where jobs would be lost.
    nonsense: list[Any] = ["odd", [], {}, None]
    for strange in nonsense:
        courses["vms/jobs/s-1/course.json"] = _course("failed") | {"state": strange}
        assert list(_jobs(courses).unfinished(every=True)) == ["a-1", "s-1"]


def test_a_list_of_many_jobs_that_wait_reads_no_job_for_each_that_is_behind_it() -> None:
    names = [f"s-{it}" for it in range(1, 31)]
    files: dict[str, Any] = {f"jobs/{it}.json": {**ASKED, "name": it} for it in names}
    waits = {"state": "waiting", "why": "it waits for GPUs that are in use"}
    files |= {f"vms/jobs/{it}/course.json": {**waits, "name": it} for it in names}
    files["jobs/index.json"] = {"jobs": [{"name": it} for it in names]}
    jobs = _jobs(files)
    found = [jobs.find(it) for it in names]
    assert [it.place for it in found if it] == list(range(30))
    read = cast("MemoryFolder", jobs._folder).looked
    assert len([it for it in read if it.endswith("course.json")]) <= 2 * len(names)


def test_a_job_of_tasks_is_one_line_that_says_how_many_are_how_far() -> None:
    job = _found(SWEEP, _course("running", tasks=COUNTS))
    assert screen.words(job) == "50 of 64 done, 8 run, 4 wait, 2 failed"
    assert job.ranks == range(64)
    failure = {"vm": "vm-b", "rank": 7, "code": 3, "cause": "", "tail": "no data"}
    over = {**COUNTS, "waiting": 0, "running": 0, "succeeded": 62}
    job = _found(SWEEP, _course("failed", tasks=over, failure=failure))
    assert screen.words(job) == "2 of 64 tasks failed: exit code 3, first 7 on vm-b"
    job = _found(
        {**SWEEP, "array": {"first": 7, "last": 7, "most": None}},
        _course("failed", tasks={**over, "failed": 1, "succeeded": 0}, failure=failure),
    )
    assert screen.words(job).startswith("1 of 1 task failed")
    assert screen.spent(job).startswith("took 1 min; 1 task, on 1 GPU of one a3-highgpu-8g")
    assert screen.words(_found(SWEEP, None)) == _found(SWEEP, None).why


def _sweep(state: str = "failed") -> VmJobs:
    """Tasks that ran for 900 seconds on the VM number 7; three of them failed, one was ended."""
    ended = {"attempt": 1, "instance_id": "7", "phase": "ended", "code": 0, "ran": 900.0, "at": 1.0}
    told = dict.fromkeys(range(8), ended) | {it: {**ended, "code": 1} for it in (3, 5, 6)}
    told[7] = {**ended, "code": 143, "told": True}
    return _jobs(
        {
            "jobs/s-1.json": {**SWEEP, "array": {"first": 0, "last": 15, "most": None}},
            "vms/jobs/s-1/course.json": _course(state, tasks={**COUNTS, "failed": 3}),
            "vms/roster.json": ROSTER,
            "connection.json": {"vms": [{"name": "vm-b"}]},
            **{f"vms/jobs/s-1/nodes/task-{it}.json": report for it, report in told.items()},
        }
    )


def test_a_look_at_one_job_tells_which_tasks_failed_and_what_their_parts_of_vms_cost() -> None:
    jobs = _sweep()
    job = jobs.find("s-1")
    assert job is not None
    assert job.cost is None
    job = jobs.whole(job)
    assert job.tasks is not None
    assert job.tasks.which_failed == (3, 5, 6)
    # Eight tasks, a quarter of an hour each, an eighth of 11 USD an hour.
    assert job.cost == Decimal("2.75")
    shown = "\n".join(line.text for line in screen.whole(job))
    assert "0 to 15; failed: 3, 5-6" in shown
    assert "took 1 min; 16 tasks, each on 1 GPU of one a3-highgpu-8g, about $2.75 in all" in shown
    assert job.fetch == "aiinfra Fetch s-1"


@pytest.mark.parametrize(
    ("number", "error", "what"),
    [
        (3, None, ""),
        (12, SettingsError, "Task 12 of s-1 has not begun"),
        (16, SettingsError, "no task 16: it has 0 to 15"),
    ],
)
def test_the_way_to_a_task_leads_to_the_vm_that_told_of_it(
    number: int, error: type[Exception] | None, what: str
) -> None:
    jobs = _sweep("running")
    job = jobs.find("s-1")
    assert job is not None
    if error is None:
        way = jobs.way_in(job, number)
        assert (way.where, way.opens[-1][:8]) == ("vm-b", "sudo sh ")
        return
    with pytest.raises(error, match=what):
        jobs.way_in(job, number)


def test_a_task_whose_vm_nobody_knows_is_gone_with_it() -> None:
    told = {"attempt": 1, "instance_id": "8", "phase": "running", "at": 1.0}
    files = {"jobs/s-1.json": SWEEP, "vms/jobs/s-1/nodes/task-3.json": told}
    jobs = _jobs({**files, "vms/jobs/s-1/course.json": _course("running", tasks=COUNTS)})
    job = jobs.find("s-1")
    assert job is not None
    with pytest.raises(ClusterError, match="The VM of task 3 of s-1 is gone"):
        jobs.way_in(job, 3)


def test_what_others_have_slurm_run_says_whose_it_is_and_is_ended_by_slurms_own_command() -> None:
    queued: dict[str, Any] = {"name": "12", "user": "ana", "title": "eval.sh", "state": "PENDING"}
    queued |= {"why": "Resources", "since": "2026-11-29T10:00:00Z", "nodes": 2, "gpus": 16}
    runs = {**queued, "name": "11", "state": "RUNNING"}
    jobs = _jobs({"vms/slurm/jobs.json": {"jobs": [runs, queued, {**runs, "name": "; rm"}]}})
    assert list(jobs.names()) == ["11", "12"]
    first, second = jobs.find("11"), jobs.find("12")
    assert first is not None
    assert second is not None
    assert (first.by, first.command, first.nodes, first.gpus) == ("ana", ("eval.sh",), 2, 8)
    assert first.began == "2026-11-29T10:00:00.000Z"
    assert second.why.startswith("Resources; ana sent it to Slurm; `scontrol show job 12`")
    for act, fix in ((jobs.cancel, "scancel 11"), (lambda it: jobs.way_in(it, 0), "scontrol")):
        with pytest.raises(SettingsError, match="is no job of Run") as caught:
            act(first)
        assert fix in caught.value.problems[0].fix
    assert not _jobs({"vms/slurm/jobs.json": {"jobs": [runs]}}, kind="none").names()


@pytest.mark.parametrize(
    ("spec", "takes", "price"),
    [
        ({"gpus": 1}, "The job takes 1 GPU of 1 of 4 VMs", "1.38"),
        ({"gpus": 4, "nodes": 2}, "The job takes 4 GPUs of each of 2 of 4 VMs", "11.00"),
        ({"nodes": 2}, "The job takes 2 of 4 VMs, 16 GPUs", "22.00"),
        (
            {"gpus": 2, "array": JobArray(0, 63, 8)},
            "64 tasks, 8 at a time, each on 2 GPUs of one of 4 VMs",
            "2.75",
        ),
        ({"array": JobArray(1, 2)}, "2 tasks, each on one of 4 VMs, 8 GPUs", "11.00"),
        ({"array": JobArray(1, 1)}, "1 task, on one of 4 VMs, 8 GPUs", "11.00"),
    ],
)
def test_what_a_part_of_a_vm_costs_is_its_share(
    spec: dict[str, Any], takes: str, price: str
) -> None:
    jobs = _jobs({"vms/group.json": {"instance_count": 4}})
    wanted = {"nodes": 1, "seconds": 3600, **spec}
    needs = jobs.needs(JobSpec(name="s", command=("true",), **wanted))
    assert needs is not None
    assert not needs.more
    until = "until --time (1 hour) is over"
    there = f"there already at ${price}/h"
    if "task" in takes:
        there = f"paid for already (${price}/h{' each' * ('tasks' in takes)})"
    assert needs.words == f"{takes}, {there}, {until}"


def test_more_gpus_than_a_vm_has_are_refused_before_it_is_said_what_they_cost() -> None:
    jobs = _jobs({"vms/group.json": {"instance_count": 4}})
    with pytest.raises(
        SettingsError, match="wants 9 GPUs of each machine, and a3-highgpu-8g"
    ) as it:
        jobs.needs(JobSpec(name="s", command=("true",), gpus=9, nodes=1))
    with pytest.raises(SettingsError, match="wants 9 VMs, and the group has 4"):
        jobs.needs(JobSpec(name="s", command=("true",), gpus=1, nodes=9))
    assert it.value.problems[0].fix == "--gpus 8, and --nodes for more of them"
