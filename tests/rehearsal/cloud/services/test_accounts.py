from tests.rehearsal.cloud.services.conftest import Api, Json

_ALL = "projects/proj-a1/serviceAccounts"
_EMAIL = "loom-nodes@proj-a1.iam.gserviceaccount.com"
_ONE = f"{_ALL}/{_EMAIL}"
_MEMBER = f"serviceAccount:{_EMAIL}"
_DEFAULT = "123456789012-compute@developer.gserviceaccount.com"


def _get(api: Api, target: str = _ONE) -> Json:
    return api.json("iam", "GET", target)


def _post(api: Api, target: str, body: Json | None = None) -> Json:
    return api.json("iam", "POST", target, body)


def _policy(api: Api, policy: Json | None = None) -> Json:
    """The project's policy, or what it becomes."""
    body = policy and {"policy": policy}
    return api.json("crm/v1", "POST", f"projects/proj-a1:{'set' if body else 'get'}IamPolicy", body)


def _create(api: Api, account_id: str = "loom-nodes", **texts: str) -> Json:
    return _post(api, _ALL, {"accountId": account_id, "serviceAccount": texts})


def test_an_account_is_found_by_email_and_by_number_with_or_without_its_project(api: Api) -> None:
    made = _create(api, displayName="Nodes")
    assert (made["email"], made["displayName"]) == (_EMAIL, "Nodes")
    for address in (_EMAIL, made["uniqueId"]):
        assert _get(api, f"{_ALL}/{address}") == made
        assert _get(api, f"projects/-/serviceAccounts/{address}") == made
    assert api.refused("iam", "GET", f"projects/another-one/serviceAccounts/{_EMAIL}")[0] == 404


def test_of_an_account_that_is_not_there_nobody_is_told_who_does_not_name_its_project(
    api: Api,
) -> None:
    for path in (_EMAIL, f"{_EMAIL}:getIamPolicy", "123:undelete"):
        method = "POST" if ":" in path else "GET"
        code, _, words = api.refused("iam", method, f"projects/-/serviceAccounts/{path}")
        assert (code, "or it may not exist" in words) == (403, True), path
        assert api.refused("iam", method, f"{_ALL}/{path}")[0] == 404


def test_an_account_has_an_id_as_google_wants_it_and_of_its_own(api: Api) -> None:
    for account_id in ("short", "a" * 31, ""):
        code, _, words = api.refused("iam", "POST", _ALL, {"accountId": account_id})
        assert code == 400
        assert words == f'The account ID "{account_id}" does not have a length between 6 and 30.'
    for account_id in ("1-begins", "ends-with-", "Has-Upper", "has_under"):
        assert api.refused("iam", "POST", _ALL, {"accountId": account_id})[0] == 400
    _create(api)
    words = "Service account loom-nodes already exists within project projects/proj-a1."
    taken = api.refused("iam", "POST", _ALL, {"accountId": "loom-nodes"})
    assert taken == (409, "alreadyExists", words)


def test_every_project_has_compute_engines_default_account_until_it_is_deleted(api: Api) -> None:
    assert _get(api, f"{_ALL}/{_DEFAULT}")["projectId"] == "proj-a1"
    _create(api)
    assert [account["email"] for account in _get(api, _ALL)["accounts"]] == [_DEFAULT, _EMAIL]
    assert api.refused("iam", "GET", f"projects/another-one/serviceAccounts/{_DEFAULT}")[0] == 404
    api.json("iam", "DELETE", f"{_ALL}/{_DEFAULT}")
    assert api.refused("iam", "GET", f"{_ALL}/{_DEFAULT}")[0] == 404


def test_lists_come_in_pages(api: Api) -> None:
    for number in range(3):
        _create(api, f"loom-{number}")
    page = _get(api, f"{_ALL}?pageSize=2")
    rest = _get(api, f"{_ALL}?pageSize=2&pageToken={page['nextPageToken']}")
    emails = [account["email"] for account in (*page["accounts"], *rest["accounts"])]
    assert emails[1:] == [f"loom-{n}@proj-a1.iam.gserviceaccount.com" for n in range(3)]
    assert "nextPageToken" not in rest


def test_a_patch_changes_what_its_mask_names_and_an_account_can_be_disabled(api: Api) -> None:
    _create(api, displayName="old", description="old")
    change = {"serviceAccount": {"displayName": "new", "description": "new"}}
    patched = api.json("iam", "PATCH", _ONE, {**change, "updateMask": "display_name"})
    assert (patched["displayName"], patched["description"]) == ("new", "old")
    cleared = api.json("iam", "PATCH", _ONE, {"serviceAccount": {}, "updateMask": "description"})
    assert "description" not in cleared
    _post(api, f"{_ONE}:disable")
    assert _get(api)["disabled"]
    _post(api, f"{_ONE}:enable")
    assert "disabled" not in _get(api)


def test_an_account_has_a_policy_that_goes_with_it(api: Api) -> None:
    _create(api)
    first = _post(api, f"{_ONE}:getIamPolicy")
    assert "bindings" not in first
    binding = {"role": "roles/iam.serviceAccountUser", "members": ["user:ada@example.com"]}
    policy = {"bindings": [binding], "etag": first["etag"]}
    _post(api, f"{_ONE}:setIamPolicy", {"policy": policy})
    assert _post(api, f"{_ONE}:getIamPolicy")["bindings"] == [binding]
    assert api.refused("iam", "POST", f"{_ONE}:setIamPolicy", {"policy": policy})[0] == 409
    api.json("iam", "DELETE", _ONE)
    for method, target in (("GET", _ONE), ("DELETE", _ONE), ("POST", f"{_ONE}:getIamPolicy")):
        assert api.refused("iam", method, target) == (404, "notFound", "Unknown service account")
    _create(api)
    assert "bindings" not in _post(api, f"{_ONE}:getIamPolicy")


def test_an_account_can_be_undeleted_by_number_with_what_it_was_granted(api: Api) -> None:
    made = _create(api)
    policy = {"bindings": [{"role": "roles/viewer", "members": [_MEMBER]}]}
    kept = _policy(api, policy)
    api.json("iam", "DELETE", _ONE)
    gone = _policy(api)
    assert gone["bindings"][0]["members"] == [f"deleted:{_MEMBER}?uid={made['uniqueId']}"]
    assert gone["etag"] != kept["etag"]
    undelete = f"projects/-/serviceAccounts/{made['uniqueId']}:undelete"
    assert _post(api, undelete)["restoredAccount"] == made
    assert _policy(api)["bindings"] == policy["bindings"]
    # One that is made by the same name does not inherit what the old one was granted.
    api.json("iam", "DELETE", _ONE)
    assert _create(api)["uniqueId"] != made["uniqueId"]
    [binding] = _policy(api)["bindings"]
    assert binding["members"][0].startswith("deleted:")
    assert api.refused("iam", "POST", undelete)[0] == 400
