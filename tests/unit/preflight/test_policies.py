"""Policies of an organization that are in force are found before anything is made."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from provision.catalogue import constraints
from tests.unit.preflight.stand_in import PARENT, PROJECT

if TYPE_CHECKING:
    from tests.unit.preflight.stand_in import Google

GKE = {"orchestrator_type": "gke", "disk_size_gb": "100"}
ON_GKE = "orchestrator_type=gke disk_size_gb=100"
OWN = "service_account=vms@my-project.iam.gserviceaccount.com"
ENFORCED = '{"enforce": true}'


@pytest.fixture(autouse=True)
def _in_an_organization(google: Google) -> None:
    google.documents[PARENT] |= {"parent": {"type": "organization", "id": "1"}}
    google.apis.add("orgpolicy")


def _in_force(google: Google, constraint: str, rule: dict[str, Any]) -> None:
    path = f"{PROJECT}/policies/{constraint}:getEffectivePolicy"
    google.documents[path] = {"spec": {"rules": [rule]}}


def _values(*allowed: str, denied: tuple[str, ...] = ()) -> dict[str, Any]:
    return {"values": {"allowedValues": list(allowed), "deniedValues": list(denied)}}


BASTION = json.dumps(_values("projects/my-project/zones/us-central1-a/instances/bastion"))
DISKS = json.dumps(_values(denied=("file.googleapis.com", "compute.googleapis.com")))
IMAGES = json.dumps(_values("projects/my-images", "is:projects/other"))
EUROPE = json.dumps(_values("in:eu-locations"))
NOT_HERE = json.dumps(_values(denied=("us-central1-a",)))
# A constraint, its rule, the setting that is named, words of the fix, settings that avoid it
DENIED = f"""
compute.vmExternalIpAccess | {{"denyAll": true}} | ENABLE_EXTERNAL_IP | ENABLE_EXTERNAL_IP=false\
 | enable_external_ip=no
compute.managed.vmExternalIpAccess | {ENFORCED} | ENABLE_EXTERNAL_IP | ENABLE_EXTERNAL_IP=false\
 | enable_external_ip=no
compute.vmExternalIpAccess | {BASTION} | ENABLE_EXTERNAL_IP | ENABLE_EXTERNAL_IP=false\
 | enable_external_ip=no
compute.requireShieldedVm | {ENFORCED} | SECURE_BOOT | ORCHESTRATOR_TYPE=gke | {ON_GKE}
compute.requireShieldedVm | {ENFORCED} | SECURE_BOOT | SECURE_BOOT=yes |
gcp.restrictNonCmekServices | {DISKS} | KMS_KEY | KMS_KEY |
compute.disableGuestAttributesAccess | {ENFORCED} | ORCHESTRATOR_TYPE | ORCHESTRATOR_TYPE=gke\
 | {ON_GKE}
iam.disableServiceAccountCreation | {ENFORCED} | SERVICE_ACCOUNT | SERVICE_ACCOUNT=<EMAIL> | {OWN}
iam.managed.disableServiceAccountCreation | {ENFORCED} | SERVICE_ACCOUNT\
 | SERVICE_ACCOUNT=<EMAIL> | {OWN}
compute.trustedImageProjects | {IMAGES} | IMAGE_PROJECT | IMAGE_PROJECT | {ON_GKE}
gcp.resourceLocations | {EUROPE} | ZONE | set ZONE |
gcp.resourceLocations | {NOT_HERE} | ZONE | set ZONE |
"""


@pytest.mark.parametrize("case", DENIED.strip().splitlines())
def test_what_a_policy_forbids_is_told_with_the_setting_that_avoids_it(
    google: Google, case: str
) -> None:
    constraint, rule, setting, fix, without = (part.strip() for part in case.split(" |"))
    _in_force(google, constraint, json.loads(rule))

    (problem,) = google.check().problems

    assert problem.setting == setting
    assert f"constraints/{constraint}" in problem.why
    assert fix in problem.fix
    assert f"exception from the constraint {constraint}" in problem.fix
    if without:
        assert google.check(dict(it.split("=") for it in without.split())).problems == []


def test_a_gke_cluster_makes_an_account_whatever_that_of_its_nodes_is(google: Google) -> None:
    _in_force(google, "iam.disableServiceAccountCreation", {"enforce": True})
    own = {"service_account": OWN.partition("=")[2]}
    (problem,) = google.check(GKE | own).problems
    assert "a GKE cluster makes one for its pods" in problem.fix


@pytest.mark.parametrize(
    "rule",
    [
        {"allowAll": True},
        {"enforce": False},
        _values("in:us-locations"),
        _values("in:us-central1-locations"),
        _values("us-central1"),
        _values("in:eu-locations", "in:low-carbon-locations"),
        _values(denied=("europe-west4",)),
    ],
)
def test_a_policy_that_allows_it_or_may_is_no_problem(google: Google, rule: dict[str, Any]) -> None:
    _in_force(google, "gcp.resourceLocations", rule)
    assert google.check().problems == []


def test_london_and_zurich_are_not_in_the_european_union(google: Google) -> None:
    _in_force(google, "gcp.resourceLocations", _values("in:eu-locations"))
    told = {
        zone: [
            it.setting for it in google.check(zone=zone, region=zone[:-2]).problems if it.setting
        ]
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
