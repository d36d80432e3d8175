"""Parts of nodes and jobs of tasks on GKE: side by side, failing one by one, cancelled as one."""

from pathlib import Path

import pytest

from tests.runs.conftest import Rehearse
from tests.runs.job_lines import GKE, begin, fetch, folder, job_of, run, when

__all__ = ["folder"]  # the fixture

OF_ITS_OWN = ("bash", "-c", "python3 $JOB_INDEX.py")
"""Each task runs a script of its own."""


def _write(folder: Path, **scripts: str) -> None:
    for name, text in scripts.items():
        (folder / f"{name.strip('_')}.py").write_text(text)


def test_of_many_tasks_one_fails_and_the_others_run_to_their_end(
    standing: Rehearse, folder: Path
) -> None:
    rehearsal = standing(GKE, rate=0.02)
    rehearsal.settings |= GKE
    scripts = {f"_{it}": f'print("this is {it}")\n' for it in range(3, 10)}
    scripts["_5"] += "raise SystemExit(3)\n"
    scripts["_9"] += "import time\ntime.sleep(100)\n"
    _write(folder, **scripts)
    options = ("--array=3-9", "--gpus=1", "--name=sweep", "--restarts=1", "--restart-on=any")
    ended = run(rehearsal, *options, "--", *OF_ITS_OWN, folder=folder)
    assert ended.code == 8, ended.said
    job = job_of(ended)
    tasks = job["tasks"]
    # Four GPUs on two nodes.
    assert (tasks["most"], tasks["succeeded"], tasks["failed"]) == (4, 6, 1)
    assert tasks["which_failed"] == [5]
    assert (job["failure"]["rank"], job["failure"]["exit_code"], job["attempt"]) == (5, 3, 2)
    assert "task 5 failed: exit code 3; the others go on" in ended.said
    assert job["cost"] > 0
    every = rehearsal.run("Logs", "--rank=all", behind=("sweep",)).said
    assert [every.count(f"[{it}] this is {it}") for it in range(3, 10)] == [1, 1, 2, 1, 1, 1, 1]
    assert rehearsal.run("Logs", "--rank=5", behind=("sweep",)).said.count("this is 5") == 2
    assert rehearsal.run("Logs", "--rank=2", behind=("sweep",)).code == 2
    listed = rehearsal.run("Jobs").said
    assert "1 of 7 tasks failed: exit code 3, first 5 on " in listed


@pytest.mark.slow(sibling="::test_of_many_tasks_one_fails_and_the_others_run_to_their_end")
def test_what_is_left_of_its_tasks_goes_with_a_job_that_is_cancelled(
    standing: Rehearse, folder: Path
) -> None:
    rehearsal = standing(GKE, rate=0.02)
    rehearsal.settings |= GKE
    _write(folder, _0="raise SystemExit(3)\n", _1='print("done")\n')
    _write(folder, **{f"_{it}": "import time\ntime.sleep(9000)\n" for it in range(2, 8)})
    started = begin(rehearsal, "--array=0-7%2", "--name=sweep", "--", *OF_ITS_OWN, folder=folder)
    when(rehearsal, started, "task 0 failed")
    beside = rehearsal.start("Run", behind=("--gpus=1", "--name=small", "--", "hostname"))
    inside = rehearsal.run("Ssh", "--rank=2", behind=("sweep",))
    way = job_of(inside)["shell"]
    assert way.startswith("kubectl exec -it sweep-1-3-"), "one pod comes before the tasks"
    fetched = fetch(rehearsal, "sweep", "2.py", "--rank=2")
    assert fetched.code == 0, fetched.said
    gone = fetch(rehearsal, "sweep", "0.py", "--rank=0")
    assert "The pod of task 0 of sweep-1 does not run" in gone.said
    cancelled = rehearsal.run("Cancel", behind=("sweep",))
    assert cancelled.code == 0, cancelled.said
    tasks = job_of(cancelled)["tasks"]
    assert (tasks["failed"], tasks["running"], tasks["waiting"]) == (1, 0, 0)
    assert tasks["succeeded"] + tasks["cancelled"] == 7
    assert rehearsal.finish(started).code == 8
    # Its GPUs are free again.
    assert rehearsal.finish(beside).code == 0
