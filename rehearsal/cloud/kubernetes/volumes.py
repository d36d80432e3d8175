"""Claims of volumes: they are bound to the volume that they name, or to one made for them.

A volume that is made is a disk, or a Filestore instance of its own, as the drivers of Kubernetes
Engine make them; what becomes of it when its claim is deleted is said by its policy. The labels of
an instance are those of kubernetes-sigs/gcp-filestore-csi-driver (pkg/csi_driver/controller.go),
which name no cluster.
"""

import json
from typing import Final

from rehearsal.cloud.kubernetes import google, pods, quantities
from rehearsal.cloud.kubernetes.kinds import Kind
from rehearsal.cloud.kubernetes.objects import Object, World

IN_USE: Final = "kubernetes.io/pvc-protection"
"""The finalizer of claims: one that a pod uses stays until the pod is gone."""

_DISKS: Final = "pd.csi.storage.gke.io"
_SHARES: Final = "filestore.csi.storage.gke.io"
_SHARE: Final = "vol1"
_LEAST_SHARE: Final = 1024  # GiB, in the tier that is the driver's default
_MADE_BY: Final = "pv.kubernetes.io/provisioned-by"
_CREATED_FOR: Final = "kubernetes.io/created-for"


def look(world: World) -> None:
    """Make, bind and release volumes, and let deleted claims go that no pod uses."""
    claims = world.own("v1", "persistentvolumeclaims")
    volumes = world.own("v1", "persistentvolumes")
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
    made_by = world.get(
        world.own("storage.k8s.io/v1", "storageclasses"), "", spec.get("storageClassName", "")
    )
    driver = (made_by or {}).get("provisioner")
    if spec.get("volumeName") or made_by is None or driver not in {_DISKS, _SHARES}:
        return claim
    waits = made_by.get("volumeBindingMode") == "WaitForFirstConsumer"
    if waits and not _users(world, claim):
        return claim
    metadata = claim["metadata"]
    name = f"pvc-{metadata['uid']}"
    size = spec["resources"]["requests"]["storage"]
    handle = _disk(world, claim, name) if driver == _DISKS else _share(world, claim, made_by, name)
    if handle is None:
        return claim
    reference = {key: metadata[key] for key in ("name", "namespace", "uid")}
    volume = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name, "annotations": {_MADE_BY: driver}},
        "spec": {
            "accessModes": spec.get("accessModes"),
            "capacity": {"storage": size},
            "claimRef": {"apiVersion": "v1", "kind": "PersistentVolumeClaim", **reference},
            "csi": {"driver": driver, "volumeHandle": handle},
            "persistentVolumeReclaimPolicy": made_by.get("reclaimPolicy", "Delete"),
            "storageClassName": spec["storageClassName"],
        },
    }
    world.put(volumes, volume)
    return {**claim, "spec": {**spec, "volumeName": name}}


def _tags(claim: Object, name: str) -> dict[str, str]:
    """What a driver writes of what it makes for a claim."""
    return {
        f"{_CREATED_FOR}/pv/name": name,
        f"{_CREATED_FOR}/pvc/name": claim["metadata"]["name"],
        f"{_CREATED_FOR}/pvc/namespace": claim["metadata"]["namespace"],
    }


def _gigabytes(claim: Object) -> int:
    return int(quantities.parse(claim["spec"]["resources"]["requests"]["storage"]) // 2**30)


def _disk(world: World, claim: Object, name: str) -> str:
    """Make a disk; returns the handle of its volume."""
    zone = world.cluster.record["locations"][0]
    disks = f"{'/'.join(world.cluster.name.split('/')[:2])}/zones/{zone}/disks"
    tags = {**_tags(claim, name), "storage.gke.io/created-by": _DISKS}
    labels = {
        "goog-gke-volume": "",
        "goog-k8s-cluster-location": world.cluster.record["location"],
        "goog-k8s-cluster-name": world.cluster.record["name"],
    }
    gigabytes = str(max(1, _gigabytes(claim)))
    disk = {"name": name, "sizeGb": gigabytes, "description": json.dumps(tags), "labels": labels}
    google.make(world, disks, disk)
    return f"{disks}/{name}"


def _share(world: World, claim: Object, made_by: Object, name: str) -> str | None:
    """Make an instance; returns the handle of its volume, None until it is ready."""
    asked, zone = made_by.get("parameters") or {}, world.cluster.record["locations"][0]
    handle = f"modeInstance/{zone}/{name}/{_SHARE}"
    path = _path(world, handle)
    if not google.has(world, path):
        by = {"storage.gke.io/created-by": _SHARES.replace(".", "_")}
        tags = _tags(claim, name) | by
        size = max(_LEAST_SHARE, _gigabytes(claim))
        # A label has no slashes and no dots.
        form = str.maketrans("/.", "__")
        instance = {
            "tier": asked.get("tier", "standard").upper(),
            "fileShares": [{"name": _SHARE, "capacityGb": size}],
            "networks": [{"network": asked.get("network", "default"), "modes": ["MODE_IPV4"]}],
            "labels": {key.translate(form): value for key, value in tags.items()},
        }
        place = path.rpartition("/")[0]
        google.call(world.request, world.store, "POST", place, instance, instanceId=name)
    found = google.call(world.request, world.store, "GET", path)
    return handle if found["state"] == "READY" else None


def _path(world: World, handle: str) -> str:
    if not handle.startswith("modeInstance/"):
        return handle
    _, location, name, _ = handle.split("/")
    project = "/".join(world.cluster.name.split("/")[:2])
    return f"{project}/locations/{location}/instances/{name}"


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
    path = _path(world, volume["spec"]["csi"]["volumeHandle"])
    google.remove(world, path)
    if not google.has(world, path):
        world.remove(volumes, volume)
