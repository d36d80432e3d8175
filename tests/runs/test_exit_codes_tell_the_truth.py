"""Every way to fail has its exit code and its way out; the predecessor said 0 to many of them."""

import json

import pytest
from google.cloud import storage
from google.oauth2.credentials import Credentials

from provision import cli
from provision.console import Console
from tests.runs.conftest import Rehearsal

BUCKET = "aiinfra-terraform-my-project"


def _client(rehearsal: Rehearsal, project: str = "my-project") -> storage.Client:
    endpoint = rehearsal.environ["GOOGLE_STORAGE_CUSTOM_ENDPOINT"].removesuffix("/storage/v1/")
    return storage.Client(
        project=project, credentials=Credentials("test"), client_options={"api_endpoint": endpoint}
    )


def _put(rehearsal: Rehearsal, name: str, text: str) -> None:
    client = _client(rehearsal)
    bucket = client.lookup_bucket(BUCKET) or client.create_bucket(BUCKET, location="us-central1")
    bucket.blob(f"np-deployment/{name}").upload_from_string(text)
    client.close()


def test_an_unknown_action_makes_nothing(rehearsal: Rehearsal) -> None:
    ended = rehearsal.run("Createe")
    assert ended.code == 2
    assert rehearsal.requests() == []


def _without_credentials(rehearsal: Rehearsal) -> None:
    for name in (
        "GOOGLE_OAUTH_ACCESS_TOKEN",
        "GCE_METADATA_HOST",
        "GCE_METADATA_IP",
        "GCE_METADATA_ROOT",
    ):
        del rehearsal.environ[name]
    rehearsal.environ["NO_GCE_CHECK"] = "true"


@pytest.mark.parametrize("action", ["Create", "Validate"])
def test_without_credentials_nothing_is_made_and_the_ways_are_named(
    rehearsal: Rehearsal, action: str
) -> None:
    _without_credentials(rehearsal)

    ended = rehearsal.run(action)

    assert ended.code == 3
    assert ended.problem["code"] == "no-credentials"
    assert "gcloud auth application-default login" in ended.problem["fix"]
    assert ("Validate --offline" in ended.problem["fix"]) is (action == "Validate")
    # What needs no Google was told all the same.
    assert action == "Create" or ended.document["cost"]["most"]["per_hour"] > 1


def test_a_person_without_credentials_may_validate_what_needs_none(
    rehearsal: Rehearsal, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _without_credentials(rehearsal)
    monkeypatch.setattr(Console, "is_terminal", True)

    code = cli.main(["Validate", "--output", "json"], {**rehearsal.environ, **rehearsal.settings})

    assert code == 0
    notes = json.loads(capsys.readouterr().out)["notes"]
    assert any("Google was not asked" in note["what"] for note in notes)


def test_a_project_that_is_not_there_is_an_online_check(rehearsal: Rehearsal) -> None:
    ended = rehearsal.run("Create", PROJECT_ID="missing-project")
    assert ended.code == 4
    assert ended.problem["setting"] == "PROJECT_ID"


def test_a_zone_that_is_not_there_is_the_only_thing_that_is_said(rehearsal: Rehearsal) -> None:
    ended = rehearsal.run("Validate", ZONE="us-central1-z")
    assert ended.code == 4
    assert ended.problem["fix"] == "ZONE=us-central1-a"
    assert ended.document["notes"] == []


def test_an_image_that_is_not_there_is_an_online_check(rehearsal: Rehearsal) -> None:
    ended = rehearsal.run("Create", IMAGE_FAMILY_NAME="no-such-family")
    assert ended.code == 4
    assert "gcloud compute images list" in ended.problem["fix"]


@pytest.mark.parametrize("action", ["Create", "Plan"])
def test_a_bucket_to_be_mounted_must_exist_before_anything_is_made(
    rehearsal: Rehearsal, action: str
) -> None:
    ended = rehearsal.run(action, GCS_MOUNT_LIST="not-there:/mnt/a,nor-here:/mnt/b")
    assert ended.code == 4
    named = {(p["setting"], p["what"]) for p in ended.document["problems"]}
    assert named == {
        ("GCS_MOUNT_LIST", f"the bucket gs://{name} does not exist")
        for name in ("not-there", "nor-here")
    }


def test_a_given_bucket_must_exist(rehearsal: Rehearsal) -> None:
    ended = rehearsal.run("Create", TERRAFORM_GCS_PATH="gs://not-there")
    assert ended.code == 5
    assert ended.problem["what"] == "The bucket gs://not-there does not exist"
    assert rehearsal.run("Destroy", TERRAFORM_GCS_PATH="gs://not-there").code == 5


def test_a_bucket_of_another_project_is_not_used(rehearsal: Rehearsal) -> None:
    client = _client(rehearsal, "another-project")
    client.create_bucket(BUCKET, location="us-central1")
    client.close()
    ended = rehearsal.run("Create")
    assert ended.code == 5
    assert ended.problem["setting"] == "TERRAFORM_GCS_PATH"


@pytest.mark.parametrize("action", ["Create", "Destroy", "Plan"])
def test_the_predecessors_state_is_never_touched(rehearsal: Rehearsal, action: str) -> None:
    state = json.dumps({"version": 4, "resources": [{"type": "google_compute_network"}]})
    _put(rehearsal, "terraform/state/default.tfstate", state)
    before = rehearsal.resources()
    ended = rehearsal.run(action)
    assert ended.code == 5
    assert "this tool did not make" in ended.problem["what"]
    assert rehearsal.resources() == before


def test_a_cluster_of_another_kind_is_not_replaced(rehearsal: Rehearsal) -> None:
    record = dict.fromkeys(("cluster_id", "tool_version", "terraform_version"), "x")
    record |= {"region": "us-central1", "zone": "us-central1-a"}
    own = {"made_by": "aiinfra-cluster", "format": 1, "kind": "gke", "name_prefix": "np"}
    _put(rehearsal, "deployment.json", json.dumps(own | record | {"project_id": "my-project"}))
    ended = rehearsal.run("Create")
    assert ended.code == 5
    assert "run Destroy first" in ended.problem["fix"]


def test_what_terraform_refuses_is_told_in_its_own_words_and_kept(rehearsal: Rehearsal) -> None:
    ended = rehearsal.run("Create", IMAGE_NAME="no-such-image", SKIP_CHECKS="image")
    assert ended.code == 6
    assert "no-such-image" in ended.problem["why"]
    log = ended.document["log"]
    assert f"Terraform's output is in {log}\n" in ended.said
    assert any(line.endswith(log.rpartition("/")[2]) for line in rehearsal.resources())


def test_a_usage_error_is_a_document_too(rehearsal: Rehearsal) -> None:
    ended = rehearsal.run("Create", "--no-such-option")
    assert ended.code == 2
    assert "--no-such-option" in ended.problem["what"]


def test_all_problems_come_at_once(rehearsal: Rehearsal) -> None:
    rehearsal.settings = {"NAME_PREFIX": "Np", "INSTANCE_COUNT": "none", "INSTANCE_COUNTS": "2"}
    ended = rehearsal.run("Validate", "--offline")
    assert ended.code == 2
    named = {problem["setting"] for problem in ended.document["problems"]}
    assert named == {"PROJECT_ID", "ZONE", "NAME_PREFIX", "INSTANCE_COUNT", "INSTANCE_COUNTS"}
    assert {"PROJECT_ID", "ZONE"} <= set(ended.document["settings"])
