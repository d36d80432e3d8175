"""A managed instance group and its intended size and machines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from provision.catalogue import machines, zones
from provision.google.resources import GROUP

if TYPE_CHECKING:
    from provision.spec.pools import Pool


@dataclass(frozen=True, kw_only=True)
class Group:
    """A managed instance group and its intended size and machines."""

    project: str
    zone: str
    name: str
    size: int  # the intended number of VMs
    machine_type: str
    # the type of GPUs that are attached to each; None if the machine type includes them
    gpu: str | None = None
    gpus: int = 0  # the number of GPUs that are attached to each
    pool: str | None = None  # the node pool that the group belongs to; None for a group of VMs
    zone_setting: str = "ZONE"

    @classmethod
    def of(cls, project: str, pool: Pool, name: str = "") -> Self:
        """The group of a pool with a fixed size.

        `name`: the name of the group, for a node pool of GKE; "" for a group of VMs.
        """
        return cls(
            project=project,
            zone=pool.zone,
            name=name or pool.name,
            size=pool.size.first,
            machine_type=pool.machine_type,
            gpu=pool.gpu_type if pool.attached else None,
            gpus=pool.gpus if pool.attached else 0,
            pool=pool.name if name else None,
            zone_setting=pool.zone_setting,
        )

    @property
    def members(self) -> str:
        """What to call its VMs in messages."""
        return f"nodes of {self.pool}" if self.pool else "VMs"

    @property
    def called(self) -> str:
        """What to call the group itself in messages."""
        return "node pool" if self.pool else "group"

    def in_zone(self, zone: str) -> str:
        """What the user has to write to move it to another zone."""
        if self.zone_setting == "ZONE":
            return f"set ZONE={zone}"
        return f"set its zone={zone} in {self.zone_setting}"

    @property
    def region(self) -> str:
        """The zone's region."""
        return zones.region_of(self.zone)

    @property
    def path(self) -> str:
        """Its path in Google's API."""
        return GROUP.path(project=self.project, zone=self.zone, name=self.name)

    @property
    def machine(self) -> str:
        """What to call one of its machines in messages."""
        attached = f" with {self.gpus} {self.gpu}" if self.gpu else ""
        return self.machine_type + attached

    @property
    def all_gpus(self) -> int:
        """The number of GPUs of all its VMs together; 0 if it is not known."""
        known = machines.lookup(self.machine_type)
        own = known.gpus if known is not None else None
        return self.size * (own or self.gpus)
