"""The networks that exist and that machines join, in this project or in a host project."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

from provision.google.resources import NETWORK, SUBNETWORK
from provision.settings.choices import NetworkConfig
from provision.settings.resource_paths import NetworkPath, SubnetworkPath

if TYPE_CHECKING:
    from provision.settings.model import Settings


@dataclass(frozen=True, kw_only=True)
class Subnetwork:
    """A subnetwork that somebody else has made."""

    project: str  # the project that owns it; for a Shared VPC its host project
    region: str
    name: str

    @property
    def path(self) -> str:
        """It as projects/P/regions/R/subnetworks/S."""
        return SUBNETWORK.path(project=self.project, region=self.region, name=self.name)


@dataclass(frozen=True, kw_only=True)
class ExistingNetwork:
    """Networks that somebody else has made, and that nothing is made in."""

    network: str  # the name of the network of the first interface
    subnetwork: Subnetwork  # the subnetwork of the first interface
    # those of the others, in their order; empty where there is one interface
    gpus: tuple[Subnetwork, ...] = ()
    # the secondary range of the subnetwork for pods; None without a GKE cluster
    pods: str | None = None
    services: str | None = None

    @classmethod
    def of(cls, settings: Settings) -> Self | None:
        """What the settings name; None if they name none, as a rule between them refuses."""
        network = NetworkPath.parse(settings.network or "")
        first = SubnetworkPath.parse(settings.subnetwork or "")
        if settings.network_config is not NetworkConfig.EXISTING or not (network and first):
            return None
        project = network.project or first.project or settings.project_id
        region = first.region or settings.region
        named = map(SubnetworkPath.parse, settings.gpu_subnetworks or ())
        return cls(
            network=network.name,
            subnetwork=Subnetwork(project=project, region=region, name=first.name),
            gpus=tuple(
                Subnetwork(
                    project=one.project or project, region=one.region or region, name=one.name
                )
                for one in named
                if one is not None
            ),
            pods=settings.gke_pods_range,
            services=settings.gke_services_range,
        )

    @property
    def project(self) -> str:
        """The project that owns the first network."""
        return self.subnetwork.project

    @property
    def path(self) -> str:
        """The first network, as projects/P/global/networks/N."""
        return NETWORK.path(project=self.project, name=self.network)

    def in_region(self, region: str) -> Self:
        """The subnetworks of the same names in another region."""
        first, *others = (replace(one, region=region) for one in (self.subnetwork, *self.gpus))
        return replace(self, subnetwork=first, gpus=tuple(others))
