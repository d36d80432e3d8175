"""The facts of a GKE cluster that are known after the apply: all that the builders need.

They are kept in the state's bucket, for runs without the settings. Whoever may write there may have
changed them, so that what they say is held to the rules of the settings; and who the cluster is, as
whom its pods act, and what they fetch and mount, is what the record says.
"""

# No deferred annotations: pydantic reads them.

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import Field, TypeAdapter

from provision.catalogue import accounts, bandwidths, fabrics, machines, names
from provision.catalogue.bandwidths import Reference
from provision.catalogue.machines import GpuNetwork, MachineType
from provision.documents import json_object
from provision.settings.gke import Queue
from provision.settings.pairs import Secret
from provision.settings.storage import JobMount, Mount
from provision.settings.values import (
    AbsolutePath,
    AcceleratorName,
    GkeVersion,
    MachineTypeName,
    PoolName,
    ProjectId,
    RayVersion,
)
from provision.spec import outbound
from provision.spec.capacity import Mode
from provision.spec.cluster import GkeSpec
from provision.spec.pools import Pool
from provision.state.record import Record

T = TypeVar("T")
_Name = Annotated[str, Field(pattern=r"^[a-z]([-a-z0-9]{0,61}[a-z0-9])?$")]
_Number = Annotated[int, Field(ge=0, le=10**9, strict=True)]


@dataclass(frozen=True, kw_only=True)
class GpuPool:
    """One GPU node pool."""

    name: PoolName  # the value of the nodes' label `cloud.google.com/gke-nodepool`, too
    machine_type: MachineTypeName
    # the GPU type, and the value of the label `cloud.google.com/gke-accelerator`
    accelerator: AcceleratorName | Literal[""]
    gpus: _Number  # the number of GPUs of each node
    max_nodes: _Number
    mode: Mode
    # The longest run time of a node, in seconds; None for no limit. In a queued pool it is what a
    # job's request asks for.
    max_run_seconds: _Number | None = None
    # the networks of each node's interfaces after the first, in their order, by their names in
    # Kubernetes
    networks: tuple[_Name, ...] = ()
    # whether the queue chooses nodes by where they stand (ADR 89)
    placed: bool = False
    managed: bool = False  # whether GKE gives its pods the interfaces that they claim (ADR 87)

    @property
    def queued(self) -> bool:
        """Whether nodes only come with a ProvisioningRequest."""
        return self.mode.means.queued

    @property
    def machine(self) -> MachineType | None:
        """The catalogue's row for the machine type; None if the tool does not know it."""
        return machines.lookup(self.machine_type)

    @property
    def gpu_network(self) -> GpuNetwork | None:
        """The network between the GPUs of several nodes; None if it is the first interface."""
        return self.machine.gpu_network if self.machine else None

    @property
    def attached_gpu(self) -> str | None:
        """The type of the attached GPUs; None if the machine type includes its GPUs."""
        return self.accelerator if machines.takes_gpus(self.machine_type) else None

    @property
    def is_arm(self) -> bool:
        """Whether the nodes' processors are Arm."""
        return self.machine is not None and self.machine.family.arm

    @property
    def bandwidth(self) -> Reference | None:
        """The published bandwidth of the GPU network; None if there is none."""
        return bandwidths.of_machine(self.machine_type)

    @property
    def interfaces(self) -> int:
        """The number of network interfaces of each pod that has a node for itself."""
        if self.managed:
            return 1 + self.claimed  # the second gVNIC is the node's
        return self.machine.nics if self.machine and self.gpu_network else 1

    @property
    def claimed(self) -> int:
        """The number of interfaces for RDMA that such a pod claims; 0 where it claims none."""
        return fabrics.rdma_interfaces(self.machine) if self.managed else 0


@dataclass(frozen=True, kw_only=True)
class ExtraNetwork:
    """The network of one additional interface of the pods."""

    kubernetes_name: _Name  # the name of its objects, such as "gvnic-1", "rdma-0" or "vpc1"
    network: _Name
    subnetwork: _Name
    device_mode: Literal["NetDevice", "RDMA"]


@dataclass(frozen=True, kw_only=True)
class NfsShare:
    """A Filestore share that pods can mount."""

    path: AbsolutePath
    server: Annotated[str, Field(pattern=r"^[0-9.]{7,15}$")]  # the instance's IP address
    remote_path: AbsolutePath  # of the share on it, with a leading slash
    size_gb: _Number  # in GiB


