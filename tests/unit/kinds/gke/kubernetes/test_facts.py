from __future__ import annotations

from typing import Any

from provision.kinds.gke.kubernetes import facts
from provision.kinds.gke.kubernetes.facts import ExtraNetwork, NfsShare
from provision.settings.model import Settings
from provision.settings.storage import Mount
from provision.spec import cluster

TEXTS = {
    "project_id": "my-project",
    "name_prefix": "demo",
    "zone": "us-central1-a",
    "orchestrator_type": "gke",
    "vm_type": "a3-ultragpu-8g",
    "enable_flex_start": "yes",
    "enable_queued_provisioning": "yes",
    "gke_max_node_count": "4",
    "kueue_gpu_quota": "16",
    "max_run_duration": "1h",
    "gcs_mount_list": "data:/mnt/data",
    "nfs_fileshare_list": "/mnt/nfs:ZONAL:1024",
}
OUTPUTS: dict[str, Any] = {
    "cluster": {
        "name": "demo-gke",
        "location": "us-central1",
        "dns_endpoint": "gke-1.goog",
        "version": "1.35.7-gke.1222000",
    },
    "node_pools": {
        "demo-nodepool-1": {
            "name": "demo-nodepool-1",
            "zone": "us-central1-a",
            "machine_type": "a3-ultragpu-8g",
            "mode": "flex_start_queued",
            "max": 4,
        }
    },
    "networks": [
        {
            "name": "eth1",
            "kind": "rdma",
            "kubernetes_name": "gvnic-1",
            "network": "projects/my-project/global/networks/demo-gpu-net-1",
            "subnetwork": "demo-gpu-subnet-1",
            "device_mode": "NetDevice",
        }
    ],
    "service_accounts": {"node": "n@x", "workload": "w@x"},
    "filestores": [{"path": "/mnt/nfs", "ip": "10.0.0.2", "share": "/share", "tier": "ZONAL"}],
}


def test_what_was_asked_for_is_joined_with_what_was_made() -> None:
    found = facts.read(cluster.gke(Settings(TEXTS)), OUTPUTS)
    (pool,) = found.pools
    assert (pool.accelerator, pool.gpus, pool.max_nodes) == ("nvidia-h200-141gb", 8, 4)
    assert (pool.interfaces, pool.max_run_seconds) == (10, 3600)
    assert pool.queued
    assert pool.flex_start
    assert found.queued_pools == (pool,)
    assert found.networks == (
        ExtraNetwork(
            kubernetes_name="gvnic-1",
            network="demo-gpu-net-1",
            subnetwork="demo-gpu-subnet-1",
            device_mode="NetDevice",
        ),
    )
    assert found.buckets == (Mount(bucket="data", path="/mnt/data"),)
    assert found.shares == (
        NfsShare(path="/mnt/nfs", server="10.0.0.2", remote_path="/share", size_gb=1024),
    )
    assert found.gpu_quota == 16
    assert found.workload_account == "w@x"
