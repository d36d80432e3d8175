"""TEAM_DEFAULTS in a bucket, as a platform team keeps it for all its users."""

from typing import Final

from tests.runs import state_file
from tests.runs.conftest import Rehearsal

WHERE: Final = "gs://my-team/rules/aiinfra.toml"


def test_a_teams_file_in_a_bucket_is_kept_to(rehearsal: Rehearsal) -> None:
    ended = rehearsal.run("Validate", TEAM_DEFAULTS=WHERE)
    assert ended.code == 2
    assert f"{WHERE} does not exist" in ended.said

    with state_file.client(rehearsal) as client:
        rules = 'contact = "ml@example.com"\n[at_most]\nINSTANCE_COUNT = 1\n'
        client.create_bucket("my-team").blob("rules/aiinfra.toml").upload_from_string(rules)

    allowed = rehearsal.run("Validate", TEAM_DEFAULTS=WHERE, INSTANCE_COUNT="1")
    assert allowed.code == 0, allowed.said
    ended = rehearsal.run("Create", TEAM_DEFAULTS=WHERE, INSTANCE_COUNT="2")

    assert ended.code == 2
    assert "INSTANCE_COUNT  '2' is more than 1" in ended.said
    assert "or ask ml@example.com" in ended.said
    assert not any("instances/" in it for it in rehearsal.resources())
    offline = rehearsal.run("Validate", "--offline", TEAM_DEFAULTS=WHERE)
    assert "--offline reads no bucket" in offline.said


def test_a_domain_that_is_meant_to_write_states_is_named_in_the_plan(rehearsal: Rehearsal) -> None:
    with state_file.client(rehearsal) as client:
        bucket = client.create_bucket("my-states")
        bucket.iam_configuration.uniform_bucket_level_access_enabled = True
        bucket.patch()
        policy = bucket.get_iam_policy(requested_policy_version=3)
        policy.bindings.append({"role": "roles/storage.objectAdmin", "members": {"domain:e.com"}})
        bucket.set_iam_policy(policy)
    rules = rehearsal.folder / "team.toml"
    rules.write_text('state_writers = ["domain:e.com"]\n', encoding="utf-8")

    refused = rehearsal.run("Plan", TERRAFORM_GCS_PATH="gs://my-states")
    planned = rehearsal.run("Plan", TERRAFORM_GCS_PATH="gs://my-states", TEAM_DEFAULTS=str(rules))

    assert refused.code == 5
    assert 'state_writers = ["domain:e.com"]' in refused.said
    assert planned.code == 0, planned.said
    assert "everybody of e.com" in planned.document["plan"]["writers"]
