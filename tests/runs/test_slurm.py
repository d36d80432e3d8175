"""A group of VMs with Slurm: what Create, Status and Destroy say of its queue."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from tests.runs import state_file
from tests.runs.conftest import Rehearse, Standing

SLURM = {"ORCHESTRATOR_TYPE": "slurm", "INSTANCE_COUNT": "2"}


def test_a_slurm_cluster_is_made_looked_at_and_destroyed(
    standing: Rehearse, made_once: Callable[[Mapping[str, str]], Standing]
) -> None:
    created = made_once(SLURM).created
    rehearsal = standing(SLURM)
    slurm = created.document["connection"]["slurm"]
    assert slurm["partition"] == "a2-highgpu"
    assert slurm["shell"] == created.document["connection"]["vms"][0]["ssh"]
    made = "srun on any VM; partitions all (default) and a2-highgpu, each with every VM"
    assert made in " ".join(created.said.split())
    assert "Slurm, partitions all and a2-highgpu, " in created.said
    assert created.document["plan"]["contents"]["words"] == "Slurm cluster"

    status = rehearsal.run("Status").document["status"]
    first, second = sorted(vm["name"] for vm in status["vms"])
    assert (status["words"], status["trouble"]) == ("Slurm cluster", [])
    now = status["slurm"]
    assert (now["head"], now["states"], now["gpus"]) == (first, {"idle": 2}, 4)
    assert all(vm["slurm"]["state"] == "idle" for vm in status["vms"]), second

    gone = rehearsal.run("Destroy", "--yes")
    assert gone.code == 0, gone.said
    assert gone.document["ending"]["words"] == "Slurm cluster"


def test_a_vm_that_slurm_has_drained_is_broken_with_slurms_own_words(standing: Rehearse) -> None:
    ended = standing(SLURM, scenario="bad-gpu").run("Status")

    (bad,) = [it for it in ended.document["status"]["trouble"] if "Slurm" in it["what"]]
    assert bad["what"].endswith("gets no jobs from Slurm, which has it as drained")
    assert "memory (ECC) errors" in bad["why"][0]
    (name,) = bad["names"]
    assert f"scontrol update nodename={name} state=resume" in bad["fix"]
    assert "1 drained, 1 idle; 0 of 4 GPUs in use" in ended.said


def test_jobs_of_others_are_counted_keep_a_test_from_beginning_and_are_named_by_a_destroy(
    standing: Rehearse,
) -> None:
    rehearsal = standing(SLURM)
    runs = {"name": "1001", "user": "ana", "title": "train.sh", "state": "RUNNING", "nodes": 1}
    waits = runs | {"name": "1002", "state": "PENDING", "why": "Resources"}
    with state_file.blob(rehearsal, "np-deployment/vms/slurm/jobs.json") as told:
        told.upload_from_string(json.dumps({"jobs": [runs, waits]}))

    looked = rehearsal.run("Status")
    assert "jobs of others: 1 run, 1 wait" in " ".join(looked.said.split())
    tested = rehearsal.run("Test")
    assert tested.code == 8, tested.said
    assert tested.problem["what"] == "nothing was tested: Slurm runs the job 1001"
    kept = rehearsal.run("Destroy")
    assert kept.code == 2, kept.said
    assert kept.problem["what"] == "Jobs would end: 1001 of ana, 1002 of ana"
    moved = rehearsal.run("Create", ZONE="us-central1-c", **SLURM)
    assert (moved.code, moved.problem["code"]) == (2, "approval-needed"), moved.said
    lost = "; jobs of others are lost: 1001 of ana, 1002 of ana"
    assert lost in moved.problem["why"]
    with state_file.blob(rehearsal, "np-deployment/vms/slurm/jobs.json") as told:
        told.upload_from_string('{"jobs": []}')
    assert rehearsal.run("Test").code == 0


def test_a_job_on_a_part_of_a_vm_is_seen_in_its_node_and_keeps_a_test_from_beginning(
    standing: Rehearse, tmp_path: Path
) -> None:
    rehearsal = standing(SLURM, rate=0.005)
    (folder := tmp_path / "own").mkdir()
    options = ("--copy", str(folder), "--name=long", "--gpus=1", "--nodes=1", "--detach")
    begun = rehearsal.run("Run", *options, behind=("--", "sleep", "9000"), **SLURM)
    assert begun.code == 0, begun.said
    deadline = time.monotonic() + 60
    while not (now := rehearsal.run("Status").document["status"])["slurm"]["gpus_in_use"]:
        assert time.monotonic() < deadline
    assert now["slurm"]["states"] == {"idle": 1, "mixed": 1}
    assert [vm["slurm"]["gpus_in_use"] for vm in now["vms"] if vm["slurm"]["gpus_in_use"]] == [1]
    assert rehearsal.run("Test").problem["what"] == "nothing was tested: Slurm runs the job long-1"
