"""GPU node pools that differ from each other, in one cluster."""

# No deferred annotations: pydantic reads them as it makes the class.

from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict

from provision.settings import parsing
from provision.settings.machines import AcceleratorName, Gpus, MachineTypeName
from provision.settings.values import (
    Count,
    DiskSize,
    DiskTypeWord,
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


def _parse(text: str) -> list[dict[str, str]]:
    return parsing.pools(text, NodePool.model_fields)


NodePools = Annotated[tuple[NodePool, ...], BeforeValidator(_parse)]
