"""Secrets do not leak, and what is valid offline is valid for Terraform: row 12 of the mistakes."""

import base64
import json
from pathlib import Path

import pytest

from tests.runs import state_file
from tests.runs.conftest import Rehearsal, Rehearse


def test_row_12_a_command_that_is_valid_offline_is_valid_for_terraform(
    rehearsal: Rehearsal,
) -> None:
    command = "true " + "x" * 70_000

    assert rehearsal.run("Validate", "--offline", STARTUP_COMMAND=command).code == 0
    planned = rehearsal.run("Plan", STARTUP_COMMAND=command)
    assert planned.code == 0, planned.said[-2000:]

    refused = rehearsal.run("Validate", "--offline", STARTUP_COMMAND=command * 2)
    assert refused.code == 2
    assert "140010 bytes" in refused.problem["what"]
    assert "131072" in refused.problem["why"]
    assert "--copy" in refused.problem["why"]


@pytest.mark.slow(sibling="::test_command_and_metadata_are_in_nothing_that_is_shown_or_kept")
def test_row_12_what_terraform_shows_has_neither_metadata_nor_command(rehearsal: Rehearsal) -> None:
    given = {
        "METADATA": "token=first-of-all-values,colour=second-of-all-values",
        "STARTUP_COMMAND": "echo third-of-all-values",
    }
    values = [f"{nth}-of-all-values" for nth in ("first", "second", "third")]

    created = rehearsal.run("Create", **given)
    assert created.code == 0, created.said[-2000:]
    with state_file.client(rehearsal) as client:
        bucket = client.bucket("aiinfra-terraform-my-project")
        logs = {
            blob.name.rpartition(".")[2]: blob.download_as_bytes().decode()
            for blob in bucket.list_blobs(prefix="np-deployment/logs/")
        }
    kept = logs.pop("log")
    assert "google_compute_instance_template.gpu" in kept
    assert [value for value in values if value in kept] == []
    assert [value for value in values if value in logs["html"] + json.dumps(created.document)] == []
    # What is sensitive is no change by itself.
    assert rehearsal.run("Plan", "--detailed-exitcode", **given).code == 0

    changed = rehearsal.run(
        "Plan", "--detailed-exitcode", "--full", **given | {"METADATA": "token=4"}
    )
    assert changed.document["exit_code"] == 2
    assert "google_compute_instance_template.gpu" in changed.said
    assert [value for value in values if value in changed.said] == []


_COMMAND = (
    "wandb login planted-one-1; curl -u me:planted-two-2 https://example.com; mysql"
    " -pplanted-three-3 my_db; echo planted-four-4 | docker login -u me --password-stdin;"
    " sshpass -p planted-five-5 true"
)
_PRIVATE = {
    "METADATA": "colour=planted-six-6,api_token=planted-seven-7,note=planted eight 8,"
    "zone=us-central1-a",
    "STARTUP_COMMAND": _COMMAND,
}
_PLANTED = ("planted-", "planted eight", _COMMAND)


def _found(text: str) -> list[str]:
    return [one for one in _PLANTED if one in text]


def _kept(rehearsal: Rehearsal) -> dict[str, str]:
    """What lies beside the state, but for the state itself, whose content is Terraform's."""
    with state_file.client(rehearsal) as client:
        blobs = client.list_blobs("aiinfra-terraform-my-project")
        return {
            it.name: it.download_as_bytes().decode()
            for it in blobs
            if not it.name.endswith((".tfstate", ".tar.gz"))
        }


def test_command_and_metadata_are_in_nothing_that_is_shown_or_kept(
    rehearsal: Rehearsal, tmp_path: Path
) -> None:
    page = tmp_path / "report.html"

    def said(action: str, *options: str, **given: str) -> str:
        started = rehearsal.start(action, *options, **{**_PRIVATE, **given})
        ended = rehearsal.finish(started)
        assert ended.code in {0, 2}, ended.said[-2000:]
        return ended.said + rehearsal.result(started)

    everything = [
        said("Plan", "--full"),
        said("Create", "--full", "--report", str(page)),
        page.read_text(),
        said("Status"),
        said("Validate", "--offline", MAX_RUN_DURATION="eternity"),
        said("Debug"),
    ]
    for name, text in _kept(rehearsal).items():
        assert (name, _found(text)) == (name, [])
    assert [_found(text) for text in everything] == [[]] * len(everything)
    # Keys are seen, and what is said anyway, such as the zone.
    settings = json.loads(_kept(rehearsal)["np-deployment/deployment.json"])["settings"]
    assert list(settings["METADATA"]) == ["colour", "api_token", "note", "zone"]
    assert "in my-project, us-central1-a" in everything[1]


