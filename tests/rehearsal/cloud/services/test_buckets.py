from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.rehearsal.cloud.services.conftest import Api


@pytest.mark.parametrize(
    "name",
    [
        "ab",
        "a" * 64,
        "Upper",
        "-begins",
        "ends-",
        "two..dots",
        "192.168.1.10",
        "goog-prefix",
        "my-google-bucket",
        "has space",
        "",
    ],
)
def test_a_name_against_the_rules_is_refused(api: Api, name: str) -> None:
    code, reason, _ = api.refused("storage", "POST", "b?project=proj-a1", {"name": name})
    assert (code, reason) == (400, "invalid")


@pytest.mark.parametrize("name", ["abc", "a" * 63, "with.dots.example", "under_score", "1-2-3"])
def test_a_name_within_the_rules_is_taken(api: Api, name: str) -> None:
    assert api.bucket(name)["id"] == name


@pytest.mark.parametrize(
    ("location", "kept", "kind"),
    [
        ("us-central1", "US-CENTRAL1", "region"),
        ("EU", "EU", "multi-region"),
        ("nam4", "NAM4", "dual-region"),
    ],
)
def test_a_location_tells_its_type(api: Api, location: str, kept: str, kind: str) -> None:
    bucket = api.bucket(location=location)
    assert (bucket["location"], bucket["locationType"]) == (kept, kind)


def test_a_location_that_is_none_is_refused(api: Api) -> None:
    body = {"name": "loom", "location": "moon-1"}
    refused = api.refused("storage", "POST", "b?project=proj-a1", body)
    assert refused == (400, "invalid", "The specified location constraint is not valid.")


def test_a_bucket_needs_a_project_that_exists(api: Api) -> None:
    assert api.refused("storage", "POST", "b", {"name": "loom"})[:2] == (400, "required")
    _, _, words = api.refused("storage", "POST", "b?project=missing-one", {"name": "loom"})
    assert words == "Unknown project id: missing-one"


def test_a_strangers_bucket_is_forbidden_but_not_missing(api: Api) -> None:
    api("storage", "POST", "b?project=foreign-corp", {"name": "loom"})
    code, reason, words = api.refused("storage", "GET", "b/loom")
    assert (code, reason) == (403, "forbidden")
    assert "does not have storage.buckets.get access to the Google Cloud Storage bucket" in words
    assert api.refused("storage", "GET", "b/loom/o/x")[2].count("Cloud Storage object") == 1
    assert api.refused("storage", "GET", "b/none-here") == (
        404,
        "notFound",
        "The specified bucket does not exist.",
    )


def test_a_bucket_of_another_project_of_mine_tells_its_project(api: Api) -> None:
    api("storage", "POST", "b?project=another-one", {"name": "loom"})
    number = api.json("storage", "GET", "b/loom")["projectNumber"]
    assert number not in ("123456789012", "")


def test_a_patch_is_merged_and_counted(api: Api) -> None:
    api.bucket(labels={"team": "ml", "stage": "dev"})
    change = {"labels": {"stage": None, "cost": "1"}, "versioning": {"enabled": True}}
    changed = api.json("storage", "PATCH", "b/loom", change)
    assert changed["labels"] == {"team": "ml", "cost": "1"}
    assert changed["versioning"] == {"enabled": True}
    assert (changed["metageneration"], changed["etag"]) == ("2", "CAI=")


def test_a_change_under_a_condition_that_fails_changes_nothing(api: Api) -> None:
    api.bucket()
    target = "b/loom?ifMetagenerationMatch=2"
    code, reason, words = api.refused("storage", "PATCH", target, {"labels": {"a": "b"}})
    assert (code, reason) == (412, "conditionNotMet")
    assert words == "At least one of the pre-conditions you specified did not hold."
    assert "labels" not in api.json("storage", "GET", "b/loom")


def test_uniform_access_is_said_under_both_its_names(api: Api) -> None:
    access = api.bucket(iamConfiguration={"uniformBucketLevelAccess": {"enabled": True}})[
        "iamConfiguration"
    ]
    assert access["uniformBucketLevelAccess"]["enabled"]
    assert access["bucketPolicyOnly"] == access["uniformBucketLevelAccess"]
    assert access["publicAccessPrevention"] == "inherited"


def test_only_an_empty_bucket_is_deleted(api: Api) -> None:
    api.bucket()
    api.put("x")
    refused = api.refused("storage", "DELETE", "b/loom")
    assert refused == (409, "conflict", "The bucket you tried to delete is not empty.")
    api("storage", "DELETE", "b/loom/o/x")
    assert api("storage", "DELETE", "b/loom").status == 204
    assert api.refused("storage", "GET", "b/loom")[0] == 404


def test_a_policy_belongs_to_the_bucket_and_goes_with_it(api: Api) -> None:
    api.bucket()
    policy = api.json("storage", "GET", "b/loom/iam")
    assert policy["resourceId"] == "projects/_/buckets/loom"
    assert policy["bindings"][0]["members"] == ["projectEditor:proj-a1", "projectOwner:proj-a1"]
    policy["bindings"].append({"role": "roles/storage.admin", "members": ["user:a@example.com"]})
    kept = api.json("storage", "PUT", "b/loom/iam", policy)
    assert kept["bindings"] == policy["bindings"]
    assert kept["etag"] != policy["etag"]
    assert api.refused("storage", "PUT", "b/loom/iam", policy)[0] == 412
    api("storage", "DELETE", "b/loom")
    api.bucket()
    assert len(api.json("storage", "GET", "b/loom/iam")["bindings"]) == 2


def test_conditions_need_uniform_access_and_a_policy_of_version_three(api: Api) -> None:
    uniform = {"uniformBucketLevelAccess": {"enabled": True}}
    api.bucket()
    policy = api.json("storage", "GET", "b/loom/iam")
    condition = {"title": "files", "expression": "resource.name.startsWith('x')"}
    reader = {"role": "roles/storage.objectViewer", "members": ["user:a@example.com"]}
    policy["bindings"].append({**reader, "condition": condition})
    assert "version 3" in str(api("storage", "PUT", "b/loom/iam", policy).body)
    policy["version"] = 3
    refused = api("storage", "PUT", "b/loom/iam", policy)
    assert refused.status == 412
    assert "enable uniform bucket-level access" in str(refused.body)
    api.json("storage", "PATCH", "b/loom", {"iamConfiguration": uniform})
    kept = api.json("storage", "PUT", "b/loom/iam", policy)
    assert (kept["version"], kept["bindings"][-1]["condition"]) == (3, condition)