@dataclass(frozen=True, kw_only=True)
class ClusterFacts:
    """The facts of one cluster."""

    project: ProjectId
    name: str
    location: str  # its region or zone
    version: GkeVersion
    pools: tuple[GpuPool, ...]  # in the order of the settings
    networks: tuple[ExtraNetwork, ...] = ()  # of the additional interfaces of all pools
    workload_account: str  # the email address of the service account that the pods use
    buckets: tuple[Mount, ...] = ()
    bucket_options: tuple[str, ...] = ()  # the user's options for mounting them, such as "uid=1000"
    bucket_cache_gib: _Number | None = None  # the file cache of each of them; None for none
    shares: tuple[NfsShare, ...] = ()
    secrets: tuple[Secret, ...] = ()  # which jobs find in their environment
    own_mounts: tuple[JobMount, ...] = ()  # of one job alone
    gpu_quota: _Number = 0  # of GPUs that jobs in the queue can use at the same time
    kueue: bool = False  # whether Kueue has a queue for all GPU pools
    queues: tuple[Queue, ...] = ()  # the queues beside the one of all, in the order of the settings
    ray_operator: bool = False  # whether the Ray operator is enabled
    ray_version: RayVersion | Literal[""] = ""  # the Ray version of the example jobs
    # whether the operator can have Ray ask for a token, as Create has seen
    ray_tokens: bool = False
    test_nodes: _Number = 2
    # where container images are instead, as `spec.outbound.Outbound` has them
    image_mirrors: tuple[str, ...] = ()

    def document(self) -> str:
        """The facts as JSON, to be stored for runs without the cluster's settings."""
        return TypeAdapter(type(self)).dump_json(self, indent=2).decode() + "\n"

    @classmethod
    def parse(cls, text: str | bytes, record: Record) -> Self:
        """Read what `document` wrote, or raise a ValueError; what the record says goes first."""
        asked = record.settings
        recorded = {
            "project": record.project_id,
            "name": names.CLUSTER.of(record.name_prefix),
            "location": record.region,
            "workload_account": accounts.of_project(
                names.WORKLOAD_ACCOUNT.of(record.name_prefix), record.project_id
            ),
            "buckets": asked.get("GCS_MOUNT_LIST") or (),
            "bucket_options": asked.get("GCS_OPTIONS") or (),
            "secrets": asked.get("SECRETS") or (),
            "own_mounts": (),
            "image_mirrors": asked.get("IMAGE_MIRROR") or (),
        }
        return TypeAdapter(cls).validate_python({**json_object.read(text), **recorded})

    def mirrored(self, thing: T, but: str | None = None) -> T:
        """Objects as this cluster gets them: with their images from where it can fetch them."""
        return outbound.images(thing, self.image_mirrors, but=but)

    def also_having(self, secrets: tuple[Secret, ...], mounts: tuple[JobMount, ...]) -> Self:
        """The cluster for a job with buckets and secrets; these go before others of their names."""
        known = {it.name: it for it in (*self.secrets, *secrets)}
        return replace(self, secrets=tuple(known.values()), own_mounts=mounts)

    @property
    def has_queue(self) -> bool:
        """Whether jobs wait in Kueue's queue."""
        return self.kueue and bool(self.pools)


def read(spec: GkeSpec, outputs: Mapping[str, Any]) -> ClusterFacts:
    """Combine the specification with the outputs of the root `terraform/gke`."""
    cluster = outputs["cluster"]
    networks: dict[str | None, list[str]] = {}
    for made in outputs["networks"]:
        networks.setdefault(made["kind"], []).append(made["kubernetes_name"])
    named = {pool.name: pool for pool in spec.gpu_pools}
    pools = tuple(
        GpuPool(
            name=made["name"],
            machine_type=made["machine_type"],
            accelerator=asked.gpu_type or "",
            gpus=asked.gpus,
            max_nodes=made["max"],
            # To GKE, a reservation that nodes are bound to is one like others.
            mode=asked.mode if asked.mode.means.bound else Mode(made["mode"]),
            max_run_seconds=asked.max_run_seconds,
            networks=tuple(networks.get(asked.network_kind, ())),
            placed=_is_placed(asked),
            managed=spec.managed and asked.network_kind is not None,
        )
        for asked, made in ((named[key], made) for key, made in outputs["node_pools"].items())
    )
    sizes = {share.path: share.size_gb for share in spec.shares}
    return ClusterFacts(
        project=spec.project_id,
        name=cluster["name"],
        location=cluster["location"],
        version=cluster["version"],
        pools=pools,
        networks=tuple(
            ExtraNetwork(
                kubernetes_name=made["kubernetes_name"],
                network=made["network"].rpartition("/")[2],
                subnetwork=made["subnetwork"].rpartition("/")[2],
                device_mode=made["device_mode"],
            )
            for made in outputs["networks"]
        ),
        workload_account=outputs["service_accounts"]["workload"],
        buckets=spec.buckets,
        bucket_options=spec.bucket_options,
        bucket_cache_gib=spec.bucket_cache_gib,
        secrets=spec.secrets,
        shares=tuple(
            NfsShare(
                path=made["path"],
                server=made["ip"],
                remote_path=made["share"],
                size_gb=sizes[made["path"]],
            )
            for made in outputs.get("filestores") or ()
        ),
        gpu_quota=spec.gpu_quota or sum(pool.gpus * pool.max_nodes for pool in pools),
        kueue=spec.kueue,
        queues=spec.queues,
        ray_operator=spec.ray_operator,
        ray_version=spec.ray_version,
        test_nodes=spec.test_nodes,
        image_mirrors=spec.outbound.image_mirrors,
    )


def _is_placed(asked: Pool) -> bool:
    """Whether Google's blueprints have the queue choose nodes by where they stand (ADR 89).

    The queue only sees nodes that are there, so that of a pool that scales none would ever come.
    """
    machine = machines.lookup(asked.machine_type)
    networked = machine is not None and machine.gpu_network is not None
    return networked and asked.mode.means.bound and asked.size.count is not None
