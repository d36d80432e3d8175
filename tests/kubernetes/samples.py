"""Clusters as Terraform would have made them."""

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from provision.intake import load
from provision.kinds.gke.kubernetes.facts import ClusterFacts, ExtraNetwork, GpuPool, NfsShare, read
from provision.kinds.gke.kubernetes.run_jobs import Wanted
from provision.settings.gke import Queue
from provision.settings.storage import Mount
from provision.spec import cluster
from provision.spec.capacity import Mode
from provision.spec.cluster import GkeSpec
from provision.spec.job import JobSpec
from provision.spec.pools import Pool, Size

ULTRA = GpuPool(
    name="demo-h200",
    machine_type="a3-ultragpu-8g",
    accelerator="nvidia-h200-141gb",
    gpus=8,
    max_nodes=4,
    mode=Mode.FLEX_START_QUEUED,
    max_run_seconds=604800,
)
T4 = GpuPool(
    name="demo-t4",
    machine_type="n1-standard-2",
    accelerator="nvidia-tesla-t4",
    gpus=1,
    max_nodes=1,
    mode=Mode.QUEUED,
)
A100 = GpuPool(
    name="demo-a100",
    machine_type="a2-highgpu-1g",
    accelerator="nvidia-tesla-a100",
    gpus=1,
    max_nodes=1,
    mode=Mode.QUEUED,
)
MEGA = GpuPool(
    name="demo-mega",
    machine_type="a3-megagpu-8g",
    accelerator="nvidia-h100-mega-80gb",
    gpus=8,
    max_nodes=2,
    mode=Mode.STANDARD,
)
HIGH = GpuPool(
    name="demo-high",
    machine_type="a3-highgpu-8g",
    accelerator="nvidia-h100-80gb",
    gpus=8,
    max_nodes=2,
    mode=Mode.SPOT,
)
A4 = GpuPool(
    name="demo-b200",
    machine_type="a4-highgpu-8g",
    accelerator="nvidia-b200",
    gpus=8,
    max_nodes=2,
    mode=Mode.RESERVATION_BOUND,
)
PLACED = GpuPool(
    name="demo-h200-bound",
    machine_type="a3-ultragpu-8g",
    accelerator="nvidia-h200-141gb",
    gpus=8,
    max_nodes=3,
    mode=Mode.RESERVATION_BOUND,
    placed=True,
)
A2 = GpuPool(
    name="demo-a100-8g",
    machine_type="a2-highgpu-8g",
    accelerator="nvidia-tesla-a100",
    gpus=8,
    max_nodes=2,
    mode=Mode.STANDARD,
)
RESERVED = GpuPool(
    name="demo-reserved",
    machine_type="a2-highgpu-1g",
    accelerator="nvidia-tesla-a100",
    gpus=1,
    max_nodes=1,
    mode=Mode.RESERVATION,
)
L4 = GpuPool(
    name="demo-l4",
    machine_type="g2-standard-4",
    accelerator="nvidia-l4",
    gpus=1,
    max_nodes=2,
    mode=Mode.STANDARD,
)
RDMA = (
    ExtraNetwork(
        kubernetes_name="gvnic-1",
        network="demo-gpu-net-1",
        subnetwork="demo-gpu-subnet-1",
        device_mode="NetDevice",
    ),
    *(
        ExtraNetwork(
            kubernetes_name=f"rdma-{number}",
            network="demo-gpu-net-2",
            subnetwork=f"demo-gpu-subnet-{number + 2}",
            device_mode="RDMA",
        )
        for number in range(8)
    ),
)

TCPXO = tuple(
    ExtraNetwork(
        kubernetes_name=f"vpc{number}",
        network=f"demo-gpu-net-{number}",
        subnetwork=f"demo-gpu-subnet-{number}",
        device_mode="NetDevice",
    )
    for number in range(1, 9)
)
TCPX = TCPXO[:4]


def pool_like(pool: GpuPool, **changes: Any) -> GpuPool:
    """Another pool that differs in a few things."""
    mode = Mode(changes.pop("mode", pool.mode))
    return dataclasses.replace(pool, mode=mode, **changes)


def as_spec(pool: GpuPool, size: Size) -> Pool:
    """The same as a specification has it."""
    return Pool(
        name=pool.name,
        machine_type=pool.machine_type,
        zone="us-central1-a",
        gpu_type=pool.accelerator,
        gpu_count=pool.gpus,
        mode=pool.mode,
        size=size,
        disk_size_gb=100,
        disk_type="hyperdisk-balanced",
    )


