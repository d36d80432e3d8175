"""Run --create --destroy-after: a cluster for one job, which goes with it whatever happens."""

import signal
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from tests.runs.conftest import Rehearsal, Rehearse
from tests.runs.job_lines import TWO, folder, job_of, run, when

__all__ = ["folder"]  # the fixtures

WHOLE = ("--create", "--destroy-after")
GONE = "the cluster is destroyed"


def _begin_whole(rehearsal: Rehearsal, folder: Path, *words: str, **settings: str) -> Any:
    return rehearsal.start("Run", *WHOLE, f"--copy={folder}", **TWO, **settings, behind=words)


def _left(rehearsal: Rehearsal) -> list[str]:
    """What the cloud holds beside the bucket, and what is in that beside logs."""
    resources = [it for it in rehearsal.resources() if not it.startswith("storage/")]
    live = {it for it in rehearsal.objects() if it.startswith("b/")}
    return [*resources, *(it for it in live if "/logs/" not in it)]


def _logs(rehearsal: Rehearsal, job: str) -> list[str]:
    return [it for it in rehearsal.objects() if it.endswith(f"-{job}.log")]


def test_one_command_makes_a_cluster_runs_a_job_and_removes_it_although_the_job_fails(
    rehearsal: Rehearsal, folder: Path
) -> None:
    words = ("--", "bash", "-c", "echo no module; exit 3")
    ended = rehearsal.finish(_begin_whole(rehearsal, folder, *words, JOB_OPTIONS="--name bad"))
    assert ended.code == 8, ended.said
    assert ended.problem["what"].startswith("bad-1 failed: exit code 3")
    assert ended.problem["why"].endswith(GONE)
    assert "Jobs bad-1" not in ended.problem["fix"], "there is nobody left to ask"
    assert not _left(rehearsal)
    (log,) = _logs(rehearsal, "bad-1")
    assert log.rpartition("/")[2] in ended.problem["fix"]


def test_ctrl_c_ends_the_job_in_order_and_removes_the_cluster(
    standing: Rehearse, folder: Path
) -> None:
    rehearsal = standing(TWO, rate=0.02)
    started = _begin_whole(rehearsal, folder, "--", "python3", "train.py")
    when(rehearsal, started, "epoch 1")
    started.send_signal(signal.SIGINT)
    ended = rehearsal.finish(started)
    assert ended.code == 130, ended.said
    assert (ended.problem["what"], ended.problem["why"]) == ("Interrupted", GONE)
    assert job_of(ended)["state"] == "cancelled"
    assert not _left(rehearsal)
    assert _logs(rehearsal, "train-1")


def test_after_a_kill_the_next_destroy_asks_nobody_about_the_job(
    standing: Rehearse, folder: Path
) -> None:
    rehearsal = standing(TWO, rate=0.02)
    started = _begin_whole(rehearsal, folder, "--", "python3", "train.py")
    when(rehearsal, started, "epoch 1")
    rehearsal.kill(started)
    destroyed = rehearsal.run("Destroy", **TWO)
    assert destroyed.code == 0, destroyed.said
    assert not _left(rehearsal)


@pytest.mark.slow(
    sibling="::test_one_command_makes_a_cluster_runs_a_job_and_removes_it_although_the_job_fails"
)
def test_a_job_of_somebody_else_keeps_the_cluster_and_neither_end_is_hidden(
    standing: Rehearse, folder: Path
) -> None:
    rehearsal = standing(TWO, rate=0.01)
    run(rehearsal, "--detach", "--", "sleep", "90000", folder=folder)
    words = ("--", "echo", "second")
    ended = rehearsal.finish(_begin_whole(rehearsal, folder, *words, CAPACITY_TIMEOUT="10s"))
    assert (ended.code, ended.problem["code"]) == (7, "gave-up"), ended.said
    assert ended.problem["why"].startswith("echo-1 has not begun: sleep-1 is before it")
    assert "not destroyed, and is billed: Jobs would end: sleep-1" in ended.problem["why"]
    assert "Destroy --yes" in ended.document["notes"][-1]["fix"]
    states = {it["name"]: it["state"] for it in rehearsal.run("Jobs", **TWO).document["jobs"]}
    assert states == {"sleep-1": "running", "echo-1": "cancelled"}


@pytest.mark.slow(
    sibling="::test_one_command_makes_a_cluster_runs_a_job_and_removes_it_although_the_job_fails"
)
def test_a_destroy_that_fails_after_a_job_that_succeeded_is_how_the_run_ends(
    standing: Rehearse, folder: Path
) -> None:
    rehearsal = standing(TWO, rate=0.005)
    started = _begin_whole(rehearsal, folder, "--", "python3", "train.py")
    when(rehearsal, started, "epoch 1")
    lock = {
        "ID": "1f0c6a0e-0000-4000-8000-000000000000",
        "Operation": "apply",
        "Who": "ann@elsewhere",
        "Version": "1.11.0",
        "Created": "2026-11-24T00:00:00Z",
    }
    name = quote("np-deployment/terraform/state/default.tflock", safe="")
    bucket = "upload/storage/v1/b/aiinfra-terraform-my-project/o"
    rehearsal.google("POST", f"{bucket}?uploadType=media&name={name}", lock)
    ended = rehearsal.finish(started)
    assert (ended.code, ended.problem["code"]) == (5, "state-locked"), ended.said
    assert job_of(ended)["state"] == "succeeded"
    assert "The job has not succeeded" not in ended.said
    assert _logs(rehearsal, "train-1"), "it is kept before the cluster goes"


def test_what_may_not_be_destroyed_is_said_before_the_job_runs(
    standing: Rehearse, folder: Path
) -> None:
    rehearsal = standing(TWO)
    ended = rehearsal.finish(_begin_whole(rehearsal, folder, "--", "true", PROTECT="yes"))
    assert (ended.code, ended.problem["setting"]) == (2, "PROTECT")
    assert not rehearsal.run("Jobs", **TWO).document["jobs"]
    detached = rehearsal.finish(
        rehearsal.start("Run", "--detach", *WHOLE, **TWO, behind=("--", "true"))
    )
    assert (detached.code, detached.problem["code"]) == (2, "invalid-command-line")
