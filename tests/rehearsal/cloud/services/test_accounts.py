from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.rehearsal.cloud.services.conftest import Api

_ALL = "projects/proj-a1/serviceAccounts"
_EMAIL = "loom-nodes@proj-a1.iam.gserviceaccount.com"
_ONE = f"{_ALL}/{_EMAIL}"
_DEFAULT = "123456789012-compute@developer.gserviceaccount.com"


def _create(api: Api, account_id: str = "loom-nodes", **texts: str) -> dict[str, Any]:
    return api.json("iam", "POST", _ALL, {"accountId": account_id, "serviceAccount": texts})


def test_an_account_is_found_by_email_and_by_number_with_or_without_its_project(api: Api) -> None:
    made = _create(api, displayName="Nodes")
    assert (made["email"], made["displayName"]) == (_EMAIL, "Nodes")
    for address in (_EMAIL, made["uniqueId"]):
        assert api.json("iam", "GET", f"{_ALL}/{address}") == made
        assert api.json("iam", "GET", f"projects/-/serviceAccounts/{address}") == made
    assert api.refused("iam", "GET", f"projects/another-one/serviceAccounts/{_EMAIL}")[0] == 404


def test_of_an_account_that_is_not_there_nobody_is_told_who_does_not_name_its_project(
    api: Api,
) -> None:
    for path in (_EMAIL, f"{_EMAIL}:getIamPolicy", "123:undelete"):
        method = "POST" if ":" in path else "GET"
        code, _, words = api.refused("iam", method, f"projects/-/serviceAccounts/{path}")
        assert (code, "or it may not exist" in words) == (403, True), path
        assert api.refused("iam", method, f"{_ALL}/{path}")[0] == 404


@pytest.mark.parametrize("account_id", ["short", "a" * 31, ""])
def test_an_account_id_of_a_wrong_length_is_refused(api: Api, account_id: str) -> None:
    code, _, words = api.refused("iam", "POST", _ALL, {"accountId": account_id})
    assert code == 400
    assert words == f'The account ID "{account_id}" does not have a length between 6 and 30.'


@pytest.mark.parametrize("account_id", ["1-begins", "ends-with-", "Has-Upper", "has_under"])
def test_an_account_id_of_wrong_characters_is_refused(api: Api, account_id: str) -> None:
    assert api.refused("iam", "POST", _ALL, {"accountId": account_id})[0] == 400


def test_the_same_account_is_not_made_twice(api: Api) -> None:
    _create(api)
    assert api.refused("iam", "POST", _ALL, {"accountId": "loom-nodes"}) == (
        409,
        "alreadyExists",
        "Service account loom-nodes already exists within project projects/proj-a1.",
    )


def test_every_project_has_compute_engines_default_account(api: Api) -> None:
    assert api.json("iam", "GET", f"{_ALL}/{_DEFAULT}")["projectId"] == "proj-a1"
    _create(api)
    listed = api.json("iam", "GET", _ALL)["accounts"]
    assert [account["email"] for account in listed] == [_DEFAULT, _EMAIL]
    assert api.refused("iam", "GET", f"projects/another-one/serviceAccounts/{_DEFAULT}")[0] == 404


def test_the_default_account_stays_deleted(api: Api) -> None:
    api.json("iam", "DELETE", f"{_ALL}/{_DEFAULT}")
    assert api.refused("iam", "GET", f"{_ALL}/{_DEFAULT}")[0] == 404


def test_lists_come_in_pages(api: Api) -> None:
    for number in range(3):
        _create(api, f"loom-{number}")
    page = api.json("iam", "GET", f"{_ALL}?pageSize=2")
    rest = api.json("iam", "GET", f"{_ALL}?pageSize=2&pageToken={page['nextPageToken']}")
    emails = [account["email"] for account in (*page["accounts"], *rest["accounts"])]
    assert emails[1:] == [f"loom-{n}@proj-a1.iam.gserviceaccount.com" for n in range(3)]
    assert "nextPageToken" not in rest


