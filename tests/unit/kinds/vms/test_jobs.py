"""What VMs say of jobs, which any program on them may have written."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from provision.documents.job import JobState
from provision.errors import SettingsError
from provision.kinds.vms.jobs import VmJobs
from provision.screens import jobs as screen
from provision.time.clock import Clock

ASKED = {"name": "train-1", "nodes": None, "restarts": 1, "submitted": "2026-11-23T10:00:00.000Z"}


def _jobs(**texts: str) -> VmJobs:
    """The jobs of a folder; the names of its objects with _ for what is no letter."""
    names = {"jobs/index.json", "jobs/train-1.json", "vms/job.json", "ray/jobs.json"}
    names |= {"vms/jobs/train-1/course.json", "vms/jobs/first-1/course.json"}
    by_key = {
        name.replace("/", "_").replace("-", "_").removesuffix(".json"): name for name in names
    }
    known = {by_key[key]: text for key, text in texts.items()}
    created = {name: name for name in known if name.startswith("jobs/")}
    folder = SimpleNamespace(text=known.get, created=lambda _: created)
    return VmJobs(cast("Any", folder), Clock())


@pytest.mark.parametrize("text", ["", "[", "[]", "null", '{"name": "other-1"}', '{"jobs": [1]}'])
def test_what_is_spoiled_is_a_job_of_which_nobody_has_heard(text: str) -> None:
    found = _jobs(jobs_train_1=json.dumps(ASKED), vms_job=text).find("train-1")
    assert found is not None
    assert found.state is JobState.WAITING
    assert "have not taken note" in found.why


@pytest.mark.parametrize("course", ["{}", '{"name": "train-1", "state": "waiting"}'])
def test_a_job_of_which_vms_can_not_hear_says_so_until_it_is_under_way(course: str) -> None:
    why = "np-vm-a acts as x, a service account that was deleted"
    jobs = _jobs(jobs_train_1=json.dumps(ASKED), vms_job=course)
    jobs._lost = lambda: why
    found = jobs.find("train-1")
    assert found is not None
    assert (found.state, found.why) == (JobState.WAITING, why)
    running = _jobs(jobs_train_1=json.dumps(ASKED), vms_job=course.replace("waiting", "running"))
    running._lost = jobs._lost
    found = running.find("train-1")
    assert found is not None
    assert (found.why == why) == (course == "{}")


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
    found = _jobs(jobs_train_1=json.dumps(ASKED), vms_job=text).find("train-1")
    assert found is not None
    assert screen.words(found) is not None
    assert screen.whole(found)
    assert screen.lines([found])


def test_a_job_that_waits_names_the_one_before_it_unless_that_is_over() -> None:
    order = json.dumps({"jobs": [{"name": "first-1"}, {"name": "train-1"}]})
    asked = json.dumps(ASKED)
    now = json.dumps({"name": "first-1", "state": "running"})
    found = _jobs(jobs_train_1=asked, jobs_index=order, vms_job=now).find("train-1")
    assert found is not None
    assert (found.place, found.why) == (1, "first-1 is before it")
    over = json.dumps({"name": "first-1", "state": "succeeded"})
    jobs = _jobs(jobs_train_1=asked, jobs_index=order, vms_jobs_first_1_course=over)
    found = jobs.find("train-1")
    assert found is not None
    assert found.place == 0


def test_how_a_job_failed_is_said_in_a_sentence_with_code_cause_and_machine() -> None:
    failure = {"vm": "vm-b", "rank": 1, "code": 137, "cause": "out of memory", "tail": "x"}
    course = {"name": "train-1", "state": "failed", "failure": failure, "since": 1.0}
    found = _jobs(jobs_train_1=json.dumps(ASKED), vms_jobs_train_1_course=json.dumps(course)).find(
        "train-1"
    )
    assert found is not None
    assert screen.words(found) == "exit code 137: out of memory, first on vm-b (rank 1)"
    assert found.ended == "1970-01-01T00:00:01.000Z"


def _of_ray(*jobs: object) -> str:
    return json.dumps({"jobs": jobs})


def test_what_others_run_on_ray_is_listed_before_jobs_of_run() -> None:
    jobs = _jobs(
        jobs_train_1=json.dumps(ASKED),
        ray_jobs=_of_ray(
            {"name": "raysubmit_x", "state": "RUNNING", "since": 1764000000.5},
            {"name": "02000000", "state": "PENDING", "since": 0},
            {"name": "train-1", "state": "RUNNING", "since": 0},
        ),
    )
    assert jobs.names() == ["raysubmit_x", "02000000", "train-1"]
    running, pending, ours = (jobs.find(name) for name in jobs.names())
    assert running
    assert running.state is JobState.RUNNING
    assert running.began == running.submitted == "2025-11-24T16:00:00.500Z"
    assert pending
    assert pending.state is JobState.WAITING
    assert pending.began is None
    assert ours
    assert "have not taken note" in ours.why
    text = "\n".join(line.text for line in screen.lines([running, pending]))
    assert text.count("ray job logs") == 2
    assert "0 machines" not in text


def test_a_job_of_others_is_not_cancelled_and_ray_s_own_command_is_told() -> None:
    jobs = _jobs(ray_jobs=_of_ray({"name": "raysubmit_x", "state": "RUNNING", "since": 1}))
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
            told = json.dumps({"jobs": [{"name": name, "state": one, "since": since}]})
        except ValueError:
            return
        jobs = _jobs(ray_jobs=told)
        assert screen.lines([it for it in map(jobs.find, jobs.names()) if it])
