"""What one job gets and leaves: a record, secrets, a bucket, packages, and itself again."""

import base64
import re
from pathlib import Path

import pytest

from tests.runs import state_file
from tests.runs.conftest import Rehearsal, Rehearse
from tests.runs.job_lines import TWO, folder, job_of, run, there

__all__ = ["folder", "there"]  # the fixtures


def test_a_job_keeps_what_it_was_and_what_it_cost(there: Rehearse, folder: Path) -> None:
    rehearsal = there(rate=0.02)
    options = ("--name=tune", "--env", "LEVEL=steep", "--", "python3", "train.py", "--lr", "3")
    ended = run(rehearsal, *options, folder=folder)
    job = job_of(ended)
    assert job["command"] == ["python3", "train.py", "--lr", "3"]
    assert job["env"] == ["LEVEL"]
    sent = [name for name in rehearsal.objects() if "/jobs/files/" in name]
    assert job["folder"] in sent[0]
    assert "@" in job["by"]
    assert job["ran"] > 0
    is_ray = rehearsal.settings.get("ORCHESTRATOR_TYPE") == "ray"
    assert job.get("cost", -1) >= 0 or is_ray, "each VM has a part in each job of Ray"
    on = "" if is_ray else f" on 2 x {job['machine_type']} ("
    assert re.search(rf"tune-1 ran \d+ (s|min)\b.*{re.escape(on)}", ended.said), ended.said
    assert job["ran"] > 60, "by the cloud's clock"
    listed = rehearsal.run("Jobs")
    assert "python3 train.py --lr 3" in listed.said
    shown = rehearsal.run("Jobs", behind=("tune-1",)).said
    assert "LEVEL" in shown
    assert "steep" not in shown


def test_a_job_alone_gets_a_secret_once_its_machines_may_read_it(there: Rehearse) -> None:
    rehearsal = there()
    account = "np-workload" if rehearsal.settings.get("VM_TYPE") else "np-nodes"
    member = f"serviceAccount:{account}@my-project.iam.gserviceaccount.com"
    words = ("--secret=HF_TOKEN=hf-token", "--", "true")
    missing = run(rehearsal, *words)
    assert (missing.code, missing.problem["setting"]) == (4, "--secret"), missing.said
    assert "gcloud secrets create hf-token --project my-project" in missing.problem["fix"]
    assert not [name for name in rehearsal.objects() if "/jobs/true" in name]

    _make_secret(rehearsal)
    denied = run(rehearsal, *words)
    (note,) = [it for it in denied.document["notes"] if it["code"] == "secrets-unreadable"]
    grant = "gcloud secrets add-iam-policy-binding hf-token --project my-project"
    role = "roles/secretmanager.secretAccessor"
    assert note["fix"] == f"{grant} --role {role} --member {member}"
    assert grant in denied.said.replace("\n", " ")
    tries_on = "ENABLE_RAY_OPERATOR" in rehearsal.settings  # KubeRay's pods do
    assert denied.code == (75 if tries_on else 8), denied.said
    assert (
        grant in job_of(denied)["why"] if tries_on else grant in job_of(denied)["failure"]["cause"]
    )
    assert "began" not in job_of(denied)
    assert not tries_on or rehearsal.run("Cancel", behind=("true",)).code == 0

    policy = {"bindings": [{"role": role, "members": [member]}]}
    path = "secretmanager/v1/projects/my-project/secrets/hf-token:setIamPolicy"
    rehearsal.google("POST", path, {"policy": policy})
    for behind in (words, ("--again=true",)):
        ran = rehearsal.run("Run", behind=behind) if len(behind) == 1 else run(rehearsal, *words)
        assert ran.code == 0, ran.said
        assert "secrets-unreadable" not in str(ran.document["notes"])
        resource = "projects/my-project/secrets/hf-token/versions/latest"
        asked = rehearsal.object(f"jobs/{job_of(ran)['name']}.json")
        assert asked["secrets"] == {"HF_TOKEN": resource}
        assert "value-of-the-secret" not in str(asked) + ran.said


def _make_secret(rehearsal: Rehearsal) -> None:
    own = "secretmanager/v1/projects/my-project/secrets"
    rehearsal.google("POST", f"{own}?secretId=hf-token", {})
    value = base64.b64encode(b"value-of-the-secret").decode()
    rehearsal.google("POST", f"{own}/hf-token:addVersion", {"payload": {"data": value}})