def facts(
    *pools: GpuPool,
    networks: tuple[ExtraNetwork, ...] = (),
    buckets: tuple[Mount, ...] = (),
    shares: tuple[NfsShare, ...] = (),
    queues: tuple[Queue, ...] = (),
) -> ClusterFacts:
    """A cluster with some pools, in the first of the networks unless they have their own."""
    made = [network.kubernetes_name for network in networks]
    pools = tuple(
        pool_like(pool, networks=pool.networks or tuple(made[: pool.interfaces - 1]))
        for pool in pools
    )
    return ClusterFacts(
        project="my-project",
        name="demo-gke",
        location="us-central1",
        version="1.35.7-gke.1222000",
        pools=pools,
        networks=networks,
        workload_account="demo-workload@my-project.iam.gserviceaccount.com",
        buckets=buckets,
        shares=shares,
        gpu_quota=sum(pool.gpus * pool.max_nodes for pool in pools),
        kueue=True,
        queues=queues,
        ray_operator=True,
        ray_version="2.60.0",
    )


def wanted(
    facts: ClusterFacts,
    command: tuple[str, ...] = ("true",),
    told: str = "np-deployment/pods/jobs/train-1/",
    name: str = "train-1",
    **asked: Any,
) -> Wanted:
    """A job of Run on two nodes of the first pool of a cluster."""
    return Wanted(
        name=name,
        spec=JobSpec(name="train", command=command, **asked),
        pool=facts.pools[0],
        nodes=2,
        bucket="b",
        folder="np-deployment/jobs/files/x.tar.gz",
        told=told,
    )


FLEX_QUEUED_ULTRA = facts(
    ULTRA,
    networks=RDMA,
    buckets=(Mount(bucket="my_data", path="/mnt/data"),),
    shares=(NfsShare(path="/mnt/nfs", server="10.0.0.2", remote_path="/share", size_gb=2560),),
)
TWO_QUEUED = facts(T4, A100)
BY_GKE = facts(dataclasses.replace(A4, managed=True))
"""A cluster whose RDMA GKE manages."""
ALL = (FLEX_QUEUED_ULTRA, TWO_QUEUED, facts(MEGA), facts(HIGH), facts(PLACED))


def everything() -> ClusterFacts:
    """One cluster with all kinds of pools: no real one, but all objects at once."""
    return facts(
        ULTRA,
        T4,
        A100,
        MEGA,
        HIGH,
        PLACED,
        networks=RDMA,
        buckets=FLEX_QUEUED_ULTRA.buckets,
        shares=FLEX_QUEUED_ULTRA.shares,
    )


def of_example(path: Path) -> ClusterFacts:
    """The cluster of an env.list, as far as Kubernetes goes."""
    settings = load({}, path).settings
    assert settings is not None
    return of_spec(cluster.gke(settings))


def of_spec(spec: GkeSpec) -> ClusterFacts:
    """The cluster that a specification asks for, with names as Terraform gives them."""
    pools = {
        pool.name: {
            "name": pool.name,
            "machine_type": pool.machine_type,
            "mode": str(pool.mode),
            "max": pool.size.most,
        }
        for pool in spec.gpu_pools
    }
    return read(
        spec,
        {
            "cluster": {
                "name": f"{spec.name_prefix}-gke",
                "location": spec.region,
                "dns_endpoint": "e.goog",
                "version": "1.35.7-gke.1222000",
            },
            "node_pools": pools,
            "networks": list(_networks(spec)),
            "service_accounts": {
                "workload": f"{spec.name_prefix}-workload@{spec.project_id}.iam.gserviceaccount.com"
            },
            "filestores": [
                {"path": share.path, "ip": "10.0.0.2", "share": "/share"} for share in spec.shares
            ],
        },
    )


def _networks(spec: GkeSpec) -> Iterator[dict[str, str]]:
    for kind, networks in spec.network_kinds.items():
        has_rdma = any(network.nic_type == "MRDMA" for network in networks)
        for number, network in enumerate(networks, start=1):
            is_rdma = network.nic_type == "MRDMA"
            for subnet in range(network.subnets):
                plain = f"gvnic-{number}" if has_rdma else f"vpc{number}"
                yield {
                    "kind": kind,
                    "kubernetes_name": f"rdma-{subnet}" if is_rdma else plain,
                    "network": f"{spec.name_prefix}-gpu-net-{number}",
                    "subnetwork": f"{spec.name_prefix}-gpu-subnet-{number + subnet}",
                    "device_mode": "RDMA" if is_rdma else "NetDevice",
                }
