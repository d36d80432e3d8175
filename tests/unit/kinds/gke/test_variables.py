"""A GKE cluster: from settings to Terraform's variables, from outputs to words."""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace
from typing import Any, cast

from provision.deployment.deployment import Applied, RunInputs
from provision.documents.connection import ClusterConnection, NodePoolMade
from provision.google.owner import Owner
from provision.kinds.gke import after_apply, variables
from provision.settings.model import Settings
from provision.spec import cluster
from provision.state.location import StateLocation

MANDATORY = {
    "project_id": "my-project",
    "name_prefix": "np",
    "zone": "us-central1-a",
    "orchestrator_type": "gke",
}
LOCATION = StateLocation("bucket", "np-deployment", is_default=True)


def _variables(version: str | None = None, **settings: str) -> dict[str, Any]:
    spec = cluster.gke(Settings(MANDATORY | settings))
    settled = dataclasses.replace(spec, version=version)
    return variables.variables(settled, Owner("3f9c2a71"), LOCATION, RunInputs())


def test_equal_pools_are_numbered_and_have_the_machine_types_own_parts() -> None:
    made = _variables(vm_type="a3-ultragpu-8g", gke_node_pool_count="2", instance_count="4")

    assert list(made["node_pools"]) == ["np-nodepool-1", "np-nodepool-2"]
    assert made["node_pools"]["np-nodepool-1"] == made["node_pools"]["np-nodepool-2"]
    assert made["node_pools"]["np-nodepool-1"] == {
        "machine_type": "a3-ultragpu-8g",
        "zone": "us-central1-a",
        "gpu": {"type": "nvidia-h200-141gb", "count": 8, "driver": "DEFAULT"},
        "capacity": {"model": "standard", "reservation": None, "max_run_seconds": None},
        "size": {"count": 4, "min": None, "max": None},
        "disk": {"size_gb": 100, "type": "hyperdisk-balanced"},
        "local_ssds": 32,
        "compact": False,
        "policy": None,
        "gpu_networks": "rdma",
        "version": None,
    }


def test_the_networks_are_those_of_the_pools_that_have_some() -> None:
    made = _variables(
        gke_node_pools="name=l4,vm_type=g2-standard-4;name=ultra,vm_type=a3-ultragpu-8g,spot=yes"
    )

    assert [pool["gpu_networks"] for pool in made["node_pools"].values()] == [None, "rdma"]
    assert made["more_gpu_networks"] == {}
    assert made["gpu_networks"] == [
        {"mtu": 8896, "nic_type": "GVNIC", "subnets": 1, "profile": None},
        {"mtu": 8896, "nic_type": "MRDMA", "subnets": 8, "profile": "vpc-roce"},
    ]


def test_a_second_kind_of_network_has_a_place_of_its_own() -> None:
    made = _variables(
        gke_node_pools="name=mega,vm_type=a3-megagpu-8g,spot=yes;name=ultra,"
        "vm_type=a3-ultragpu-8g,spot=yes;name=more,vm_type=a3-megagpu-8g,spot=yes"
    )

    kinds = {name: pool["gpu_networks"] for name, pool in made["node_pools"].items()}
    assert kinds == {"np-mega": "tcpxo", "np-ultra": "rdma", "np-more": "tcpxo"}
    assert [network["mtu"] for network in made["gpu_networks"]] == 8 * [8244]
    assert {kind: len(it) for kind, it in made["more_gpu_networks"].items()} == {"rdma": 2}


def test_pools_without_networks_of_their_own_get_none() -> None:
    assert _variables(vm_type="a2-highgpu-1g")["gpu_networks"] == []


def test_pools_of_t4_and_a100_queue_in_zones_of_their_own_beside_a_spot_system_pool() -> None:
    made = _variables(
        enable_queued_provisioning="yes",
        gpu_driver_version="LATEST",
        disk_size_gb="20",
        gke_node_pools="name=t4,vm_type=n1-standard-2,accelerator_type=nvidia-tesla-t4,"
        "gpu_count=1,zone=us-central1-c,max=1;name=a100,vm_type=a2-highgpu-1g,max=1",
        system_node_pool="spot=yes,zone=us-central1-f,vm_type=e2-small",
    )

    assert {name: (it["zone"], it["gpu"]) for name, it in made["node_pools"].items()} == {
        "np-t4": ("us-central1-c", {"type": "nvidia-tesla-t4", "count": 1, "driver": "LATEST"}),
        "np-a100": ("us-central1-a", {"type": "nvidia-tesla-a100", "count": 1, "driver": "LATEST"}),
    }
    for pool in made["node_pools"].values():
        assert pool["capacity"]["model"] == "queued"
        assert pool["size"] == {"count": None, "min": 0, "max": 1}
        assert pool["disk"] == {"size_gb": 20, "type": "pd-ssd"}
    assert made["system_pool"] == {
        "machine_type": "e2-small",
        "zone": "us-central1-f",
        "min": 1,
        "max": 3,
        "disk_size_gb": 100,
        "spot": True,
    }


