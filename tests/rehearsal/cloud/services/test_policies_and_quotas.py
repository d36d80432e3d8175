"""Policies of the organization and quotas, in the words of all services but Compute Engine."""

from typing import Any

import pytest

from rehearsal.cloud import facts
from tests.rehearsal.cloud.services.conftest import Api

ACCOUNTS = "projects/proj-a1/serviceAccounts"
POLICIES = facts.read("constraints")["scenarios"]


def _error(api: Api, service: str, method: str, target: str, body: Any = None) -> dict[str, Any]:
    reply = api(service, method, target, body)
    assert isinstance(reply.body, dict)
    error: dict[str, Any] = reply.body["error"]
    return error


@pytest.mark.parametrize("scenario", POLICIES)
def test_a_policy_in_force_is_told_by_the_api_of_policies(api: Api, scenario: str) -> None:
    constraint = POLICIES[scenario]["constraint"]
    target = f"projects/proj-a1/policies/{constraint}:getEffectivePolicy"
    usual = api.json("orgpolicy", "GET", target)
    assert usual["name"] == f"projects/123456789012/policies/{constraint}"
    assert usual["spec"]["rules"] in ([{"allowAll": True}], [{"enforce": False}])

    api.scenarios = frozenset({scenario})

    assert api.json("orgpolicy", "GET", target)["spec"]["rules"] == POLICIES[scenario]["rules"]


def test_the_api_of_policies_has_to_be_enabled(api: Api) -> None:
    service = "projects/proj-a1/services/orgpolicy.googleapis.com"
    api.json("serviceusage", "POST", f"{service}:disable", {})
    target = "projects/proj-a1/policies/gcp.resourceLocations:getEffectivePolicy"
    assert (
        "Organization Policy API has not been used"
        in _error(api, "orgpolicy", "GET", target)["message"]
    )


def test_service_accounts_are_not_made_where_a_policy_forbids_it(api: Api) -> None:
    api.scenarios = frozenset({"policy-accounts"})
    error = _error(api, "iam", "POST", ACCOUNTS, {"accountId": "np-nodes"})
    assert (error["code"], error["status"]) == (400, "FAILED_PRECONDITION")
    assert error["message"] == "Service account creation is not allowed on this project."
    (detail,) = error["details"]
    (violation,) = detail["violations"]
    assert violation["type"] == "constraints/iam.disableServiceAccountCreation"


def test_keys_are_not_made_where_a_policy_forbids_it(api: Api) -> None:
    api.scenarios = frozenset({"policy-keys"})
    account = api.json("iam", "POST", ACCOUNTS, {"accountId": "np-nodes"})["email"]
    error = _error(api, "iam", "POST", f"{ACCOUNTS}/{account}/keys", {})
    assert (error["code"], error["status"]) == (400, "FAILED_PRECONDITION")
    assert error["message"] == "Key creation is not allowed on this service account."


def test_buckets_are_made_in_allowed_places_alone(api: Api) -> None:
    api.scenarios = frozenset({"policy-locations"})
    body = {"name": "loom", "location": "us-central1"}
    error = _error(api, "storage", "POST", "b?project=proj-a1", body)
    assert error["code"] == 412
    assert (
        error["message"] == "'us-central1' violates constraint 'constraints/gcp.resourceLocations'"
    )
    made = api.json("storage", "POST", "b?project=proj-a1", body | {"location": "europe-west4"})
    assert made["location"] == "EUROPE-WEST4"


def _share(api: Api, name: str, zone: str = "us-central1-c") -> dict[str, Any]:
    body = {
        "tier": "BASIC_SSD",
        "fileShares": [{"name": "share", "capacityGb": 2560}],
        "networks": [{"network": "default", "modes": ["MODE_IPV4"]}],
    }
    target = f"projects/proj-a1/locations/{zone}/instances?instanceId={name}"
    reply = api("file", "POST", target, body)
    assert isinstance(reply.body, dict)
    return reply.body


def test_filestore_refuses_what_is_beyond_the_quota_of_a_tier_in_a_region(api: Api) -> None:
    api.scenarios = frozenset({"small-quotas"})
    assert "error" not in _share(api, "one")
    assert "error" not in _share(api, "elsewhere", "us-east1-b")
    error = _share(api, "two")["error"]
    assert error["code"] == 429
    assert error["message"] == (
        "Quota limit 'PremiumStorageGbPerRegion' has been exceeded. Limit: 2560 in region"
        " us-central1."
    )
    base = "projects/proj-a1/locations/global/services/file.googleapis.com/quotaInfos"
    told = api.json("cloudquotas", "GET", f"{base}/PremiumStorageGbPerRegion")
    (info,) = told["dimensionsInfos"]
    assert info["details"] == {"value": "2560"}
    assert "us-central1" in info["applicableLocations"]
