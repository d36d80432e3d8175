"""A network that exists is named whole, lies where the machines are, and takes no share."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from provision.intake import load
from provision.spec import cluster

if TYPE_CHECKING:
    from tests.unit.conftest import Given

HOST = "projects/my-host"
NETWORK = {"NETWORK": f"{HOST}/global/networks/my-vpc"}
SUBNETWORK = {"SUBNETWORK": f"{HOST}/regions/us-central1/subnetworks/gpus"}
EXISTING = {"NETWORK_CONFIG": "existing", **NETWORK, **SUBNETWORK}
NEW = {"NETWORK_CONFIG": "new_network"}
MULTI = {"NETWORK_CONFIG": "multi_nic_network", "VM_TYPE": "a3-megagpu-8g"}
GKE = {"ORCHESTRATOR_TYPE": "gke"}
OF_THE_PROJECT = {
    **GKE,
    "NETWORK_CONFIG": "existing",
    "NETWORK": "my-vpc",
    "SUBNETWORK": "nodes",
    "GKE_PODS_RANGE": "pods",
    "GKE_SERVICES_RANGE": "services",
}
MANDATORY = {"PROJECT_ID": "my-project", "NAME_PREFIX": "np", "ZONE": "us-central1-a"}


def test_a_range_for_pods_of_ones_own_decides_how_many_nodes_fit() -> None:
    many = {"GKE_NODE_POOL_COUNT": "5", "GKE_MIN_NODE_COUNT": "0", "GKE_MAX_NODE_COUNT": "1000"}
    large = MANDATORY | GKE | {"VM_TYPE": "g2-standard-8"} | many

    (usual,) = load(large).problems
    fewer_pods = load(large | {"GKE_MAX_PODS_PER_NODE": "32"}).problems
    (small,) = load(large | {"GKE_PODS_RANGE": "10.128.0.0/14"}).problems

    assert "5003 nodes" in usual.what
    assert fewer_pods == ()
    assert small.what.startswith("'10.128.0.0/14' has room for 1023")


@pytest.mark.parametrize(
    ("environ", "what", "fix"),
    [
        ({"ZONE": "us-central1-a,us-east4-b"}, "zones of us-central1 and of us-east4", "ZONE=us"),
        ({"ZONE": "any", "VM_TYPE": "a3-megagpu-8g"}, "names zones of", "REGION=asia-east1, or"),
        (
            {
                "ZONE": "us-central1-*",
                "GKE_NODE_POOLS": "name=a,vm_type=g2-standard-8,zone=us-central1-a",
            },
            "each pool of GKE_NODE_POOLS has its own",
            "ZONE=us-central1-a, or leave zone out",
        ),
        (
            {
                "ZONE": "us-central1-a,us-central1-b",
                "GKE_NODE_POOLS": "name=a,vm_type=a3-ultragpu-8g,count=2,zone=us-central1-b"
                ";name=b,vm_type=a3-ultragpu-8g,count=2",
            },
            "has pools with RDMA in us-central1-a and us-central1-b",
            "zone=us-central1-a for all of them",
        ),
    ],
)
def test_the_pools_of_a_cluster_go_from_zone_to_zone_within_what_it_can_be(
    environ: dict[str, str], what: str, fix: str
) -> None:
    problems = load(MANDATORY | GKE | environ).problems

    found = [it for it in problems if what in it.what]
    assert len(found) == 1, problems
    assert fix in found[0].fix


@pytest.mark.parametrize(
    "environ", [{"ZONE": "us-central1-*"}, {"ZONE": "any", "REGION": "us-central1"}]
)
def test_zones_of_one_region_are_enough_for_a_cluster(environ: dict[str, str]) -> None:
    assert load(MANDATORY | GKE | environ).problems == ()


@pytest.mark.parametrize(
    ("environ", "setting", "what", "fix"),
    [
        ({**EXISTING, "NETWORK": ""}, "NETWORK", "is required", "NETWORK=<its name>"),
        ({**EXISTING, "SUBNETWORK": ""}, "SUBNETWORK", "is required", "NETWORK_CONFIG=new_network"),
        (NETWORK, "NETWORK", "has no effect with NETWORK_CONFIG=default", "=existing, or remove"),
        (SUBNETWORK, "SUBNETWORK", "has no effect", "NETWORK_CONFIG=existing, or remove SUBNET"),
        (
            {**EXISTING, "NETWORK": "projects/other/global/networks/my-vpc"},
            "SUBNETWORK",
            "is in my-host, NETWORK in other",
            "paths of one project",
        ),
        (
            {**EXISTING, "ZONE": "europe-west4-a"},
            "SUBNETWORK",
            "has gpus in us-central1, where the zone europe-west4-a is not",
            "a subnetwork in europe-west4, or a ZONE in us-central1",
        ),
        (
            {**EXISTING, "GPU_SUBNETWORKS": "gpu-{1..8}", "VM_TYPE": "a2-highgpu-8g"},
            "GPU_SUBNETWORKS",
            "means nothing with a2-highgpu-8g",
            "remove GPU_SUBNETWORKS",
        ),
        (
            {**EXISTING, "GPU_SUBNETWORKS": "gpu-{0..6}", "VM_TYPE": "a3-megagpu-8g"},
            "GPU_SUBNETWORKS",
            "names 7, and a3-megagpu-8g has 8 interfaces beside the first",
            "8 of them, such as gpu-{1..8}",
        ),
        (
            {"GPU_SUBNETWORKS": "gpu-{1..8}", "VM_TYPE": "a3-megagpu-8g"},
            "GPU_SUBNETWORKS",
            "has no effect",
            "NETWORK_CONFIG=existing, or remove GPU_SUBNETWORKS",
        ),
        (
            {"MAKE_FIREWALL": "yes", "NETWORK_CONFIG": "new_network"},
            "MAKE_FIREWALL",
            "has no effect with NETWORK_CONFIG=new_network",
            "NETWORK_CONFIG=existing, or remove MAKE_FIREWALL",
        ),
        (
            {**EXISTING, "MAKE_FIREWALL": "yes", "SKIP_CHECKS": "subnetwork"},
            "MAKE_FIREWALL",
            "can't stand beside SKIP_CHECKS=subnetwork",
            "remove one of MAKE_FIREWALL and SKIP_CHECKS",
        ),
        (
            {**EXISTING, "ORCHESTRATOR_TYPE": "gke", "GKE_SERVICES_RANGE": "services"},
            "GKE_PODS_RANGE",
            "is required with NETWORK_CONFIG=existing",
            "GKE_PODS_RANGE=<its name>",
        ),
        (
            {"ORCHESTRATOR_TYPE": "gke", "GKE_PODS_RANGE": "pods"},
            "GKE_PODS_RANGE",
            "has no effect",
            "NETWORK_CONFIG=existing, or remove GKE_PODS_RANGE",
        ),
        (
            {
                **EXISTING,
                "ORCHESTRATOR_TYPE": "gke",
                "VM_TYPE": "a3-megagpu-8g",
                "GKE_PODS_RANGE": "pods",
                "GKE_SERVICES_RANGE": "services",
            },
            "NETWORK_CONFIG",
            "is not for GKE nodes of a3-megagpu-8g",
            "a VM group",
        ),
        (
            {**OF_THE_PROJECT, "VM_TYPE": "a3-megagpu-8g"},
            "NETWORK_CONFIG",
            "is not for GKE nodes of a3-megagpu-8g",
            "GPU_SUBNETWORKS=gpu-{1..8}",
        ),
        (
            {
                **OF_THE_PROJECT,
                "GPU_SUBNETWORKS": "gpu-{1..8}",
                "GKE_NODE_POOLS": "name=a,vm_type=a3-megagpu-8g,count=1"
                ";name=b,vm_type=a3-highgpu-8g,count=1",
            },
            "NETWORK_CONFIG",
            "is not for GKE nodes of a3-megagpu-8g",
            "pools of one of them",
        ),
        (
            {
                **OF_THE_PROJECT,
                "GPU_SUBNETWORKS": "gvnic-1,rdma-{0..7}",
                "GKE_NODE_POOLS": "name=a,vm_type=a3-ultragpu-8g,count=1"
                ";name=b,vm_type=a4x-highgpu-4g,count=1",
            },
            "NETWORK_CONFIG",
            "is not for GKE nodes of a3-ultragpu-8g",
            "pools of one of them",
        ),
        (
            {**OF_THE_PROJECT, "GPU_SUBNETWORKS": "gpu-{1..4}", "VM_TYPE": "a3-megagpu-8g"},
            "GPU_SUBNETWORKS",
            "names 4, and a3-megagpu-8g has 8 interfaces beside the first",
            "8 of them, such as gpu-{1..8}",
        ),
        (
            {**OF_THE_PROJECT, "GPU_SUBNETWORKS": "gpu-{1..4}", "VM_TYPE": "g2-standard-24"},
            "GPU_SUBNETWORKS",
            "means nothing with g2-standard-24",
            "remove GPU_SUBNETWORKS",
        ),
        (
            {**GKE, **EXISTING, "GKE_PODS_RANGE": "10.64.8.0/21", "GKE_SERVICES_RANGE": "services"},
            "GKE_PODS_RANGE",
            "is an IP range, and has to be the name of one",
            "GKE_PODS_RANGE=<its name>",
        ),
        (
            {"NETWORK_RANGE": "10.64.0.0/24"},
            "NETWORK_RANGE",
            "has no effect with NETWORK_CONFIG=default_network",
            "NETWORK_CONFIG=new_network, or remove NETWORK_RANGE",
        ),
        (
            {**EXISTING, "NETWORK_RANGE": "10.64.0.0/24"},
            "NETWORK_RANGE",
            "has no effect with NETWORK_CONFIG=existing",
            "remove NETWORK_RANGE",
        ),
        (
            {**NEW, "NETWORK_RANGE": "10.64.0.0/29", "INSTANCE_COUNT": "5"},
            "NETWORK_RANGE",
            "'10.64.0.0/29' has room for 4, and not for 5 VMs",
            "a /28 or larger, or INSTANCE_COUNT=4",
        ),
        (
            {**MULTI, "NETWORK_RANGE": "10.64.0.0/24", "INSTANCE_COUNT": "13"},
            "NETWORK_RANGE",
            "has room for 12, and not for 13 VMs, of which each interface has a /28",
            "a /23 or larger, or INSTANCE_COUNT=12",
        ),
        (
            {**GKE, "NETWORK_RANGE": "10.64.0.0/29"},
            "NETWORK_RANGE",
            "has room for 2, and not for 4 nodes",
            "a /28 or larger, or fewer nodes",
        ),
        (
            {**GKE, "GKE_PODS_RANGE": "10.64.8.0/22"},
            "GKE_PODS_RANGE",
            "'10.64.8.0/22' has room for 3, and not for 4 nodes",
            "a /21 or larger, or fewer nodes (GKE_MAX_NODE_COUNT, max of SYSTEM_NODE_POOL), or",
        ),
        (
            {**GKE, "NETWORK_RANGE": "10.16.0.0/24"},
            "NETWORK_RANGE",
            "overlaps GKE_PODS_RANGE, which is 10.16.0.0/12 if unset",
            "another NETWORK_RANGE or GKE_PODS_RANGE",
        ),
        (
            {**GKE, "GKE_SERVICES_RANGE": "10.64.0.0/28"},
            "GKE_SERVICES_RANGE",
            "is a /28",
            "a /20",
        ),
        (
            {**NEW, "NETWORK_RANGE": "100.64.0.0/24", "NFS_FILESHARE_LIST": "/mnt/nfs:BASIC_SSD"},
            "NETWORK_RANGE",
            "can't mount the shares",
            "GCS_MOUNT_LIST",
        ),
    ],
)
def test_what_does_not_go_together_is_refused(
    given: Given, environ: dict[str, str], setting: str, what: str, fix: str
) -> None:
    problem = given(**{name: value for name, value in environ.items() if value}).problem(setting)

    assert what in problem.what
    assert problem.why
    assert fix in problem.fix


@pytest.mark.parametrize(
    ("network", "subnetwork", "project"),
    [
        ("my-vpc", "gpus", "my-project"),
        (NETWORK["NETWORK"], "gpus", "my-host"),
        ("my-vpc", SUBNETWORK["SUBNETWORK"], "my-host"),
        (
            f"https://www.googleapis.com/compute/v1/{NETWORK['NETWORK']}",
            f"https://compute.googleapis.com/compute/v1/{SUBNETWORK['SUBNETWORK']}",
            "my-host",
        ),
    ],
)
def test_a_name_alone_is_of_the_project_that_the_other_has(
    network: str, subnetwork: str, project: str
) -> None:
    named = {"NETWORK_CONFIG": "existing", "NETWORK": network, "SUBNETWORK": subnetwork}
    settings = load(MANDATORY | named).settings
    assert settings is not None
    spec = cluster.vms(settings)

    assert spec.existing is not None
    assert spec.existing.path == f"projects/{project}/global/networks/my-vpc"
    there = f"projects/{project}/regions/{{}}/subnetworks/gpus"
    assert spec.existing.subnetwork.path == there.format("us-central1")
    assert not spec.makes_network
    assert not spec.group.external_ip
    moved = spec.in_zone("europe-west4-a").existing
    assert moved is not None
    assert moved.subnetwork.path == there.format("europe-west4")


def test_a_share_is_made_on_an_existing_network_of_the_same_project(given: Given) -> None:
    case = given(
        **EXISTING,
        PROJECT_ID="my-host",
        NFS_FILESHARE_LIST="/mnt/nfs:BASIC_SSD",
    )
    assert "NFS_FILESHARE_LIST" not in case.refused


@pytest.mark.parametrize("name", ["projects/my-host/networks/my-vpc", "My_VPC", "vpc/gpus"])
def test_what_is_no_name_hears_the_form(given: Given, name: str) -> None:
    assert "projects/<project>/global/networks/<name>" in given(NETWORK=name).problem("NETWORK").why
    there = "projects/<project>/regions/<region>/subnetworks/<name>"
    assert there in given(SUBNETWORK=name).problem("SUBNETWORK").why


def test_subnetworks_of_gpus_are_named_one_by_one_or_by_their_numbers() -> None:
    gpus = f"gvnic,rdma-{{0..6}},{HOST}/regions/us-central1/subnetworks/last"
    ultra = {"VM_TYPE": "a3-ultragpu-8g", "ZONE": "us-central1-b", "ENABLE_SPOT": "yes"}
    settings = load(MANDATORY | EXISTING | ultra | {"GPU_SUBNETWORKS": gpus}).settings
    assert settings is not None
    spec = cluster.vms(settings)

    assert spec.existing is not None
    assert [it.name for it in spec.existing.gpus] == [
        "gvnic",
        *(f"rdma-{number}" for number in range(7)),
        "last",
    ]
    assert {it.path.rpartition("/")[0] for it in spec.existing.gpus} == {
        f"{HOST}/regions/us-central1/subnetworks"
    }