@pytest.mark.slow(sibling="::test_command_and_metadata_are_in_nothing_that_is_shown_or_kept")
def test_what_changed_is_told_without_its_value(standing: Rehearse) -> None:
    rehearsal = standing(_PRIVATE)
    same = rehearsal.run("Plan", **_PRIVATE)
    assert same.document["plan"]["settings"] == []

    changed = _PRIVATE | {"METADATA": "colour=planted-nine-9", "STARTUP_COMMAND": "planted-ten-10"}
    planned = rehearsal.run("Plan", **changed)

    assert planned.document["plan"]["settings"] == [
        {"setting": "METADATA", "words": "colour changed, - api_token, - note, - zone"},
        {"setting": "STARTUP_COMMAND", "words": "changed"},
    ]
    assert _found(planned.said + json.dumps(planned.document)) == []


@pytest.mark.slow(
    sibling="tests/runs/test_whose_it_is.py::test_row_4_a_field_of_a_later_version_is_kept"
)
def test_the_record_of_an_older_version_is_read_and_written_masked(standing: Rehearse) -> None:
    rehearsal = standing(_PRIVATE)
    name = "np-deployment/deployment.json"
    with state_file.blob(rehearsal, name) as blob:
        record = json.loads(blob.download_as_bytes())
        record["settings"] |= {
            "STARTUP_COMMAND": _COMMAND,
            "METADATA": {
                "colour": "planted-six-6",
                "api_token": "***",
                "note": "planted eight 8",
                "zone": "us-central1-a",
            },
        }
        blob.upload_from_string(json.dumps(record))

    planned = rehearsal.run("Plan", **_PRIVATE)
    assert planned.document["plan"]["settings"] == []
    assert rehearsal.run("Create", **_PRIVATE).code == 0
    assert _found(_kept(rehearsal)[name]) == []


def test_debug_has_the_values_for_who_asks(rehearsal: Rehearsal, tmp_path: Path) -> None:
    for number, (options, has) in enumerate([((), False), (("--full",), True)]):
        rehearsal.environ["TMPDIR"] = str(tmp_path / f"debug-{number}")
        (tmp_path / f"debug-{number}").mkdir()
        started = rehearsal.start("Debug", *options, **_PRIVATE)
        ended = rehearsal.finish(started)
        assert ended.code == 0, ended.said
        (folder,) = (tmp_path / f"debug-{number}").glob("np-debug-*")
        values = next(folder.rglob("deployment.auto.tfvars.json"))
        assert (json.loads(values.read_text())["startup_command"] == _COMMAND) == has
        assert folder.stat().st_mode & 0o077 == 0
        assert _found(ended.said + rehearsal.result(started)) == []
        assert ("secrets are masked in the folder" in ended.said) != has
        notes = {note["what"]: note["why"] for note in ended.document["notes"]}
        assert "everything as new" in notes["there is no state to plan against"]
    assert rehearsal.resources() == []


def test_row_12_no_credential_of_a_known_form_is_shown(
    rehearsal: Rehearsal, tmp_path: Path
) -> None:
    token = "hf_" + "a1b2c3d4e5" * 3
    secrets = [token, "ghp_" + "A1" * 18, "AKIA" + "B2" * 8, "s3cr3t-of-me"]
    given = {
        "LABELS": f"team={token}",
        "METADATA": f"colour={secrets[1]}",
        "STARTUP_COMMAND": f"run {secrets[2]}; git clone https://me:{secrets[3]}@example.com/x",
    }

    page = tmp_path / "report.html"
    for action, *options in (["Validate"], ["Plan", "--report", str(page)], ["Debug"]):
        ended = rehearsal.run(action, *options, **given)
        assert ended.code == 0, ended.said[-2000:]
        said = json.dumps(ended.document) + ended.said + (page.read_text() if options else "")
        assert [secret for secret in secrets if secret in said] == [], action
    assert '"team"' in said


