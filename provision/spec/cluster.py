"""The specification of a cluster: what the settings ask for, with every default resolved.

Terraform's variables, the online checks, the waits, the objects in Kubernetes and Status all read
it. It is pure data; this module does not call Google.
"""

from __future__ import annotations

import abc
import enum
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Self

from provision.catalogue import fabrics, gcsfuse, gke_versions, machines, names, zones
from provision.catalogue.fabrics import Fabric
from provision.documents.topology import BootImage
from provision.settings.candidates import Site
from provision.settings.choices import NetworkConfig, called
from provision.spec import pools, ranges
from provision.spec.networks import ExistingNetwork
from provision.spec.outbound import Outbound
from provision.spec.ranges import Ranges

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from ipaddress import IPv4Network

    from provision.catalogue import images
    from provision.catalogue.fabrics import Network
    from provision.settings.choices import OnlineCheck, ReleaseChannel, Restart, Way
    from provision.settings.gke import Queue, Window
    from provision.settings.model import Settings
    from provision.settings.pairs import Secret
    from provision.settings.storage import Mount, Share
    from provision.spec.networks import FirewallRule
    from provision.spec.pools import Pool
    from provision.spec.ranges import Part


class BucketGrant(enum.StrEnum):
    """How the machines' account gets its role on a bucket to mount.

    `OWN`: Without a condition: the account is the cluster's own, so nobody else grants it that.
    `CONDITIONAL`: By a binding of this deployment's, which goes without taking another's. `GIVEN`:
    Not at all: the account has the role already, or somebody else has to give it.
    """

    OWN = "own"
    CONDITIONAL = "conditional"
    GIVEN = "given"


@dataclass(frozen=True, kw_only=True)
class ClusterSpec(abc.ABC):
    """The specification that all kinds of cluster have in common."""

    project_id: str
    name_prefix: str  # the prefix of all resource names
    region: str
    zone: str  # the zone of machines that have no zone of their own
    # the way of CAPACITY in which its machines are got; None where that is not set
    way: Way | None = None
    # where and how it may be made, in the order in which that is tried; empty where it stays as it
    # is
    places: tuple[Site, ...] = ()
    # the user's labels, for all resources that support labels
    labels: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    # the service account of the machines: "dedicated", "default" or an email address
    service_account: str = "dedicated"
    buckets: tuple[Mount, ...] = ()  # the Cloud Storage buckets to mount on every machine
    # bucket -> how the account gets its role on it, where that had to be asked
    bucket_grants: Mapping[str, BucketGrant] = field(default_factory=lambda: MappingProxyType({}))
    # the user's options for mounting buckets, such as "uid=1000"
    bucket_options: tuple[str, ...] = ()
    # the size of the file cache of each mounted bucket; None for no cache
    bucket_cache_gib: int | None = None
    shares: tuple[Share, ...] = ()  # the Filestore shares to create, and to mount on every machine
    secrets: tuple[Secret, ...] = ()  # the secrets in the environment of the command, or of jobs
    ranges: Ranges = field(default_factory=Ranges)  # the IP ranges of networks that are made for it
    # the path of the key of Cloud KMS for its disks, shares and secrets; None for Google's own keys
    kms_key: str | None = None
    # the network that its machines join and that was there before; None if one is made for it, or
    # for the project's default network
    existing: ExistingNetwork | None = None
    makes_firewall: bool = False  # whether the firewall rules that it needs there are made
    # these rules, once it has been looked up what they have to let in
    firewall_rules: tuple[FirewallRule, ...] = ()
    hosts: tuple[str, ...] = ()  # the other projects in which they are made
    outbound: Outbound = field(default_factory=Outbound)  # how its machines go out
    capacity_timeout: int = 1800  # the longest wait for machines, in seconds of cloud time
    skipped_checks: tuple[OnlineCheck, ...] = ()

    def grant(self, bucket: str) -> BucketGrant:
        """How the machines' account gets its role on a bucket."""
        own = self.service_account == "dedicated"
        usual = BucketGrant.OWN if own else BucketGrant.CONDITIONAL
        return self.bucket_grants.get(bucket, usual)

    @property
    def buckets_read_only(self) -> bool:
        """Whether machines only read the buckets that they mount."""
        return gcsfuse.reads_only(self.bucket_options)

    @property
    @abc.abstractmethod
    def pools(self) -> tuple[Pool, ...]:
        """All machines; those that run jobs come first."""

    @property
    def system_pools(self) -> tuple[Pool, ...]:
        """The machines that run no jobs."""
        return ()

    @property
    def reader(self) -> names.DerivedName | None:
        """The account that reads the secrets, if it is made; None if it is the user's own."""
        return names.SERVICE_ACCOUNT if self.service_account == "dedicated" else None

    @property
    def has_control_plane(self) -> bool:
        """Whether Google runs a control plane for it, which is billed."""
        return False

    @property
    @abc.abstractmethod
    def makes_network(self) -> bool:
        """Whether it gets a network of its own."""

    @property
    def is_cut(self) -> bool:
        """Whether its range is cut in parts, as machines have more interfaces than one."""
        return bool(self.gpu_networks or self.more_gpu_networks)

    @property
    def first_range(self) -> IPv4Network:
        """The range of the first interfaces, in a network that is made."""
        return self.ranges.first(is_cut=self.is_cut)

    @property
    def parts(self) -> tuple[Part, ...]:
        """Who gets which part of the ranges that are made, and how many fit."""
        return ranges.parts(
            self.ranges,
            sum(pool.size.most for pool in self.pools),
            is_gke=self.has_control_plane,
            is_cut=self.is_cut,
        )

    @property
    def site(self) -> Site:
        """Where its machines are, and how they are got."""
        return Site(self.zone, self.way)

    def in_zone(self, zone: str, places: tuple[Site, ...] = ()) -> Self:
        """The same cluster in another zone."""
        moved, region = self.with_each(lambda pool: replace(pool, zone=zone)), zones.region_of(zone)
        there = self.existing and self.existing.in_region(region)
        return replace(self, zone=zone, region=region, places=places, existing=there, **moved)

    @abc.abstractmethod
    def with_each(self, change: Callable[[Pool], Pool]) -> Mapping[str, Any]:
        """The fields that have the machines that run jobs, each pool of them changed."""

    @property
    @abc.abstractmethod
    def gpu_networks(self) -> tuple[Network, ...]:
        """The networks of the additional interfaces, in order."""

    @property
    def more_gpu_networks(self) -> Mapping[str, tuple[Network, ...]]:
        """Those of machines whose GPUs have another kind of network: kind -> networks."""
        return {}

    @property
    def boot_image(self) -> Image | None:
        """The image that its machines boot from; None where Google chooses it."""
        return None

    @property
    def local_ssd_path(self) -> str | None:
        """Where machines mount their local SSDs, if they have any; None if they don't."""
        return None


