"""Create, again, change, Plan and Destroy: whole actions, with real Terraform."""

import re
from pathlib import Path
from urllib.parse import quote

import pytest

from rehearsal.inventory import stays
from tests.image.terminal import typed
from tests.runs import state_file
from tests.runs.conftest import PROGRAM, Rehearsal, Rehearse


def test_an_env_list_becomes_a_cluster_and_goes_away_again(
    rehearse: Rehearse, tmp_path: Path
) -> None:
    rehearsal = rehearse(real=True)
    page = tmp_path / "report.html"
    created = rehearsal.run("Create", "--report", str(page), INSTANCE_COUNT="2")
    assert created.code == 0, created.said
    assert created.document["changes"]["add"] > 0
    assert created.document["changes"]["destroy"] == 0
    assert "will be created" not in created.said
    assert "Apply complete!" not in created.said
    assert created.document["outputs"]["group"]["size"] == 2
    vms = created.document["connection"]["vms"]
    assert [vm["status"] for vm in vms] == ["RUNNING", "RUNNING"]
    assert vms[0]["ssh"].startswith(f"gcloud compute ssh {vms[0]['name']} --project my-project")
    state = rehearsal.google("GET", "storage/v1/b/aiinfra-terraform-my-project")
    access = state["iamConfiguration"]
    assert access["uniformBucketLevelAccess"]["enabled"]
    assert access["publicAccessPrevention"] == "enforced"
    assert state["versioning"]["enabled"]
    (rule,) = state["lifecycle"]["rule"]
    assert rule["condition"] == {"daysSinceNoncurrentTime": 30}

    shown = page.read_text()
    for words in (vms[1]["ssh"], "Ready", "2 \N{MULTIPLICATION SIGN} a2-highgpu-2g", "$"):
        assert words in shown

    again = rehearsal.run("Create", INSTANCE_COUNT="2")
    assert again.code == 0, again.said
    assert again.document["changes"] == {"add": 0, "change": 0, "destroy": 0}
    assert "No changes" in again.said
    assert again.document["connection"] == created.document["connection"]
    # It stays on its image when the family moves on.
    image = created.document["outputs"]["image"] | {"family": None}
    assert again.document["tfvars"]["image"] == {
        name: image[name] for name in ("project", "family", "name")
    }

    destroyed = rehearsal.run("Destroy", INSTANCE_COUNT="2")
    assert destroyed.code == 0, destroyed.said
    ending = destroyed.document["ending"]
    (machines,) = ending["machines"]
    assert re.fullmatch(
        r"2 VMs run: a2-highgpu-2g in us-central1-a, for up to \d+ \w+( \d+ \w+)?", machines
    )
    assert sum(ending["counts"].values()) == created.document["changes"]["add"]
    assert destroyed.document["cost"]["now"] == created.document["cost"]["now"]
    assert f"  machines   {machines}\n" in destroyed.said
    assert destroyed.document["changes"]["destroy"] == created.document["changes"]["add"]
    left = [line for line in rehearsal.resources() if not line.startswith("storage/")]
    assert left == []
    kept = [line for line in rehearsal.resources() if "-deployment/" in line]
    assert [line for line in kept if not stays(line)] == []
    logs = [line.rpartition("-")[2] for line in kept if "/logs/" in line]
    assert sorted(set(logs)) == ["create.html", "create.log", "destroy.log"]
    assert logs.count("create.html") == 1, "a Create that changes nothing keeps none"


def test_a_plan_shows_what_create_would_do_and_writes_nothing(rehearsal: Rehearsal) -> None:
    before = rehearsal.resources()
    planned = rehearsal.run("Plan", "--full", "--detailed-exitcode")
    assert planned.code == 2, planned.said
    assert planned.document["changes"]["add"] > 0
    assert "will be created" in planned.said
    assert "jsonencode( ... ) (" in planned.said
    assert "mosaicLayout" not in planned.said
    assert rehearsal.resources() == before
    assert rehearsal.writes() == []


def test_a_plan_of_what_exists_takes_no_lock_leaves_its_log_and_has_terraforms_exit_codes(
    standing: Rehearse,
) -> None:
    rehearsal = standing()
    asked = len(rehearsal.requests())
    planned = rehearsal.run("Plan", INSTANCE_COUNT="3")
    assert planned.document["changes"] == {"add": 0, "change": 1, "destroy": 0}
    (written,) = rehearsal.writes(since=asked)
    assert "/upload/storage/" in written["path"]
    assert planned.document["log"].endswith("-plan.log")
    assert rehearsal.run("Plan", "--detailed-exitcode").code == 0
    assert rehearsal.run("Plan", "--detailed-exitcode", ZONE="us-central1").code == 1


