import pytest

from tests.rehearsal.cloud.services.conftest import Api


def test_a_name_within_the_rules_is_taken_and_one_against_them_refused(api: Api) -> None:
    broken = ["ab", "a" * 64, "Upper", "-begins", "ends-", "two..dots", "192.168.1.10", ""]
    for name in (*broken, "goog-prefix", "my-google-bucket", "has space"):
        refused = api.refused("storage", "POST", "b?project=proj-a1", {"name": name})
        assert refused[:2] == (400, "invalid"), name
    for name in ("abc", "a" * 63, "with.dots.example", "under_score", "1-2-3"):
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


def test_a_bucket_needs_a_place_and_a_project_that_exist(api: Api) -> None:
    body = {"name": "loom", "location": "moon-1"}
    refused = api.refused("storage", "POST", "b?project=proj-a1", body)
    assert refused == (400, "invalid", "The specified location constraint is not valid.")
    assert api.refused("storage", "POST", "b", {"name": "loom"})[:2] == (400, "required")
    _, _, words = api.refused("storage", "POST", "b?project=missing-one", {"name": "loom"})
    assert words == "Unknown project id: missing-one"
    api("storage", "POST", "b?project=another-one", {"name": "loom"})
    number = api.json("storage", "GET", "b/loom")["projectNumber"]
    assert number not in ("123456789012", "")


def test_a_strangers_bucket_is_forbidden_but_not_missing(api: Api) -> None:
    api("storage", "POST", "b?project=foreign-corp", {"name": "loom"})
    code, reason, words = api.refused("storage", "GET", "b/loom")
    assert (code, reason) == (403, "forbidden")
    assert "does not have storage.buckets.get access to the Google Cloud Storage bucket" in words
    assert api.refused("storage", "GET", "b/loom/o/x")[2].count("Cloud Storage object") == 1
    missing = (404, "notFound", "The specified bucket does not exist.")
    assert api.refused("storage", "GET", "b/none-here") == missing


def test_a_patch_is_merged_and_counted_unless_its_condition_fails(api: Api) -> None:
    api.bucket(labels={"team": "ml", "stage": "dev"})
    target = "b/loom?ifMetagenerationMatch=2"
    code, reason, words = api.refused("storage", "PATCH", target, {"labels": {"a": "b"}})
    assert (code, reason) == (412, "conditionNotMet")
    assert words == "At least one of the pre-conditions you specified did not hold."
    change = {"labels": {"stage": None, "cost": "1"}, "versioning": {"enabled": True}}
    changed = api.json("storage", "PATCH", "b/loom", change)
    assert changed["labels"] == {"team": "ml", "cost": "1"}
    assert changed["versioning"] == {"enabled": True}
    assert (changed["metageneration"], changed["etag"]) == ("2", "CAI=")


def test_uniform_access_is_said_under_both_its_names(api: Api) -> None:
    uniform = {"uniformBucketLevelAccess": {"enabled": True}}
    access = api.bucket(iamConfiguration=uniform)["iamConfiguration"]
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
