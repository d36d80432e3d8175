"""What three published walk-throughs set up by hand, field by field.

Sources: the Cluster Toolkit's example `dws-flex-start-queued-provisioning` for A3 Ultra (blueprint
and README), the guide `nearmap-gcp-ml` (gcloud, Ray on H200), and Zencore's article "Looking for
GPU capacity? DWS got you covered!" (gcloud, T4 and A100).
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

PAGE: Final = Path(__file__).parents[2] / "docs/development/seeds.md"
MANDATORY: Final = {"project_id": "my-project", "name_prefix": "dws", "orchestrator_type": "gke"}

POOL: Final = 'module.gke_nodepool["{}"].google_container_node_pool.gpu'
SYSTEM: Final = "module.gke_cluster.google_container_node_pool.system"
CLUSTER: Final = "module.gke_cluster.google_container_cluster.gke"
_NETWORK: Final = 'module.gpu_networks.google_compute_network.gpu["{}"]'


@dataclass(frozen=True)
class Field:
    """One thing that was set by hand."""

    words: str  # how it was set
    address: str  # the resource of the plan that has it
    path: str  # where in the resource, with dots; `#` counts a list
    by_hand: object  # what it was set to, as the plan would write it
    why: str = ""  # why the plan differs; "" where it must not


@dataclass(frozen=True)
class Seed:
    """One walk-through."""

    title: str
    settings: dict[str, str]  # the same inputs as an env.list
    fields: tuple[Field, ...]


def _dws(pool: str, most: int) -> tuple[Field, ...]:
    """What all three set of a queued pool."""
    address = POOL.format(pool)
    return (
        Field("queued provisioning", address, "queued_provisioning.0.enabled", by_hand=True),
        Field("nodes at first", address, "initial_node_count", 0),
        Field("fewest nodes", address, "autoscaling.0.total_min_node_count", 0),
        Field("most nodes", address, "autoscaling.0.total_max_node_count", most),
        Field(
            "reservation affinity",
            address,
            "node_config.0.reservation_affinity.0.consume_reservation_type",
            "NO_RESERVATION",
        ),
    )


def _ultra(most: int, driver: str) -> tuple[Field, ...]:
    """What both set of A3 Ultra with flex start and queueing."""
    address = POOL.format("dws-nodepool-1")
    gpu = "node_config.0.guest_accelerator.0"
    networks = "network_config.0.additional_node_network_configs.#"
    return (
        Field("machine type", address, "node_config.0.machine_type", "a3-ultragpu-8g"),
        Field("GPU", address, f"{gpu}.type", "nvidia-h200-141gb"),
        Field("GPUs of a node", address, f"{gpu}.count", 8),
        Field(
            "GPU driver",
            address,
            f"{gpu}.gpu_driver_installation_config.0.gpu_driver_version",
            driver,
        ),
        Field("flex start", address, "node_config.0.flex_start", by_hand=True),
        *_dws("dws-nodepool-1", most),
        Field("location policy", address, "autoscaling.0.location_policy", "ANY"),
        Field("node auto-repair", address, "management.0.auto_repair", by_hand=False),
        Field("node locations", address, "node_locations", ["us-central1-b"]),
        Field("additional networks of a node", address, networks, 9),
        Field("Dataplane V2", CLUSTER, "datapath_provider", "ADVANCED_DATAPATH"),
        Field("multi-networking", CLUSTER, "enable_multi_networking", by_hand=True),
        Field(
            "workload identity pool",
            CLUSTER,
            "workload_identity_config.0.workload_pool",
            "my-project.svc.id.goog",
        ),
        Field(
            "Cloud Storage FUSE driver",
            CLUSTER,
            "addons_config.0.gcs_fuse_csi_driver_config.0.enabled",
            by_hand=True,
        ),
        Field(
            "RDMA network's profile",
            _NETWORK.format(2),
            "network_profile",
            "projects/my-project/global/networkProfiles/us-central1-b-vpc-roce",
        ),
    )


_ULTRA_SETTINGS: Final = {
    "zone": "us-central1-b",
    "vm_type": "a3-ultragpu-8g",
    "enable_flex_start": "yes",
    "enable_queued_provisioning": "yes",
}

TOOLKIT: Final = Seed(
    title="Cluster Toolkit: A3 Ultra, flex start with queued provisioning",
    settings=_ULTRA_SETTINGS
    | {
        "gke_min_node_count": "0",
        "gke_max_node_count": "1000",
        "kueue_gpu_quota": "512",
        "authorized_cidr": "203.0.113.0/24",
        "system_node_pool": "vm_type=e2-standard-16,min=2,max=10",
        "gke_version": "1.32.",
    },
    fields=(
        *_ultra(1000, "DEFAULT"),
        Field(
            "local SSDs, as ephemeral storage",
            POOL.format("dws-nodepool-1"),
            "node_config.0.ephemeral_storage_local_ssd_config.0.local_ssd_count",
            32,
        ),
        Field(
            "label of queued nodes",
            POOL.format("dws-nodepool-1"),
            "node_config.0.labels",
            {"cloud.google.com/gke-queued": "true"},
        ),
        Field(
            "taint of GPU nodes",
            POOL.format("dws-nodepool-1"),
            "node_config.0.taint",
            [{"effect": "NO_SCHEDULE", "key": "nvidia.com/gpu", "value": "present"}],
        ),
        Field(
            "node auto-upgrade",
            POOL.format("dws-nodepool-1"),
            "management.0.auto_upgrade",
            by_hand=False,
            why="the API refuses false on a release channel; the cluster's maintenance exclusion"
            " keeps nodes from upgrades",
        ),
        Field("longest run", POOL.format("dws-nodepool-1"), "node_config.0.max_run_duration", None),
        Field("system pool's machine type", SYSTEM, "node_config.0.machine_type", "e2-standard-16"),
        Field("system pool's fewest nodes", SYSTEM, "autoscaling.0.total_min_node_count", 2),
        Field("system pool's most nodes", SYSTEM, "autoscaling.0.total_max_node_count", 10),
        Field("system pool's boot disk, GiB", SYSTEM, "node_config.0.disk_size_gb", 100),
        Field(
            "private nodes", CLUSTER, "private_cluster_config.0.enable_private_nodes", by_hand=True
        ),
        Field("shielded nodes", CLUSTER, "enable_shielded_nodes", by_hand=True),
        Field("deletion protection", CLUSTER, "deletion_protection", by_hand=False),
        Field(
            "managed Prometheus",
            CLUSTER,
            "monitoring_config.0.managed_prometheus.0.enabled",
            by_hand=True,
        ),
        Field(
            "authorized network",
            CLUSTER,
            "master_authorized_networks_config.0.cidr_blocks.0.cidr_block",
            "203.0.113.0/24",
        ),
        Field(
            "address range of the control plane",
            CLUSTER,
            "private_cluster_config.0.master_ipv4_cidr_block",
            "172.16.0.32/28",
            why="the control plane takes addresses of the nodes' subnetwork",
        ),
        Field("MTU of the second gVNIC's network", _NETWORK.format(1), "mtu", 8896),
    ),
)

NEARMAP: Final = Seed(
    title="nearmap: Ray on H200 with flex start and queued provisioning",
    settings=_ULTRA_SETTINGS
    | {
        "gke_min_node_count": "0",
        "gke_max_node_count": "4",
        "gke_version": "1.33.1-gke.1107000",
        "gpu_driver_version": "LATEST",
        "enable_ray_operator": "yes",
        "system_node_pool": "vm_type=e2-standard-8,min=2,max=2",
    },
    fields=(
        *_ultra(4, "LATEST"),
        Field("cluster version", CLUSTER, "min_master_version", "1.33.1-gke.1107000"),
        Field(
            "Ray operator", CLUSTER, "addons_config.0.ray_operator_config.0.enabled", by_hand=True
        ),
        Field("system nodes' machine type", SYSTEM, "node_config.0.machine_type", "e2-standard-8"),
        Field("system nodes", SYSTEM, "autoscaling.0.total_max_node_count", 2),
        Field(
            "private nodes",
            CLUSTER,
            "private_cluster_config.0.enable_private_nodes",
            None,
            why="nodes reach out by Cloud NAT and are not reached",
        ),
        Field(
            "local SSDs, as ephemeral storage",
            POOL.format("dws-nodepool-1"),
            "node_config.0.ephemeral_storage_local_ssd_config.0.local_ssd_count",
            None,
            why="the machine has them",
        ),
        Field(
            "MTU of the second gVNIC's network",
            _NETWORK.format(1),
            "mtu",
            None,
            why="jumbo frames, for NCCL's large messages",
        ),
    ),
)


def _zencore_pool(key: str, zone: str, machine: str, gpu: str) -> tuple[Field, ...]:
    address = POOL.format(f"dws-{key}")
    accelerator = "node_config.0.guest_accelerator.0"
    driver = f"{accelerator}.gpu_driver_installation_config.0.gpu_driver_version"
    return (
        Field(f"{key}: node locations", address, "node_locations", [zone]),
        Field(f"{key}: machine type", address, "node_config.0.machine_type", machine),
        Field(f"{key}: GPU", address, f"{accelerator}.type", gpu),
        Field(f"{key}: GPUs of a node", address, f"{accelerator}.count", 1),
        Field(f"{key}: GPU driver", address, driver, "LATEST"),
        Field(f"{key}: boot disk, GiB", address, "node_config.0.disk_size_gb", 20),
        Field(f"{key}: flex start", address, "node_config.0.flex_start", None),
        *(
            Field(f"{key}: {it.words}", it.address, it.path, it.by_hand)
            for it in _dws(f"dws-{key}", 1)
        ),
        Field(
            f"{key}: node auto-repair",
            address,
            "management.0.auto_repair",
            None,
            why="Google has asked for false since; the default is true",
        ),
    )


ZENCORE: Final = Seed(
    title="Zencore: T4 and A100 queued pools beside a spot system pool",
    settings={
        "zone": "us-central1-a",
        "enable_queued_provisioning": "yes",
        "gke_release_channel": "rapid",
        "gpu_driver_version": "latest",
        "disk_size_gb": "20",
        "gke_node_pools": "name=t4,vm_type=n1-standard-2,accelerator_type=nvidia-tesla-t4,"
        "gpu_count=1,zone=us-central1-c,max=1;name=a100,vm_type=a2-highgpu-1g,max=1",
        "system_node_pool": "vm_type=e2-small,zone=us-central1-f,disk_size_gb=20,spot=yes",
    },
    fields=(
        Field("region", CLUSTER, "location", "us-central1"),
        Field("release channel", CLUSTER, "release_channel.0.channel", "RAPID"),
        Field("default pool deleted", CLUSTER, "remove_default_node_pool", by_hand=True),
        *_zencore_pool("t4", "us-central1-c", "n1-standard-2", "nvidia-tesla-t4"),
        *_zencore_pool("a100", "us-central1-a", "a2-highgpu-1g", "nvidia-tesla-a100"),
        Field("system pool's zone", SYSTEM, "node_locations", ["us-central1-f"]),
        Field("system pool's machine type", SYSTEM, "node_config.0.machine_type", "e2-small"),
        Field("system pool on spot machines", SYSTEM, "node_config.0.spot", by_hand=True),
        Field("system pool's nodes at first", SYSTEM, "initial_node_count", 1),
        Field("system pool's fewest nodes", SYSTEM, "autoscaling.0.total_min_node_count", 1),
        Field("system pool's most nodes", SYSTEM, "autoscaling.0.total_max_node_count", 3),
        Field("system pool's boot disk, GiB", SYSTEM, "node_config.0.disk_size_gb", 20),
        Field("system pool's auto-upgrade", SYSTEM, "management.0.auto_upgrade", by_hand=True),
        Field("system pool's auto-repair", SYSTEM, "management.0.auto_repair", by_hand=True),
    ),
)

SEEDS: Final = {"toolkit": TOOLKIT, "nearmap": NEARMAP, "zencore": ZENCORE}
