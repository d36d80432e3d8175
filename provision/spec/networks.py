"""The network that exists and that machines join, in this project or in a host project."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from provision.google.resources import NETWORK, SUBNETWORK
from provision.settings.choices import NetworkConfig
from provision.settings.networks import NetworkPath, SubnetworkPath

if TYPE_CHECKING:
    from provision.settings.model import Settings


@dataclass(frozen=True, kw_only=True)
class ExistingNetwork:
    """A network with a subnetwork that somebody else has made, and that nothing is made in.

    Attributes:
        project: The project that owns both; for a Shared VPC its host project.
        network: The name of the network.
        region: The region of the subnetwork.
        subnetwork: The name of the subnetwork.
    """

    project: str
    network: str
    region: str
    subnetwork: str

    @classmethod
    def of(cls, settings: Settings) -> Self | None:
        """What the settings name; None if they name none, as a rule between them refuses."""
        network = NetworkPath.parse(settings.network or "")
        subnetwork = SubnetworkPath.parse(settings.subnetwork or "")
        if settings.network_config is not NetworkConfig.EXISTING or not (network and subnetwork):
            return None
        return cls(
            project=network.project or subnetwork.project or settings.project_id,
            network=network.name,
            region=subnetwork.region or settings.region,
            subnetwork=subnetwork.name,
        )

    @property
    def network_path(self) -> str:
        """The network, as projects/P/global/networks/N."""
        return NETWORK.path(project=self.project, name=self.network)

    @property
    def subnetwork_path(self) -> str:
        """The subnetwork, as projects/P/regions/R/subnetworks/S."""
        return SUBNETWORK.path(project=self.project, region=self.region, name=self.subnetwork)
