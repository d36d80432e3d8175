"""Keys of Cloud KMS and secrets of jobs are looked at first: place, state, and who may use them."""

import json
from typing import Any

import pytest

from provision.codes import Code
from provision.preflight import named
from provision.preflight.check import Answers
from provision.settings import pairs
from provision.settings.storage import JobMount
from tests.unit.preflight.stand_in import PARENT, PROJECT, Google
from tests.unit.table import Row, rows

RING = "projects/my-keys/locations/us-central1/keyRings/ml"
KEY = f"{RING}/cryptoKeys/gpu"
ME = "serviceAccount:np-nodes@my-project.iam.gserviceaccount.com"
READS = "roles/secretmanager.secretAccessor"
OURS = 'resource.name.startsWith("projects/123/secrets/hf/")'
OTHERS = 'resource.name.startsWith("projects/123/secrets/hf-2/")'
SECRET = pairs.secret_of("HF_TOKEN", "hf", "my-project")
NO_GRANT = Code.SECRETS_UNREADABLE
GRANT = f"gcloud kms keys add-iam-policy-binding {KEY} --member"


def _agent(name: str) -> str:
    return f"serviceAccount:service-123@{name}.iam.gserviceaccount.com"


def _policy(member: str) -> dict[str, Any]:
    role = "roles/cloudkms.cryptoKeyEncrypterDecrypter"
    return {"bindings": [{"role": role, "members": [member]}]}


@pytest.fixture
def keeper(google: Google) -> Google:
    """A Google with a key that disks may be encrypted with."""
    google.documents[PARENT] |= {"projectNumber": "123"}
    google.documents |= {
        KEY: {"name": KEY, "purpose": "ENCRYPT_DECRYPT", "primary": {"state": "ENABLED"}},
        f"{KEY}:getIamPolicy": _policy(_agent("compute-system")),
        f"{RING}:getIamPolicy": {},
    }
    return google


TABLE = """
@ASKED -- KMS_KEY
no @KEY :: @ASKED -> KMS_KEY: there is no projects/my-keys/
@KEY + {"purpose": "ASYMMETRIC_SIGN"} :: @ASKED -> KMS_KEY: its purpose is ASYMMETRIC_SIGN
@KEY + {"primary": {"state": "DISABLED"}} :: @ASKED
    -> KMS_KEY: its primary version is DISABLED
@KEY + {"primary": null} :: @ASKED -> KMS_KEY: its primary version is missing
# Each service agent without a role is named with the command that grants it; the ring's will do.
@NOBODY :: @ASKED -> KMS_KEY: may not use gpu | @GRANT @DISKS
@NOBODY :: @ASKED @GKE -> KMS_KEY: may not use gpu | @GRANT @DISKS | @GRANT @SECRETS
@NOBODY :: @ASKED @SHARES -> KMS_KEY: may not use gpu | @GRANT @DISKS | @GRANT @FILES
@KEY:getIamPolicy = {}; @RING:getIamPolicy = @LETS :: @ASKED -- KMS_KEY
# A policy that demands own keys is satisfied by one, and where nothing is made that it is about.
@POLICY = @DEMANDED :: -> KMS_KEY: constraints/gcp.restrictNonCmekServices
@POLICY = @DEMANDED :: @ASKED -- KMS_KEY
@POLICY = @DEMANDED_OF_FILES :: -- KMS_KEY
"""
PARTS = {
    "ASKED": f"kms_key={KEY}",
    "KEY": KEY,
    "RING": RING,
    "GKE": "orchestrator_type=gke disk_size_gb=100",
    "SHARES": "nfs_fileshare_list=/mnt/share:ZONAL:1024",
    "GRANT": GRANT,
    "DISKS": _agent("compute-system"),
    "SECRETS": _agent("container-engine-robot"),
    "FILES": _agent("cloud-filer"),
    "NOBODY": f"{KEY}:getIamPolicy = {json.dumps(_policy('user:me@example.com'))}",
    "LETS": json.dumps(_policy(_agent("compute-system"))),
    "POLICY": f"{PROJECT}/policies/gcp.restrictNonCmekServices:getEffectivePolicy",
    **{
        name: json.dumps({"spec": {"rules": [{"values": {"deniedValues": [denied]}}]}})
        for name, denied in (
            ("DEMANDED", "compute.googleapis.com"),
            ("DEMANDED_OF_FILES", "file.googleapis.com"),
        )
    },
}


