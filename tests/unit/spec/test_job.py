import dataclasses

import pytest

from provision.errors import SettingsError
from provision.settings.job_options import JobArray
from provision.settings.model import Settings
from provision.spec import job

MANDATORY = {"project_id": "my-project", "name_prefix": "np", "zone": "us-central1-a"}
PLAIN = {"image": "", "wants": "", "files": "", "ray": False, "restarts": 0, "restart_on": ""}
"""What is written of a job that asks for nothing more."""


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("torchrun train.py --epochs 3", "train"),
        ("python3 -m my.module", "my-module"),
        ("./bin/Fine_Tune.sh", "fine-tune"),
        ("nvidia-smi", "nvidia-smi"),
        ("/usr/bin/env python3 4x4.py", "x4"),
        ("bash", "bash"),
        ("/usr/bin/python3 -c print(1)", "python3"),
        ("env A=1 python -c 'import torch; print(torch.__version__)'", "python"),
        ("42", "job"),
        ("python3 a-script-with-a-name-that-never-ends.py", "a-script-with-a-name-th"),
    ],
)
def test_a_job_is_named_after_its_script_or_its_program(line: str, name: str) -> None:
    assert job.name_of(line.split()) == name
    assert job.name_of(["bash", "-c", line]) == name
    # What it is named can be written behind --name.
    assert Settings({**MANDATORY, "job_name": name}).job_name == name


def test_each_job_gets_the_number_after_all_that_there_were() -> None:
    known = ["train-1", "train-10", "train-2", "train-b-40", "trainer-7"]
    assert job.numbered("train", known) == "train-11"
    assert job.numbered("tune", known) == "tune-1"
    assert job.newest("train", known) == "train-10"
    assert job.newest("train-2", known) == "train-2"
    assert job.newest("train-b", known) == "train-b-40"
    assert job.newest("tune", known) is None


def test_the_command_line_wins_over_settings() -> None:
    settings = Settings(
        {**MANDATORY, "job_command": "echo a && b", "job_env": '{ A = "1", B = "2" }'}
    )
    of_settings = job.of(settings, (), {})
    assert of_settings.command == ("/bin/bash", "-c", "echo a && b")
    assert of_settings.name == "echo"
    of_line = job.of(settings, ("python3", "t.py"), {"B": "3"})
    assert (of_line.command, of_line.name) == (("python3", "t.py"), "t")
    assert of_line.env == {"A": "1", "B": "3"}
    assert "1" not in repr(of_line)


def test_the_secrets_of_a_job_are_of_its_project_unless_they_say_another() -> None:
    settings = Settings({**MANDATORY, "job_env": '{ KEY = "1", B = "2" }'})
    own = f"projects/{settings.project_id}/secrets"
    asked = {"HF_TOKEN": "", "KEY": "hf:3", "FAR": "projects/other-project/secrets/far"}
    spec = job.of(settings, ("true",), {}, asked)
    found = {it.name: it.resource for it in spec.secrets}
    assert found == {
        "HF_TOKEN": f"{own}/HF_TOKEN/versions/latest",
        "KEY": f"{own}/hf/versions/3",
        "FAR": "projects/other-project/secrets/far/versions/latest",
    }
    assert spec.env == {"B": "2"}, "what the command line says goes before JOB_ENV"

    before = {"command": ["true"], "env": {"A": "1"}, "secrets": found}
    again = job.again(settings, "true-1", before, (), {"KEY": "2"}, {"A": ""}, ray=False)
    assert [it.name for it in again.secrets] == ["HF_TOKEN", "FAR", "A"]
    assert again.secrets[0].resource == found["HF_TOKEN"]
    assert again.env == {"KEY": "2"}

    known = {**PLAIN, "env": {"B": "2"}}
    assert job.is_same(spec, "", "true-1", {**before, **known})
    assert not job.is_same(spec, "", "true-1", {**before, **known, "secrets": {}})
    longer = dataclasses.replace(spec, seconds=60)
    assert not job.is_same(longer, "", "true-1", {**before, **known})


