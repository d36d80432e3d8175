from __future__ import annotations

import dataclasses
import hashlib
from typing import TYPE_CHECKING

import pytest

from provision.errors import ClusterError
from provision.kinds.gke.kind import GKE_CLUSTER
from provision.kinds.gke.kubernetes import kueue, manifests
from provision.kinds.gke.kubernetes.stages import stages
from provision.settings.model import Settings
from provision.spec import cluster
from rehearsal import session
from tests.kubernetes import samples

if TYPE_CHECKING:
    from pathlib import Path

REHEARSED = {session.MANIFESTS_VARIABLE: str(session.MANIFESTS)}
TEXT = b"kind: Deployment\n---\nkind: CustomResourceDefinition\n---\n---\nkind: Namespace\n"


def _pinned(content: bytes) -> manifests.AddOn:
    return dataclasses.replace(manifests.JOBSET, sha256=hashlib.sha256(content).hexdigest())


def test_q18_jobset_is_new_enough_for_the_queue() -> None:
    assert tuple(map(int, manifests.JOBSET.version.split("."))) >= (0, 5, 2)


def test_definitions_and_namespaces_come_before_the_rest(tmp_path: Path) -> None:
    (tmp_path / "jobset-v0.12.0.yaml").write_bytes(TEXT)
    found = manifests.read(_pinned(TEXT), {manifests.VARIABLE: str(tmp_path)})
    kinds = [thing["kind"] for thing in found.definitions]
    assert kinds == ["CustomResourceDefinition", "Namespace"]
    assert [thing["kind"] for thing in found.rest] == ["Deployment"]
    assert found.note is None


def test_another_manifest_than_the_pinned_one_is_refused(tmp_path: Path) -> None:
    (tmp_path / "jobset-v0.12.0.yaml").write_bytes(TEXT + b"#")
    with pytest.raises(ClusterError, match=r"is not the manifest of JobSet 0\.12\.0"):
        manifests.read(_pinned(TEXT), {manifests.VARIABLE: str(tmp_path)})


def test_a_manifest_of_ones_own_is_taken_where_the_folder_vouches_for_it(tmp_path: Path) -> None:
    environ = {manifests.VARIABLE: str(tmp_path)}
    (tmp_path / "jobset-v0.12.0.yaml").write_bytes(TEXT)
    sums = tmp_path / manifests.SUMS
    digest = hashlib.sha256(TEXT).hexdigest()
    sums.write_text(f"{digest} *jobset-v0.12.0.yaml\n")
    found = manifests.read(manifests.JOBSET, environ)
    assert len(found.rest) == 1
    assert found.note is not None
    assert "of your own" in found.note.what
    for line in (f"{digest} other.yaml\n", f"{'0' * 64} jobset-v0.12.0.yaml\n", digest):
        sums.write_text(line)
        (problem,) = manifests.missing([manifests.JOBSET], environ)
        assert "sha256sum jobset-v0.12.0.yaml >>SHA256SUMS" in problem.fix


def test_all_manifests_that_are_missing_are_named_at_once(tmp_path: Path) -> None:
    wanted = manifests.wanted(queue=True)
    (unset,) = manifests.missing(wanted, {})
    kueue_, job_set = manifests.missing(wanted, {manifests.VARIABLE: str(tmp_path)})
    assert (kueue_.what, job_set.what) == (
        "Kueue's manifest can't be read",
        "JobSet's manifest can't be read",
    )
    for add_on in wanted:
        assert f"{add_on.file} (SHA-256 {add_on.sha256})" in unset.fix
    with pytest.raises(ClusterError, match="is not set"):
        manifests.read(manifests.KUEUE, {})


def test_a_cluster_without_a_queue_needs_no_manifest_of_kueue(tmp_path: Path) -> None:
    settings = {
        "project_id": "my-project",
        "name_prefix": "demo",
        "orchestrator_type": "gke",
        "zone": "us-central1-a",
        "vm_type": "g2-standard-4",
    }
    (tmp_path / manifests.SUMS).write_text("")
    environ = {manifests.VARIABLE: str(tmp_path)}
    for text, names in (("yes", ["Kueue's", "JobSet's"]), ("no", ["JobSet's"])):
        spec = cluster.gke(Settings(settings | {"enable_kueue": text}))
        problems = GKE_CLUSTER.missing(spec, environ)
        assert [it.what.partition(" ")[0] for it in problems] == names


def test_a_rehearsal_brings_the_kinds_that_are_used() -> None:
    found, notes = stages(samples.TWO_QUEUED, REHEARSED)
    assert [note.what.partition(" ")[0] for note in notes] == ["Kueue", "JobSet"]
    kinds = {
        thing["spec"]["names"]["kind"]
        for stage in found
        for thing in stage.objects
        if thing["kind"] == "CustomResourceDefinition"
    }
    needed = {thing["kind"] for thing in kueue.objects(samples.TWO_QUEUED)}
    assert needed | {"JobSet", "Workload"} == kinds


def test_the_settings_of_kueues_manager_reach_a_rehearsal() -> None:
    found, _ = stages(samples.TWO_QUEUED, REHEARSED)
    (settings,) = (
        thing for stage in found for thing in stage.objects if thing["kind"] == "ConfigMap"
    )
    assert "waitForPodsReady" in settings["data"][kueue.CONFIG_KEY]


def test_a_cluster_without_a_queue_has_no_kueue() -> None:
    facts = dataclasses.replace(samples.facts(samples.MEGA), kueue=False)
    found, notes = stages(facts, REHEARSED)
    assert [stage.name for stage in found if "ueue" in stage.name] == []
    assert len(notes) == 1


def test_whatever_others_refer_to_is_applied_before_them() -> None:
    found, _ = stages(samples.FLEX_QUEUED_ULTRA, REHEARSED)
    kinds = [thing["kind"] for stage in found for thing in stage.objects]
    for first, second in (
        ("GKENetworkParamSet", "Network"),
        ("CustomResourceDefinition", "ClusterQueue"),
        ("ProvisioningRequestConfig", "AdmissionCheck"),
        ("AdmissionCheck", "ClusterQueue"),
        ("ResourceFlavor", "ClusterQueue"),
        ("ClusterQueue", "LocalQueue"),
        ("StorageClass", "PersistentVolumeClaim"),
    ):
        assert kinds.index(first) < kinds.index(second)