@rows(TABLE, **PARTS)
def test_a_key_fits_or_is_refused_with_what_its_keeper_has_to_do(keeper: Google, row: Row) -> None:
    keeper.documents[PARENT] |= {"parent": {"type": "organization", "id": "1"}}
    keeper.apis.add("orgpolicy")
    keeper.have(row.world)

    found = keeper.check(row.environ)

    row.is_said_by(found.problems, found.notes)
    for problem in found.problems:
        assert problem.fix.count("gcloud kms") == row.told.count("gcloud kms")


def test_what_may_not_be_seen_is_not_missing(keeper: Google) -> None:
    keeper.documents[f"{KEY}:getIamPolicy"] = {}
    keeper.refusals[f"{RING}:getIamPolicy"] = 403
    found = keeper.check(kms_key=KEY)
    assert not found.problems
    (note,) = [it for it in found.notes if it.setting == "KMS_KEY"]
    assert note.code is Code.NOT_CHECKED
    assert "could not see whether Google's service agents may use the key" in note.what
    assert _agent("compute-system") in note.fix


@pytest.mark.parametrize(
    ("where", "binding", "denied"),
    [
        ("secret", {"role": READS, "members": [ME]}, None),
        ("crm", {"role": "roles/secretmanager.admin", "members": [ME]}, None),
        ("crm", {"role": READS, "members": [ME], "condition": {"expression": OURS}}, None),
        ("crm", {"role": READS, "members": [ME], "condition": {"expression": OTHERS}}, NO_GRANT),
        ("crm", {"role": "roles/editor", "members": [ME]}, NO_GRANT),
        ("secret", {"role": READS, "members": ["user:me@example.com"]}, NO_GRANT),
    ],
)
def test_who_may_read_a_secret_is_seen_in_its_policy_and_its_projects(
    google: Google, where: str, binding: dict[str, Any], denied: Code | None
) -> None:
    paths = {"secret": f"{SECRET.path}:getIamPolicy", "crm": f"{PARENT}:getIamPolicy"}
    google.documents |= {SECRET.path: {}, **{it: {} for it in paths.values()}}
    google.documents[paths[where]] = {"bindings": [binding]}
    found = named.denied(Answers(google), SECRET, ME.partition(":")[2])
    assert (found and found[0]) == denied


@pytest.mark.parametrize(
    ("said", "role", "closed"),
    [
        ("my-runs:/mnt/data", "objectUser", None),
        ("my-runs:/mnt/data", "objectViewer", Code.NOTE),
        ("my-runs:/mnt/data:ro", "objectViewer", None),
        ("my-runs:/mnt/data:ro", "objectCreator", Code.NOTE),
    ],
)
def test_who_may_use_a_jobs_bucket_is_seen_in_its_policy(
    google: Google, said: str, role: str, closed: Code | None
) -> None:
    mount, account = JobMount.of(said), ME.partition(":")[2]
    missing = named.closed(Answers(google), mount, account)
    assert missing == (Code.RESOURCE_NOT_FOUND, "")
    bindings = [{"role": f"roles/storage.{role}", "members": [ME]}]
    google.documents |= {"b/my-runs": {}, "b/my-runs/iam": {"bindings": bindings}}
    found = named.closed(Answers(google), mount, account)
    assert (found and found[0]) == closed
    google.refusals["b/my-runs/iam"] = 403
    unseen = named.closed(Answers(google), mount, account)
    assert unseen is not None
    assert unseen[0] is Code.NOT_CHECKED


def test_what_can_not_be_seen_of_a_secret_is_not_taken_for_a_denial(google: Google) -> None:
    google.documents[f"{PARENT}:getIamPolicy"] = {}
    missing = named.denied(Answers(google), SECRET, "a@b")
    assert missing == (Code.RESOURCE_NOT_FOUND, "")
    google.documents[SECRET.path] = {}
    google.refusals[f"{SECRET.path}:getIamPolicy"] = 403
    unseen = named.denied(Answers(google), SECRET, "a@b")
    assert unseen is not None
    assert unseen[0] is Code.NOT_CHECKED
    google.refusals = {f"{SECRET.path}$": 403}
    google.documents[f"{SECRET.path}:getIamPolicy"] = {}
    assert (named.denied(Answers(google), SECRET, "a@b") or ("",))[0] is Code.NOT_CHECKED
