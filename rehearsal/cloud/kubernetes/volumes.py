"""Claims of volumes: they are bound to the volume that they name, or to one made for them.

A volume that is made is a disk, as the driver of Kubernetes Engine for persistent disks makes it;
what becomes of it when its claim is deleted is said by its policy.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from rehearsal.cloud.kubernetes import google, pods, quantities

if TYPE_CHECKING:
    from rehearsal.cloud.kubernetes.kinds import Kind
    from rehearsal.cloud.kubernetes.objects import Object, World

IN_USE: Final = "kubernetes.io/pvc-protection"
"""The finalizer of claims: one that a pod uses stays until the pod is gone."""

_DRIVER: Final = "pd.csi.storage.gke.io"
_MADE_BY: Final = "pv.kubernetes.io/provisioned-by"
_CREATED_FOR: Final = "kubernetes.io/created-for"


def look(world: World) -> None:
    """Make, bind and release volumes, and let deleted claims go that no pod uses."""
    claims = world.kind("v1", "persistentvolumeclaims")
    volumes = world.kind("v1", "persistentvolumes")
    if claims is None or volumes is None:
        return
    for claim in world.each(claims):
        if "deletionTimestamp" in claim["metadata"]:
            if not _users(world, claim):
                others = [it for it in claim["metadata"]["finalizers"] if it != IN_USE]
                metadata = {**claim["metadata"], "finalizers": others}
                world.settle(claims, {**claim, "metadata": metadata})
            continue
        own = _provided(world, volumes, claim)
        volume = world.get(volumes, "", (own.get("spec") or {}).get("volumeName", ""))
        phase = "Pending" if volume is None else "Bound"
        world.put(claims, {**own, "status": {**(own.get("status") or {}), "phase": phase}})
        if volume is not None:
            world.put(volumes, {**volume, "status": {"phase": "Bound"}})
    for volume in world.each(volumes):
        _release(world, claims, volumes, volume)


def _users(world: World, claim: Object) -> list[Object]:
    """The pods that have a claim's volume and have not ended."""
    name, namespace = claim["metadata"]["name"], claim["metadata"]["namespace"]
    return [
        pod
        for pod in pods.every(world)
        if pod["metadata"].get("namespace") == namespace and not pods.is_over(pod)
        for volume in (pod.get("spec") or {}).get("volumes") or []
        if (volume.get("persistentVolumeClaim") or {}).get("claimName") == name
    ]


def _provided(world: World, volumes: Kind, claim: Object) -> Object:
    """The claim, with a volume made for it if its class makes volumes and it is time to."""
    spec = claim.get("spec") or {}
    classes = world.kind("storage.k8s.io/v1", "storageclasses")
    made_by = world.get(classes, "", spec.get("storageClassName", "")) if classes else None
    if spec.get("volumeName") or made_by is None or made_by.get("provisioner") != _DRIVER:
        return claim
    waits = made_by.get("volumeBindingMode") == "WaitForFirstConsumer"
    if waits and not _users(world, claim):
        return claim
    metadata = claim["metadata"]
    name = f"pvc-{metadata['uid']}"
    zone = world.cluster.record["locations"][0]
    disks = f"{'/'.join(world.cluster.name.split('/')[:2])}/zones/{zone}/disks"
    size = spec["resources"]["requests"]["storage"]
    tags = {
        f"{_CREATED_FOR}/pv/name": name,
        f"{_CREATED_FOR}/pvc/name": metadata["name"],
        f"{_CREATED_FOR}/pvc/namespace": metadata["namespace"],
        "storage.gke.io/created-by": _DRIVER,
    }
    labels = {
        "goog-gke-volume": "",
        "goog-k8s-cluster-location": world.cluster.record["location"],
        "goog-k8s-cluster-name": world.cluster.record["name"],
    }
    gigabytes = str(max(1, int(quantities.parse(size) // 2**30)))
    disk = {"name": name, "sizeGb": gigabytes, "description": json.dumps(tags), "labels": labels}
    google.make(world, disks, disk)
    reference = {key: metadata[key] for key in ("name", "namespace", "uid")}
    volume = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name, "annotations": {_MADE_BY: _DRIVER}},
        "spec": {
            "accessModes": spec.get("accessModes"),
            "capacity": {"storage": size},
            "claimRef": {"apiVersion": "v1", "kind": "PersistentVolumeClaim", **reference},
            "csi": {"driver": _DRIVER, "volumeHandle": f"{disks}/{name}"},
            "persistentVolumeReclaimPolicy": made_by.get("reclaimPolicy", "Delete"),
            "storageClassName": spec["storageClassName"],
        },
    }
    world.put(volumes, volume)
    return {**claim, "spec": {**spec, "volumeName": name}}


def _release(world: World, claims: Kind, volumes: Kind, volume: Object) -> None:
    """Do with a volume whose claim is gone what its policy says, if it was made for that claim."""
    if _MADE_BY not in (volume["metadata"].get("annotations") or {}):
        return
    claim = volume["spec"]["claimRef"]
    if world.get(claims, claim["namespace"], claim["name"]) is not None:
        return
    if volume["spec"]["persistentVolumeReclaimPolicy"] != "Delete":
        world.put(volumes, {**volume, "status": {"phase": "Released"}})
        return
    disk = volume["spec"]["csi"]["volumeHandle"]
    google.remove(world, disk)
    if not google.has(world, disk):
        world.remove(volumes, volume)