@dataclass(frozen=True, kw_only=True)
class Image:
    """The image of VMs, by its name or by its family."""

    project: str
    family: str | None  # the family whose newest image is used; None if an image is named
    # the image's name; None if Google was not asked which one is the family's newest
    name: str | None
    # the line of images to choose from; None if the settings name a family or an image
    line: images.Line | None = None
    project_is_set: bool = False  # whether the settings name the project
    # the last day of its support, such as "2028-08-04"; None if not known
    supported_until: str | None = None

    @property
    def document(self) -> BootImage:
        """It as in the document of a run."""
        return BootImage(
            project=self.project,
            family=self.family,
            name=self.name,
            resolved=self.name is not None,
            supported_until=self.supported_until,
        )


@dataclass(frozen=True, kw_only=True)
class VmSpec(ClusterSpec):
    """A group of VMs, alone or with Ray or Slurm."""

    group: Pool
    network: NetworkConfig  # the networks that they use
    metadata: Mapping[str, str]  # the user's metadata
    image: Image  # the image that they boot from
    command: str | None  # the user's shell command; None for none
    restart: Restart  # when that is begun again
    stop_notice: int | None  # how long before its VM ends it is told, in seconds; None for no end
    files_destination: str  # the folder on the VMs for the copied files
    node_ssh: bool  # whether the VMs reach each other by ssh
    # after how long without work they power themselves off; None for never
    idle_seconds: int | None
    notebook: bool  # whether to run Jupyter
    shows_urls: bool  # whether Create waits for the notebooks' URLs
    ops_agent: bool  # whether to install the Ops Agent and to create a dashboard
    secure_boot: bool  # whether they load signed drivers alone
    os_updates: bool  # whether they install updates of their image while nothing runs
    ray_version: str | None  # the version of Ray; None for no Ray cluster
    # the partition of Slurm that is named by their machines; None for no Slurm cluster
    slurm_partition: str | None

    @property
    def called(self) -> str:
        """What people call it."""
        return called("ray" if self.ray_version else "slurm" if self.slurm_partition else "none")

    @property
    def pools(self) -> tuple[Pool, ...]:
        """The group alone."""
        return (self.group,)

    def with_each(self, change: Callable[[Pool], Pool]) -> Mapping[str, Any]:
        """The group, changed."""
        return {"group": change(self.group)}

    @property
    def makes_network(self) -> bool:
        """Whether it gets a network of its own."""
        return self.network.makes

    @property
    def closed_ports(self) -> tuple[names.DerivedName, ...]:
        """The firewall rules that leave Ray's or Slurm's ports to the VMs' account alone."""
        if self.existing is not None or self.service_account == "default":
            return ()
        if self.ray_version is not None:
            return names.FIREWALL_RAY_ALLOW, names.FIREWALL_RAY_DENY
        if self.slurm_partition is not None:
            return names.FIREWALL_SLURM_ALLOW, names.FIREWALL_SLURM_DENY
        return ()

    @property
    def boot_image(self) -> Image:
        """The image of the VMs."""
        return self.image

    @property
    def local_ssd_path(self) -> str:
        """Where VMs mount their local SSDs, if they have any."""
        return gcsfuse.LOCAL_SSD

    @property
    def gpu_networks(self) -> tuple[Network, ...]:
        """The networks of the additional interfaces, in order."""
        is_several = (
            self.existing.gpus if self.existing else self.network is NetworkConfig.MULTI_NIC
        )
        return fabrics.beside_the_first(self.group.machine) if is_several else ()

    @property
    def fabric(self) -> Fabric | None:
        """What NCCL uses between these VMs; None where they have one interface and so no choice."""
        if not self.gpu_networks:
            return None
        return fabrics.on_vms(self.group.machine) or Fabric.TCP


