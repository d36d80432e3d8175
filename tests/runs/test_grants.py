"""Roles on buckets of an account that others use too: each deployment has a binding of its own."""

from typing import Any

import pytest

from tests.runs.conftest import Rehearsal

_ACCOUNT = "team-vms@my-project.iam.gserviceaccount.com"
_SHARED = {"SERVICE_ACCOUNT": _ACCOUNT, "GCS_MOUNT_LIST": "my-data:/mnt/data"}
_ROLE = "roles/storage.objectUser"
_BY_HAND = {"role": _ROLE, "members": [f"serviceAccount:{_ACCOUNT}"]}


def _prepare(rehearsal: Rehearsal, *, uniform: bool) -> None:
    access = {"uniformBucketLevelAccess": {"enabled": uniform}}
    bucket = {"name": "my-data", "iamConfiguration": access}
    rehearsal.google("POST", "storage/v1/b?project=my-project", bucket)
    body = {"accountId": "team-vms", "serviceAccount": {}}
    rehearsal.google("POST", "iam/v1/projects/my-project/serviceAccounts", body)


def _bindings(rehearsal: Rehearsal) -> list[dict[str, Any]]:
    policy = rehearsal.google("GET", "storage/v1/b/my-data/iam?optionsRequestedPolicyVersion=3")
    return [one for one in policy.get("bindings", []) if one["role"] == _ROLE]


def _grant(rehearsal: Rehearsal) -> None:
    policy = rehearsal.google("GET", "storage/v1/b/my-data/iam?optionsRequestedPolicyVersion=3")
    policy["bindings"] = [*policy.get("bindings", []), _BY_HAND]
    rehearsal.google("PUT", "storage/v1/b/my-data/iam", policy)


@pytest.mark.slow(
    sibling="tests/runs/test_whose_it_is.py::test_row_2_a_second_state_touches_nothing_of_the_first"
)
def test_a_destroy_leaves_the_grants_of_others(rehearsal: Rehearsal) -> None:
    """Of another deployment with the same account, and one that was made by hand."""
    _prepare(rehearsal, uniform=True)
    _grant(rehearsal)
    first = rehearsal.run("Create", **_SHARED)
    second = rehearsal.run("Create", NAME_PREFIX="other", **_SHARED)
    assert (first.code, second.code) == (0, 0), first.said + second.said
    assert len(_bindings(rehearsal)) == 3

    destroyed = rehearsal.run("Destroy", **_SHARED)
    assert destroyed.code == 0, destroyed.said
    left = _bindings(rehearsal)
    assert _BY_HAND in left
    assert len(left) == 2

    rehearsal.run("Destroy", NAME_PREFIX="other", **_SHARED)
    assert _bindings(rehearsal) == [_BY_HAND]


@pytest.mark.slow(
    sibling="tests/runs/test_whose_it_is.py::test_row_2_a_second_state_touches_nothing_of_the_first"
)
def test_a_grant_that_is_there_is_kept_where_a_bucket_takes_no_conditions(
    rehearsal: Rehearsal,
) -> None:
    _prepare(rehearsal, uniform=False)
    _grant(rehearsal)
    created = rehearsal.run("Create", **_SHARED)
    assert created.code == 0, created.said
    assert "the account has it already" in created.said
    assert rehearsal.run("Create", **_SHARED).document["changes"]["add"] == 0
    assert rehearsal.run("Destroy", **_SHARED).code == 0
    assert _bindings(rehearsal) == [_BY_HAND]


def test_where_a_bucket_takes_no_conditions_a_shared_account_gets_no_role_and_its_command_is_told(
    rehearsal: Rehearsal,
) -> None:
    _prepare(rehearsal, uniform=False)

    planned = rehearsal.run("Plan", **_SHARED)

    assert planned.code == 0, planned.said
    (note,) = [it for it in planned.document["notes"] if it["setting"] == "GCS_MOUNT_LIST"]
    assert "no role on gs://my-data is given" in note["what"]
    assert f"--member serviceAccount:{_ACCOUNT} --role {_ROLE}" in note["fix"]
    (identity,) = planned.document["plan"]["contents"]["identities"]
    assert "my-data" not in identity["buckets"]


@pytest.mark.parametrize("path", ["my-data/iam", "my-data"])
def test_a_bucket_that_one_may_use_and_not_administer_is_mounted_without_a_grant(
    rehearsal: Rehearsal, path: str
) -> None:
    _prepare(rehearsal, uniform=True)
    assert rehearsal.cloud is not None
    rehearsal.cloud.faults.add(f"GET /storage/v1/b/{path}: refuse 403")

    created = rehearsal.run("Create", GCS_MOUNT_LIST="my-data:/mnt/data")

    assert created.code in {0, 8}, created.said
    note = next(it for it in created.document["notes"] if it["setting"] == "GCS_MOUNT_LIST")
    assert "gs://my-data" in note["what"]
    asked = [it["path"] for it in rehearsal.writes()]
    assert not [it for it in asked if "my-data/iam" in it]
    assert rehearsal.run("Destroy").code == 0
