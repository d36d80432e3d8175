"""The cluster's node pools as its controllers see them: which pods fit, how many nodes, more."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

from rehearsal.cloud.container import groups
from rehearsal.cloud.facts import machines
from rehearsal.cloud.kubernetes import quantities
from rehearsal.cloud.kubernetes.objects import Object, World

POOL: Final = "cloud.google.com/gke-nodepool"
ACCELERATOR: Final = "cloud.google.com/gke-accelerator"
FLEX: Final = "cloud.google.com/gke-flex-start"
PROVISIONING: Final = "cloud.google.com/gke-provisioning"
QUEUED: Final = "cloud.google.com/gke-queued"
DRANET: Final = "cloud.google.com/gke-networking-dra-driver"
"""The label of nodes on which GKE's driver gives interfaces to pods that claim them."""
REQUEST: Final = "autoscaling.gke.io/provisioning-request"
"""The label of nodes that came for a ProvisioningRequest: the name of its resize request."""

TERMINATION: Final = "node.gke.io/machine-termination-datetime"
"""The annotation of nodes whose run has an end: when."""

GPU: Final = "nvidia.com/gpu"
_COMPUTE: Final = "https://www.googleapis.com/compute/v1/"
_COLLECTION: Final = "container/nodePools"
_PODS_PER_NODE: Final = 110
_FOREIGN: Final = ("cloud.google.com/", "kubernetes.io/", "k8s.io/", "gke.io/")
"""What ends the prefixes of labels that GKE may add: only some are known here."""


