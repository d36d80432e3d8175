"""Whose it is, by the rows of the table of mistakes that were tried: states, records, owners."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.image import terminal
from tests.runs import state_file
from tests.runs.conftest import PROGRAM, Rehearsal, Rehearse

RECORD = "np-deployment/deployment.json"
OWN = "gs://my-own-state"
ROW_3 = pytest.mark.slow(sibling="::test_row_3_without_its_state_a_deployment_that_lives_is_named")
ROW_4 = pytest.mark.slow(sibling="::test_row_4_a_lost_record_is_made_again_from_the_state")
ROW_17 = pytest.mark.slow(
    sibling="::test_row_17_a_state_that_is_damaged_is_named_with_what_brings_it_back"
)


def _billing(rehearsal: Rehearsal) -> list[str]:
    """What costs money, or holds data."""
    return [line for line in rehearsal.resources() if not line.startswith("storage/")]


def _elsewhere(rehearsal: Rehearsal) -> None:
    """Make the bucket of TERRAFORM_GCS_PATH=gs://my-own-state."""
    with state_file.client(rehearsal) as client:
        made = client.bucket("my-own-state")
        made.iam_configuration.uniform_bucket_level_access_enabled = True
        client.create_bucket(made)


def test_row_2_a_second_state_touches_nothing_of_the_first(rehearsal: Rehearsal) -> None:
    _elsewhere(rehearsal)
    shares = {"NFS_FILESHARE_LIST": "/mnt/data:BASIC_SSD:2560"}
    first = rehearsal.run("Create", INSTANCE_COUNT="2", TERRAFORM_GCS_PATH=OWN, **shares)
    assert first.code == 0, first.said
    before = _billing(rehearsal)
    asked = len(rehearsal.requests())

    for action in ("Create", "Destroy"):
        second = rehearsal.run(action, INSTANCE_COUNT="1")
        assert second.code == 5, second.said
        said = json.dumps(second.document["problems"])
        assert f"{OWN}/np-deployment" in said
        assert f"TERRAFORM_GCS_PATH={OWN}" in said
    # Nor with somebody's word for it: it is another deployment's.
    for action in ("Create", "Destroy"):
        assert rehearsal.run(action, "--yes", INSTANCE_COUNT="1").code == 5

    assert [line for line in before if line not in _billing(rehearsal)] == []
    deleted = [one for one in rehearsal.writes(asked) if one["method"] == "DELETE"]
    assert [one for one in deleted if "/compute/" in one["path"]] == []
    third = rehearsal.run("Create", INSTANCE_COUNT="2", TERRAFORM_GCS_PATH=OWN, **shares)
    assert third.code == 0, third.said
    assert third.document["changes"] == {"add": 0, "change": 0, "destroy": 0}


@pytest.mark.parametrize(
    "action", ["Destroy", *(pytest.param(it, marks=ROW_3) for it in ("Status", "Test"))]
)
def test_row_3_without_its_state_a_deployment_that_lives_is_named(
    rehearsal: Rehearsal, action: str
) -> None:
    _elsewhere(rehearsal)
    assert rehearsal.run("Create", TERRAFORM_GCS_PATH=OWN).code == 0

    ended = rehearsal.run(action)

    assert ended.code == 5, ended.said
    assert "np-mig" in ended.problem["why"]
    assert ended.problem["fix"].endswith(f"TERRAFORM_GCS_PATH={OWN}")


def test_row_3_what_outlives_a_deleted_state_is_deleted_by_yes(standing: Rehearse) -> None:
    rehearsal = standing()
    with state_file.client(rehearsal) as client:
        for kept in client.list_blobs("aiinfra-terraform-my-project"):
            kept.delete()

    asked = rehearsal.run("Destroy")
    assert asked.code == 5, asked.said
    assert "np-mig" in asked.problem["why"]
    assert "--yes" in asked.problem["fix"]
    assert any("np-mig" in line for line in rehearsal.resources())

    agreed = rehearsal.run("Destroy", "--yes")
    assert agreed.code == 0, agreed.said
    assert agreed.document["changes"]["destroy"] > 0
    assert not any("np-mig" in line for line in rehearsal.resources())
    nothing = rehearsal.run("Destroy")
    assert nothing.code == 0, nothing.said
    assert nothing.document["changes"]["destroy"] == 0


