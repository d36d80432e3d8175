from __future__ import annotations

import dataclasses
import hashlib
from typing import TYPE_CHECKING

import pytest

from provision.errors import ClusterError
from provision.kinds.gke.kubernetes import kueue, manifests
from provision.kinds.gke.kubernetes.stages import stages
from tests.kubernetes import samples

if TYPE_CHECKING:
    from pathlib import Path

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
    with pytest.raises(ClusterError, match=r"is not JobSet 0\.12\.0"):
        manifests.read(_pinned(TEXT), {manifests.VARIABLE: str(tmp_path)})


def test_a_missing_manifest_is_named(tmp_path: Path) -> None:
    with pytest.raises(ClusterError, match="Kueue's manifest can't be read"):
        manifests.read(manifests.KUEUE, {manifests.VARIABLE: str(tmp_path)})


def test_outside_the_image_the_kinds_stand_in_and_that_is_said() -> None:
    found, notes = stages(samples.TWO_QUEUED, {})
    assert [note.what.split()[5] for note in notes] == ["JobSet", "Kueue"]
    kinds = {
        thing["spec"]["names"]["kind"]
        for stage in found
        for thing in stage.objects
        if thing["kind"] == "CustomResourceDefinition"
    }
    needed = {thing["kind"] for thing in kueue.objects(samples.TWO_QUEUED)}
    assert needed | {"JobSet", "Workload"} == kinds


def test_a_cluster_without_a_queue_has_no_kueue() -> None:
    found, notes = stages(dataclasses.replace(samples.facts(samples.MEGA), kueue=False), {})
    assert [stage.name for stage in found if "ueue" in stage.name] == []
    assert len(notes) == 1


def test_whatever_others_refer_to_is_applied_before_them() -> None:
    found, _ = stages(samples.FLEX_QUEUED_ULTRA, {})
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
