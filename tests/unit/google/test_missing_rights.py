"""What a 403 means in words."""

from __future__ import annotations

import pytest

from provision.google import refusals


@pytest.mark.parametrize(
    ("message", "permission", "role"),
    [
        (
            "Required 'compute.networks.create' permission for 'projects/p/global/networks/n1'",
            "compute.networks.create",
            "roles/compute.networkAdmin",
        ),
        (
            "Required 'compute.networks.updatePolicy' permission for 'projects/p'",
            "compute.networks.updatePolicy",
            "roles/compute.securityAdmin",
        ),
        (
            "me@p does not have storage.buckets.get access to the Google Cloud Storage bucket.",
            "storage.buckets.get",
            "roles/storage.admin",
        ),
        (
            "Permission 'iam.serviceAccounts.actAs' denied on resource (or it may not exist).",
            "iam.serviceAccounts.actAs",
            "roles/iam.serviceAccountUser",
        ),
    ],
)
def test_the_missing_permission_is_named_with_the_least_role_that_has_it(
    message: str, permission: str, role: str
) -> None:
    remedy = refusals.remedy(message)
    assert f"lack the permission {permission}:" in remedy
    assert f"({role})" in remedy


def test_a_permission_of_a_service_that_is_not_known_is_named_all_the_same() -> None:
    remedy = refusals.remedy("Required 'quantum.bits.flip' permission for 'projects/p'")
    assert "quantum.bits.flip" in remedy


def test_an_api_that_is_off_is_to_be_enabled() -> None:
    message = (
        "Compute Engine API has not been used in project 123 before or it is disabled. Enable it by"
        " visiting https://console.developers.google.com/apis/api/compute.googleapis.com/overview"
        "?project=123 then retry."
    )
    assert "gcloud services enable compute.googleapis.com --project 123" in refusals.remedy(message)


def test_an_api_that_google_does_not_link_is_to_be_enabled_too() -> None:
    message = "Compute Engine API has not been used in project 123 before or it is disabled."
    assert "enable the API" in refusals.remedy(message)


def test_other_refusals_are_not_about_rights() -> None:
    assert refusals.remedy("The resource 'projects/p' was not found") == ""


@pytest.mark.parametrize(
    ("message", "constraint", "instead"),
    [
        (
            "Service account creation is not allowed on this project.",
            "iam.disableServiceAccountCreation",
            "SERVICE_ACCOUNT=<EMAIL>",
        ),
        (
            "Constraint constraints/compute.disableGuestAttributesAccess violated for project 1.",
            "compute.disableGuestAttributesAccess",
            "ORCHESTRATOR_TYPE=gke",
        ),
        (
            "'us-central1' violates constraint 'constraints/gcp.resourceLocations'",
            "gcp.resourceLocations",
            "set ZONE",
        ),
        (
            'Operation denied by org policy: ["constraints/compute.managed.vmExternalIpAccess"]',
            "compute.managed.vmExternalIpAccess",
            "ENABLE_EXTERNAL_IP=false",
        ),
        (
            "Constraint constraints/compute.restrictVpcPeering violated for project 1.",
            "compute.restrictVpcPeering",
            "",
        ),
    ],
)
def test_what_a_policy_refuses_needs_an_exception_or_the_setting_that_satisfies_it(
    message: str, constraint: str, instead: str
) -> None:
    remedy = refusals.remedy(message)
    assert f"an exception from the constraint {constraint}:" in remedy
    assert instead in remedy
    assert len(remedy.splitlines()) == 1 + bool(instead)
