import dataclasses
from typing import Any, cast

import pytest

from provision.deployment.deployment import Applied, RunInputs
from provision.documents.connection import ClusterConnection, NodePoolMade
from provision.errors import Problem
from provision.google.owner import Owner
from provision.kinds.gke import after_apply, preview, variables
from provision.settings.model import Settings
from provision.spec import cluster
from provision.state.location import StateLocation
from provision.terraform.plan import UNKNOWN, Plan
from rehearsal import session
from tests.unit.kinds.cases import follows, having, settings

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


@settings("""
GKE_NODE_POOL_COUNT=2 VM_TYPE=a3-ultragpu-8g INSTANCE_COUNT=4
    => node_pools.np-nodepool-2 {"machine_type": "a3-ultragpu-8g", "zone": "us-central1-a",
    "gpu": {"type": "nvidia-h200-141gb", "count": 8, "driver": "DEFAULT"},
    "capacity": {"model": "standard", "reservation": null, "max_run_seconds": null},
    "size": {"count": 4, "min": null, "max": null},
    "disk": {"size_gb": 100, "type": "hyperdisk-balanced"}, "local_ssds": 32, "compact": false,
    "policy": null, "gpu_networks": "rdma", "version": null}

# The networks are those of the pools that have some, each kind in its place.
"GKE_NODE_POOLS=name=l4,vm_type=g2-standard-4;name=ultra,vm_type=a3-ultragpu-8g,spot=yes"
    => node_pools.np-l4.gpu_networks null | node_pools.np-ultra.gpu_networks "rdma"
    | more_gpu_networks {} | gpu_networks
    [{"mtu": 8896, "nic_type": "GVNIC", "subnets": 1, "profile": null},
    {"mtu": 8896, "nic_type": "MRDMA", "subnets": 8, "profile": "vpc-roce"}]
VM_TYPE=a2-highgpu-1g => gpu_networks []

# Pools queue in zones of their own beside a spot system pool.
ENABLE_QUEUED_PROVISIONING=yes GPU_DRIVER_VERSION=LATEST DISK_SIZE_GB=20
    "GKE_NODE_POOLS=name=t4,vm_type=n1-standard-2,accelerator_type=nvidia-tesla-t4,gpu_count=1,\
zone=us-central1-c,max=1;name=a100,vm_type=a2-highgpu-1g,max=1"
    SYSTEM_NODE_POOL=spot=yes,zone=us-central1-f,vm_type=e2-small
    => node_pools.np-t4.zone "us-central1-c" | node_pools.np-a100.zone "us-central1-a"
    | node_pools.np-t4.gpu {"type": "nvidia-tesla-t4", "count": 1, "driver": "LATEST"}
    | node_pools.np-a100.gpu {"type": "nvidia-tesla-a100", "count": 1, "driver": "LATEST"}
    | node_pools.np-t4.capacity.model "queued" | node_pools.np-a100.capacity.model "queued"
    | node_pools.np-t4.size {"count": null, "min": 0, "max": 1}
    | node_pools.np-a100.size {"count": null, "min": 0, "max": 1}
    | node_pools.np-t4.disk {"size_gb": 20, "type": "pd-ssd"}
    | node_pools.np-a100.disk {"size_gb": 20, "type": "pd-ssd"}
    | system_pool {"machine_type": "e2-small", "zone": "us-central1-f", "min": 1, "max": 3,
    "disk_size_gb": 100, "spot": true}

# The pools' own values win over the cluster's.
DISK_SIZE_GB=200 ENABLE_SPOT=yes GKE_MIN_NODE_COUNT=1 GKE_MAX_NODE_COUNT=3
    "GKE_NODE_POOLS=name=a,vm_type=g2-standard-4,disk_size_gb=50,disk_type=pd-balanced,spot=no,\
reservation=mine,count=2;name=b,vm_type=g2-standard-4;name=c,vm_type=g2-standard-4,min=2"
    => node_pools.np-a.disk {"size_gb": 50, "type": "pd-balanced"}
    | node_pools.np-a.capacity.model "reservation" | node_pools.np-a.capacity.reservation "mine"
    | node_pools.np-a.size {"count": 2, "min": null, "max": null}
    | node_pools.np-b.disk {"size_gb": 200, "type": "pd-ssd"}
    | node_pools.np-b.capacity.model "spot"
    | node_pools.np-b.size {"count": null, "min": 1, "max": 3}
    | node_pools.np-c.size {"count": null, "min": 2, "max": 3}

GCS_MOUNT_LIST=data:/mnt/data GCS_OPTIONS=ro
    => gcs_mounts [{"bucket": "data", "path": "/mnt/data", "read_only": true}]

# Storage, identity and labels are handed over as to the other root.
LABELS=team=ml SERVICE_ACCOUNT=default GCS_MOUNT_LIST=data:/mnt/data
    NFS_FILESHARE_LIST=/mnt/nfs:ENTERPRISE:1024
    => labels {"team": "ml"} | service_account {"create": false, "email": null}
    | gcs_mounts [{"bucket": "data", "path": "/mnt/data"}] | filestores
    [{"path": "/mnt/nfs", "tier": "ENTERPRISE", "size_gb": 1024, "location": "us-central1"}]
    | state_folder {"bucket": "bucket", "folder": "np-deployment"}
""")
def test_variables_follow_the_settings(line: str) -> None:
    follows(line, lambda asked: _variables(**{name.lower(): it for name, it in asked.items()}))


