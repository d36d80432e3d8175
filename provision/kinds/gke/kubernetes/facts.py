"""What is known of a GKE cluster once Terraform has made it: all that the builders need."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Self

from provision.catalogue import machines
from provision.spec.capacity import Mode

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from provision.catalogue.machines import Bandwidth, GpuNetwork
    from provision.settings import storage
    from provision.spec import pools
    from provision.spec.cluster import GkeSpec


@dataclass(frozen=True, kw_only=True)
class GpuPool:
    """One GPU node pool.

    Attributes:
        name: In GKE, and the value of the nodes' label `cloud.google.com/gke-nodepool`.
        machine_type: Of each node.
        accelerator: The GPU, and the value of the label `cloud.google.com/gke-accelerator`.
        gpus: Of each node.
        max_nodes: The most nodes that it can have.
        mode: The capacity model: standard, spot, reservation, flex_start, queued or
            flex_start_queued.
        max_run_seconds: How long a node lives at most; None where that has no limit.
    """

    name: str
    machine_type: str
    accelerator: str
    gpus: int
    max_nodes: int
    mode: str
    max_run_seconds: int | None = None

    @property
    def queued(self) -> bool:
        """Whether nodes come by a ProvisioningRequest alone."""
        return Mode(self.mode).means.queued

    @property
    def flex_start(self) -> bool:
        """Whether nodes come by DWS flex start."""
        return Mode(self.mode).means.flex_start

    @property
    def gpu_network(self) -> GpuNetwork | None:
        """How the GPUs of several nodes reach each other; None: by the first interface."""
        machine = machines.lookup(self.machine_type)
        return machine.gpu_network if machine else None

    @property
    def attached_gpu(self) -> str | None:
        """The kind of GPU that is attached; None where the machine type brings its own."""
        return self.accelerator if machines.takes_gpus(self.machine_type) else None

    @property
    def is_arm(self) -> bool:
        """Whether the nodes' processors are Arm."""
        machine = machines.lookup(self.machine_type)
        return machine is not None and machine.family.arm

    @property
    def bandwidth(self) -> Bandwidth | None:
        """What was published of the GPUs' network; None for nothing."""
        machine = machines.lookup(self.machine_type)
        return machine.shape.bandwidth if machine else None

    @property
    def interfaces(self) -> int:
        """Interfaces of each node, the first included."""
        machine = machines.lookup(self.machine_type)
        return machine.nics if machine and machine.gpu_network else 1


@dataclass(frozen=True, kw_only=True)
class ExtraNetwork:
    """One network of the pods' interfaces after the first.

    Attributes:
        kubernetes_name: Of the objects, such as "gvnic-1", "rdma-0" or "vpc1".
        network: The VPC network.
        subnetwork: Its subnetwork.
        device_mode: "NetDevice" or "RDMA".
    """

    kubernetes_name: str
    network: str
    subnetwork: str
    device_mode: str


@dataclass(frozen=True, kw_only=True)
class NfsShare:
    """A Filestore share that pods can mount.

    Attributes:
        path: Where it is mounted.
        server: The address of its server.
        remote_path: Its name there, with a slash before it.
        size_gb: In GiB.
    """

    path: str
    server: str
    remote_path: str
    size_gb: int


@dataclass(frozen=True, kw_only=True)
class Bucket:
    """A bucket that pods can mount at a path."""

    bucket: str
    path: str


@dataclass(frozen=True, kw_only=True)
class ClusterFacts:
    """One cluster.

    Attributes:
        project: The project's id.
        name: The cluster's.
        location: Its region or zone.
        endpoint: The DNS name of its control plane.
        pools: Its GPU pools, in the order of the settings.
        networks: Of the interfaces after the first, in the interfaces' order.
        workload_account: The email of the service account that the pods act as.
        buckets: Buckets to mount.
        shares: Filestore shares to mount.
        gpu_quota: GPUs that the queue hands out at the same time.
        ray_operator: Whether the cluster runs RayClusters.
        ray_version: Of the examples.
        test_nodes: Nodes of the bandwidth test.
    """

    project: str
    name: str
    location: str
    endpoint: str
    pools: tuple[GpuPool, ...]
    networks: tuple[ExtraNetwork, ...] = ()
    workload_account: str
    buckets: tuple[Bucket, ...] = ()
    shares: tuple[NfsShare, ...] = ()
    gpu_quota: int = 0
    ray_operator: bool = False
    ray_version: str = ""
    test_nodes: int = 2

    def document(self) -> str:
        """As it is kept beside the state, for runs that know no settings."""
        return json.dumps(asdict(self), indent=2) + "\n"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read `document`'s text."""
        parts = {"pools": GpuPool, "networks": ExtraNetwork, "buckets": Bucket, "shares": NfsShare}
        document = json.loads(text)
        for name, kind in parts.items():
            document[name] = tuple(kind(**one) for one in document[name])
        return cls(**document)

    @property
    def queued_pools(self) -> tuple[GpuPool, ...]:
        """The pools behind the queue; without any there is no queue."""
        return tuple(pool for pool in self.pools if pool.queued)


def read(spec: GkeSpec, outputs: Mapping[str, Any]) -> ClusterFacts:
    """Join what was asked for with what Terraform made.

    Args:
        spec: What was asked for.
        outputs: Of the root `terraform/gke`, by name, without Terraform's wrapping.
    """
    cluster = outputs["cluster"]
    asked = {pool.name: pool for pool in spec.gpu_pools}
    made_pools = tuple(_pool(asked[key], made) for key, made in outputs["node_pools"].items())
    return ClusterFacts(
        project=spec.project_id,
        name=cluster["name"],
        location=cluster["location"],
        endpoint=cluster["dns_endpoint"],
        pools=made_pools,
        networks=tuple(_network(made) for made in outputs["networks"]),
        workload_account=outputs["service_accounts"]["workload"],
        buckets=tuple(Bucket(bucket=one.bucket, path=one.path) for one in spec.buckets),
        shares=_shares(spec.shares, outputs.get("filestores") or ()),
        gpu_quota=spec.gpu_quota or _gpus(made_pools),
        ray_operator=spec.ray_operator,
        ray_version=spec.ray_version,
        test_nodes=spec.test_nodes,
    )


def _pool(asked: pools.Pool, made: Mapping[str, Any]) -> GpuPool:
    return GpuPool(
        name=made["name"],
        machine_type=made["machine_type"],
        accelerator=asked.gpu_type or "",
        gpus=asked.gpus,
        max_nodes=made["max"],
        mode=made["mode"],
        max_run_seconds=asked.max_run_seconds if asked.mode.means.run_of_nodes else None,
    )


def _network(made: Mapping[str, Any]) -> ExtraNetwork:
    return ExtraNetwork(
        kubernetes_name=made["kubernetes_name"],
        network=made["network"].rpartition("/")[2],
        subnetwork=made["subnetwork"].rpartition("/")[2],
        device_mode=made["device_mode"],
    )


def _shares(
    asked: Iterable[storage.Share], made: Iterable[Mapping[str, Any]]
) -> tuple[NfsShare, ...]:
    sizes = {share.path: share.size_gb for share in asked}
    return tuple(
        NfsShare(
            path=share["path"],
            server=share["ip"],
            remote_path=share["share"],
            size_gb=sizes[share["path"]],
        )
        for share in made
    )


def _gpus(pools: tuple[GpuPool, ...]) -> int:
    return sum(pool.gpus * pool.max_nodes for pool in pools if pool.queued)