def test_status_without_a_name_lists_all_deployments_and_has_an_exit_code_for_gates(
    standing: Rehearse,
) -> None:
    rehearsal = standing({"INSTANCE_COUNT": "2"})
    rehearsal.settings = {"PROJECT_ID": "my-project"}

    listed = rehearsal.run("Status", "--detailed-exitcode")

    assert listed.code == 0, listed.said
    assert "Worth knowing" not in listed.said
    (one,) = listed.document["deployments"]
    assert (one["name"], one["kind"], one["zone"]) == ("np", "mig", "us-central1-a")
    assert (one["in_order"], one["trouble"], one["machines"][0]["ready"]) == (True, [], 2)
    assert one["hours"] >= 0
    assert one["cost"]["per_hour"] > 10

    with state_file.blob(rehearsal, "team/b-deployment/deployment.json") as record:
        record.upload_from_string("{}")
    with state_file.blob(rehearsal, "gone-deployment/logs/1.log") as log:
        log.upload_from_string("x")
    again = rehearsal.run("Status", "--detailed-exitcode")
    assert again.code == 2, again.said
    names = [(it["name"], it["in_order"]) for it in again.document["deployments"]]
    assert names == [("np", True), ("b", False)]
    assert "is not a record that this version can read" in " ".join(again.said.split())

    rehearsal.settings |= {"NAME_PREFIX": "none", "ZONE": "us-central1-a"}
    assert rehearsal.run("Status").code == 0
    assert rehearsal.run("Status", "--detailed-exitcode").code == 2


@pytest.mark.slow(
    sibling="tests/runs/test_done_is_done.py"
    "::test_row_1_vms_that_somebody_added_by_hand_are_not_deleted_unasked"
)
def test_fewer_vms_want_an_agreement_and_more_do_not(standing: Rehearse) -> None:
    rehearsal = standing({"INSTANCE_COUNT": "2"})
    refused = rehearsal.run("Create", INSTANCE_COUNT="1")
    assert refused.code == 2
    assert refused.problem["why"] == "1 of 2 VMs ends; Google chooses which"
    assert "--yes" in refused.problem["fix"]
    assert len([line for line in rehearsal.resources() if "/instances/" in line]) == 2

    assert rehearsal.run("Create", "--yes", INSTANCE_COUNT="1").code == 0
    assert len([line for line in rehearsal.resources() if "/instances/" in line]) == 1
    grown = rehearsal.run("Create", INSTANCE_COUNT="3")
    assert grown.code == 0, grown.said
    assert len(grown.document["connection"]["vms"]) == 3


def test_what_was_never_made_is_not_there_to_destroy(rehearsal: Rehearsal) -> None:
    destroyed = rehearsal.run("Destroy")
    assert destroyed.code == 0
    assert destroyed.document["changes"] == {"add": 0, "change": 0, "destroy": 0}
    assert rehearsal.resources() == []


def test_the_note_of_a_run_that_was_killed_when_all_was_gone_goes_with_the_next_destroy(
    rehearsal: Rehearsal,
) -> None:
    bucket, note = "aiinfra-terraform-my-project", "np-deployment/runs/5f0c8d9e.json"
    rehearsal.google("POST", "storage/v1/b?project=my-project", {"name": bucket})
    upload = f"upload/storage/v1/b/{bucket}/o?uploadType=media&name={quote(note, safe='')}"
    rehearsal.google("POST", upload, {"machine": "another"})
    assert f"b/{bucket}/o/{note}" in rehearsal.objects()

    destroyed = rehearsal.run("Destroy")

    assert destroyed.code == 0, destroyed.said
    assert rehearsal.objects() == set()


def test_destroy_needs_little_of_the_env_list(standing: Rehearse) -> None:
    rehearsal = standing()
    destroyed = rehearsal.run("Destroy", INSTANCE_COUNT="many", VM_TYPE="a9-huge", METADATA="{{")
    assert destroyed.code == 0, destroyed.said
    assert {"INSTANCE_COUNT", "METADATA"} <= {n["setting"] for n in destroyed.document["notes"]}


@pytest.mark.slow(
    sibling="tests/runs/test_row_12_secrets.py::test_debug_has_the_values_for_who_asks"
)
def test_terraform_plan_works_in_debugs_shell_as_it_stands(
    rehearsal: Rehearsal, tmp_path: Path
) -> None:
    """As it stands it finds what Create made, and no change, and it takes no lock."""
    rehearsal.settings |= {"ENABLE_FLEX_START": "yes", "VM_TYPE": "a2-highgpu-1g"}
    created = rehearsal.run("Create")
    assert created.code == 0, created.said
    before = len(rehearsal.requests())
    shell = tmp_path / "shell"
    shell.write_text(
        "#!/bin/sh\n"
        "terraform plan -no-color -detailed-exitcode\n"
        'echo "planned with $? in $(basename "$PWD")"\n'
    )
    shell.chmod(0o755)
    env_list = rehearsal.folder / "Create-np.list"

    code, said = typed(
        [*PROGRAM, "--env-file", str(env_list), "Debug"], rehearsal.environ | {"SHELL": str(shell)}
    )

    assert code == 0, said
    assert "planned with 0 in mig" in said, said
    assert rehearsal.writes(before) == []
