"""What is deleted through Kubernetes before the cluster is, and what is waited for."""

import dataclasses
from typing import Any, cast

from provision.kinds.gke import release
from provision.kinds.gke.kubernetes import stages
from provision.kinds.gke.kubernetes.client import Cluster
from provision.kinds.gke.kubernetes.objects import Object, build
from provision.settings.storage import Mount
from tests.kubernetes import samples

MADE = {"pv.kubernetes.io/provisioned-by": "pd.csi.storage.gke.io"}
DISK = "projects/p/zones/z-a/disks/pvc-1"


class Fake:
    """A cluster with some objects, which go when they are deleted twice."""

    def __init__(self, *things: Object) -> None:
        self.things = list(things)
        self.deleted: list[str] = []

    def all(self, _: str, kind: str) -> list[Object]:
        return [it for it in self.things if it["kind"] == kind]

    def delete(self, _: str, kind: str, name: str, namespace: str) -> bool:
        self.deleted.append(f"{kind} {namespace}/{name}")
        return True


def step(*things: Object) -> tuple[list[str], list[str]]:
    """What a step says is there, and what it deletes."""
    fake = Fake(*things)
    return release.step(cast("Cluster", fake)), fake.deleted


def stored(*things: Object) -> dict[str, str]:
    return release.storage(cast("Cluster", Fake(*things)), "p")


def service(kind: str) -> Object:
    return build("v1", "Service", "web", "default", spec={"type": kind})


def claim(volume: str = "pvc-1", **metadata: Any) -> Object:
    spec = {"volumeName": volume} if volume else {}
    thing = build("v1", "PersistentVolumeClaim", "data", "default", spec=spec)
    thing["metadata"] |= metadata
    return thing


def volume(policy: str, annotations: dict[str, str] | None = None) -> Object:
    csi = {"driver": "pd.csi.storage.gke.io", "volumeHandle": DISK}
    spec = {"csi": csi, "persistentVolumeReclaimPolicy": policy}
    thing = build("v1", "PersistentVolume", "pvc-1", spec=spec)
    thing["metadata"]["annotations"] = MADE if annotations is None else annotations
    return thing


def pod(name: str, claimed: str, namespace: str = "default") -> Object:
    volumes = [{"persistentVolumeClaim": {"claimName": claimed}}, {"emptyDir": {}}]
    return build("v1", "Pod", name, namespace, spec={"volumes": volumes})


def test_only_what_has_a_load_balancer_is_deleted_and_a_claim_whose_volume_goes_with_it() -> None:
    ingress = build("networking.k8s.io/v1", "Ingress", "site", "default")
    assert step(service("ClusterIP")) == ([], [])
    found = ["Service default/web", "Ingress default/site"]
    assert step(service("LoadBalancer"), ingress) == (found, found)
    own = "PersistentVolumeClaim default/data"
    assert step(claim(), volume("Delete")) == ([own, "PersistentVolume pvc-1"], [own])
    assert step(claim(""), volume("Retain")) == ([own], [own])
    assert step(claim(), volume("Retain")) == ([], [])
    assert step(claim("gone")) == ([], [])
    going = claim(deletionTimestamp="2026-01-01T00:00:00Z")
    found, deleted = step(going, volume("Delete"))
    assert found == ["PersistentVolumeClaim default/data", "PersistentVolume pvc-1"]
    assert deleted == []
    assert step(volume("Delete")) == (["PersistentVolume pvc-1"], [])


def test_disks_that_somebody_brought_and_volumes_of_mounts_are_left_alone() -> None:
    assert step(volume("Delete", {})) == ([], [])
    found = {
        policy: stored(volume(policy, notes))
        for policy, notes in {"Delete": {}, "Retain": MADE}.items()
    }
    assert found == {"Delete": {DISK: "Retain"}, "Retain": {DISK: "Retain"}}
    assert stored(volume("Delete")) == {DISK: "Delete"}
    buckets = (Mount(bucket="data", path="/mnt"),)
    _, *pair = stages.storage(dataclasses.replace(samples.TWO_QUEUED, buckets=buckets))
    assert step(*pair, pod("user", pair[1]["metadata"]["name"])) == ([], [])
    assert stored(*pair) == {}
    share = volume("Retain")
    for handle, expected in {
        "modeInstance/z/pvc-1/vol1": "projects/p/locations/z/instances/pvc-1",
        "modeMultishare/instance-1/z/big/pvc-1": None,
        "modeInstance/../pvc-1/vol1": None,
    }.items():
        share["spec"]["csi"] = {"driver": "filestore.csi.storage.gke.io", "volumeHandle": handle}
        assert stored(share) == ({expected: "Retain"} if expected else {})


def test_what_keeps_a_claim_or_makes_another_goes_with_it() -> None:
    templates = {"volumeClaimTemplates": [{"metadata": {"name": "data"}}]}
    things = [
        build("apps/v1", "StatefulSet", "database", "default", spec=templates),
        build("apps/v1", "StatefulSet", "plain", "default", spec={}),
        pod("user", "data"),
        pod("other", "else"),
        pod("namesake", "data", "another"),
    ]
    assert step(*things) == ([], [])
    _, deleted = step(claim(), volume("Delete"), *things)
    assert deleted == [
        "PersistentVolumeClaim default/data",
        "StatefulSet default/database",
        "Pod default/user",
    ]
