"""What is asked for: the specification of a cluster, every default resolved.

Everything that follows from the settings reads it: Terraform's variables, the online checks, the
waits, the objects in Kubernetes, Status. It is pure data; nothing is asked of Google here.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from provision.catalogue import gpu_networks
from provision.settings.choices import NetworkConfig, Orchestrator
from provision.spec import pools

if TYPE_CHECKING:
    from collections.abc import Mapping

    from provision.settings.choices import OnlineCheck, ReleaseChannel
    from provision.settings.model import Settings
    from provision.settings.secrets import Secret
    from provision.settings.storage import Mount, Share
    from provision.spec.pools import Pool


@dataclass(frozen=True, kw_only=True)
class ClusterSpec:
    """What every kind of cluster is asked for.

    Attributes:
        project_id: Where it is made.
        name_prefix: How the names of all that is made begin.
        region: Of its networks.
        zone: Of its machines, where they say no other.
        labels: The user's, of everything that takes labels.
        service_account: Whom machines act as: "dedicated", "default" or an email address.
        buckets: Cloud Storage that is mounted on every machine.
        shares: Filestore that is made, and mounted on every machine.
        capacity_timeout: Seconds of cloud time that machines are waited for.
        skipped_checks: Online checks that are left out.
    """

    project_id: str
    name_prefix: str
    region: str
    zone: str
    labels: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    service_account: str = "dedicated"
    buckets: tuple[Mount, ...] = ()
    shares: tuple[Share, ...] = ()
    capacity_timeout: int = 1800
    skipped_checks: tuple[OnlineCheck, ...] = ()

    @property
    def pools(self) -> tuple[Pool, ...]:
        """All machines, those that carry jobs first."""
        raise NotImplementedError

    @property
    def makes_network(self) -> bool:
        """Whether it gets a network of its own."""
        raise NotImplementedError


@dataclass(frozen=True, kw_only=True)
class Image:
    """The image of VMs that is asked for, by its name or by its family.

    Attributes:
        project: Where it is.
        family: Whose newest image is used; None where one is named.
        name: One image; None for a family's newest.
        by_default: Whether nobody named the family.
    """

    project: str
    family: str | None
    name: str | None
    by_default: bool = False


@dataclass(frozen=True, kw_only=True)
class VmSpec(ClusterSpec):
    """A group of VMs, with or without Ray.

    Attributes:
        group: The VMs.
        network: Which networks they use.
        metadata: The user's.
        image: What they boot from.
        command: The user's line of shell at first boot; None for none.
        secrets: What it finds in its environment.
        files_destination: Where the copied folder lands.
        notebook: Whether Jupyter is set up.
        shows_urls: Whether Create waits for the notebooks' addresses.
        ops_agent: Whether the Ops Agent is installed, and a dashboard made.
        ray_version: Of the Ray cluster on them; None for none.
    """

    group: Pool
    network: NetworkConfig
    metadata: Mapping[str, str]
    image: Image
    command: str | None
    secrets: tuple[Secret, ...]
    files_destination: str
    notebook: bool
    shows_urls: bool
    ops_agent: bool
    ray_version: str | None

    @property
    def pools(self) -> tuple[Pool, ...]:
        """The group alone."""
        return (self.group,)

    @property
    def makes_network(self) -> bool:
        """Whether it gets a network of its own."""
        return self.network is not NetworkConfig.DEFAULT

    @property
    def gpu_networks(self) -> tuple[gpu_networks.Network, ...]:
        """The networks of the second interface and those after it, in their order."""
        if self.network is not NetworkConfig.MULTI_NIC:
            return ()
        return gpu_networks.beside_the_first(self.group.machine)


@dataclass(frozen=True, kw_only=True)
class GkeSpec(ClusterSpec):
    """A GKE cluster with GPU node pools.

    Attributes:
        gpu_pools: Its GPU pools, in the order of the settings.
        system_pool: The one for system pods.
        version: As it is asked for, in full or in part; None for the channel's usual one.
        release_channel: How fast GKE upgrades it.
        authorized_cidrs: Networks that may reach it by IP.
        driver: The GPU driver that GKE installs, by the API's name.
        ray_operator: Whether it runs RayClusters.
        ray_version: Of the examples.
        gpu_quota: GPUs that the queue hands out at the same time; None: all of the queued pools'.
        test_nodes: Nodes of the bandwidth test.
    """

    gpu_pools: tuple[Pool, ...]
    system_pool: Pool
    version: str | None
    release_channel: ReleaseChannel
    authorized_cidrs: tuple[str, ...]
    driver: str
    ray_operator: bool
    ray_version: str
    gpu_quota: int | None
    test_nodes: int

    @property
    def pools(self) -> tuple[Pool, ...]:
        """The GPU pools, and the system pool last."""
        return (*self.gpu_pools, self.system_pool)

    @property
    def makes_network(self) -> bool:
        """It always gets a network of its own."""
        return True

    @property
    def gpu_networks(self) -> tuple[gpu_networks.Network, ...]:
        """Those of the pools that have some: the same for all, as the settings' rules say."""
        return next((pool.networks for pool in self.gpu_pools if pool.networks), ())


def vms(settings: Settings) -> VmSpec:
    """What settings ask for, as a group of VMs."""
    is_ray = settings.orchestrator_type is Orchestrator.RAY
    return VmSpec(
        **_common(settings),
        group=pools.group(settings),
        network=settings.network_config,
        metadata=settings.metadata,
        image=Image(
            project=settings.image_project,
            family=None if settings.image_name else settings.image_family_name,
            name=settings.image_name,
            by_default=settings.image_name is None
            and "image_family_name" not in settings.model_fields_set,
        ),
        command=settings.startup_command,
        secrets=settings.secrets or (),
        files_destination=settings.vm_localfile_dest_path,
        notebook=settings.enable_notebook,
        shows_urls=settings.show_proxy_url and settings.enable_notebook,
        ops_agent=not settings.disable_ops_agent,
        ray_version=settings.ray_version if is_ray else None,
    )


def gke(settings: Settings) -> GkeSpec:
    """What settings ask for, as a GKE cluster."""
    return GkeSpec(
        **_common(settings),
        gpu_pools=pools.of(settings),
        system_pool=pools.system(settings),
        version=settings.gke_version,
        release_channel=settings.gke_release_channel,
        authorized_cidrs=settings.authorized_cidr or (),
        driver=str(settings.gpu_driver_version),
        ray_operator=settings.enable_ray_operator,
        ray_version=settings.ray_version,
        gpu_quota=settings.kueue_gpu_quota,
        test_nodes=settings.test_nodes,
    )


def _common(settings: Settings) -> dict[str, Any]:
    return {
        "project_id": settings.project_id,
        "name_prefix": settings.name_prefix,
        "region": settings.region,
        "zone": settings.zone,
        "labels": settings.labels,
        "service_account": settings.service_account,
        "buckets": settings.gcs_mount_list or (),
        "shares": settings.nfs_fileshare_list or (),
        "capacity_timeout": settings.capacity_timeout,
        "skipped_checks": settings.skip_checks or (),
    }
