"""How large machines are: what is billed of them, and what pods can have of a node.

Compute Engine, "General-purpose machine family", and the price list of E2: the types that share a
core are billed as a part of one. A custom machine has prices of its own, which are not known here.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Final

from provision.catalogue import machines

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_GIB_PER_VCPU: Final[Mapping[str, Decimal]] = {
    "n1-standard": Decimal("3.75"),
    "n1-highmem": Decimal("6.5"),
    "n1-highcpu": Decimal("0.9"),
    "e2-standard": Decimal(4),
    "e2-highmem": Decimal(8),
    "e2-highcpu": Decimal(1),
}
SHARED_CORE: Final[Mapping[str, tuple[Decimal, Decimal]]] = {
    "e2-micro": (Decimal("0.25"), Decimal(1)),
    "e2-small": (Decimal("0.5"), Decimal(2)),
    "e2-medium": (Decimal(1), Decimal(4)),
}
"""Name -> the vCPUs that are billed, and GiB."""
_SIZED: Final = re.compile(r"(?P<kind>[a-z]\d-[a-z]+)-(?P<vcpus>\d{1,3})")
# What GKE keeps of each node for itself: of so many cores or GiB, from the first on, this share
# ("Plan GKE Standard node sizes", 2026-11-22).
_KEPT_CPU: Final = ((1, 0.06), (1, 0.01), (2, 0.005), (math.inf, 0.0025))
_KEPT_MEMORY: Final = ((4, 0.25), (4, 0.20), (8, 0.10), (112, 0.06), (math.inf, 0.02))
_EVICTION_GIB: Final = 100 / 1024
_SHARED_CORE_CPUS: Final = 0.94
"""What pods have of e2-micro, e2-small and e2-medium (same page: GKE keeps 1060m of their two)."""


@dataclass(frozen=True, kw_only=True)
class BilledShape:
    """What is billed of a machine."""

    series: str  # the first part of its name, such as "e2"
    vcpus: Decimal
    gib: Decimal  # the memory in GiB


def billed(name: str) -> BilledShape | None:
    """What is billed of a machine type; None if it is not billed so, or not known."""
    series = name.partition("-")[0]
    if name in SHARED_CORE:
        vcpus, gib = SHARED_CORE[name]
        return BilledShape(series=series, vcpus=vcpus, gib=gib)
    sized = _SIZED.fullmatch(name)
    if sized is None or sized["kind"] not in _GIB_PER_VCPU:
        return None
    vcpus = Decimal(sized["vcpus"])
    return BilledShape(series=series, vcpus=vcpus, gib=vcpus * _GIB_PER_VCPU[sized["kind"]])


def memory(name: str) -> Decimal | None:
    """The memory of a machine type in GiB, however it is billed; None if it is not known."""
    known = machines.lookup(name)
    if known is not None and known.gib is not None:
        return Decimal(known.gib)
    shape = billed(name)
    return None if shape is None else shape.gib


@dataclass(frozen=True)
class Pod:
    """What a pod asks for."""

    name: str
    milli_cpus: int  # thousandths of a vCPU
    mib: int


EACH_NODE: Final = Pod("GKE's own pods", 404, 626)
"""What runs on every node: fluentbit-gke 105m and 230 MiB, gke-metadata-server 100m and 100,
gke-metrics-agent 21m and 145, netd 8m and 65, node-local-dns 30m and 50, pdcsi-node 10m and 20,
ip-masq-agent 10m and 16, kube-proxy 100m (`kubectl describe node` of an n2-standard-4, published in
2026); konnectivity-agent 15m and collector 5m, measured elsewhere. Drivers of buckets and
shares are not in it, nor what Dataplane V2 has in the place of kube-proxy.
"""

OF_GKE: Final = (
    Pod("kube-dns", 270, 110),
    Pod("kube-dns", 270, 110),
    Pod("metrics-server", 44, 50),
    Pod("GKE's autoscalers, exporter and backend", 44, 50),
)
"""What runs once or twice a cluster (CPU: measured on a cluster of e2-medium, published in 2026;
memory of kube-dns: Kubernetes' own add-on; the rest of the memory is a guess)."""

KUEUE: Final = Pod("Kueue", 500, 512)
JOBSET: Final = Pod("JobSet", 500, 128)
"""By their manifests."""

RAY_HEAD: Final = Pod("the head of a Ray cluster", 1000, 4096)
"""Of the examples of this tool: a head runs on the system pool."""


def allocatable(vcpus: float, gib: float) -> tuple[float, float]:
    """What pods can have of a node: vCPUs, and memory in GiB."""
    memory = gib - _kept(gib, _KEPT_MEMORY) - _EVICTION_GIB
    return vcpus - _kept(vcpus, _KEPT_CPU), memory


def left_out(machine_type: str, nodes: int, pods: Iterable[Pod]) -> list[Pod]:
    """The pods that find no place on so many nodes; [] if all do, or the machine is not known.

    The largest pod is placed first, on the first node that has room.
    """
    shape = billed(machine_type)
    if shape is None:
        return []
    cpus, gib = allocatable(float(shape.vcpus), float(shape.gib))
    if machine_type in SHARED_CORE:
        cpus = _SHARED_CORE_CPUS
    free = [[cpus * 1000 - EACH_NODE.milli_cpus, gib * 1024 - EACH_NODE.mib] for _ in range(nodes)]
    missing = []
    for pod in sorted(pods, key=lambda it: (it.milli_cpus, it.mib), reverse=True):
        room = next((it for it in free if it[0] >= pod.milli_cpus and it[1] >= pod.mib), None)
        if room is None:
            missing.append(pod)
        else:
            room[0] -= pod.milli_cpus
            room[1] -= pod.mib
    return missing


def _kept(amount: float, steps: Iterable[tuple[float, float]]) -> float:
    kept, left = 0.0, amount
    for size, share in steps:
        part = min(left, size)
        kept, left = kept + part * share, left - part
    return kept