def test_a_job_has_buckets_of_its_own_again_and_is_another_one_without_them() -> None:
    settings = Settings({**MANDATORY, "gcs_mount_list": "of-all:/mnt/all"})
    said = ("my-data:/mnt/data:ro", "my-out:/mnt/out")
    spec = job.of(settings, ("true",), {}, {}, said)
    data, out = spec.mounts
    assert (data.bucket, data.path, data.read_only) == ("my-data", "/mnt/data", True)
    assert (out.bucket, out.path, out.read_only) == ("my-out", "/mnt/out", False)

    before = {**PLAIN, "command": ["true"], "mounts": [it.model_dump() for it in spec.mounts]}
    again = job.again(settings, "true-1", before, (), {}, {}, ("other:/mnt/out",), ray=False)
    assert [(it.bucket, it.path) for it in again.mounts] == [
        *(("my-data", "/mnt/data"), ("other", "/mnt/out")),
    ]  # fmt: skip
    assert job.is_same(spec, "", "true-1", before)
    assert not job.is_same(spec, "", "true-1", {**before, "mounts": []})
    assert job.is_same(dataclasses.replace(spec, mounts=()), "", "true-1", {**before, "mounts": []})


def test_a_job_of_tasks_or_of_parts_of_machines_is_on_one_unless_it_says_more() -> None:
    gke = {**MANDATORY, "orchestrator_type": "gke"}
    sweep = job.of(Settings({**gke, "job_array": "0-63%8", "job_gpus": "1"}), ("true",), {})
    assert (sweep.array, sweep.gpus, sweep.nodes) == (JobArray(0, 63, 8), 1, 1)
    before = {**PLAIN, "command": ["true"], "gpus": 1, "nodes": 1}
    before["array"] = {"first": 0, "last": 63, "most": 8}
    assert job.is_same(sweep, "", "true-1", before)
    assert not job.is_same(sweep, "", "true-1", {**before, "gpus": 2})
    assert not job.is_same(sweep, "", "true-1", {**before, "array": None})
    assert job.again(Settings(gke), "true-1", before, (), {}, ray=False) == sweep
    fewer = Settings({**gke, "job_array": "3-4"})
    assert job.again(fewer, "true-1", before, (), {}, ray=False).array == JobArray(3, 4)

    pair = job.of(Settings({**gke, "job_gpus": "4", "job_nodes": "2"}), ("true",), {})
    assert (pair.gpus, pair.nodes) == (4, 2)
    assert job.of(Settings({**gke, "job_gpus": "4"}), ("true",), {}).nodes == 1
    with pytest.raises(SettingsError, match="--array does not go together with --nodes 2") as told:
        job.again(Settings({**gke, "job_nodes": "2"}), "true-1", before, (), {}, ray=False)
    assert told.value.problems[0].fix == "--nodes 1, or remove --array"
    for option in ({"job_gpus": "1"}, {"job_array": "0-1"}):
        with pytest.raises(SettingsError, match=r"^--(gpus|array) has no effect with --ray"):
            job.of(Settings({**gke, **option}), ("true",), {}, ray=True)


@pytest.mark.parametrize(
    ("said", "what"),
    [
        ("my-data", "names no bucket with a path below /mnt"),
        ("my-data:/etc", "names no bucket"),
        ("my-data:/mnt/a/../../etc", "names no bucket"),
        ("my-data:/mnt/localssd", "names no bucket"),
        ("my-data:/mnt/a:rw", "names no bucket"),
        ("my-data:/mnt/all", "/mnt/all, which is mounted already"),
        ("aiinfra-terraform-my-project:/mnt/a", "a bucket of Terraform states"),
        ("my-states:/mnt/a", "a bucket of Terraform states"),
    ],
)
def test_a_mount_of_a_job_hides_nothing_and_leads_to_no_state(said: str, what: str) -> None:
    own = {"gcs_mount_list": "of-all:/mnt/all", "terraform_gcs_path": "gs://my-states/here"}
    with pytest.raises(SettingsError, match=what):
        job.of(Settings({**MANDATORY, **own}), ("true",), {}, {}, (said,))


