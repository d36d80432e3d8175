"""A key of Cloud KMS is looked at before anything is made: place, state, and who may use it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from provision.codes import Code
from tests.unit.preflight.stand_in import PARENT, PROJECT

if TYPE_CHECKING:
    from collections.abc import Iterable

    from provision.errors import Problem
    from tests.unit.preflight.stand_in import Google

RING = "projects/my-keys/locations/us-central1/keyRings/ml"
KEY = f"{RING}/cryptoKeys/gpu"
ROLE = "roles/cloudkms.cryptoKeyEncrypterDecrypter"
GKE = {"orchestrator_type": "gke", "disk_size_gb": "100"}
SHARES = {"nfs_fileshare_list": "/mnt/share:ZONAL:1024"}


def _agent(name: str) -> str:
    return f"serviceAccount:service-123@{name}.iam.gserviceaccount.com"


COMPUTE = _agent("compute-system")


@pytest.fixture
def keeper(google: Google) -> Google:
    """A Google with a key that disks may be encrypted with."""
    google.documents["crm/projects/my-project"] |= {"projectNumber": "123"}
    google.documents[KEY] = {
        "name": KEY,
        "purpose": "ENCRYPT_DECRYPT",
        "primary": {"state": "ENABLED"},
    }
    _let(google, COMPUTE)
    return google


def _let(google: Google, *members: str) -> None:
    google.documents[f"{KEY}:getIamPolicy"] = {"bindings": [{"role": ROLE, "members": members}]}
    google.documents[f"{RING}:getIamPolicy"] = {}


def _about(problems: Iterable[Problem]) -> list[Problem]:
    return [it for it in problems if it.setting == "KMS_KEY"]


def test_a_key_that_google_may_use_passes(keeper: Google) -> None:
    found = keeper.check(kms_key=KEY)
    assert not _about([*found.problems, *found.notes])


@pytest.mark.parametrize(
    ("settings", "agents"),
    [
        ({}, ["compute-system"]),
        (GKE, ["compute-system", "container-engine-robot"]),
        (SHARES, ["compute-system", "cloud-filer"]),
    ],
)
def test_each_service_agent_without_a_role_is_named_with_the_command_that_grants_it(
    keeper: Google, settings: dict[str, str], agents: list[str]
) -> None:
    _let(keeper, "user:me@example.com")
    (problem,) = _about(keeper.check(settings, kms_key=KEY).problems)
    assert problem.code is Code.PERMISSION_MISSING
    for agent in agents:
        member = _agent(agent)
        assert f"gcloud kms keys add-iam-policy-binding {KEY} --member {member}" in problem.fix
    assert problem.fix.count("gcloud kms") == len(agents)


def test_a_role_on_the_ring_will_do(keeper: Google) -> None:
    keeper.documents[f"{KEY}:getIamPolicy"] = {}
    keeper.documents[f"{RING}:getIamPolicy"] = {"bindings": [{"role": ROLE, "members": [COMPUTE]}]}
    assert not _about(keeper.check(kms_key=KEY).problems)


def test_what_may_not_be_seen_is_not_missing(keeper: Google) -> None:
    keeper.documents[f"{KEY}:getIamPolicy"] = {}
    keeper.refusals[f"{RING}:getIamPolicy"] = 403
    found = keeper.check(kms_key=KEY)
    assert not found.problems
    (note,) = _about(found.notes)
    assert "could not see whether Google's service agents may use the key" in note.what
    assert COMPUTE in note.fix


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"purpose": "ASYMMETRIC_SIGN"}, "its purpose is ASYMMETRIC_SIGN"),
        ({"primary": {"state": "DISABLED"}}, "its primary version is DISABLED"),
        ({"primary": None}, "its primary version is missing"),
    ],
)
def test_a_key_that_can_not_encrypt_is_refused(
    keeper: Google, change: dict[str, object], why: str
) -> None:
    keeper.documents[KEY] |= change
    (problem,) = _about(keeper.check(kms_key=KEY).problems)
    assert problem.why == why


def test_a_key_that_is_not_there_is_said(keeper: Google) -> None:
    del keeper.documents[KEY]
    (problem,) = _about(keeper.check(kms_key=KEY).problems)
    assert problem.code is Code.RESOURCE_NOT_FOUND


def test_a_policy_that_demands_own_keys_is_satisfied_by_one(keeper: Google) -> None:
    keeper.documents[PARENT] |= {"parent": {"type": "organization", "id": "1"}}
    keeper.apis.add("orgpolicy")
    policy = f"{PROJECT}/policies/gcp.restrictNonCmekServices:getEffectivePolicy"
    rule = {"values": {"deniedValues": ["compute.googleapis.com"]}}
    keeper.documents[policy] = {"spec": {"rules": [rule]}}
    assert [it.code for it in _about(keeper.check().problems)] == [Code.POLICY_FORBIDS]
    assert not _about(keeper.check(kms_key=KEY).problems)
    rule["values"] = {"deniedValues": ["file.googleapis.com"]}  # of which nothing is made
    assert not _about(keeper.check().problems)
