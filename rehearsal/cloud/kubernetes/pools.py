"""The cluster's node pools as its controllers see them: which pods fit, how many nodes, more."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from rehearsal.cloud.container import groups
from rehearsal.cloud.facts import machines

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rehearsal.cloud.kubernetes.objects import Object, World

POOL: Final = "cloud.google.com/gke-nodepool"
ACCELERATOR: Final = "cloud.google.com/gke-accelerator"
FLEX: Final = "cloud.google.com/gke-flex-start"
QUEUED: Final = "cloud.google.com/gke-queued"
GPU: Final = "nvidia.com/gpu"
_COMPUTE: Final = "https://www.googleapis.com/compute/v1/"
_COLLECTION: Final = "container/nodePools"
_PODS_PER_NODE: Final = 30
"""How many pods without GPUs one node takes here: what they ask for is not added up."""


@dataclass(frozen=True)
class Pool:
    """A node pool.

    Attributes:
        record: What Kubernetes Engine keeps of it.
    """

    record: Mapping[str, Any]

    @property
    def name(self) -> str:
        """What it is called."""
        return str(self.record["name"])

    @property
    def machine_type(self) -> str:
        """Of its nodes."""
        return str(self.record["config"]["machineType"])

    @property
    def gpu(self) -> tuple[str, int]:
        """The kind of its nodes' GPUs, and how many; ("", 0) without."""
        for it in self.record["config"].get("accelerators") or []:
            return str(it["acceleratorType"]), int(it["acceleratorCount"])
        known = machines.find(self.machine_type)
        return (known.gpu, known.gpus) if known else ("", 0)

    @property
    def groups(self) -> list[str]:
        """The paths of its groups in Compute Engine, one for each zone."""
        return [url.removeprefix(_COMPUTE) for url in self.record["instanceGroupUrls"]]

    @property
    def queued(self) -> bool:
        """Whether nodes come by ProvisioningRequests alone."""
        return bool((self.record.get("queuedProvisioning") or {}).get("enabled"))

    @property
    def flex(self) -> bool:
        """Whether nodes come by flex start."""
        return bool(self.record["config"].get("flexStart"))

    @property
    def labels(self) -> dict[str, str]:
        """The labels of its nodes."""
        config = self.record["config"]
        gpu, _ = self.gpu
        added = {
            POOL: self.name,
            "node.kubernetes.io/instance-type": self.machine_type,
            "kubernetes.io/os": "linux",
            **({ACCELERATOR: gpu} if gpu else {}),
            **({FLEX: "true"} if self.flex else {}),
            **({"cloud.google.com/gke-spot": "true"} if config.get("spot") else {}),
        }
        return {**added, **(config.get("labels") or {})}

    @property
    def most(self) -> int:
        """How many nodes it may have."""
        limits = self.record.get("autoscaling") or {}
        if not limits.get("enabled"):
            return 0
        each = int(limits.get("maxNodeCount") or 0) * len(self.record["locations"])
        return int(limits.get("totalMaxNodeCount") or 0) or each

    @property
    def least(self) -> int:
        """How many nodes it keeps."""
        limits = self.record.get("autoscaling") or {}
        return int(limits.get("totalMinNodeCount") or limits.get("minNodeCount") or 0)

    def takes(self, pod: Mapping[str, Any]) -> bool:
        """Whether pods of a specification fit on its nodes."""
        selector = pod.get("nodeSelector") or {}
        own, gpus = self.labels, gpus_of(pod)
        # GKE gives GPU nodes a taint that pods without GPUs do not tolerate.
        if bool(gpus) != bool(self.gpu[1]) or gpus > self.gpu[1]:
            return False
        return all(own.get(key) == value for key, value in selector.items() if key in _CHECKED)

    def nodes_for(self, pod: Mapping[str, Any], count: int) -> int:
        """How many nodes so many pods of a specification take."""
        each = self.gpu[1] // max(gpus_of(pod), 1) if gpus_of(pod) else _PODS_PER_NODE
        return math.ceil(count / max(each, 1))


_CHECKED: Final = frozenset({POOL, ACCELERATOR, FLEX, QUEUED, "node.kubernetes.io/instance-type"})
"""The labels in selectors that are looked at; others are taken for fitting."""


def gpus_of(pod: Mapping[str, Any]) -> int:
    """How many GPUs one pod of a specification asks for."""
    total = 0
    for container in pod.get("containers") or []:
        wanted = container.get("resources") or {}
        asked = {**(wanted.get("limits") or {}), **(wanted.get("requests") or {})}
        total += int(asked.get(GPU) or 0)
    return total


def gpus_on(node: Object) -> int:
    """How many GPUs a node has."""
    return int(node["status"]["capacity"].get(GPU, 0))


def every(world: World) -> list[Pool]:
    """The cluster's pools that are ready."""
    prefix = f"{world.cluster.name}/nodePools/"
    return [
        Pool(record)
        for _, record in world.store.list(_COLLECTION, prefix)
        if "_gone" not in record and (record["_ready"] <= world.now or "_doing" in record)
    ]


def size(world: World, pool: Pool) -> int:
    """How many nodes a pool is to have."""
    return sum(groups.size(world.store, url) for url in pool.record["instanceGroupUrls"])


def resize(world: World, pool: Pool, count: int) -> Object | None:
    """Give a pool another number of nodes, in its first zone.

    Returns:
        What keeps them from coming, as a `google.rpc.Status`; None when nothing does.
    """
    first, *others = pool.record["instanceGroupUrls"]
    rest = sum(groups.size(world.store, url) for url in others)
    return groups.resize(world.request, world.store, first, max(0, count - rest))
