"""What VMs say of jobs, which any program on them may have written."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from provision.documents.job import Job, JobState
from provision.errors import SettingsError
from provision.kinds.vms.jobs import VmJobs
from provision.screens import jobs as screen
from provision.time.clock import Clock
from tests.unit.memory_folder import MemoryFolder

ASKED = json.dumps(
    {"name": "train-1", "nodes": None, "restarts": 1, "submitted": "2026-11-23T10:00:00.000Z"}
)
JOB, INDEX, NOW, RAY = "jobs/train-1.json", "jobs/index.json", "vms/job.json", "ray/jobs.json"


def _jobs(texts: dict[str, str], lost: str = "") -> VmJobs:
    """The jobs of a folder, by the texts of its objects; `lost`: why VMs hear of none."""
    return VmJobs(MemoryFolder(dict(texts)), Clock(), lambda: lost)


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


def test_a_job_that_waits_names_the_one_before_it_unless_that_is_over() -> None:
    order = {INDEX: json.dumps({"jobs": [{"name": "first-1"}, {"name": "train-1"}]})}
    found = _train(NOW, json.dumps({"name": "first-1", "state": "running"}), **order)
    assert (found.place, found.why) == (1, "first-1 is before it")
    over = json.dumps({"name": "first-1", "state": "succeeded"})
    assert _train("vms/jobs/first-1/course.json", over, **order).place == 0


def test_how_a_job_failed_is_said_in_a_sentence_with_code_cause_and_machine() -> None:
    failure = {"vm": "vm-b", "rank": 1, "code": 137, "cause": "out of memory", "tail": "x"}
    course = {"name": "train-1", "state": "failed", "failure": failure, "since": 1.0}
    found = _train("vms/jobs/train-1/course.json", json.dumps(course))
    assert screen.words(found) == "exit code 137: out of memory, first on vm-b (rank 1)"
    assert found.ended == "1970-01-01T00:00:01.000Z"


def _of_ray(*jobs: tuple[object, object, object]) -> dict[str, str]:
    """What others run on Ray: name, state, and since when."""
    told = [dict(zip(("name", "state", "since"), job, strict=True)) for job in jobs]
    return {RAY: json.dumps({"jobs": told})}


def test_what_others_run_on_ray_is_listed_before_jobs_of_run() -> None:
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


def test_a_job_of_others_is_not_cancelled_and_ray_s_own_command_is_told() -> None:
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
