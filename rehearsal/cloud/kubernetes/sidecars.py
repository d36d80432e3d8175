"""The container of GKE's driver for buckets beside those of a pod, and what it takes of the disk.

Sources: gcs-fuse-csi-driver 5fcdc04, cmd/webhook/main.go:51-56 (5 GiB where the pod does not say);
its versions in GKE: files are staged whole before 1.33.2-gke.4655000, and streamed since.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rehearsal.cloud.facts.gke_versions import numbers
from rehearsal.cloud.kubernetes import quantities, training

if TYPE_CHECKING:
    from rehearsal.cloud.kubernetes.objects import Object, World

EVICTED: Final = "Pod ephemeral local storage usage exceeds the total limit of containers 5Gi. "
"""What the kubelet says of a pod whose containers have filled what they may have."""

_STREAMS: Final = numbers("1.33.2-gke.4655000")
_PREFIX: Final = "gke-gcsfuse/"
_USUAL: Final = "5Gi"


def bursts(world: World, pod: Object) -> bool:
    """Whether a pod's checkpoints are larger than what it stages on their way into a bucket."""
    given = pod["metadata"].get("annotations") or {}
    if given.get(f"{_PREFIX}volumes") != "true" or not training.is_one(pod):
        return False
    if numbers(str(world.cluster.record["currentMasterVersion"])) >= _STREAMS:
        return False
    most = quantities.parse(given.get(f"{_PREFIX}ephemeral-storage-limit", _USUAL))
    return 0 < most < training.checkpoint_bytes(pod)
