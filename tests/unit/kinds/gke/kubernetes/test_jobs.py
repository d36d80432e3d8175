import dataclasses
import json
import os
import re
import signal
import subprocess
import sys
import time
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import yaml

from provision.kinds.gke.kubernetes import all_gather, job_attendant, jobs, kueue, objects, run_jobs
from provision.kinds.gke.kubernetes.facts import ClusterFacts, NfsShare
from provision.kinds.gke.kubernetes.objects import Object
from provision.kinds.gke.kubernetes.run_jobs import Shape
from provision.kinds.gke.kubernetes.stages import stages
from provision.settings.job_options import JobArray
from provision.settings.pairs import Secret
from provision.spec.capacity import Mode
from rehearsal import session
from rehearsal.cloud.kubernetes import quantities
from tests.conftest import Golden
from tests.kubernetes import samples
from tests.running import ran
from tests.table import cases

EXAMPLES = Path(__file__).parents[5] / "examples" / "jobs"
GOLDEN = Path(__file__).parents[4] / "golden" / "kubernetes"
CLUSTERS = {
    "a3-ultra-flex-queued": samples.FLEX_QUEUED_ULTRA,
    "t4-a100-queued": samples.TWO_QUEUED,
    "a3-mega": samples.facts(samples.MEGA, networks=samples.TCPXO),
}
MACHINES = {
    **{name: CLUSTERS[name] for name in ("a3-mega", "t4-a100-queued")},
    "a2": samples.facts(samples.A2),
    "a3-high": samples.facts(samples.HIGH, networks=samples.TCPX),
    "a4": samples.facts(samples.A4, networks=samples.RDMA),
}
"""One of each GPU network, and those without; A3 Ultra is in `examples/jobs`."""


@pytest.mark.parametrize("name", CLUSTERS)
def test_all_objects_are_as_they_were(name: str, golden: Golden) -> None:
    found, _ = stages(CLUSTERS[name], {session.MANIFESTS_VARIABLE: str(session.MANIFESTS)})
    things = [
        thing
        for stage in found
        if not stage.name.startswith("kinds of ")
        for thing in stage.objects
    ]
    golden.check(GOLDEN / f"{name}.yaml", objects.to_yaml(things))


@pytest.mark.parametrize("name", MACHINES)
def test_every_kind_of_job_on_every_machine_is_as_it_was(name: str, golden: Golden) -> None:
    made = jobs.render(MACHINES[name])
    for file, text in made.items():
        golden.check(GOLDEN / name / file, text)
    assert {path.name for path in (GOLDEN / name).glob("*.yaml")} == set(made)


def test_a_job_of_run_on_ray_is_as_it_was(golden: Golden) -> None:
    facts = dataclasses.replace(
        samples.FLEX_QUEUED_ULTRA,
        ray_tokens=True,
        secrets=(
            Secret.model_construct(
                None, **dict.fromkeys(("name", "project", "secret", "version"), "x")
            ),
        ),
    )
    asked: dict[str, Any] = {"env": {"A": "$B"}, "restarts": 2, "seconds": 3600, "queue": "team-a"}
    command = ("python", "train.py", "--name", "it's me")
    made = json.dumps(run_jobs.RAY_JOB.build(facts, samples.wanted(facts, command, **asked)))
    beside = json.dumps(Path(job_attendant.__file__).read_text(encoding="utf-8"))
    assert made.count(beside) == 3
    plain = json.loads(made.replace(beside, '"job_attendant.py"'))
    golden.check(GOLDEN / "run-ray-job.yaml", objects.to_yaml([plain]))


def _tasks(facts: ClusterFacts, slots: int = 4, **asked: Any) -> Object:
    array = asked.pop("array", JobArray(3, 12, 4))
    wanted = samples.wanted(facts, ("python", "train.py"), array=array, **asked)
    return run_jobs.JOB.build(facts, dataclasses.replace(wanted, nodes=1, slots=slots))


