import pytest

from provision.google import refusals

OFF = "Compute Engine API has not been used in project 123 before or it is disabled."
LINK = "https://console.developers.google.com/apis/api/compute.googleapis.com/overview?project=123"
MEANT = {
    # Google's words -> what the remedy has
    "Required 'compute.networks.create' permission for 'projects/p/global/networks/n1'": (
        "lack the permission compute.networks.create: | (roles/compute.networkAdmin)"
    ),
    "Required 'compute.networks.updatePolicy' permission for 'projects/p'": (
        "lack the permission compute.networks.updatePolicy: | (roles/compute.securityAdmin)"
    ),
    "me@p does not have storage.buckets.get access to the Google Cloud Storage bucket.": (
        "lack the permission storage.buckets.get: | (roles/storage.admin)"
    ),
    "Permission 'iam.serviceAccounts.actAs' denied on resource (or it may not exist).": (
        "lack the permission iam.serviceAccounts.actAs: | (roles/iam.serviceAccountUser)"
    ),
    # Of a service that is not known.
    "Required 'quantum.bits.flip' permission for 'projects/p'": "quantum.bits.flip",
    f"{OFF} Enable it by visiting {LINK} then retry.": (
        "gcloud services enable compute.googleapis.com --project 123"
    ),
    OFF: "enable the API",
}
POLICIES = {
    # Google's words -> the constraint, and the setting that satisfies it
    "Service account creation is not allowed on this project.": (
        "iam.disableServiceAccountCreation SERVICE_ACCOUNT=<EMAIL>"
    ),
    "Constraint constraints/compute.disableGuestAttributesAccess violated for project 1.": (
        "compute.disableGuestAttributesAccess ORCHESTRATOR_TYPE=gke"
    ),
    "'us-central1' violates constraint 'constraints/gcp.resourceLocations'": (
        "gcp.resourceLocations set ZONE"
    ),
    'Operation denied by org policy: ["constraints/compute.managed.vmExternalIpAccess"]': (
        "compute.managed.vmExternalIpAccess ENABLE_EXTERNAL_IP=no"
    ),
    "Constraint constraints/compute.restrictVpcPeering violated for project 1.": (
        "compute.restrictVpcPeering"
    ),
}


@pytest.mark.parametrize("message", MEANT)
def test_what_is_missing_is_named_with_the_least_role_that_has_it(message: str) -> None:
    remedy = refusals.remedy(message)
    assert [it for it in MEANT[message].split(" | ") if it not in remedy] == []


def test_other_refusals_are_not_about_rights() -> None:
    assert refusals.remedy("The resource 'projects/p' was not found") == ""


@pytest.mark.parametrize("message", POLICIES)
def test_what_a_policy_refuses_needs_an_exception_or_the_setting_that_satisfies_it(
    message: str,
) -> None:
    constraint, _, instead = POLICIES[message].partition(" ")
    remedy = refusals.remedy(message)
    assert f"an exception from the constraint {constraint}:" in remedy
    assert instead in remedy
    assert len(remedy.splitlines()) == 1 + bool(instead)