def test_secrets_in_the_copied_folder_stay_behind_and_are_named(
    rehearsal: Rehearsal, tmp_path: Path
) -> None:
    folder = tmp_path / "mine"
    (folder / ".git").mkdir(parents=True)
    for name in (".git/config", ".env", "server.key", "big.bin", "train.py"):
        (folder / name).write_text("12345")
    (folder / ".aiinfraignore").write_text("*.bin\n")

    planned = rehearsal.run("Plan", "--copy", str(folder))

    assert planned.code == 0, planned.said[-2000:]
    assert "1 file is copied to every VM, 5 bytes in all" in planned.said
    assert f"from {folder}: .aiinfraignore, .env, .git/, big.bin, server.key (" in planned.said


HF = "projects/my-project/secrets/hf-token"


def _make_secret(rehearsal: Rehearsal) -> None:
    rehearsal.google("POST", "secretmanager/v1/projects/my-project/secrets?secretId=hf-token", {})
    body = {"payload": {"data": base64.b64encode(b"value-of-the-secret").decode()}}
    rehearsal.google("POST", f"secretmanager/v1/{HF}:addVersion", body)


def _conditions(rehearsal: Rehearsal) -> list[str]:
    """The conditions under which roles of the project are granted."""
    policy = rehearsal.google("POST", "crm/v1/projects/my-project:getIamPolicy", {})
    found = [it for it in policy["bindings"] if "condition" in it]
    return [f"{it['role']} {it['condition']['expression']}" for it in found]


def test_the_vms_account_gets_access_to_exactly_the_secrets_that_are_named(
    rehearsal: Rehearsal,
) -> None:
    given = {"STARTUP_COMMAND": "train", "SECRETS": f"HF_TOKEN={HF}"}

    missing = rehearsal.run("Plan", **given)
    assert missing.code == 4
    assert "gcloud secrets create hf-token" in missing.problem["fix"]

    _make_secret(rehearsal)
    created = rehearsal.run("Create", **given)
    assert created.code == 0, created.said[-2000:]
    number = rehearsal.google("GET", "crm/v1/projects/my-project")["projectNumber"]
    starts = f'resource.name.startsWith("projects/{number}/secrets/hf-token/")'
    assert _conditions(rehearsal) == [f"roles/secretmanager.secretAccessor {starts}"]
    assert "value-of-the-secret" not in created.said + json.dumps(created.document)
    assert rehearsal.run("Plan", "--detailed-exitcode", **given).code == 0

    assert rehearsal.run("Destroy", "--yes", **given).code == 0
    assert _conditions(rehearsal) == []


def test_an_account_without_the_grant_is_told_of_and_its_command_is_not_begun(
    rehearsal: Rehearsal,
) -> None:
    _make_secret(rehearsal)

    created = rehearsal.run(
        "Create", STARTUP_COMMAND="train", SECRETS=f"HF_TOKEN={HF}", SERVICE_ACCOUNT="default"
    )

    assert created.code == 8, created.said[-2000:]
    assert "lacks its SECRETS" in json.dumps(created.document["problems"])
    (note,) = [it for it in created.document["notes"] if it["setting"] == "SECRETS"]
    assert "gcloud secrets add-iam-policy-binding hf-token --project my-project" in note["fix"]


def test_a_secret_of_another_project_needs_a_yes_and_its_owners_grant(rehearsal: Rehearsal) -> None:
    secret = "projects/other-project/secrets/key"  # noqa: S105 - where it is, not what
    given = {"STARTUP_COMMAND": "train", "SECRETS": f"KEY={secret}"}

    refused = rehearsal.run("Create", **given)
    assert refused.code == 2
    member = "serviceAccount:np-nodes@my-project.iam.gserviceaccount.com"
    assert "gcloud secrets add-iam-policy-binding key --project other-project" in refused.said
    assert member in refused.problem["fix"]
    assert "--yes" in refused.problem["fix"]
    assert rehearsal.writes() == []