def test_a_job_of_ray_or_of_slurm_has_no_mounts_of_its_own() -> None:
    on_gke = Settings({**MANDATORY, "orchestrator_type": "gke", "enable_ray_operator": "yes"})
    on_vms = Settings({**MANDATORY, "orchestrator_type": "ray"})
    by_slurm = Settings({**MANDATORY, "orchestrator_type": "slurm"})
    with pytest.raises(SettingsError, match="--mount has no effect with ORCHESTRATOR_TYPE=slurm"):
        job.of(by_slurm, ("true",), {}, {}, ("my-data:/mnt/data:ro",))
    for settings, ray in ((on_gke, True), (on_vms, False)):
        with pytest.raises(SettingsError, match="--mount has no effect on Ray") as caught:
            job.of(settings, ("true",), {}, {}, ("my-data:/mnt/data:ro",), ray=ray)
        assert "GCS_MOUNT_LIST=my-data:/mnt/data, and Create" in caught.value.problems[0].fix


@pytest.mark.parametrize(
    ("name", "reference"), [("PATH", ""), ("A", "hf_ab:cd"), ("A", "a,B=c"), ("A", "a/b")]
)
def test_what_names_no_secret_is_refused_and_not_echoed(name: str, reference: str) -> None:
    with pytest.raises(SettingsError, match="names no secret") as caught:
        job.of(Settings(MANDATORY), ("true",), {}, {name: reference})
    assert not reference or reference not in str(caught.value.problems)


def test_a_variable_is_no_secret_as_well() -> None:
    with pytest.raises(SettingsError, match="both give A"):
        job.of(Settings(MANDATORY), ("true",), {"A": "1"}, {"A": ""})


def test_no_command_is_refused() -> None:
    with pytest.raises(SettingsError, match="no command"):
        job.of(Settings(MANDATORY), (), {})


def test_only_a_gke_cluster_takes_a_job_of_ray() -> None:
    on_gke = Settings({**MANDATORY, "orchestrator_type": "gke"})
    assert job.of(on_gke, ("true",), {}, ray=True).ray
    no_choice = Settings({**MANDATORY, "orchestrator_type": "gke", "job_restart_on": "lost"})
    with pytest.raises(SettingsError, match="no effect with --ray"):
        job.of(no_choice, ("true",), {}, ray=True)
    for kind, fix in (("none", "ORCHESTRATOR_TYPE=ray"), ("ray", "remove --ray")):
        with pytest.raises(SettingsError) as caught:
            job.of(Settings({**MANDATORY, "orchestrator_type": kind}), ("true",), {}, ray=True)
        assert fix in caught.value.problems[0].fix


POOLS = (
    "name=a,vm_type=a3-highgpu-8g,count=1;name=b,vm_type=g2-standard-4,count=3"
    ";name=c,vm_type=a3-megagpu-8g,count=2"
)


@pytest.mark.parametrize(
    ("machine", "nodes", "gpus", "refused"),
    [
        ("l4", 3, 1, ""),
        ("a3-highgpu-8g", 1, 8, ""),
        ("h100-80gb", 2, 1, "The job wants 2 machines, and np-a gets 1"),
        ("a3-megagpu-8g", 2, 4, "The job wants 4 of the 8 GPUs of 2 nodes"),
        ("a100", 1, 1, "The cluster has no nodes of a100"),
        ("l4", 1, 2, "wants 2 GPUs of each machine, and g2-standard-4 has 1"),
    ],
)
def test_a_cluster_that_is_yet_to_be_made_has_the_machine_that_a_job_names(
    machine: str, nodes: int, gpus: int, refused: str
) -> None:
    asked = {"orchestrator_type": "gke", "gke_node_pools": POOLS, "job_machine": machine}
    asked |= {"job_nodes": str(nodes), "job_gpus": str(gpus)}
    settings = Settings({**MANDATORY, **asked})
    spec = job.of(settings, ("true",), {})
    if not refused:
        job.require_possible(spec, settings)
        return
    with pytest.raises(SettingsError, match=refused):
        job.require_possible(spec, settings)


def test_a_job_that_is_run_again_is_for_the_machine_that_it_was_for() -> None:
    asked = {"command": ["true"], "wants": "h100"}
    settings = Settings({**MANDATORY, "orchestrator_type": "gke"})
    spec = job.again(settings, "train-1", asked, (), {}, ray=False)
    assert spec.machine == "h100"
    known = {**PLAIN, "env": {}, **asked}
    assert job.is_same(spec, "", "train-1", known)
    any_machine = dataclasses.replace(spec, machine=None)
    assert not job.is_same(any_machine, "", "train-1", known)
    # As an earlier version wrote it, which knew no machines.
    del known["wants"]
    assert job.is_same(any_machine, "", "train-1", known)
