"""What whoever may write to the bucket can do to the one who runs the program: nothing."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.runs import state_file
from tests.runs.conftest import Ended, Rehearsal, Rehearse
from tests.runs.job_lines import GKE

RECORD = "np-deployment/deployment.json"
OTHER_ACTIONS = pytest.mark.slow(
    sibling="::test_a_state_that_wants_another_provider_is_refused_before_terraform_starts"
)
OTHER_DAMAGE = pytest.mark.slow(
    sibling="tests/unit/state/test_record.py"
    "::test_a_field_that_breaks_its_rule_makes_the_record_damaged"
)


def _change_record(rehearsal: Rehearsal, change: Callable[[dict[str, Any]], object]) -> None:
    with state_file.blob(rehearsal, RECORD) as kept:
        kept.upload_from_string(json.dumps(change(json.loads(kept.download_as_bytes()))))


def _is_gone(rehearsal: Rehearsal, ended: Ended) -> bool:
    assert ended.code == 0, ended.said
    return all("storage/" in line for line in rehearsal.resources())


def test_a_template_in_the_record_prints_no_local_file_and_changes_no_path(
    standing: Rehearse, tmp_path: Path
) -> None:
    rehearsal = standing()
    secret = tmp_path / "secret"
    secret.write_text("only-here")
    region = f'us-central1/x?quotaUser=${{tonumber(file("{secret}"))}}#'
    _change_record(rehearsal, lambda record: record | {"region": region, "zone": region})

    ended = rehearsal.run("Destroy", "--yes")

    assert _is_gone(rehearsal, ended)
    with state_file.client(rehearsal) as client:
        kept = [
            one.download_as_bytes() for one in client.list_blobs("aiinfra-terraform-my-project")
        ]
    assert kept
    assert not any(b"only-here" in content for content in kept)
    assert "only-here" not in ended.said + json.dumps(ended.document)
    assert not any(
        "quotaUser" in json.dumps([request["path"], request.get("query")])
        for request in rehearsal.requests()
    )


def test_a_kind_that_nobody_knows_is_named_with_what_mends_it(standing: Rehearse) -> None:
    rehearsal = standing()
    _change_record(rehearsal, lambda record: record | {"kind": "slurm"})

    for action in ("Status", "Destroy"):
        ended = rehearsal.run(action)

        assert ended.code == 5, ended.said
        assert "slurm" in ended.problem["what"]
        assert "the version of the tool that made this deployment" in ended.problem["fix"]


@pytest.mark.parametrize(
    "action", ["Destroy", *(pytest.param(it, marks=OTHER_ACTIONS) for it in ("Create", "Plan"))]
)
def test_a_state_that_wants_another_provider_is_refused_before_terraform_starts(
    standing: Rehearse, action: str
) -> None:
    rehearsal = standing()
    evil = {
        "mode": "data",
        "type": "evil_thing",
        "name": "x",
        "provider": 'provider["registry.terraform.io/attacker/evil"]',
        "instances": [],
    }
    state_file.write(rehearsal, [*state_file.resources(rehearsal), evil])

    ended = rehearsal.run(action)

    assert ended.code == 5, ended.said
    assert "registry.terraform.io/attacker/evil" in ended.problem["what"]
    assert "older version" in ended.problem["fix"]
    assert any("np-mig" in line for line in rehearsal.resources())


def test_a_state_that_names_what_no_root_has_is_refused(standing: Rehearse) -> None:
    rehearsal = standing()
    with state_file.client(rehearsal) as client:
        client.create_bucket("victim-data").blob("model").upload_from_string("weights")
    attributes = {"id": "victim-data", "name": "victim-data", "force_destroy": True}
    victim = {
        "mode": "managed",
        "type": "google_storage_bucket",
        "name": "x",
        "provider": 'provider["registry.terraform.io/hashicorp/google"]',
        "instances": [{"schema_version": 0, "attributes": attributes}],
    }
    state_file.write(rehearsal, [*state_file.resources(rehearsal), victim])
    before = rehearsal.resources()

    for action in ("Plan", "Create", "Destroy"):
        ended = rehearsal.run(action)

        assert ended.code == 5, ended.said
        assert "google_storage_bucket.x (victim-data)" in ended.problem["what"]
        assert "older version" in ended.problem["fix"]
    assert set(before) <= set(rehearsal.resources())


def test_what_the_state_names_and_is_anothers_is_neither_changed_nor_deleted(
    standing: Rehearse,
) -> None:
    rehearsal = standing({"NETWORK_CONFIG": "new_network"})
    known = state_file.resources(rehearsal)
    (rule,) = (it for it in known if it["name"] == "iap_ssh")
    attributes = rule["instances"][0]["attributes"]
    own, theirs = attributes["name"], "default-allow-ssh"
    for name in ("id", "name", "self_link"):
        attributes[name] = attributes[name].replace(own, theirs)
    state_file.write(rehearsal, known)
    rules = "projects/my-project/global/firewalls"

    for action in ("Plan", "Create"):
        ended = rehearsal.run(action, NETWORK_CONFIG="new_network")

        assert ended.code == 5, ended.said
        assert "module.network.google_compute_firewall.iap_ssh[0]" in ended.problem["why"]
        assert f"{rules}/{theirs}" in ended.problem["why"]
        assert any("np-mig" in line for line in rehearsal.resources())

    ended = rehearsal.run("Destroy")

    assert ended.code == 5, ended.said
    assert f"{rules}/{theirs}" in ended.problem["why"]
    assert rehearsal.google("GET", f"compute/v1/{rules}/{theirs}")["name"] == theirs
    assert all("storage/" in line for line in rehearsal.resources())


@OTHER_ACTIONS
def test_no_job_runs_an_image_of_a_registry_that_the_bucket_alone_names(
    standing: Rehearse, tmp_path: Path
) -> None:
    rehearsal = standing(GKE)
    rehearsal.settings |= GKE
    evil = {"IMAGE_MIRROR": ["evil.example.com/x"]}
    _change_record(rehearsal, lambda it: it | {"settings": it["settings"] | evil})

    for action, words in (("Run", ["--", "true"]), ("Test", [])):
        copied = [f"--copy={tmp_path / 'empty'}", "--detach"] if action == "Run" else []
        (tmp_path / "empty").mkdir(exist_ok=True)
        ended = rehearsal.finish(rehearsal.start(action, *copied, behind=words))

        assert ended.code == 5, ended.said
        assert "evil.example.com/x" in ended.problem["why"]
        assert "run Create again" in ended.problem["fix"]
    asked = [json.dumps(it) for it in rehearsal.requests() if "kubernetes" in it["path"]]
    assert asked
    assert not any("evil.example.com" in it for it in asked)


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param("removed", id="removed"),
        pytest.param("perhaps", id="another value", marks=OTHER_DAMAGE),
    ],
)
def test_a_deployment_whose_record_is_lost_stays_protected(standing: Rehearse, damage: str) -> None:
    rehearsal = standing({"PROTECT": "yes"})
    with state_file.blob(rehearsal, RECORD) as kept:
        text = kept.download_as_bytes()
        if damage == "removed":
            kept.delete()
        else:
            kept.upload_from_string(text.replace(b'"PROTECT": true', b'"PROTECT": "perhaps"'))

    for settings in ({}, {"PROTECT": "yes"}):
        ended = rehearsal.run("Destroy", **settings)

        assert ended.code == 2, ended.said
        assert ended.problem["setting"] == "PROTECT"
        assert "--yes" in ended.problem["fix"]
    assert any("np-mig" in line for line in rehearsal.resources())
    assert _is_gone(rehearsal, rehearsal.run("Destroy", "--yes"))


def test_what_the_env_list_protects_is_protected_whatever_the_last_create_had(
    standing: Rehearse,
) -> None:
    rehearsal = standing()

    for word in ("yes", "perhaps"):
        ended = rehearsal.run("Destroy", PROTECT=word)

        assert ended.code == 2, ended.said
        assert ended.problem["setting"] == "PROTECT"
    assert _is_gone(rehearsal, rehearsal.run("Destroy"))