def test_a_patch_changes_what_its_mask_names(api: Api) -> None:
    _create(api, displayName="old", description="old")
    change = {"serviceAccount": {"displayName": "new", "description": "new"}}
    patched = api.json("iam", "PATCH", _ONE, {**change, "updateMask": "display_name"})
    assert (patched["displayName"], patched["description"]) == ("new", "old")
    cleared = api.json("iam", "PATCH", _ONE, {"serviceAccount": {}, "updateMask": "description"})
    assert "description" not in cleared


def test_an_account_can_be_disabled_and_enabled(api: Api) -> None:
    _create(api)
    api.json("iam", "POST", f"{_ONE}:disable")
    assert api.json("iam", "GET", _ONE)["disabled"]
    api.json("iam", "POST", f"{_ONE}:enable")
    assert "disabled" not in api.json("iam", "GET", _ONE)


def test_an_account_has_a_policy(api: Api) -> None:
    _create(api)
    first = api.json("iam", "POST", f"{_ONE}:getIamPolicy")
    assert "bindings" not in first
    binding = {"role": "roles/iam.serviceAccountUser", "members": ["user:ada@example.com"]}
    policy = {"bindings": [binding], "etag": first["etag"]}
    api.json("iam", "POST", f"{_ONE}:setIamPolicy", {"policy": policy})
    assert api.json("iam", "POST", f"{_ONE}:getIamPolicy")["bindings"] == [binding]
    assert api.refused("iam", "POST", f"{_ONE}:setIamPolicy", {"policy": policy})[0] == 409


def test_an_account_can_be_undeleted_by_number_with_what_it_was_granted(api: Api) -> None:
    made = _create(api)
    member = f"serviceAccount:{_EMAIL}"
    policy = {"bindings": [{"role": "roles/viewer", "members": [member]}]}
    kept = api.json("crm/v1", "POST", "projects/proj-a1:setIamPolicy", {"policy": policy})
    api.json("iam", "DELETE", _ONE)
    gone = api.json("crm/v1", "POST", "projects/proj-a1:getIamPolicy")
    assert gone["bindings"][0]["members"] == [f"deleted:{member}?uid={made['uniqueId']}"]
    assert gone["etag"] != kept["etag"]
    undelete = f"projects/-/serviceAccounts/{made['uniqueId']}:undelete"
    assert api.json("iam", "POST", undelete)["restoredAccount"] == made
    assert (
        api.json("crm/v1", "POST", "projects/proj-a1:getIamPolicy")["bindings"]
        == (policy["bindings"])
    )


def test_a_new_account_does_not_inherit_what_the_old_one_was_granted(api: Api) -> None:
    old = _create(api)
    policy = {"bindings": [{"role": "roles/viewer", "members": [f"serviceAccount:{_EMAIL}"]}]}
    api.json("crm/v1", "POST", "projects/proj-a1:setIamPolicy", {"policy": policy})
    api.json("iam", "DELETE", _ONE)
    assert _create(api)["uniqueId"] != old["uniqueId"]
    [binding] = api.json("crm/v1", "POST", "projects/proj-a1:getIamPolicy")["bindings"]
    assert binding["members"][0].startswith("deleted:")
    undelete = f"projects/-/serviceAccounts/{old['uniqueId']}:undelete"
    assert api.refused("iam", "POST", undelete)[0] == 400


def test_an_unknown_account_is_not_found(api: Api) -> None:
    for method, target in (("GET", _ONE), ("DELETE", _ONE), ("POST", f"{_ONE}:getIamPolicy")):
        assert api.refused("iam", method, target) == (404, "notFound", "Unknown service account")


def test_an_account_s_own_policy_goes_with_it(api: Api) -> None:
    _create(api)
    member = "serviceAccount:proj-a1.svc.id.goog[default/weaver]"
    policy = {"bindings": [{"role": "roles/iam.workloadIdentityUser", "members": [member]}]}
    api.json("iam", "POST", f"{_ONE}:setIamPolicy", {"policy": policy})
    api.json("iam", "DELETE", _ONE)
    _create(api)
    assert "bindings" not in api.json("iam", "POST", f"{_ONE}:getIamPolicy")