def test_a_job_of_tasks_is_as_it_was(golden: Golden) -> None:
    facts = samples.FLEX_QUEUED_ULTRA
    made = json.dumps(_tasks(facts, gpus=2, restarts=2, seconds=3600))
    beside = json.dumps(Path(job_attendant.__file__).read_text(encoding="utf-8"))
    plain = json.loads(made.replace(beside, '"job_attendant.py"'))
    golden.check(GOLDEN / "run-tasks.yaml", objects.to_yaml([plain]))


def test_the_queue_may_begin_a_job_with_a_fourth_of_its_tasks_if_it_has_several() -> None:
    least = "kueue.x-k8s.io/job-min-parallelism"
    facts = samples.facts(samples.L4)
    found = [
        _tasks(facts, slots)["metadata"].get("annotations", {}).get(least) for slots in (1, 2, 9)
    ]
    assert found == [None, "1", "3"]
    alone = _tasks(dataclasses.replace(facts, kueue=False), 9)["metadata"]
    assert "annotations" not in alone
    assert kueue.MOST_SECONDS not in _tasks(facts, seconds=60)["metadata"]["labels"]


def test_a_part_of_a_node_has_that_part_of_it_and_nothing_of_its_network() -> None:
    for pool in (samples.MEGA, samples.ULTRA, dataclasses.replace(samples.A4, managed=True)):
        facts = samples.facts(pool, networks=samples.RDMA)
        whole, part = (
            run_jobs.JOB_SET.build(
                facts, dataclasses.replace(samples.wanted(facts, gpus=gpus), nodes=1)
            )["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]
            for gpus in (pool.gpus, 2)
        )
        (of_whole,), (of_part,) = (it["spec"]["containers"] for it in (whole, part))
        asked = of_part["resources"]
        assert asked["limits"]["nvidia.com/gpu"] == asked["requests"]["nvidia.com/gpu"] == "2"
        for name in ("cpu", "memory"):
            all_of_it = quantities.parse(of_whole["resources"]["requests"][name])
            a_fourth = quantities.parse(asked["requests"][name])
            assert all_of_it * Decimal("0.249") < a_fourth <= all_of_it / 4
        assert {it["name"]: it for it in of_part["env"]}["NPROC_PER_NODE"]["value"] == "2"
        text = json.dumps(part)
        assert "networking.gke.io" not in text
        assert "resourceClaims" not in text
        assert "hostPath" not in text
        names = {it["name"] for it in part["spec"]["initContainers"]}
        assert names == {"fetch-folder", "keep-log"}


@cases("""
status | succeeded | done | failed
{} | - | [] | []
{completedIndexes: "0,1,2,3-5", failedIndexes: "7"} | - | [3, 4, 5] | [7]
{conditions: [Complete], completedIndexes: "0-12"} | true | [3, 4, 5, 6, 7, 8, 9, 10, 11, 12] | []
# A pod that only ends was lost with its node.
{conditions: [Failed], completedIndexes: "1-12", failedIndexes: "0"} | true
    | [3, 4, 5, 6, 7, 8, 9, 10, 11, 12] | []
{conditions: [Failed], completedIndexes: "0-11", failedIndexes: "12"} | false
    | [3, 4, 5, 6, 7, 8, 9, 10, 11] | [12]
{conditions: [Failed], completedIndexes: "0-2"} | false | [] | []
{completedIndexes: "x,9999999999,5-99999", failedIndexes: "-"} | -
    | [5, 6, 7, 8, 9, 10, 11, 12] | []
""")
def test_a_job_of_tasks_has_ended_well_when_all_its_tasks_have(
    status: dict[str, Any], succeeded: object, done: list[int], failed: list[int]
) -> None:
    thing = _tasks(samples.facts(samples.L4))
    conditions = [{"type": it, "status": "True"} for it in status.get("conditions", ())]
    thing["status"] = {**status, "conditions": conditions}
    assert run_jobs.ended(thing) == (done, failed)
    end = run_jobs.JOB.end(thing)
    assert (end.succeeded if end else "") == succeeded


@pytest.mark.parametrize("seconds", [None, 4 * 3600, 7 * 86400 - 600, 9 * 86400])
@pytest.mark.parametrize("shape", [run_jobs.JOB_SET, run_jobs.RAY_JOB], ids=lambda it: it.kind)
def test_nodes_are_asked_for_as_long_as_google_gives(shape: Shape, seconds: int | None) -> None:
    facts = samples.of_example(EXAMPLES.parent / "gke-t4-a100-queued.env.list")
    thing = shape.build(facts, samples.wanted(facts, seconds=seconds))
    made = thing["metadata"]
    asked = int(made["annotations"]["provreq.kueue.x-k8s.io/maxRunDurationSeconds"])
    most = int(made["labels"][kueue.MOST_SECONDS])
    assert most <= asked - 900 <= 604_800 - 900
    assert most == min(seconds or 604_800, 603_900)
    if shape is run_jobs.JOB_SET:
        told = re.search(r"name: NODE_STOP_AGE\n +value: '(\d+)'", objects.to_yaml([thing]))
        assert told
        assert most <= int(told[1]) <= asked


@cases("""
status | succeeded | why
{jobDeploymentStatus: Running, jobStatus: FAILED} | null | -
{jobDeploymentStatus: Complete, jobStatus: SUCCEEDED} | true | -
# Somebody has stopped it with Ray's own commands.
{jobDeploymentStatus: Complete, jobStatus: STOPPED} | false | STOPPED
{jobDeploymentStatus: Failed, jobStatus: FAILED, message: "one\\ntwo"} | false | one
{jobDeploymentStatus: Failed, reason: DeadlineExceeded, message: m} | false | --time is over
{jobDeploymentStatus: ValidationFailed, reason: why} | false | why
""")
def test_a_job_on_ray_has_ended_when_its_deployment_has(
    status: dict[str, str], why: str, *, succeeded: bool | None
) -> None:
    found = run_jobs.RAY_JOB.end({"status": status})
    assert (found.succeeded if found else None, found.why if found else "") == (succeeded, why)


def test_only_a_job_without_a_queue_has_its_time_in_the_ray_job() -> None:
    facts = samples.facts(samples.L4)
    wanted = samples.wanted(facts, seconds=600, image="ghcr.io/a/ray:1")
    queued = run_jobs.RAY_JOB.build(facts, wanted)
    assert "activeDeadlineSeconds" not in queued["spec"]
    assert queued["metadata"]["labels"]["kueue.x-k8s.io/max-exec-time-seconds"] == "600"
    alone = run_jobs.RAY_JOB.build(dataclasses.replace(facts, kueue=False), wanted)
    assert alone["spec"]["activeDeadlineSeconds"] == 600
    assert "suspend" not in alone["spec"]
    assert objects.to_yaml([alone]).count("image: ghcr.io/a/ray:1") == 3


def test_the_examples_are_those_of_an_a3_ultra_cluster(golden: Golden) -> None:
    made = jobs.render(samples.FLEX_QUEUED_ULTRA)
    for file, text in made.items():
        golden.check(EXAMPLES / file, text)
    assert {path.name for path in EXAMPLES.glob("*.yaml")} == set(made)


def test_jobs_on_queued_pools_ask_for_no_longer_than_nodes_live_and_wait_twelve_hours() -> None:
    short = samples.pool_like(samples.ULTRA, max_run_seconds=300)
    for text in jobs.render(samples.facts(short)).values():
        (thing,) = yaml.safe_load_all(text)
        labels = thing["metadata"]["labels"]
        assert labels["kueue.x-k8s.io/queue-name"] == "dws-local-queue"
        assert int(labels.get("kueue.x-k8s.io/max-exec-time-seconds", "0")) < 300
        seconds = thing["metadata"]["annotations"]["provreq.kueue.x-k8s.io/maxRunDurationSeconds"]
        assert seconds == "300"
    waits = {
        thing["metadata"]["annotations"]["provreq.kueue.x-k8s.io/ValidUntilSeconds"]
        for text in jobs.render(samples.FLEX_QUEUED_ULTRA).values()
        for thing in objects.from_yaml(text)
    }
    assert waits == {"43200"}
    bare = dataclasses.replace(samples.facts(samples.MEGA), kueue=False)
    for text in jobs.render(bare).values():
        assert "kueue" not in text
        assert "suspend" not in text


def test_equal_pools_have_one_sample_job() -> None:
    twins = [samples.pool_like(samples.T4, name=f"demo-nodepool-{i}") for i in range(50)]
    files = jobs.render(samples.facts(*twins, samples.A100))
    assert [name for name in files if name.startswith("sample")] == [
        "sample-job-demo-nodepool-0.yaml",
        "sample-job-demo-a100.yaml",
    ]


def test_the_scripts_of_the_bandwidth_test_are_sound_shell() -> None:
    shellcheck = Path(sys.executable).with_name("shellcheck")
    for pool in (samples.ULTRA, samples.MEGA, samples.HIGH, samples.T4):
        script = all_gather.container(samples.facts(pool), pool, 2)["command"][2]
        checked = ran([shellcheck, "--shell=bash", "--exclude=SC1091", "-"], input=script)
        assert checked.stdout == "", pool.name


SHARE = NfsShare(path="/mnt/nfs", server="10.0.0.2", remote_path="/share", size_gb=2560)


def _job_set(facts: ClusterFacts) -> Object:
    return jobs.torchrun(facts, facts.pools[0], 2)


def _pod(thing: Object) -> Object:
    (part,) = thing["spec"]["replicatedJobs"]
    pod: Object = part["template"]["spec"]["template"]["spec"]
    return pod


def _script(facts: ClusterFacts) -> str:
    return str(_pod(_job_set(facts))["containers"][0]["command"][-1])


@pytest.mark.parametrize(
    ("run", "most", "grace"),
    [(604_800, 603_900, 600), (3600, 2700, 600), (1200, 900, 200), (600, 450, 100)],
)
def test_a_job_is_told_before_its_nodes_end(run: int, most: int, grace: int) -> None:
    end = jobs.ordered(run)
    assert (end.most, end.grace) == (most, grace)
    # A third of the margin is left for what lies between the first VM's start and the admission.
    assert end.most + end.grace + (run - most) // 3 <= run


def _stop_age(facts: ClusterFacts) -> int:
    env = {it["name"]: it.get("value") for it in _pod(_job_set(facts))["containers"][0]["env"]}
    return int(env.get(jobs.STOP_AGE) or 0)


def test_a_job_stops_by_the_age_of_its_nodes_and_interruptions_begin_it_again() -> None:
    thing = _job_set(samples.FLEX_QUEUED_ULTRA)
    run = int(thing["metadata"]["annotations"]["provreq.kueue.x-k8s.io/maxRunDurationSeconds"])
    assert 0 < _stop_age(samples.FLEX_QUEUED_ULTRA) + 600 < run
    # Kueue's limit counts what a job ran on nodes that it has lost.
    assert kueue.MOST_SECONDS not in thing["metadata"]["labels"]
    flex = dataclasses.replace(samples.MEGA, mode=Mode.FLEX_START, max_run_seconds=604_800)
    assert _stop_age(samples.facts(flex, networks=samples.TCPXO)) == 603_900
    assert _stop_age(samples.facts(samples.MEGA, networks=samples.TCPXO)) == 0
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
def test_checkpoints_outlast_the_pod_or_the_log_warns(facts: ClusterFacts, folder: str) -> None:
    script = _script(facts)
    assert f"--checkpoints {folder} " in script
    assert ("each attempt starts over" in script) == (not folder.startswith("/mnt"))


@cases("""
program                                                        | told  | code
exit 0                                                         | false | 0
exit 3                                                         | false | 3
# What torchrun says of a program that stopped; and one that was through just then.
while [ ! -e "$STOP" ]; do sleep 0.02; done; sleep 0.1; exit 1 | true  | 75
while [ ! -e "$STOP" ]; do sleep 0.02; done; exit 0            | true  | 0
# One whose peer was told: all stop, and none of it is a failure.
touch "$STOP.done"; exit 1                                     | false | 75
""")
def test_a_signal_to_the_pod_lets_the_training_stop_by_itself(
    tmp_path: Path, program: str, *, told: bool, code: int
) -> None:
    assert _run(tmp_path, program, told=told) == code


@pytest.mark.parametrize(("age", "begins"), [(2600, True), (2699, False), (3000, False)])
def test_a_job_begins_nothing_on_an_old_node(tmp_path: Path, age: int, *, begins: bool) -> None:
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
