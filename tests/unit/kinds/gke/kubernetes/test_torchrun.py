"""The training example: how it is told to stop, what begins it again, and where it saves."""

from __future__ import annotations

import dataclasses
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from provision.kinds.gke.kubernetes import jobs, kueue
from provision.kinds.gke.kubernetes.facts import NfsShare
from tests.kubernetes import samples

if TYPE_CHECKING:
    from provision.kinds.gke.kubernetes.facts import ClusterFacts
    from provision.kinds.gke.kubernetes.objects import Object
    from tests.conftest import Golden

EXAMPLE = Path(__file__).parents[5] / "examples/recipes/fine-tune/train.py"
SHARE = NfsShare(path="/mnt/nfs", server="10.0.0.2", remote_path="/share", size_gb=2560)


def _job_set(facts: ClusterFacts) -> Object:
    return jobs.torchrun(facts, facts.pools[0], 2)


def _pod(thing: Object) -> Object:
    (part,) = thing["spec"]["replicatedJobs"]
    pod: Object = part["template"]["spec"]["template"]["spec"]
    return pod


def _script(facts: ClusterFacts) -> str:
    return str(_pod(_job_set(facts))["containers"][0]["command"][-1])


def test_vms_have_the_same_program(golden: Golden) -> None:
    golden.check(EXAMPLE, jobs.PROGRAM)


@pytest.mark.parametrize(
    ("run", "most", "grace"),
    [(604_800, 603_900, 600), (3600, 2700, 600), (1200, 900, 200), (600, 450, 100)],
)
def test_a_job_is_told_so_long_before_its_nodes_end_that_it_can_save(
    run: int, most: int, grace: int
) -> None:
    end = jobs.ordered(run)
    assert (end.most, end.grace) == (most, grace)
    # A third of the margin is left for what lies between the first VM's start and the admission.
    assert end.most + end.grace + (run - most) // 3 <= run


def _stop_age(facts: ClusterFacts) -> int:
    env = {it["name"]: it.get("value") for it in _pod(_job_set(facts))["containers"][0]["env"]}
    return int(env.get(jobs.STOP_AGE) or 0)


def test_a_job_stops_by_the_age_of_its_nodes_where_they_have_an_end() -> None:
    thing = _job_set(samples.FLEX_QUEUED_ULTRA)
    run = int(thing["metadata"]["annotations"]["provreq.kueue.x-k8s.io/maxRunDurationSeconds"])
    assert 0 < _stop_age(samples.FLEX_QUEUED_ULTRA) + 600 < run
    # Kueue's limit counts what a job ran on nodes that it has lost.
    assert kueue.MOST_SECONDS not in thing["metadata"]["labels"]
    flex = dataclasses.replace(samples.MEGA, mode="flex_start", max_run_seconds=604_800)
    assert _stop_age(samples.facts(flex, networks=samples.TCPXO)) == 603_900
    assert _stop_age(samples.facts(samples.MEGA, networks=samples.TCPXO)) == 0


def test_interruptions_begin_a_job_again_and_do_not_count_as_its_failures() -> None:
    thing = _job_set(samples.FLEX_QUEUED_ULTRA)
    (part,) = thing["spec"]["replicatedJobs"]
    job = part["template"]["spec"]
    lost, stopped = job["podFailurePolicy"]["rules"]
    assert lost["onPodConditions"] == [{"type": "DisruptionTarget", "status": "True"}]
    assert stopped["onExitCodes"]["values"] == [75]
    assert stopped["onExitCodes"]["containerName"] == _pod(thing)["containers"][0]["name"]
    (rule,) = thing["spec"]["failurePolicy"]["rules"]
    assert rule["action"] == "RestartJobSetAndIgnoreMaxRestarts"
    assert rule["onJobFailureReasons"] == ["PodFailurePolicy"]