def test_a_second_kind_of_network_has_a_place_of_its_own_and_equal_pools_are_equal() -> None:
    kinds = {"mega": "a3-megagpu-8g", "ultra": "a3-ultragpu-8g", "more": "a3-megagpu-8g"}
    pools = (f"name={name},vm_type={machine},spot=yes" for name, machine in kinds.items())
    made = _variables(gke_node_pools=";".join(pools))
    networks = [pool["gpu_networks"] for pool in made["node_pools"].values()]
    assert networks == ["tcpxo", "rdma", "tcpxo"]
    assert [network["mtu"] for network in made["gpu_networks"]] == 8 * [8244]
    assert {kind: len(it) for kind, it in made["more_gpu_networks"].items()} == {"rdma": 2}
    assert made["node_pools"]["np-mega"] == made["node_pools"]["np-more"]


def test_the_control_plane_is_as_the_settings_and_the_run_say() -> None:
    asked = {"gke_release_channel": "rapid", "gke_maintenance": "sun,fri 22:30-06:00"}
    asked |= {"authorized_cidr": "203.0.113.0/24", "enable_ray_operator": "yes"}
    assert _variables("1.33.5-gke.1080000", **asked)["cluster"] == {
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


def test_the_way_to_a_cluster_is_its_dns_endpoint() -> None:
    made_cluster = {"name": "np-gke", "location": "us-central1", "dns_endpoint": "gke-1.gke.goog"}
    pool = {"name": "np-a", "zone": "us-central1-a", "machine_type": "m", "mode": "spot", "max": 2}
    outputs = {"cluster": made_cluster, "node_pools": {"np-a": pool}}
    made = Applied(having(spec=cluster.gke(Settings(MANDATORY))), outputs, postponed=0)
    common: dict[str, Any] = dict.fromkeys(("state", "terraform_state", "billing_label"), "x")
    common["dashboard"] = None
    assert after_apply._connection(made, {})(**common) == ClusterConnection(
        **common,
        cluster="np-gke",
        endpoint="https://gke-1.gke.goog",
        get_credentials="gcloud container clusters get-credentials np-gke"
        " --location us-central1 --project my-project --dns-endpoint",
        node_pools=(NodePoolMade(**cast("Any", pool)),),
        jobs={},
        job_log='gcloud logging read \'resource.type="k8s_container"'
        ' resource.labels.cluster_name="np-gke" resource.labels.location="us-central1"'
        ' labels."k8s-pod/jobset_sigs_k8s_io/jobset-name"="NAME"\''
        " --project my-project --order asc --freshness 30d"
        " --format 'value(textPayload,jsonPayload.message)'",
    )


TEXTS = MANDATORY | {"name_prefix": "demo", "vm_type": "a3-highgpu-8g", "enable_spot": "yes"}
TEXTS |= {"gke_max_node_count": "2", "nfs_fileshare_list": "/mnt/nfs:ZONAL:1024"}
MADE = {"name": "demo-gke", "location": "us-central1"}
POOL = {"name": "demo-nodepool-1", "machine_type": "a3-highgpu-8g", "mode": "spot", "max": 2}
OUTPUTS: dict[str, Any] = {
    "cluster": {**MADE, "dns_endpoint": UNKNOWN, "version": UNKNOWN},
    "node_pools": {"demo-nodepool-1": POOL},
    "networks": [],
    "service_accounts": {"workload": "w@x"},
    "filestores": [{"path": "/mnt/nfs", "ip": UNKNOWN, "share": "/share"}],
}


def _files(version: str | None, manifests: str) -> tuple[dict[str, str], list[Problem]]:
    spec = dataclasses.replace(cluster.gke(Settings(TEXTS)), version=version)
    notes: list[Problem] = []
    context = having(environ={"AIINFRA_MANIFESTS": manifests}, note=notes.extend)
    tool = having(plan=lambda: Plan(foreseen=OUTPUTS))
    found = preview.files(context, having(spec=spec), having(tool=tool))
    return dict(found), notes


def test_without_manifests_all_but_the_add_ons_own_objects_is_written() -> None:
    whole, notes = _files(None, str(session.MANIFESTS))
    bare, silent = _files(None, "")
    assert len(notes) == 2
    assert silent == []
    assert [name for name in bare if name.startswith("jobs/")] == [
        name for name in whole if name.startswith("jobs/")
    ]
    gone = {name[14:] for name in whole} - {name[14:] for name in bare}
    assert gone == {"jobset.yaml", "kinds-of-jobset.yaml", "kinds-of-kueue.yaml", "kueue.yaml"}


@pytest.mark.parametrize(
    ("version", "plugin"), [("1.33.5-gke.1080000", "v3.1.9"), (None, "v3.1.12")]
)
def test_the_version_that_is_asked_for_decides(version: str | None, plugin: str) -> None:
    files, _ = _files(version, "")
    (installer,) = (text for name, text in files.items() if "nccl-on-the-nodes" in name)
    assert f"nccl-plugin-gpudirecttcpx-dev:{plugin}" in installer
    assert UNKNOWN not in installer
    (storage,) = (text for name, text in files.items() if "storage" in name)
    assert f"server: {UNKNOWN}" in storage