@dataclass(frozen=True)
class Pool:
    """A node pool."""

    record: Mapping[str, Any]  # what Kubernetes Engine keeps of it

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
    def brings_gib(self) -> bool:
        """Whether GKE installs gIB on its nodes."""
        direct = self.record["config"].get("gpuDirectConfig") or {}
        return bool(direct.get("gpuDirectStrategy") == "RDMA")

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
            **({FLEX: "true", PROVISIONING: "flex-start"} if self.flex else {}),
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

    @property
    def taints(self) -> list[Object]:
        """The taints of its nodes; GKE adds those of GPUs and queues (rule Q16) if not given."""
        given = [
            {"key": it["key"], "value": it.get("value", ""), "effect": _effect(it["effect"])}
            for it in self.record["config"].get("taints") or []
        ]
        added = []
        if self.queued:
            added.append({"key": QUEUED, "value": "true", "effect": "NoSchedule"})
        if self.gpu[1]:
            added.append({"key": GPU, "value": "present", "effect": "NoSchedule"})
        keys = {it["key"] for it in given}
        return [*given, *(it for it in added if it["key"] not in keys)]

    @property
    def allocatable(self) -> dict[str, Decimal]:
        """What pods may have of one node, by resource; without what is not known of its machine.

        GKE keeps a part for itself: write-ups of "Plan GKE node sizes" say it (2026-11-22).
        """
        found = {GPU: Decimal(self.gpu[1]), "pods": Decimal(_PODS_PER_NODE)}
        machine = machines.find(self.machine_type)
        if machine is not None:
            found["cpu"] = machine.vcpus - _share(Decimal(machine.vcpus), _KEPT_CPU)
            memory = Decimal(machine.memory_mb) / 1024
            kept = _share(memory, _KEPT_MEMORY) + _EVICTION
            found["memory"] = (memory - kept) * 1024**3
        return found

    def takes(self, pod: Mapping[str, Any]) -> bool:
        """Whether pods of a specification fit on its nodes."""
        return not self.obstacles(pod)

    def obstacles(self, pod: Mapping[str, Any]) -> list[str]:
        """What keeps pods of a specification off its nodes, in the scheduler's words."""
        found = []
        own, asked = self.labels, pod.get("nodeSelector") or {}
        zones = {key: it for key, it in asked.items() if key.startswith("topology.")}
        wanted = {key: it for key, it in asked.items() if key not in zones}
        if any(own.get(key) != it for key, it in wanted.items() if key in own or _is_own(key)):
            found.append("node(s) didn't match Pod's node affinity/selector")
        if any(not _in(self.record["locations"], key, it) for key, it in zones.items()):
            found.append("node(s) didn't match Pod's node affinity/selector")
        tolerations = pod.get("tolerations") or []
        if gpus_of(pod):
            # GKE lets pods that ask for GPUs tolerate the nodes that have them.
            tolerations = [*tolerations, {"key": GPU, "operator": "Exists"}]
        found += [
            f"node(s) had untolerated taint {{{taint['key']}: {taint['value']}}}"
            for taint in self.taints
            if taint["effect"] in {"NoSchedule", "NoExecute"}
            and not any(tolerates(it, taint) for it in tolerations)
        ]
        if pod.get("resourceClaims") and own.get(DRANET) != "true":
            found.append("cannot allocate all claims")
        there = self.allocatable
        found += [
            f"Insufficient {name}"
            for name, amount in quantities.requests(pod).items()
            if name in there and amount > there[name]
        ]
        return list(dict.fromkeys(found))

    def nodes_for(self, pod: Mapping[str, Any], count: int) -> int:
        """How many nodes so many pods of a specification take."""
        there, each = self.allocatable, {**quantities.requests(pod), "pods": Decimal(1)}
        fitting = [there[name] // it for name, it in each.items() if name in there and it > 0]
        return math.ceil(count / max(int(min(fitting)), 1))


_EFFECTS: Final = {
    "NO_SCHEDULE": "NoSchedule",
    "PREFER_NO_SCHEDULE": "PreferNoSchedule",
    "NO_EXECUTE": "NoExecute",
}
# What GKE keeps of a node: so many cores or GiB, and the share of them, from the first on.
_KEPT_CPU: Final = ((1, "0.06"), (1, "0.01"), (2, "0.005"), (math.inf, "0.0025"))
_KEPT_MEMORY: Final = ((4, "0.25"), (4, "0.2"), (8, "0.1"), (112, "0.06"), (math.inf, "0.02"))
_EVICTION: Final = Decimal(100) / 1024


def _effect(word: str) -> str:
    return _EFFECTS.get(word, word)


def _share(amount: Decimal, steps: Iterable[tuple[float, str]]) -> Decimal:
    kept, left = Decimal(0), amount
    for size, share in steps:
        part = left if math.isinf(size) else min(left, Decimal(int(size)))
        kept, left = kept + part * Decimal(share), left - part
    return kept


def _is_own(key: str) -> bool:
    """Whether a label would be known here if nodes had it."""
    prefix = key.rpartition("/")[0] + "/"
    return key in {POOL, ACCELERATOR, FLEX, QUEUED, PROVISIONING} or not prefix.endswith(_FOREIGN)


def _in(zones: Iterable[str], key: str, value: str) -> bool:
    """Whether a label of a place is one of a zone's."""
    if key.endswith("/zone"):
        return value in zones
    return any(zone.startswith(f"{value}-") for zone in zones)


def tolerates(toleration: Mapping[str, str], taint: Mapping[str, str]) -> bool:
    """Whether a toleration covers a taint."""
    if toleration.get("effect") not in (None, "", taint["effect"]):
        return False
    if not toleration.get("key"):
        return toleration.get("operator") == "Exists"
    if toleration["key"] != taint["key"]:
        return False
    exists = toleration.get("operator") == "Exists"
    return exists or toleration.get("value", "") == taint.get("value", "")


def gpus_of(pod: Mapping[str, Any]) -> int:
    """How many GPUs one pod of a specification asks for."""
    total = 0
    for container in pod.get("containers") or []:
        wanted = container.get("resources") or {}
        asked = {**(wanted.get("limits") or {}), **(wanted.get("requests") or {})}
        total += int(asked.get(GPU) or 0)
    return total


def gpus_on(node: Object) -> int:
    """How many GPUs of a node pods may have."""
    return int(node["status"]["allocatable"].get(GPU, 0))


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
    return sum(size_of(world, group) for group in pool.groups)


def size_of(world: World, group: str) -> int:
    """How many nodes a group is to have, by its path."""
    return groups.size(world.store, group)


def resize(world: World, pool: Pool, group: str, count: int) -> Object | None:
    """Give a pool another number of nodes by one group; the `google.rpc.Status` if none come."""
    rest = size(world, pool) - size_of(world, group)
    return groups.resize(world.request, world.store, group, max(0, count - rest))