@dataclass(frozen=True, kw_only=True)
class GkeSpec(ClusterSpec):
    """A GKE cluster with GPU node pools."""

    gpu_pools: tuple[Pool, ...]  # its GPU pools, in the order of the settings
    system_pool: Pool  # the node pool for system pods
    # the full version or a prefix of it; None for the channel's default version
    version: str | None
    release_channel: ReleaseChannel
    # the window in which GKE may upgrade nodes automatically; None for none
    maintenance: Window | None
    authorized_cidrs: tuple[str, ...]  # the CIDR blocks that may access its IP endpoint
    driver: str  # the GPU driver that GKE installs, by its name in the API
    ray_operator: bool  # whether to enable the Ray operator
    ray_version: str  # the Ray version of the example jobs
    kueue: bool  # whether Kueue has a queue for the GPUs
    queues: tuple[Queue, ...]  # the queues with a share of their own
    # the number of GPUs that jobs in all queues can use at the same time; None for all GPUs of the
    # pools
    gpu_quota: int | None
    test_nodes: int  # the number of nodes of the bandwidth test
    # whether GKE makes the networks of its GPUs, and installs what NCCL needs for them
    managed: bool = False
    # The kind of GPU network whose names do not say their kind; None for that of the first pool
    # that has any. A kind keeps its names as long as it exists.
    first_networks: str | None = None

    @property
    def pools(self) -> tuple[Pool, ...]:
        """The GPU pools, and the system pool last."""
        return (*self.gpu_pools, *self.system_pools)

    @property
    def system_pools(self) -> tuple[Pool, ...]:
        """The system pool."""
        return (self.system_pool,)

    @property
    def reader(self) -> names.DerivedName:
        """That of the pods, which is always made."""
        return names.WORKLOAD_ACCOUNT

    @property
    def has_control_plane(self) -> bool:
        """It always has one."""
        return True

    def with_each(self, change: Callable[[Pool], Pool]) -> Mapping[str, Any]:
        """The GPU pools, changed."""
        return {"gpu_pools": tuple(map(change, self.gpu_pools))}

    @property
    def makes_network(self) -> bool:
        """Whether it gets a network of its own."""
        return self.existing is None

    @property
    def network_kinds(self) -> Mapping[str, tuple[Network, ...]]:
        """Each kind of GPU network that is ours -> its networks, in the order of the pools."""
        if self.managed:
            return {}
        return {pool.network_kind: pool.networks for pool in self.gpu_pools if pool.network_kind}

    @property
    def gpu_networks(self) -> tuple[Network, ...]:
        """The networks of the kind whose names do not say it, in the order of the interfaces."""
        return self.network_kinds.get(self._first_kind, ())

    @property
    def more_gpu_networks(self) -> Mapping[str, tuple[Network, ...]]:
        """All other kinds of GPU networks: kind -> networks."""
        first = self._first_kind
        return {kind: its for kind, its in self.network_kinds.items() if kind != first}

    def managed_by(self, version: str) -> bool:
        """Whether a cluster of a version has GKE manage its GPU networks (ADR 87).

        All of them or none: GKE supports DRANET in no cluster that has networks of ours for pods.
        Beside a network that somebody else has made nothing is made, by nobody.
        """
        needing = [pool for pool in self.gpu_pools if pool.network_kind]
        able = all(pool.is_manageable for pool in needing) and self.existing is None
        return bool(needing) and able and not gke_versions.MANAGED_RDMA.refuses(version)

    @property
    def _first_kind(self) -> str:
        if self.first_networks is not None:
            return self.first_networks
        return next(iter(self.network_kinds), "")


