"""Jobs on screens."""

from dataclasses import replace

from provision.documents.job import Job, JobState
from provision.screens import jobs

DONE = Job(
    name="train-1",
    state=JobState.SUCCEEDED,
    machines=("vm-1", "vm-2"),
    submitted="2026-11-28T00:00:00Z",
)
UNTRIED = replace(DONE, why="would run here: a rehearsal runs no program")


def test_a_job_that_no_machine_ran_is_not_said_to_have_succeeded() -> None:
    assert jobs.end(DONE) == "train-1 succeeded"
    assert jobs.end(UNTRIED) == "train-1 would run here: a rehearsal runs no program"


def test_what_is_to_be_said_of_its_end_stands_behind_where_it_ran() -> None:
    assert jobs.words(DONE) == "on 2 machines"
    assert jobs.words(UNTRIED) == "on 2 machines; would run here: a rehearsal runs no program"
    assert any("runs no program" in line.text for line in jobs.lines([UNTRIED]))
