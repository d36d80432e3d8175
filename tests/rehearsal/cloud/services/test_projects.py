from typing import Any

import pytest

from rehearsal.cloud import projects
from rehearsal.cloud.wire import GoogleError
from tests.rehearsal.cloud.services.conftest import Api

_POLICY = "projects/proj-a1:%sIamPolicy"


def _set(api: Api, policy: dict[str, Any]) -> dict[str, Any]:
    return api.json("crm/v1", "POST", _POLICY % "set", {"policy": policy})


def _bind(member: str, role: str = "roles/viewer") -> dict[str, Any]:
    return {"bindings": [{"role": role, "members": [member]}]}


def test_a_project_has_the_same_number_always_and_is_found_by_it(api: Api) -> None:
    assert api.json("crm/v1", "GET", "projects/proj-a1")["projectNumber"] == "123456789012"
    assert api.json("crm/v1", "GET", "projects/123456789012")["projectId"] == "proj-a1"
    number = projects.number("my-project")
    assert len(number) == 12
    assert api.refused("crm/v1", "GET", f"projects/{number}")[0] == 403
    assert api.json("crm/v1", "GET", "projects/my-project")["projectNumber"] == number
    assert api.json("crm/v1", "GET", f"projects/{number}")["projectId"] == "my-project"
    project = api.json("crm/v3", "GET", "projects/proj-a1")
    assert (project["name"], project["state"]) == ("projects/123456789012", "ACTIVE")


def test_what_is_missing_or_forbidden_is_answered_alike(api: Api) -> None:
    for project in ("missing-one", "foreign-corp", "x", "UPPER-case", "a-b-c-"):
        refused = api.refused("crm/v1", "GET", f"projects/{project}")
        assert refused == (403, "forbidden", "The caller does not have permission")


def test_compute_engine_tells_missing_from_forbidden(api: Api) -> None:
    with api.database.transaction() as store:
        assert projects.require("my-project", store).id == "my-project"
        with pytest.raises(GoogleError, match="The resource 'projects/missing-x' was not found"):
            projects.require("missing-x", store)
        with pytest.raises(GoogleError, match="permission for 'projects/foreign-x'"):
            projects.require("foreign-x", store)


def test_a_domain_scoped_project_has_accounts_of_its_own_domain(api: Api) -> None:
    body = {"accountId": "loom-nodes"}
    made = api.json("iam", "POST", "projects/example.com:my-project/serviceAccounts", body)
    assert made["email"] == "loom-nodes@my-project.example.com.iam.gserviceaccount.com"


def test_conditions_make_a_policy_version_3_and_empty_bindings_vanish(api: Api) -> None:
    assert _set(api, {**_bind("allUsers"), "version": 3})["version"] == 1
    conditional = _bind("allUsers")
    conditional["bindings"][0]["condition"] = {"expression": "true"}
    assert _set(api, conditional)["version"] == 3
    assert "bindings" not in _set(api, {"bindings": [{"role": "roles/viewer", "members": []}]})


def test_a_policy_is_set_only_over_the_one_that_was_read_or_without_etag(api: Api) -> None:
    first = api.json("crm/v1", "POST", _POLICY % "get", {"options": {}})
    assert first["bindings"] == [{"role": "roles/owner", "members": ["user:owner@example.com"]}]
    second = _set(api, {**_bind("user:ada@example.com"), "etag": first["etag"]})
    assert second["etag"] != first["etag"]
    stale = {**_bind("user:bob@example.com"), "etag": first["etag"]}
    reply = api("crm/v1", "POST", _POLICY % "set", {"policy": stale})
    assert isinstance(reply.body, dict)
    assert (reply.status, reply.body["error"]["status"]) == (409, "ABORTED")
    assert reply.body["error"]["message"].startswith("There were concurrent policy changes.")
    kept = api.json("crm/v3", "POST", _POLICY % "get")
    assert kept["bindings"][0]["members"] == ["user:ada@example.com"]
    _set(api, _bind("user:bob@example.com"))
    kept = api.json("crm/v1", "POST", _POLICY % "get")
    assert kept["bindings"][0]["members"] == ["user:bob@example.com"]


def test_a_service_account_that_does_not_exist_is_refused(api: Api) -> None:
    email = "nobody@proj-a1.iam.gserviceaccount.com"
    body = {"policy": _bind(f"serviceAccount:{email}")}
    refused = api.refused("crm/v1", "POST", _POLICY % "set", body)
    assert refused == (400, "invalid", f"Service account {email} does not exist.")


def test_the_caller_has_all_permissions_and_somebody_pays(api: Api) -> None:
    asked = {"permissions": ["compute.instances.create", "compute.disks.create"]}
    assert api.json("crm/v1", "POST", "projects/proj-a1:testIamPermissions", asked) == asked
    found = api.json("cloudbilling", "GET", "projects/proj-a1/billingInfo")
    assert found["billingEnabled"] is True
    assert api.refused("cloudbilling", "GET", "projects/missing-x/billingInfo")[0] == 403


def test_what_google_does_not_have_is_not_found_and_what_only_google_has_is_said(api: Api) -> None:
    assert api.refused("crm/v1", "GET", "castles/1")[0] == 404
    refused = api.refused("crm/v1", "DELETE", "projects/proj-a1")[::2]
    assert refused == (501, "projects.delete is not part of the simulated cloud.")


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"polisy": {}}, 'Unknown name "polisy"'),
        ({"policy": {"bindings": "none"}}, "bindings"),
        ({"policy": {"bindings": [{"roles": "x"}]}}, 'Unknown name "roles"'),
    ],
)
def test_a_body_against_googles_own_description_is_refused(
    api: Api, body: dict[str, Any], words: str
) -> None:
    for project in ("proj-a1", "example.com:my-project"):
        target = f"projects/{project}:setIamPolicy"
        code, _, message = api.refused("crm/v1", "POST", target, body)
        assert code == 400
        assert words in message
