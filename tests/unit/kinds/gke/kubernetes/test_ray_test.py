from __future__ import annotations

import ast
import dataclasses
import json
import shlex
from typing import Any

import pytest

from provision.kinds.gke.kubernetes import ray_test
from tests.kubernetes import samples

FACTS = dataclasses.replace(samples.FLEX_QUEUED_ULTRA, ray_operator=True, ray_version="2.55.1")
DONE = {"jobStatus": "SUCCEEDED", "jobDeploymentStatus": "Complete"}
FAILED = {"jobStatus": "FAILED", "message": "Job entrypoint command failed with exit code 1"}


def _log(gpus: dict[str, int], *faults: str) -> str:
    told = json.dumps({"gpus": gpus, "faults": faults})
    return f"INFO cli.py: submitted\n(Gpu pid=7) aiinfra-ray {told}\nSUCC cli.py: succeeded\n"


def test_its_job_takes_all_gpus_of_as_many_nodes_and_nothing_else() -> None:
    made = ray_test.job(FACTS, samples.ULTRA, 3)
    assert made["metadata"]["name"] == ray_test.NAME
    (workers,) = made["spec"]["rayClusterSpec"]["workerGroupSpecs"]
    assert {workers[it] for it in ("replicas", "minReplicas", "maxReplicas")} == {3}
    (worker,) = workers["template"]["spec"]["containers"]
    assert worker["resources"]["limits"]["nvidia.com/gpu"] == "8"
    assert "NODE_NAME" in {it["name"] for it in worker["env"]}
    assert "my_data" not in json.dumps(made)
    assert made["spec"]["shutdownAfterJobFinishes"] is True


def test_its_program_is_python_in_one_word_of_the_shell() -> None:
    entrypoint = ray_test.job(FACTS, samples.ULTRA, 2)["spec"]["entrypoint"]
    python, option, program = shlex.split(entrypoint)
    assert (python, option) == ("python", "-c")
    ast.parse(program)
    assert "WANTED = 16\n" in program


@pytest.mark.parametrize(
    ("status", "log", "why"),
    [
        (DONE, _log({"a": 8, "b": 8}), ""),
        (FAILED, _log({"a": 8}), "Ray found 8 of 16 GPUs"),
        (FAILED, _log({"a": 8, "b": 8}, "a: GPU 0: cuInit failed with 999"), "a: GPU 0: cuInit"),
        (FAILED, "", "its job ended as FAILED: Job entrypoint command failed"),
        (DONE, "", "its job ended as SUCCEEDED"),
        ({"jobStatus": "RUNNING"}, "", "its job did not end"),
        ({"jobDeploymentStatus": "ValidationFailed", "reason": "no"}, "", "ValidationFailed: no"),
    ],
)
def test_it_is_judged_by_its_end_and_by_what_it_found(
    status: dict[str, Any], log: str, why: str
) -> None:
    check = ray_test.judge(status, log, 16)
    assert check.passed is (why == "")
    assert why in check.why