def _cut(text: str) -> str:
    return text[: len(text) // 2]


def _of_a_later_version(text: str) -> str:
    return json.dumps(json.loads(text) | {"protect": True})


@pytest.mark.parametrize(
    "damage", [pytest.param(None, id="removed"), pytest.param(_cut, id="cut short", marks=ROW_4)]
)
def test_row_4_a_lost_record_is_made_again_from_the_state(
    standing: Rehearse, damage: Callable[[str], str] | None
) -> None:
    rehearsal = standing()
    with state_file.blob(rehearsal, RECORD) as kept:
        before = json.loads(kept.download_as_bytes())
        if damage is None:
            kept.delete()
        else:
            kept.upload_from_string(damage(json.dumps(before)))

    assert rehearsal.run("Status").code == 0
    created = rehearsal.run("Create")
    assert created.code == 0, created.said
    assert created.document["changes"] == {"add": 0, "change": 0, "destroy": 0}
    with state_file.blob(rehearsal, RECORD) as kept:
        assert json.loads(kept.download_as_bytes()) == before
    destroyed = rehearsal.run("Destroy")
    assert destroyed.code == 0, destroyed.said
    assert all("storage/" in line for line in rehearsal.resources())


def test_row_4_a_field_of_a_later_version_is_kept(standing: Rehearse) -> None:
    rehearsal = standing()
    with state_file.blob(rehearsal, RECORD) as kept:
        kept.upload_from_string(_of_a_later_version(kept.download_as_bytes().decode()))

    created = rehearsal.run("Create")

    assert created.code == 0, created.said
    with state_file.blob(rehearsal, RECORD) as kept:
        assert json.loads(kept.download_as_bytes())["protect"] is True


def _damaged(state: dict[str, Any]) -> str:
    return json.dumps(state | {"resources": [{"mode": "managed"}]})


@pytest.mark.parametrize(
    "action", ["Destroy", *(pytest.param(it, marks=ROW_17) for it in ("Create", "Status"))]
)
def test_row_17_a_state_that_is_damaged_is_named_with_what_brings_it_back(
    standing: Rehearse, action: str
) -> None:
    rehearsal = standing()
    with state_file.blob(rehearsal, state_file.STATE) as kept:
        kept.upload_from_string(_damaged(json.loads(kept.download_as_bytes())))

    ended = rehearsal.run(action)

    assert ended.code == 5, ended.said
    assert "resource 0 lacks" in ended.problem["why"]
    assert "older version" in ended.problem["fix"]


def test_row_9_an_env_list_of_another_cluster_destroys_nothing_unasked(standing: Rehearse) -> None:
    rehearsal = standing()

    ended = rehearsal.run("Destroy", ZONE="us-central1-f", ORCHESTRATOR_TYPE="gke")

    assert ended.code == 2, ended.said
    assert {one["setting"] for one in ended.document["problems"]} == {"ZONE", "ORCHESTRATOR_TYPE"}
    assert all("--yes" in one["fix"] for one in ended.document["problems"])
    assert any("np-mig" in line for line in rehearsal.resources())
    assert rehearsal.run("Destroy", "--yes", ZONE="us-central1-f").code == 0
    assert not any("np-mig" in line for line in rehearsal.resources())


@pytest.mark.slow(sibling="::test_row_9_an_env_list_of_another_cluster_destroys_nothing_unasked")
def test_a_protected_deployment_is_destroyed_by_a_yes_alone(standing: Rehearse) -> None:
    rehearsal = standing({"PROTECT": "yes"})

    ended = rehearsal.run("Destroy")

    assert ended.code == 2, ended.said
    assert ended.problem["setting"] == "PROTECT"

    # On a terminal somebody is asked, and that is as good as --yes.
    env_list = rehearsal.folder / "env.list"
    env_list.write_text("".join(f"{name}={value}\n" for name, value in rehearsal.settings.items()))
    command = [*PROGRAM, "Destroy", "--env-file", str(env_list)]
    for keys, code in ((b"no\n", 2), (b"yes\n", 0)):
        assert any("np-mig" in line for line in rehearsal.resources())
        ended_with, said = terminal.typed(
            command, rehearsal.environ, when=b"to confirm:", keys=keys
        )
        assert ended_with == code, said
        assert "np is protected" in said
        assert ("Nothing was deleted" in said) is (code == 2)
    assert not any("np-mig" in line for line in rehearsal.resources())


def test_row_10_a_state_inside_another_deployments_folder_is_refused_and_never_wiped(
    standing: Rehearse,
) -> None:
    rehearsal = standing()
    inside = "np-deployment/other-deployment/terraform/state/default.tfstate"
    with state_file.blob(rehearsal, inside) as kept:
        kept.upload_from_string("{}")

    refused = rehearsal.run(
        "Validate",
        NAME_PREFIX="other",
        TERRAFORM_GCS_PATH="gs://aiinfra-terraform-my-project/np-deployment",
    )
    assert refused.code == 2
    assert refused.problem["setting"] == "TERRAFORM_GCS_PATH"
    assert rehearsal.run("Destroy").code == 0
    with state_file.blob(rehearsal, inside) as kept:
        assert kept.exists()


def test_row_11_the_bucket_of_the_state_is_not_mounted(rehearsal: Rehearsal) -> None:
    ended = rehearsal.run(
        "Validate", "--offline", GCS_MOUNT_LIST="aiinfra-terraform-my-project:/mnt/x"
    )

    assert ended.code == 2, ended.said
    assert "bucket of the Terraform state" in ended.problem["what"]


@pytest.mark.parametrize("bucket", ["aiinfra-terraform-my-project", "aiinfra-terraform-theirs"])
def test_no_bucket_that_is_named_as_one_of_states_is_mounted(
    rehearsal: Rehearsal, bucket: str
) -> None:
    ended = rehearsal.run(
        "Validate",
        "--offline",
        TERRAFORM_GCS_PATH="gs://my-states",
        GCS_MOUNT_LIST=f"{bucket}:/mnt/x",
    )

    assert ended.code == 2, ended.said
    assert ended.problem["setting"] == "GCS_MOUNT_LIST"
    assert f"mounts {bucket}, a bucket of Terraform states" in ended.problem["what"]


@pytest.mark.parametrize("left", [RECORD, state_file.STATE])
def test_no_bucket_that_holds_states_is_mounted_whatever_its_name(
    rehearsal: Rehearsal, left: str
) -> None:
    state = f"clusters/team/{left.replace('np-', 'other-', 1)}"
    held = [state, "train/0001.tar", "my-deployment/notes.txt"]
    with state_file.client(rehearsal) as client:
        for bucket, names in (("states", held), ("data", held[1:])):
            made = client.create_bucket(bucket)
            for name in names:
                made.blob(name).upload_from_string("x")

    ended = rehearsal.run("Create", GCS_MOUNT_LIST="states:/mnt/x,data:/mnt/data")

    assert ended.code == 4, ended.said
    assert ended.problem["setting"] == "GCS_MOUNT_LIST"
    assert ended.problem["code"] == "conflicting-settings"
    assert "the bucket gs://states holds the state of a deployment" in ended.problem["what"]
    assert "clusters/team/other-deployment/" in ended.problem["why"]
    assert not any("np-" in line for line in rehearsal.resources())


def test_row_14_a_moved_endpoint_without_https_gets_no_token(rehearsal: Rehearsal) -> None:
    name = "GOOGLE_STORAGE_CUSTOM_ENDPOINT"
    rehearsal.environ[name] = "http://storage.example.com/storage/v1/"

    ended = rehearsal.run("Status")

    assert ended.code == 2, ended.said
    assert ended.problem["setting"] == name
    assert rehearsal.requests() == []


def test_row_14_a_rehearsal_says_that_it_is_one(rehearsal: Rehearsal) -> None:
    ended = rehearsal.run("Status")

    assert ended.document["rehearsal"] is True
    assert "simulated on this machine" in ended.said
