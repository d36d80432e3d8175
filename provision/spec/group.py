"""A managed instance group, and what is wanted of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from provision.catalogue import machines, zones
from provision.google.resources import GROUP

if TYPE_CHECKING:
    from provision.spec.pools import Pool


@dataclass(frozen=True, kw_only=True)
class Group:
    """A managed instance group, and what is wanted of it.

    Attributes:
        project: Its project.
        zone: Its zone.
        name: Its name.
        size: How many VMs it is to have.
        machine_type: Of its VMs.
        gpu: The kind of GPU that is attached to each; None where the machine type brings its own.
        gpus: How many GPUs are attached to each.
        pool: The node pool whose nodes its VMs are; None for a group of VMs.
        zone_setting: Where a user says which zone it has.
    """

    project: str
    zone: str
    name: str
    size: int
    machine_type: str
    gpu: str | None = None
    gpus: int = 0
    pool: str | None = None
    zone_setting: str = "ZONE"

    @classmethod
    def of(cls, project: str, pool: Pool, name: str = "") -> Self:
        """The group behind a pool of a fixed size.

        Args:
            project: Its project.
            pool: What is wanted.
            name: The group's, where its VMs are the nodes of a node pool; "" for a group of VMs.
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
        """What its VMs are, in words."""
        return f"nodes of {self.pool}" if self.pool else "VMs"

    @property
    def called(self) -> str:
        """What it is, in words."""
        return "node pool" if self.pool else "group"

    def in_zone(self, zone: str) -> str:
        """How a user says that it is to have another zone."""
        if self.zone_setting == "ZONE":
            return f"set ZONE={zone}"
        return f"set its zone={zone} in {self.zone_setting}"

    @property
    def region(self) -> str:
        """The zone's region."""
        return zones.region_of(self.zone)

    @property
    def path(self) -> str:
        """Where Google has it."""
        return GROUP.path(project=self.project, zone=self.zone, name=self.name)

    @property
    def machine(self) -> str:
        """What one VM is, in words."""
        attached = f" with {self.gpus} {self.gpu}" if self.gpu else ""
        return self.machine_type + attached

    @property
    def all_gpus(self) -> int:
        """The GPUs of all its VMs together; 0 if that is not known."""
        known = machines.lookup(self.machine_type)
        own = known.gpus if known is not None else None
        return self.size * (own or self.gpus)
