"""The node pools of one cluster: GPU pools that differ from each other, and that of system pods."""

# No deferred annotations: pydantic reads them as it makes the class.

from typing import Annotated, Final

from pydantic import BaseModel, BeforeValidator, ConfigDict

from provision.settings import parsing
from provision.settings.values import (
    AcceleratorName,
    Count,
    DiskSize,
    DiskTypeWord,
    Gpus,
    MachineTypeName,
    MostNodes,
    Nodes,
    PoolName,
    ReservationName,
    RunSeconds,
    Switch,
    Zone,
)


class NodePool(BaseModel):
    """One GPU node pool; for None, the cluster-wide setting of that name applies."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: PoolName
    vm_type: MachineTypeName
    accelerator_type: AcceleratorName | None = None
    gpu_count: Gpus | None = None
    zone: Zone | None = None
    count: Count | None = None
    min: Nodes | None = None
    max: MostNodes | None = None
    flex_start: Switch | None = None
    queued: Switch | None = None
    spot: Switch | None = None
    reservation: ReservationName | None = None
    max_run_duration: RunSeconds | None = None
    compact: Switch | None = None
    disk_size_gb: DiskSize | None = None
    disk_type: DiskTypeWord | None = None


_OTHER_NAMES: Final = {
    **dict.fromkeys(("machine", "machine_type", "instance_type", "type"), "vm_type"),
    **dict.fromkeys(("node_count", "nodes", "num_nodes", "replicas", "size"), "count"),
    **dict.fromkeys(("accelerator", "gpu", "gpu_type"), "accelerator_type"),
    "gpus": "gpu_count",
    **dict.fromkeys(("min_nodes", "min_node_count"), "min"),
    **dict.fromkeys(("max_nodes", "max_node_count"), "max"),
    "flex": "flex_start",
    "preemptible": "spot",
    "disk_size": "disk_size_gb",
}
"""What gcloud, Cluster Toolkit and others call the keys."""


def _parse(text: str) -> list[dict[str, str]]:
    return parsing.pools(text, NodePool.model_fields, _OTHER_NAMES)


NodePools = Annotated[tuple[NodePool, ...], BeforeValidator(_parse)]


class SystemPool(BaseModel):
    """The node pool for system pods."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    vm_type: MachineTypeName = "e2-standard-4"
    min: Count = 1
    max: Count = 3
    disk_size_gb: DiskSize = 100
    spot: Switch = False
    zone: Zone | None = None  # None: ZONE


def _parse_one(text: str) -> dict[str, str]:
    first, *more = parsing.pools(text, SystemPool.model_fields, _OTHER_NAMES)
    if more:
        raise parsing.InvalidValueError("has several pools", "a cluster has one for system pods")
    return first


TheSystemPool = Annotated[SystemPool, BeforeValidator(_parse_one)]