RUNS = ("--mount=my-runs:/mnt/runs", "--", "true")


def _make_bucket(rehearsal: Rehearsal, name: str) -> None:
    access = {"iamConfiguration": {"uniformBucketLevelAccess": {"enabled": True}}}
    path = "storage/v1/b?project=my-project"
    rehearsal.google("POST", path, {"name": name, "location": "US", **access})


def test_a_jobs_bucket_is_there_and_its_vms_have_gcsfuse_or_that_is_told(
    standing: Rehearse,
) -> None:
    rehearsal = standing(TWO)
    missing = run(rehearsal, *RUNS)
    assert (missing.code, missing.problem["setting"]) == (4, "--mount"), missing.said
    assert "gcloud storage buckets create gs://my-runs" in missing.problem["fix"]
    assert not [name for name in rehearsal.objects() if "/jobs/true" in name]

    _make_bucket(rehearsal, "my-runs")
    without = run(rehearsal, *RUNS)
    assert without.code == 8, without.said
    assert "this VM has no gcsfuse" in job_of(without)["failure"]["cause"]
    vain = rehearsal.run("Run", NAME_PREFIX="other", behind=("--create", *RUNS))
    assert (vain.code, vain.problem["setting"]) == (4, "--mount"), vain.said
    assert "name it in GCS_MOUNT_LIST, which Create grants" in vain.problem["fix"]


@pytest.mark.slow(sibling="::test_a_jobs_bucket_is_there_and_its_vms_have_gcsfuse_or_that_is_told")
def test_a_job_alone_gets_a_bucket_once_its_machines_may_use_it(rehearsal: Rehearsal) -> None:
    _make_bucket(rehearsal, "my-data")
    _make_bucket(rehearsal, "my-runs")
    rehearsal.settings |= {**TWO, "GCS_MOUNT_LIST": "my-data:/mnt/all"}
    assert rehearsal.run("Create").code == 0
    words = RUNS
    denied = run(rehearsal, *words)
    member = "serviceAccount:np-nodes@my-project.iam.gserviceaccount.com"
    grant = f"add-iam-policy-binding gs://my-runs --member {member} --role"
    (note,) = [it for it in denied.document["notes"] if it.get("setting") == "--mount"]
    assert f"{grant} roles/storage.objectUser" in note["fix"]
    assert denied.code == 8, denied.said
    assert grant in job_of(denied)["failure"]["cause"]

    policy = {"bindings": [{"role": "roles/storage.objectUser", "members": [member]}]}
    rehearsal.google("PUT", "storage/v1/b/my-runs/iam", policy)
    for ran in (run(rehearsal, *words), rehearsal.run("Run", behind=("--again=true",))):
        assert ran.code == 0, ran.said
        asked = rehearsal.object(f"jobs/{job_of(ran)['name']}.json")
        assert asked["mounts"] == [{"bucket": "my-runs", "path": "/mnt/runs", "read_only": False}]


@pytest.mark.slow(
    sibling="::test_no_cluster_is_made_for_a_job_whose_secret_its_account_can_not_read_yet"
)
def test_a_cluster_is_made_for_a_job_with_a_secret_and_a_bucket_that_its_create_grants(
    rehearsal: Rehearsal,
) -> None:
    _make_secret(rehearsal)
    _make_bucket(rehearsal, "my-runs")
    words = ("--create", "--yes", "--secret=MY_KEY=hf-token", *RUNS)
    rehearsal.settings |= {**TWO, "GCS_MOUNT_LIST": "my-runs:/mnt/all"}
    ran = run(rehearsal, *words, SECRETS="HF_TOKEN=projects/my-project/secrets/hf-token")
    assert ran.code == 0, ran.said
    assert "secrets-unreadable" not in str(ran.document["notes"])


def test_no_cluster_is_made_for_a_job_whose_secret_its_account_can_not_read_yet(
    rehearsal: Rehearsal,
) -> None:
    _make_secret(rehearsal)
    refused = run(rehearsal, "--create", "--secret=HF_TOKEN=hf-token", "--", "true")
    assert (refused.code, refused.problem["setting"]) == (4, "--secret"), refused.said
    assert "name it in SECRETS" in refused.problem["fix"]
    assert not rehearsal.objects()


