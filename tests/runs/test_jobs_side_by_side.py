"""Jobs of a group with Slurm, side by side: parts of machines, and sweeps."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.runs.conftest import Rehearsal, Rehearse
from tests.runs.job_lines import folder, job_of, run

__all__ = ["folder"]  # the fixture

SLURM = {"ORCHESTRATOR_TYPE": "slurm", "INSTANCE_COUNT": "2"}


def _standing(standing: Callable[..., Rehearsal], **how: Any) -> Rehearsal:
    """A cluster of two VMs with two GPUs each."""
    rehearsal = standing(SLURM, **how)
    rehearsal.settings |= SLURM
    return rehearsal


def _sweep(rehearsal: Rehearsal) -> dict[str, Any]:
    return job_of(rehearsal.run("Jobs", behind=("sweep",)))


@pytest.mark.slow(
    sibling="::test_a_sweep_that_is_followed_ends_as_its_tasks_do_and_claims_nothing_that_was_not_run"
)
def test_of_a_sweep_a_task_fails_and_the_rest_is_cancelled_and_destroyed(
    standing: Rehearse,
) -> None:
    rehearsal = _standing(standing, rate=0.005)
    line = "echo seed $JOB_INDEX; sleep 30; test $JOB_INDEX != 1 && sleep 9000"
    options = ("--name=sweep", "--array=0-15%3", "--gpus=1", "--detach")
    begun = run(rehearsal, *options, "--", "bash", "-c", line)
    assert begun.code == 0, begun.said
    takes = "each on 1 GPU of one of 2 VMs, paid for already ($3.91/h each)"
    assert f"16 tasks, 3 at a time, {takes}" in begun.said
    deadline = time.monotonic() + 300
    while not (job := _sweep(rehearsal))["tasks"]["failed"]:
        assert time.monotonic() < deadline, job
    tasks = job["tasks"]
    assert (tasks["running"], tasks["waiting"], tasks["which_failed"]) == (3, 12, [1])
    assert job["state"] == "running", "the others go on"
    (event,) = job["events"]
    assert event.startswith("attempt 1 failed: task 1 (np-vm-")
    listed = rehearsal.run("Jobs").said
    assert "0 of 16 done, 3 run, 12 wait, 1 failed" in listed
    assert rehearsal.run("Logs", "--rank=2", behind=("sweep",)).said.splitlines()[-1:] == ["seed 2"]
    beyond = rehearsal.run("Logs", "--rank=16", behind=("sweep",))
    assert (beyond.code, beyond.problem["fix"]) == (2, "--rank 15, or --rank all")
    way = job_of(rehearsal.run("Ssh", "--rank=3", behind=("sweep",)))["shell"]
    assert way.startswith("gcloud compute ssh np-vm-")
    unbegun = rehearsal.run("Fetch", "--rank=15", behind=("sweep",))
    assert (unbegun.code, unbegun.problem["setting"]) == (2, "--rank")

    ended = rehearsal.run("Cancel", behind=("sweep",))
    assert (ended.code, job_of(ended)["state"]) == (0, "cancelled"), ended.said
    job = _sweep(rehearsal)
    tasks = job["tasks"]
    assert (tasks["failed"], tasks["cancelled"], tasks["running"]) == (1, 15, 0)
    # Of three tasks at a time on half a VM each, and not of all that there is.
    assert 0 < job["cost"] <= 3.91 * 3 * job["ran"] / 3600 + 0.01
    destroyed = rehearsal.run("Destroy", "--yes")
    assert destroyed.code == 0, destroyed.said
    assert not [name for name in rehearsal.objects() if "job" in name]


def test_a_sweep_that_is_followed_ends_as_its_tasks_do_and_claims_nothing_that_was_not_run(
    standing: Rehearse, folder: Path
) -> None:
    rehearsal = _standing(standing)
    options = ("--name=sweep", "--array=1-4", "--gpus=1")
    bad = run(rehearsal, *options, "--", "bash", "-c", "echo $JOB_INDEX; exit $JOB_INDEX")
    assert bad.code == 8, bad.said
    others = "aiinfra Logs sweep-1 --rank 4, or all, for the others"
    assert f"What task 1 says follows; {others}" in bad.said
    assert "4 of 4 tasks failed: exit code 1, first 1 on np-vm-" in bad.problem["what"]
    assert "aiinfra Logs sweep-1 --rank 1 what it said" in bad.problem["fix"]
    assert job_of(bad)["tasks"]["which_failed"] == [1, 2, 3, 4]
    last = ["--restarts=1", "--restart-on=any"]
    again = run(rehearsal, *last, *options, "--", "bash", "-c", "test $JOB_INDEX != 3")
    assert (again.code, job_of(again)["attempt"]) == (8, 2), again.said
    assert job_of(again)["tasks"]["succeeded"] == 3
    over = run(rehearsal, *options, "--", "python3", "train.py", folder=folder)
    assert (over.code, job_of(over)["state"]) == (0, "succeeded"), over.said
    why = "would run here: a rehearsal runs no program, but --rehearse=run-programs does"
    assert job_of(over)["why"] == why
    assert "succeeded" not in over.said


def test_jobs_that_fit_run_side_by_side_and_one_that_does_not_says_what_it_waits_for(
    standing: Rehearse,
) -> None:
    rehearsal = _standing(standing, rate=0.02)
    for name, gpus in (("a", "1"), ("b", "1"), ("c", "2")):
        options = (f"--name={name}", f"--gpus={gpus}", "--detach")
        assert run(rehearsal, *options, "--", "sleep", "90000").code == 0
    whole = run(rehearsal, "--name=d", "--detach", "--", "sleep", "90000")
    assert whole.code == 0, whole.said
    jobs = {it["name"]: it for it in rehearsal.run("Jobs").document["jobs"]}
    assert [jobs[it]["state"] for it in jobs] == [*["running"] * 3, "waiting"]
    assert jobs["a-1"]["machines"] == jobs["b-1"]["machines"] != jobs["c-1"]["machines"]
    assert jobs["d-1"]["why"] == "it waits for GPUs of a-1, b-1, c-1"
    assert jobs["d-1"]["place"] == 3
    refused = run(rehearsal, "--gpus=3", "--", "true")
    assert (refused.code, refused.problem["setting"]) == (2, "--gpus")
    assert rehearsal.run("Cancel", behind=("a", "b", "c")).code == 0
    runs = job_of(rehearsal.run("Jobs", behind=("d",)))
    assert (runs["state"], len(runs["machines"])) == ("running", 2)


@pytest.mark.slow(
    sibling="::test_a_sweep_that_is_followed_ends_as_its_tasks_do_and_claims_nothing_that_was_not_run"
)
def test_the_tasks_of_a_sweep_are_really_run_if_somebody_asks_for_that(
    standing: Rehearse, folder: Path
) -> None:
    rehearsal = _standing(standing, scenario="run-programs")
    line = "echo $JOB_INDEX >>mine; exit $((JOB_INDEX == 5 ? 3 : 0))"
    options = (f"--copy={folder}", "--name=sweep", "--array=4-9", "--gpus=1")
    ended = rehearsal.run("Run", *options, behind=("--", "bash", "-c", line))
    assert ended.code == 8, ended.said
    job = job_of(ended)
    assert (job["tasks"]["succeeded"], job["tasks"]["which_failed"]) == (5, [5])
    assert (job["failure"]["rank"], job["failure"]["exit_code"]) == (5, 3)
    behind = ("sweep", "mine", str(rehearsal.folder / "here"))
    fetched = rehearsal.run("Fetch", "--rank=4", behind=behind)
    assert fetched.code == 0, fetched.said
    assert ", task 4" in fetched.said
    assert "4" in (rehearsal.folder / "here" / "mine").read_text().split()