@pytest.mark.parametrize(
    ("facts", "folder"),
    [
        (samples.FLEX_QUEUED_ULTRA, "/mnt/data/checkpoints/${JOB_SET}"),
        (samples.facts(samples.MEGA, shares=(SHARE,)), "/mnt/nfs/checkpoints/${JOB_SET}"),
        (samples.facts(samples.MEGA), "/tmp/checkpoints"),  # noqa: S108 - in the pod
    ],
    ids=["bucket", "share", "neither"],
)
def test_checkpoints_go_where_they_outlast_the_pod_or_the_log_says_that_they_do_not(
    facts: ClusterFacts, folder: str
) -> None:
    script = _script(facts)
    assert f"--checkpoints {folder} " in script
    assert ("each attempt starts over" in script) == (not folder.startswith("/mnt"))


@pytest.mark.parametrize(
    ("program", "told", "code"),
    [
        ("exit 0", False, 0),
        ("exit 3", False, 3),
        # What torchrun says of a program that stopped; and one that was through just then.
        ('while [ ! -e "$STOP" ]; do sleep 0.02; done; sleep 0.1; exit 1', True, 75),
        ('while [ ! -e "$STOP" ]; do sleep 0.02; done; exit 0', True, 0),
        # One whose peer was told: all stop, and none of it is a failure.
        ('touch "$STOP.done"; exit 1', False, 75),
    ],
)
def test_a_signal_to_the_pod_lets_the_training_stop_by_itself(
    tmp_path: Path, program: str, *, told: bool, code: int
) -> None:
    assert _run(tmp_path, program, told=told) == code


@pytest.mark.parametrize(("age", "begins"), [(2600, True), (2699, False), (3000, False)])
def test_a_job_stops_when_its_node_is_so_old_and_begins_nothing_on_an_older_one(
    tmp_path: Path, age: int, *, begins: bool
) -> None:
    program = 'while [ ! -e "$STOP" ]; do /bin/sleep 0.02; done; exit 1'
    assert _run(tmp_path, program, told=not begins, age=age) == 75
    assert (tmp_path / "stop.begun").exists() == begins


def _run(tmp_path: Path, program: str, *, told: bool, age: int | None = None) -> int:
    """Run the container's script with a torchrun of our own; its exit code.

    `told`: whether the pod is told to stop once it has begun, or waits. `age`: the uptime of its
    node, which has 2700 seconds; None for one without an end.
    """
    stop, seen = tmp_path / "stop", tmp_path / "stop.begun"
    sleep = f'[ "$1" != infinity ] || {{ touch {tmp_path}/waits; exec /bin/sleep 30; }}'
    programs = {"torchrun": f'touch "$STOP.begun"\n{program}', "sleep": f"{sleep}\n/bin/sleep 0.1"}
    for name, text in programs.items():
        (tmp_path / name).write_text(f"#!/bin/bash\n{text}\n")
        (tmp_path / name).chmod(0o755)
    (tmp_path / "uptime").write_text(f"{age}.25 1.0\n")
    script = _script(samples.facts(samples.MEGA)).replace(jobs.STOP_FILE, str(stop))
    script = script.replace("/tmp/train.py", str(tmp_path / "train.py"))  # noqa: S108
    script = script.replace("/proc/uptime", str(tmp_path / "uptime"))
    names = ("NNODES", "NPROC_PER_NODE", "NODE_RANK", "MASTER_ADDR", "MASTER_PORT")
    env = dict.fromkeys(names, "1")
    env |= {"PATH": f"{tmp_path}:{os.environ['PATH']}", "STOP": str(stop)}
    env |= {jobs.STOP_AGE: "2700"} if age else {}
    with subprocess.Popen(["/bin/bash", "-c", script], env=env, stdout=subprocess.DEVNULL) as shell:
        end = time.monotonic() + 20
        while not (seen.exists() or (tmp_path / "waits").exists()) and time.monotonic() < end:
            time.sleep(0.02)
        if told:
            shell.send_signal(signal.SIGTERM)
        return shell.wait(20)