def vms(settings: Settings) -> VmSpec:
    """Make the specification of a group of VMs."""
    run = settings.max_run_duration
    # A VM tells its URL by changing its own metadata. The account that is made for the VMs may not:
    # who may change the metadata of one VM may change that of all. So there is a URL only where the
    # account is the user's own, or where the user asks for it all the same.
    able = settings.service_account != "dedicated" or "show_proxy_url" in settings.model_fields_set
    return VmSpec(
        **_common(settings),
        group=pools.group(settings),
        network=settings.network_config,
        metadata=settings.metadata,
        image=_image(settings),
        command=settings.startup_command,
        restart=settings.startup_restart,
        # A tenth: large models take minutes to save, short runs have none to give away.
        stop_notice=None if run is None else max(120, min(600, run // 10)),
        files_destination=settings.vm_localfile_dest_path,
        node_ssh=settings.enable_node_ssh,
        idle_seconds=settings.idle_timeout,
        notebook=settings.enable_notebook,
        shows_urls=settings.enable_notebook and settings.show_proxy_url and able,
        ops_agent=not settings.disable_ops_agent,
        secure_boot=settings.secure_boot,
        os_updates=settings.os_updates,
        ray_version=settings.ray_version if settings.is_ray else None,
        slurm_partition=_partition(settings.vm_type) if settings.is_slurm else None,
    )


def _partition(machine_type: str) -> str:
    """The family of the machines, such as "a3-highgpu"."""
    known = machines.family(machine_type)
    return known.name if known else machine_type.rpartition("-")[0] or machine_type


def _image(settings: Settings) -> Image:
    is_named = settings.image_name is not None
    is_chosen = is_named or "image_family_name" in settings.model_fields_set
    return Image(
        project=settings.image_project,
        family=None if is_named else settings.image_family_name,
        name=settings.image_name,
        line=None if is_chosen else machines.image_line(settings.vm_type),
        project_is_set="image_project" in settings.model_fields_set,
    )


def gke(settings: Settings) -> GkeSpec:
    """Make the specification of a GKE cluster."""
    return GkeSpec(
        **_common(settings),
        gpu_pools=pools.of(settings),
        system_pool=pools.system(settings),
        version=settings.gke_version,
        release_channel=settings.gke_release_channel,
        maintenance=settings.gke_maintenance,
        authorized_cidrs=settings.authorized_cidr or (),
        driver=str(settings.gpu_driver_version),
        ray_operator=settings.enable_ray_operator,
        ray_version=settings.ray_version,
        kueue=settings.enable_kueue,
        queues=settings.kueue_queues or (),
        gpu_quota=settings.kueue_gpu_quota,
        test_nodes=settings.test_nodes,
    )


def _common(settings: Settings) -> dict[str, Any]:
    return {
        "project_id": settings.project_id,
        "name_prefix": settings.name_prefix,
        "region": settings.region,
        "zone": settings.zone,
        "way": settings.way,
        "places": settings.sites,
        "labels": settings.labels,
        "service_account": settings.service_account,
        "buckets": settings.gcs_mount_list or (),
        "bucket_options": settings.gcs_options or (),
        "bucket_cache_gib": settings.gcs_cache_gb,
        "shares": settings.nfs_fileshare_list or (),
        "secrets": settings.secrets or (),
        "ranges": Ranges.of(settings),
        "kms_key": settings.kms_key,
        "existing": ExistingNetwork.of(settings),
        "makes_firewall": settings.make_firewall,
        "hosts": settings.hosts,
        "outbound": Outbound.of(settings),
        "capacity_timeout": settings.capacity_timeout,
        "skipped_checks": settings.skip_checks or (),
    }