def test_the_pools_own_values_win_over_the_clusters() -> None:
    made = _variables(
        disk_size_gb="200",
        enable_spot="yes",
        gke_min_node_count="1",
        gke_max_node_count="3",
        gke_node_pools="name=a,vm_type=g2-standard-4,disk_size_gb=50,disk_type=pd-balanced,"
        "spot=no,reservation=mine,count=2;name=b,vm_type=g2-standard-4;"
        "name=c,vm_type=g2-standard-4,min=2",
    )["node_pools"]

    assert made["np-a"]["disk"] == {"size_gb": 50, "type": "pd-balanced"}
    assert made["np-a"]["capacity"]["model"] == "reservation"
    assert made["np-a"]["capacity"]["reservation"] == "mine"
    assert made["np-a"]["size"] == {"count": 2, "min": None, "max": None}
    assert made["np-b"]["disk"] == {"size_gb": 200, "type": "pd-ssd"}
    assert made["np-b"]["capacity"]["model"] == "spot"
    assert made["np-b"]["size"] == {"count": None, "min": 1, "max": 3}
    assert made["np-c"]["size"] == {"count": None, "min": 2, "max": 3}


def test_the_control_plane_is_as_the_settings_and_the_run_say() -> None:
    made = _variables(
        "1.33.5-gke.1080000",
        gke_release_channel="rapid",
        gke_maintenance="sun,fri 22:30-06:00",
        authorized_cidr="203.0.113.0/24",
        enable_ray_operator="yes",
    )

    assert made["cluster"] == {
        "location": "us-central1",
        "version": "1.33.5-gke.1080000",
        "release_channel": "RAPID",
        "maintenance": {
            "recurrence": "FREQ=WEEKLY;BYDAY=FR,SU",
            "start_time": "2026-01-09T22:30:00Z",
            "end_time": "2026-01-10T06:00:00Z",
        },
        "authorized_cidrs": ["203.0.113.0/24"],
        "ray_operator": True,
    }


def test_storage_identity_and_labels_are_handed_over_as_to_the_other_root() -> None:
    made = _variables(
        labels="team=ml",
        service_account="default",
        gcs_mount_list="data:/mnt/data",
        nfs_fileshare_list="/mnt/nfs:ENTERPRISE:1024",
    )

    assert made["labels"] == {"team": "ml"}
    assert made["service_account"] == {"create": False, "email": None}
    assert made["gcs_mounts"] == [{"bucket": "data", "path": "/mnt/data"}]
    assert made["filestores"] == [
        {"path": "/mnt/nfs", "tier": "ENTERPRISE", "size_gb": 1024, "location": "us-central1"}
    ]
    assert made["state_folder"] == {"bucket": "bucket", "folder": "np-deployment"}


def test_the_way_to_a_cluster_is_its_dns_endpoint() -> None:
    made_cluster = {"name": "np-gke", "location": "us-central1", "dns_endpoint": "gke-1.gke.goog"}
    pool = {"name": "np-a", "zone": "us-central1-a", "machine_type": "m", "mode": "spot", "max": 2}
    outputs = {"cluster": made_cluster, "node_pools": {"np-a": pool}}
    target = SimpleNamespace(spec=cluster.gke(Settings(MANDATORY)))
    made = Applied(cast("Any", target), outputs, postponed=0)

    common: dict[str, Any] = {
        "state": "s",
        "terraform_state": "t",
        "billing_label": "b",
        "dashboard": None,
    }
    assert after_apply._connection(made, {})(**common) == ClusterConnection(
        **common,
        cluster="np-gke",
        endpoint="https://gke-1.gke.goog",
        get_credentials="gcloud container clusters get-credentials np-gke"
        " --location us-central1 --project my-project --dns-endpoint",
        node_pools=(
            NodePoolMade(name="np-a", zone="us-central1-a", machine_type="m", mode="spot", max=2),
        ),
        jobs={},
        job_log='gcloud logging read \'resource.type="k8s_container"'
        ' resource.labels.cluster_name="np-gke" resource.labels.location="us-central1"'
        ' labels."k8s-pod/jobset_sigs_k8s_io/jobset-name"="NAME"\''
        " --project my-project --order asc --freshness 30d"
        " --format 'value(textPayload,jsonPayload.message)'",
    )
