import ast
import dataclasses
import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from provision.documents.timeline import StageName, StageState
from provision.errors import CapacityError, ClusterError, StillWaiting
from provision.kinds.gke.kubernetes import trials
from provision.kinds.gke.kubernetes.objects import Object
from provision.kinds.gke.kubernetes.trials import Ran
from provision.time import deadline
from provision.time.clock import Clock
from provision.time.stages import Progress
from tests.kubernetes import samples
from tests.unit.kinds.cases import problem_of, unheard

LOG = (Path(__file__).parent / "a3-ultra-all-gather.log").read_text(encoding="utf-8")
INDEX = "batch.kubernetes.io/job-completion-index"
WAITING = {"type": "QuotaReserved", "status": "True"}
GIVEN_UP = {
    "type": "Evicted",
    "status": "True",
    "message": 'The workload is deactivated due to AdmissionCheck in Rejected state: "dws-prov"'
    " (Could not enqueue the Provisioning Request due to insufficient capacity in zone"
    " us-central1-a. Try different locations or hardware.)",
}


class Nodes:
    """A cluster whose nodes come after some looks, or not at all."""

    def __init__(
        self,
        *,
        looks: int = 2,
        condition: str = "Completed",
        active: bool = True,
        queued: bool = True,
    ) -> None:
        self._looks, self._condition, self._active = looks, condition, active
        self._queued = queued
        self.there = True  # a test that an earlier run left
        self.submitted: list[Object] = []

    def apply(self, thing: Object) -> Object:
        assert not self.there
        self.there = True
        self.submitted.append(thing)
        return thing

    def delete(self, *_: str) -> bool:
        was, self.there = self.there, False
        return was

    def all(
        self, api_version: str, kind: str, namespace: str = "", selector: str = "", fields: str = ""
    ) -> list[Object]:
        del api_version, namespace, fields
        if kind == "Workload":
            owner = [{"kind": "JobSet", "name": trials.BANDWIDTH}]
            metadata = {"name": "work", "ownerReferences": owner}
            status = {"conditions": [WAITING, *([] if self._active else [GIVEN_UP])]}
            work = {"metadata": metadata, "spec": {"active": self._active}, "status": status}
            return [work] * self._queued
        if kind == "Event":
            return [_event("pod-of-before", "9"), _event("pod", "2"), _event("pod", "1")]
        if kind == "ProvisioningRequest":
            lacking = {"type": "Provisioned", "status": "False", "reason": "QuotaExceeded"}
            lacking["message"] = "Quota 'NVIDIA_H200_GPUS' exceeded.  Limit: 8.0 in region r-1."
            name = f"jobset-{trials.BANDWIDTH}-1a2b3-dws-prov-4"
            return [{"metadata": {"name": name}, "status": {"conditions": [lacking]}}]
        if kind != "Pod" or not self.there:
            return []
        self._looks -= "index" in selector
        phase = {"phase": "Running" if self._looks < 0 else "Pending"}
        return [self._pod(number) | {"status": phase} for number in (1, 0)]

    def _pod(self, number: int) -> Object:
        metadata = {"name": f"pod-{number}", "uid": "pod", "labels": {INDEX: str(number)}}
        return {"metadata": metadata, "spec": {"nodeName": f"node-{number}"}}

    def find(self, *_: str) -> Object:
        return {"status": {"conditions": [{"type": self._condition, "status": "True"}]}}

    def log(self, namespace: str, pod: str, container: str) -> str:
        assert (namespace, container) == ("default", "nccl")
        return LOG if pod == "pod-0" else "of the other one"


def _event(uid: str, time: str) -> Object:
    return {
        "reason": "FailedScaleUp",
        "message": f"no nodes at {time}",
        "lastTimestamp": time,
        "involvedObject": {"uid": uid},
    }


@pytest.fixture(autouse=True)
def _in_no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deadline, "_SHORTEST", 0.3)


def _run(cluster: Any, progress: Progress | None = None) -> Ran:
    facts, pool = samples.FLEX_QUEUED_ULTRA, samples.ULTRA
    return trials.bandwidth(cluster, facts, pool, 2, timeout=0, progress=progress or unheard())


