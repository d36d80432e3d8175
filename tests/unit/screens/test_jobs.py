from dataclasses import replace
from decimal import Decimal

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
    assert (jobs.state(DONE), jobs.state(UNTRIED)) == ("succeeded", "ended")


def test_what_is_to_be_said_of_its_end_stands_behind_where_it_ran() -> None:
    assert jobs.words(DONE) == "on 2 machines"
    assert jobs.words(UNTRIED) == "on 2 machines; would run here: a rehearsal runs no program"
    _, row = jobs.lines([UNTRIED])
    assert "runs no program" in row.text
    shown = [row.text, *(line.text for line in jobs.whole(UNTRIED))]
    assert not any("succeeded" in text for text in shown)
    assert any("succeeded" in line.text for line in jobs.lines([DONE]))


def test_a_job_that_runs_says_for_how_long_it_has_said_nothing() -> None:
    runs = replace(DONE, state=JobState.RUNNING)
    assert jobs.words(runs) == "runs on 2 machines"
    assert jobs.words(replace(runs, silent=125.0)) == "runs on 2 machines, silent for 2 min"


RAN = replace(
    DONE,
    machines=("vm-1", "vm-2"),
    command=("python3", "train.py", "--lr", "1 0"),
    began="2026-11-28T00:01:00Z",
    ended="2026-11-28T03:11:00Z",
    machine_type="a3-megagpu-8g",
    gpus=8,
    ran=3 * 3600.0 + 600,
    cost=Decimal("36.50"),
)


def test_a_job_says_for_how_long_it_ran_on_what_and_what_that_cost() -> None:
    told = "ran 3 h 10 min on 2 x a3-megagpu-8g (16 GPUs), about $36.50"
    assert jobs.spent(RAN) == told
    busy = [it.text for it in jobs.whole(replace(RAN, gpu_use=0))]
    assert any(told in it for it in busy)
    assert any("had work for 0% of ten minutes" in it for it in busy)
    assert not any("had work" in it.text for it in jobs.whole(RAN))
    runs = replace(RAN, state=JobState.RUNNING, ended=None, cost=None, machine_type="")
    assert jobs.spent(runs) == "runs for 3 h 10 min"
    assert jobs.spent(DONE) == ""


def test_the_list_tells_jobs_of_one_program_apart() -> None:
    head, row = jobs.lines([RAN])
    assert head.text.split() == ["job", "state", "began", "ran", "command"]
    assert "2026-11-28T00:01Z  3 h 10 min  python3 train.py --lr '1 0'" in row.text
    (_, row) = jobs.lines([replace(RAN, command=("python3", "train.py", *map(str, range(99))))])
    assert "python3 train.py 0 1 2 3 4 5..." in row.text


def test_a_job_that_is_over_ran_also_where_its_end_is_not_known_yet() -> None:
    job = Job(name="a-1", state=JobState.SUCCEEDED, submitted="", ran=60.0)
    assert jobs.spent(job).startswith("ran ")
