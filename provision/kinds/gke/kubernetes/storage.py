"""Buckets and Filestore shares as persistent volumes, which pods claim by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from provision.catalogue import gcsfuse
from provision.kinds.gke.kubernetes.objects import Object, build, name_of

if TYPE_CHECKING:
    from provision.kinds.gke.kubernetes.facts import ClusterFacts

NAMESPACE: Final = "default"
STORAGE_CLASS: Final = "aiinfra-mounts"
_MODES: Final = ["ReadWriteMany"]
# A bucket has no size, but a volume must have one; the claims request the same.
_UNLIMITED: Final = ("cpu", "memory", "ephemeral-storage")
_BUCKET_SIZE: Final = "1Ti"


def objects(facts: ClusterFacts) -> list[Object]:
    """A volume and its claim for each mount, and a storage class that only binds these."""
    pairs = [
        *(_pair(mount.path, _BUCKET_SIZE, _bucket(facts, mount.bucket)) for mount in facts.buckets),
        *(
            _pair(share.path, f"{share.size_gb}Gi", _nfs(share.server, share.remote_path))
            for share in facts.shares
        ),
    ]
    if not pairs:
        return []
    return [_storage_class(), *(thing for pair in pairs for thing in pair)]


def pod_volumes(facts: ClusterFacts) -> tuple[list[Object], list[Object], dict[str, str]]:
    """What a pod needs for all mounts: its volumes, a container's mounts, and annotations."""
    paths = [*(mount.path for mount in facts.buckets), *(share.path for share in facts.shares)]
    volumes = [
        {"name": name_of(path), "persistentVolumeClaim": {"claimName": name_of(path)}}
        for path in paths
    ]
    mounts = [{"name": name_of(path), "mountPath": path} for path in paths]
    return volumes, mounts, _annotations(facts)


def _annotations(facts: ClusterFacts) -> dict[str, str]:
    """What a pod that mounts buckets tells GKE's driver."""
    if not facts.buckets:
        return {}
    # Else the driver's container has 250m of CPU, 256 MiB, and 5 GiB of disk: a larger file, which
    # it stages there, has the pod evicted (gcs-fuse-csi-driver 5fcdc04, cmd/webhook/main.go).
    return {
        "gke-gcsfuse/volumes": "true",
        **{f"gke-gcsfuse/{what}-limit": "0" for what in _UNLIMITED},
    }


def _storage_class() -> Object:
    return build(
        "storage.k8s.io/v1",
        "StorageClass",
        STORAGE_CLASS,
        provisioner="kubernetes.io/no-provisioner",
        reclaimPolicy="Retain",
        volumeBindingMode="Immediate",
    )


def _bucket(facts: ClusterFacts, bucket: str) -> dict[str, Any]:
    return {
        "mountOptions": list(gcsfuse.in_pods(facts.bucket_options, facts.bucket_cache_gib)),
        "csi": {"driver": "gcsfuse.csi.storage.gke.io", "volumeHandle": bucket},
    }


def _nfs(server: str, path: str) -> dict[str, Any]:
    return {"nfs": {"server": server, "path": path}}


def _pair(path: str, size: str, source: dict[str, Any]) -> list[Object]:
    name = name_of(path)
    common = {"accessModes": _MODES, "storageClassName": STORAGE_CLASS}
    volume = {
        **common,
        "capacity": {"storage": size},
        # Deleting the cluster or a claim never deletes the data.
        "persistentVolumeReclaimPolicy": "Retain",
        "claimRef": {"namespace": NAMESPACE, "name": name},
        **source,
    }
    claim = {**common, "volumeName": name, "resources": {"requests": {"storage": size}}}
    return [
        build("v1", "PersistentVolume", name, spec=volume),
        build("v1", "PersistentVolumeClaim", name, NAMESPACE, spec=claim),
    ]