def test_a_job_is_run_again_as_it_was_but_for_what_is_said(there: Rehearse, folder: Path) -> None:
    rehearsal = there(rate=0.001)
    options = ("--name=tune", "--env", "A=1", "--env", "B=2", "--restarts=2", "--time=2h")
    before = job_of(run(rehearsal, *options, "--", "python3", "train.py", folder=folder))
    (folder / "train.py").write_text("raise SystemExit(3)")
    settings = {"JOB_OPTIONS": "--restarts 9 --name other", "JOB_ENV": '{ C = "3" }'}
    said = ("--again", "tune", "--env", "B=4", "--time=3h")
    ended = rehearsal.finish(rehearsal.start("Run", *said, **settings))
    assert ended.code == 0, ended.said
    again = job_of(ended)
    same = ("command", "folder", "image", "nodes", "restarts", "machines")
    assert again["name"] == "tune-2"
    assert [again.get(it) for it in same[:-1]] == [before.get(it) for it in same[:-1]]
    # Of a RayJob that is over, the head alone says where it was, once its pods are gone.
    if "ENABLE_RAY_OPERATOR" not in rehearsal.settings:
        assert len(again["machines"]) == len(before["machines"])
    spec = rehearsal.object("jobs/tune-2.json")
    assert (spec["env"], spec["seconds"]) == ({"A": "1", "B": "4"}, 3 * 3600)
    assert "copied" not in ended.said, "nothing travels"

    other = rehearsal.run("Run", "--again=tune-1", behind=("--", "python3", "other.py"))
    assert (other.code, job_of(other)["command"]) == (8, ["python3", "other.py"]), other.said
    unknown = rehearsal.run("Run", "--again=nobody-1")
    assert (unknown.code, unknown.problem["code"]) == (5, "no-job")
    wrong = rehearsal.run("Run", "--again=tune-1", f"--copy={folder}")
    assert (wrong.code, wrong.problem["code"]) == (2, "invalid-command-line")
    (path,) = (it for it in rehearsal.objects() if "/jobs/files/" in it)
    with state_file.blob(rehearsal, path.partition("/o/")[2]) as sent:
        sent.delete()
    gone = rehearsal.run("Run", "--again=tune-1")
    assert "The folder of tune-1 is not there any more" in gone.problem["what"]


def test_what_a_folder_asks_for_is_installed_unless_somebody_says_otherwise(
    standing: Rehearse, folder: Path
) -> None:
    rehearsal = standing(TWO)
    (folder / "requirements.txt").write_text("einops\n")
    ended = run(rehearsal, "--", "torchrun", "train.py", folder=folder)
    assert ended.code == 0, ended.said
    assert "The packages of requirements.txt are installed on each machine" in ended.said
    said = ended.said.splitlines()
    assert said.index("packages would be installed here: a rehearsal installs none") < said.index(
        "epoch 1"
    )
    without = run(rehearsal, "--setup=none", "--", "torchrun", "train.py", folder=folder)
    assert "packages" not in without.said


def test_a_job_does_not_begin_where_the_cluster_lacks_a_mount_that_its_settings_name(
    standing: Rehearse, folder: Path
) -> None:
    rehearsal = standing(TWO)
    rehearsal.settings |= {**TWO, "GCS_MOUNT_LIST": "my-bucket:/mnt/new", "IDLE_TIMEOUT": "2h"}
    refused = run(rehearsal, "--", "torchrun", "train.py", folder=folder)
    assert (refused.code, refused.problem["setting"]) == (2, "GCS_MOUNT_LIST")
    assert "my-bucket" in refused.problem["what"]
    assert not [name for name in rehearsal.objects() if "/jobs/" in name]

    del rehearsal.settings["GCS_MOUNT_LIST"]
    given = ("--detach", "--env", "WANDB_API_KEY=1")
    ended = run(rehearsal, *given, "--", "torchrun", "train.py", folder=folder)
    assert ended.code == 0, ended.said
    assert "--env WANDB_API_KEY has what looks like a credential" in ended.said
    assert "not by these settings: IDLE_TIMEOUT unset -> 7200" in ended.said
