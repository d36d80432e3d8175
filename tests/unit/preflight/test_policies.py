"""Policies of an organization that are in force are found before anything is made."""

import json

import pytest

from provision.catalogue import constraints
from tests.unit.preflight.stand_in import PARENT, PROJECT, Google
from tests.unit.table import Row, rows


@pytest.fixture(autouse=True)
def _in_an_organization(google: Google) -> None:
    google.documents[PARENT] |= {"parent": {"type": "organization", "id": "1"}}
    google.apis.add("orgpolicy")


# What a constraint does, and the setting that avoids it.
TABLE = """
compute.vmExternalIpAccess {"denyAll": true} ::
    -> ENABLE_EXTERNAL_IP: constraints/compute.vmExternalIpAccess | ENABLE_EXTERNAL_IP=no
compute.managed.vmExternalIpAccess @ENFORCED ::
    -> ENABLE_EXTERNAL_IP: constraints/compute.managed.vmExternalIpAccess
    | ENABLE_EXTERNAL_IP=no
compute.vmExternalIpAccess @BASTION_ALONE ::
    -> ENABLE_EXTERNAL_IP: constraints/compute.vmExternalIpAccess | ENABLE_EXTERNAL_IP=no
compute.vmExternalIpAccess {"denyAll": true} :: enable_external_ip=no network_config=new_network --
compute.managed.vmExternalIpAccess @ENFORCED :: enable_external_ip=no network_config=new_network --
compute.vmExternalIpAccess @BASTION_ALONE :: enable_external_ip=no network_config=new_network --
compute.requireShieldedVm @ENFORCED ::
    -> SECURE_BOOT: constraints/compute.requireShieldedVm | ORCHESTRATOR_TYPE=gke | SECURE_BOOT=yes
compute.requireShieldedVm @ENFORCED :: @GKE --
gcp.restrictNonCmekServices @DISKS_DENIED ::
    -> KMS_KEY: constraints/gcp.restrictNonCmekServices | KMS_KEY
compute.disableGuestAttributesAccess @ENFORCED ::
    -> ORCHESTRATOR_TYPE: constraints/compute.disableGuestAttributesAccess | ORCHESTRATOR_TYPE=gke
compute.disableGuestAttributesAccess @ENFORCED :: @GKE --
iam.disableServiceAccountCreation @ENFORCED ::
    -> SERVICE_ACCOUNT: constraints/iam.disableServiceAccountCreation | SERVICE_ACCOUNT=<EMAIL>
iam.managed.disableServiceAccountCreation @ENFORCED ::
    -> SERVICE_ACCOUNT: constraints/iam.managed.disableServiceAccountCreation
    | SERVICE_ACCOUNT=<EMAIL>
iam.disableServiceAccountCreation @ENFORCED :: service_account=@ACCOUNT --
iam.managed.disableServiceAccountCreation @ENFORCED :: service_account=@ACCOUNT --
iam.disableServiceAccountCreation @ENFORCED :: @GKE service_account=@ACCOUNT
    -> SERVICE_ACCOUNT: a GKE cluster makes one for its pods
compute.trustedImageProjects @OTHER_IMAGES ::
    -> IMAGE_PROJECT: constraints/compute.trustedImageProjects | IMAGE_PROJECT
compute.trustedImageProjects @OTHER_IMAGES :: @GKE --

gcp.resourceLocations {"values": {"allowedValues": ["in:eu-locations"]}} ::
    -> ZONE: constraints/gcp.resourceLocations | set ZONE
gcp.resourceLocations {"values": {"deniedValues": ["us-central1-a"]}} ::
    -> ZONE: constraints/gcp.resourceLocations | set ZONE
gcp.resourceLocations {"allowAll": true} :: --
gcp.resourceLocations {"enforce": false} :: --
gcp.resourceLocations {"values": {"allowedValues": ["in:us-locations"]}} :: --
gcp.resourceLocations {"values": {"allowedValues": ["in:us-central1-locations"]}} :: --
gcp.resourceLocations {"values": {"allowedValues": ["us-central1"]}} :: --
gcp.resourceLocations
    {"values": {"allowedValues": ["in:eu-locations", "in:low-carbon-locations"]}} :: --
gcp.resourceLocations {"values": {"deniedValues": ["europe-west4"]}} :: --
"""


@rows(
    TABLE,
    ACCOUNT="vms@my-project.iam.gserviceaccount.com",
    BASTION_ALONE='{"values": {"allowedValues":'
    ' ["projects/my-project/zones/us-central1-a/instances/bastion"]}}',
    DISKS_DENIED='{"values": {"deniedValues": ["file.googleapis.com", "compute.googleapis.com"]}}',
    ENFORCED='{"enforce": true}',
    GKE="orchestrator_type=gke disk_size_gb=100",
    OTHER_IMAGES='{"values": {"allowedValues": ["projects/my-images", "is:projects/other"]}}',
)
def test_what_a_policy_forbids_is_told_with_the_setting_that_avoids_it(
    google: Google, row: Row
) -> None:
    constraint, _, rule = row.world.partition(" ")
    _in_force(google, constraint, rule)

    found = google.check(row.environ)

    row.is_said_by(found.problems, found.notes)
    assert len(found.problems) == (row.arrow == "->")
    for problem in found.problems:
        assert f"exception from the constraint {constraint}" in problem.fix


def _in_force(google: Google, constraint: str, rule: str) -> None:
    path = f"{PROJECT}/policies/{constraint}:getEffectivePolicy"
    google.documents[path] = {"spec": {"rules": [json.loads(rule)]}}


def test_london_and_zurich_are_not_in_the_european_union(google: Google) -> None:
    _in_force(google, "gcp.resourceLocations", '{"values": {"allowedValues": ["in:eu-locations"]}}')
    told = {
        zone: [it.setting for it in google.check(zone=zone, region=zone[:-2]).problems]
        for zone in ("europe-west4-a", "europe-west2-a", "europe-west6-b")
    }
    forbidden = {zone for zone, settings in told.items() if settings.count("ZONE") > 1}
    assert forbidden == {"europe-west2-a", "europe-west6-b"}


def test_policies_that_cannot_be_read_are_one_note(google: Google) -> None:
    google.refusals[f"{PROJECT}/policies/"] = 403
    found = google.check()
    assert found.problems == []
    assert [it.what for it in found.unmade] == ["could not be checked: policies"]

    google.refusals.clear()
    google.apis.remove("orgpolicy")
    (note,) = google.check().notes
    assert "could not check whether policies of the organization" in note.what
    assert "gcloud services enable orgpolicy.googleapis.com" in note.fix


def test_a_project_without_an_organization_is_not_asked(google: Google) -> None:
    google.documents[PARENT].pop("parent")
    google.apis.remove("orgpolicy")
    assert google.check().notes == []


def test_each_constraint_is_found_by_both_of_its_names() -> None:
    for one in constraints.ALL:
        for name in one.names:
            assert constraints.named(name) is one
