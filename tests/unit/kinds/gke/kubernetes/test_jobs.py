from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from provision.kinds.gke.kubernetes import all_gather, job_attendant, jobs, kueue, objects, run_jobs
from provision.kinds.gke.kubernetes.stages import stages
from provision.settings.pairs import Secret
from rehearsal import session
from tests.kubernetes import samples

if TYPE_CHECKING:
    from provision.kinds.gke.kubernetes.facts import GpuPool
    from provision.kinds.gke.kubernetes.run_jobs import Shape
    from tests.conftest import Golden

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


@pytest.mark.parametrize("seconds", [None, 4 * 3600, 7 * 86400 - 600, 9 * 86400])
@pytest.mark.parametrize("shape", [run_jobs.JOB_SET, run_jobs.RAY_JOB], ids=lambda it: it.kind)
def test_nodes_of_a_queue_are_asked_for_no_longer_than_google_gives_them(
    shape: Shape, seconds: int | None
) -> None:
    facts = samples.of_example(EXAMPLES.parent / "gke-t4-a100-queued.env.list")
    made = shape.build(facts, samples.wanted(facts, seconds=seconds))["metadata"]
    asked = int(made["annotations"]["provreq.kueue.x-k8s.io/maxRunDurationSeconds"])
    most = int(made["labels"][kueue.MOST_SECONDS])
    assert most <= asked - 900 <= 604_800 - 900
    assert most == min(seconds or 604_800, 603_900)


@pytest.mark.parametrize(
    ("status", "end"),
    [
        ({"jobDeploymentStatus": "Running", "jobStatus": "FAILED"}, None),
        ({"jobDeploymentStatus": "Complete", "jobStatus": "SUCCEEDED"}, (True, "")),
        # Somebody has stopped it with Ray's own commands.
        ({"jobDeploymentStatus": "Complete", "jobStatus": "STOPPED"}, (False, "STOPPED")),
        (
            {"jobDeploymentStatus": "Failed", "jobStatus": "FAILED", "message": "one\ntwo"},
            (False, "one"),
        ),
        (
            {"jobDeploymentStatus": "Failed", "reason": "DeadlineExceeded", "message": "m"},
            (False, "--time is over"),
        ),
        ({"jobDeploymentStatus": "ValidationFailed", "reason": "why"}, (False, "why")),
    ],
    ids=["not_yet", "succeeded", "stopped", "failed", "late", "unfit"],
)
def test_a_job_on_ray_has_ended_when_its_deployment_has(
    status: dict[str, str], end: tuple[bool, str] | None
) -> None:
    found = run_jobs.RAY_JOB.end({"status": status})
    assert (found and (found.succeeded, found.why)) == end


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


def test_jobs_on_queued_pools_ask_for_no_longer_than_their_nodes_live() -> None:
    short = samples.pool_like(samples.ULTRA, max_run_seconds=300)
    for text in jobs.render(samples.facts(short)).values():
        (thing,) = yaml.safe_load_all(text)
        labels = thing["metadata"]["labels"]
        assert labels["kueue.x-k8s.io/queue-name"] == "dws-local-queue"
        assert int(labels.get("kueue.x-k8s.io/max-exec-time-seconds", "0")) < 300
        seconds = thing["metadata"]["annotations"]["provreq.kueue.x-k8s.io/maxRunDurationSeconds"]
        assert seconds == "300"


def test_jobs_on_queued_pools_wait_for_twelve_hours() -> None:
    waits = {
        thing["metadata"]["annotations"]["provreq.kueue.x-k8s.io/ValidUntilSeconds"]
        for text in jobs.render(samples.FLEX_QUEUED_ULTRA).values()
        for thing in objects.from_yaml(text)
    }
    assert waits == {"43200"}


def test_jobs_of_a_cluster_without_a_queue_know_none() -> None:
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


@pytest.mark.parametrize(
    "pool", [samples.ULTRA, samples.MEGA, samples.HIGH, samples.T4], ids=lambda pool: pool.name
)
def test_the_scripts_of_the_bandwidth_test_are_sound_shell(pool: GpuPool) -> None:
    script = all_gather.container(samples.facts(pool), pool, 2)["command"][2]
    checked = subprocess.run(
        [Path(sys.executable).with_name("shellcheck"), "--shell=bash", "--exclude=SC1091", "-"],
        input=script,
        capture_output=True,
        text=True,
        check=False,
    )
    assert checked.stdout == ""