def test_the_test_waits_for_its_nodes_leaves_nothing_and_gives_its_log_though_it_fails() -> None:
    cluster, told = Nodes(), list[str]()
    ran = _run(cluster, Progress(Clock(0), told.append))
    assert (ran.nodes, ran.logs) == (("node-0", "node-1"), (LOG, "of the other one"))
    assert told == [
        "2 nodes of demo-h200: waiting for nodes",
        "2 nodes of demo-h200",
        "The bandwidth test is running on 2 nodes of demo-h200",
    ]
    (submitted,) = cluster.submitted
    assert submitted["metadata"]["name"] == trials.BANDWIDTH
    assert "generateName" not in submitted["metadata"]
    assert not cluster.there
    assert _run(Nodes(condition="Failed")).logs[0] == LOG


def test_nodes_that_do_not_come_leave_no_test_behind_and_say_what_to_do() -> None:
    cluster = Nodes(looks=1000)
    problem = problem_of(StillWaiting, _run, cluster)
    assert "waiting for nodes" in problem.what
    assert not cluster.there
    # A request that waits for quota waits for ever: what helps is said before "try again".
    first, last = problem.fix.splitlines()
    assert "request a higher quota NVIDIA_H200_GPUS of r-1, now 8" in first
    assert last == "run Test again later, or raise CAPACITY_TIMEOUT"
    # Without a queue the autoscaler's last words on these pods are told.
    problem = problem_of(StillWaiting, _run, Nodes(looks=1000, queued=False))
    assert "no nodes yet" in problem.what
    assert problem.why == "no nodes at 2"
    # A request that failed for good.
    cluster = Nodes(looks=1000, active=False)
    problem = problem_of(CapacityError, _run, cluster)
    assert problem.why == GIVEN_UP["message"]
    assert "another zone" in problem.fix
    assert not cluster.there


def test_a_test_that_does_not_end_fails_and_shows_the_end_of_its_log() -> None:
    progress = unheard()
    assert problem_of(ClusterError, _run, Nodes(condition="Startup"), progress).why.endswith(
        "120.248"
    )
    ends = {it.name: it.state for it in progress.stages.timeline}
    assert ends[StageName.TEST] is StageState.FAILED


FACTS = dataclasses.replace(samples.FLEX_QUEUED_ULTRA, ray_operator=True, ray_version="2.55.1")
DONE = {"jobStatus": "SUCCEEDED", "jobDeploymentStatus": "Complete"}
FAILED = {"jobStatus": "FAILED", "message": "Job entrypoint command failed with exit code 1"}


def _seen(gpus: dict[str, int], *faults: str) -> str:
    told = json.dumps({"gpus": gpus, "faults": faults})
    return f"INFO cli.py: submitted\n(Gpu pid=7) aiinfra-ray {told}\nSUCC cli.py: succeeded\n"


def test_its_job_takes_all_gpus_of_as_many_nodes_and_its_program_is_python_in_one_word() -> None:
    made = trials.ray_job(FACTS, samples.ULTRA, 3)
    assert made["metadata"]["name"] == trials.RAY
    (workers,) = made["spec"]["rayClusterSpec"]["workerGroupSpecs"]
    assert {workers[it] for it in ("replicas", "minReplicas", "maxReplicas")} == {3}
    (worker,) = workers["template"]["spec"]["containers"]
    assert worker["resources"]["limits"]["nvidia.com/gpu"] == "8"
    assert "NODE_NAME" in {it["name"] for it in worker["env"]}
    assert "my_data" not in json.dumps(made)
    assert made["spec"]["shutdownAfterJobFinishes"] is True
    entrypoint = trials.ray_job(FACTS, samples.ULTRA, 2)["spec"]["entrypoint"]
    python, option, program = shlex.split(entrypoint)
    assert (python, option) == ("python", "-c")
    ast.parse(program)
    assert "WANTED = 16\n" in program


@pytest.mark.parametrize(
    ("status", "log", "why"),
    [
        (DONE, _seen({"a": 8, "b": 8}), ""),
        (FAILED, _seen({"a": 8}), "Ray found 8 of 16 GPUs"),
        (FAILED, _seen({"a": 8, "b": 8}, "a: GPU 0: cuInit failed with 999"), "a: GPU 0: cuInit"),
        (FAILED, "", "its job ended as FAILED: Job entrypoint command failed"),
        (DONE, "", "its job ended as SUCCEEDED"),
        ({"jobStatus": "RUNNING"}, "", "its job did not end"),
        ({"jobDeploymentStatus": "ValidationFailed", "reason": "no"}, "", "ValidationFailed: no"),
    ],
)
def test_it_is_judged_by_its_end_and_findings(status: dict[str, Any], log: str, why: str) -> None:
    check = trials.judge_ray(status, log, 16)
    assert check.passed is (why == "")
    assert why in check.why
