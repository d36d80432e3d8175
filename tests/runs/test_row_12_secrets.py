"""Secrets do not leak, and what is valid offline is valid for Terraform: row 12 of the mistakes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tests.runs import state_file

if TYPE_CHECKING:
    from pathlib import Path

    from tests.runs.conftest import Rehearsal


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


def test_row_12_what_terraform_shows_has_neither_metadata_nor_command(rehearsal: Rehearsal) -> None:
    given = {
        "METADATA": "token=first-of-all-values,colour=second-of-all-values",
        "STARTUP_COMMAND": "echo third-of-all-values",
    }
    values = [f"{nth}-of-all-values" for nth in ("first", "second", "third")]

    created = rehearsal.run("Create", MINIMIZE_TERRAFORM_LOGGING="yes", **given)
    assert created.code == 0, created.said[-2000:]
    with state_file.client(rehearsal) as client:
        bucket = client.bucket("aiinfra-terraform-my-project")
        (log,) = bucket.list_blobs(prefix="np-deployment/logs/")
        kept = log.download_as_bytes().decode()
    assert "google_compute_instance_template.gpu" in kept
    assert [value for value in values if value in kept] == []
    # What is sensitive is no change by itself.
    assert rehearsal.run("Plan", "--detailed-exitcode", **given).code == 0

    changed = rehearsal.run("Plan", "--detailed-exitcode", **given | {"METADATA": "token=4"})
    assert changed.document["exit_code"] == 2
    assert "google_compute_instance_template.gpu" in changed.said
    assert [value for value in values if value in changed.said] == []


def test_row_12_no_credential_of_a_known_form_is_shown(rehearsal: Rehearsal) -> None:
    token = "hf_" + "a1b2c3d4e5" * 3
    secrets = [token, "ghp_" + "A1" * 18, "AKIA" + "B2" * 8, "s3cr3t-of-me"]
    given = {
        "LABELS": f"team={token}",
        "METADATA": f"colour={secrets[1]}",
        "STARTUP_COMMAND": f"run {secrets[2]}; git clone https://me:{secrets[3]}@example.com/x",
    }

    for action in ("Validate", "Plan", "Debug"):
        ended = rehearsal.run(action, **given)
        assert ended.code == 0, ended.said[-2000:]
        said = json.dumps(ended.document) + ended.said
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
    assert f".aiinfraignore, .env, .git/, big.bin, server.key of {folder} stay here" in planned.said
