"""A key of Cloud KMS for all that keeps data; what Google may not use is said before it costs."""

import contextlib
from collections.abc import Iterator
from typing import Any

import pytest
from dotenv import dotenv_values

from rehearsal import session
from rehearsal.cloud.store import Database
from tests.runs.conftest import Rehearsal
from tests.runs.test_examples import EXAMPLES

VALUES = {k: v for k, v in dotenv_values(EXAMPLES / "cmek.env.list").items() if v}
KEY = VALUES["KMS_KEY"]
GKE = {"ORCHESTRATOR_TYPE": "gke"}


@pytest.fixture
def keyed(rehearsal: Rehearsal) -> Rehearsal:
    """A rehearsal of the example, with the key that it names."""
    rehearsal.settings = dict(VALUES)
    assert rehearsal.presume() == ("the key gpu",)
    return rehearsal


def _documents(rehearsal: Rehearsal, collection: str) -> Iterator[dict[str, Any]]:
    database = Database(rehearsal.folder / session.DATABASE)
    with contextlib.closing(database), database.transaction() as store:
        yield from (it for _, it in store.list(collection))


def _keys(rehearsal: Rehearsal) -> dict[str, set[Any]]:
    """The keys of what is there, by what it is."""
    found = {
        "share": {it.get("kmsKeyName") for it in _documents(rehearsal, "file/instances")},
        "state": {
            it["encryption"]["defaultKmsKeyName"] for it in _documents(rehearsal, "storage/buckets")
        },
        "secrets": {
            it["databaseEncryption"].get("keyName")
            for it in _documents(rehearsal, "container/clusters")
        },
        "nodes": {
            it["config"].get("bootDiskKmsKey")
            for it in _documents(rehearsal, "container/nodePools")
        },
    }
    vms = "compute/v1/projects/my-project/aggregated/instances"
    zones = rehearsal.google("GET", vms)["items"].values()
    disks = [vm["disks"][0] for zone in zones for vm in zone.get("instances", [])]
    found["disks"] = {(it.get("diskEncryptionKey") or {}).get("kmsKeyName") for it in disks}
    return {name: keys for name, keys in found.items() if keys}


@pytest.mark.parametrize(
    ("kind", "what"),
    [
        ({}, {"share", "state", "disks"}),
        pytest.param(
            GKE,
            {"share", "state", "secrets", "nodes", "disks"},
            marks=pytest.mark.slow(sibling="::test_all_that_keeps_data_has_the_key"),
        ),
    ],
    ids=["vms", "gke"],
)
def test_all_that_keeps_data_has_the_key(
    keyed: Rehearsal, kind: dict[str, str], what: set[str]
) -> None:
    made = keyed.run("Create", **kind)
    assert made.code == 0, made.said
    assert made.document["plan"]["topology"]["kms_key"] == KEY
    assert "key        gpu of my-keys in us-central1" in made.said
    assert _keys(keyed) == {it: {KEY} for it in what}
    again = keyed.run("Plan", "--detailed-exitcode", **kind)
    assert again.code == 0, again.said
    if kind:
        left = keyed.run("Create", "--yes", **kind, KMS_KEY="")
        assert left.code == 0, left.said
        assert not any(_keys(keyed)["secrets"])
        assert keyed.run("Plan", "--detailed-exitcode", **kind, KMS_KEY="").code == 0
    assert keyed.run("Destroy", **kind).code == 0


def test_a_key_that_google_may_not_use_is_said_before_anything_is_made(keyed: Rehearsal) -> None:
    keyed.google("POST", f"cloudkms/v1/{KEY}:setIamPolicy", {"policy": {"bindings": []}})
    before = keyed.resources()
    refused = keyed.run("Create")
    assert refused.code == 4, refused.said
    assert refused.problem["setting"] == "KMS_KEY"
    fix = refused.problem["fix"]
    for agent in ("compute-system", "cloud-filer", "gs-project-accounts"):
        assert f"@{agent}.iam.gserviceaccount.com --role roles/cloudkms." in fix
    assert keyed.resources() == before


def test_what_google_says_of_a_key_at_last_is_told(keyed: Rehearsal) -> None:
    made = keyed.run("Create", NFS_FILESHARE_LIST="")
    assert made.code == 0, made.said
    keyed.google("POST", f"cloudkms/v1/{KEY}:setIamPolicy", {"policy": {"bindings": []}})
    more = keyed.run("Create", NFS_FILESHARE_LIST="", INSTANCE_COUNT="3", SKIP_CHECKS="kms-key")
    assert more.code == 7, more.said
    assert more.problem["code"] == "permission-missing"
    assert "useToEncrypt" in more.problem["why"]
    assert "Validate says which" in more.problem["fix"]
