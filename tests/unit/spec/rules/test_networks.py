"""A network that exists is named whole, lies where the machines are, and takes no share."""

import pytest

from tests.unit.conftest import Given, vm_spec
from tests.unit.table import Row, rows

HOST = "projects/my-host"
NETWORK = f"{HOST}/global/networks/my-vpc"
SUBNETWORK = f"{HOST}/regions/us-central1/subnetworks/gpus"

TABLE = """
NETWORK_CONFIG=existing @SUBNETWORK -> NETWORK: is required | NETWORK=<its name>
NETWORK_CONFIG=existing @NETWORK -> SUBNETWORK: is required | NETWORK_CONFIG=new_network
@NETWORK -> NETWORK: has no effect with NETWORK_CONFIG=default | =existing, or remove
@SUBNETWORK -> SUBNETWORK: has no effect | NETWORK_CONFIG=existing, or remove SUBNET
@EXISTING NETWORK=projects/others/global/networks/my-vpc
    -> SUBNETWORK: is in my-host, NETWORK in other | paths of one project
@EXISTING ZONE=europe-west4-a
    -> SUBNETWORK: has gpus in us-central1, where the zone europe-west4-a is not
    | a subnetwork in europe-west4, or a ZONE in us-central1
@EXISTING PROJECT_ID=my-host NFS_FILESHARE_LIST=/mnt/nfs:BASIC_SSD -- NFS_FILESHARE_LIST
NETWORK=(projects/my-host/networks/my-vpc|My_VPC|vpc/gpus)
    -> NETWORK: projects/<project>/global/networks/<name>
SUBNETWORK=(projects/my-host/networks/my-vpc|My_VPC|vpc/gpus)
    -> SUBNETWORK: projects/<project>/regions/<region>/subnetworks/<name>

@EXISTING @8_GPUS VM_TYPE=a2-highgpu-8g
    -> GPU_SUBNETWORKS: means nothing with a2-highgpu-8g | remove GPU_SUBNETWORKS
@EXISTING GPU_SUBNETWORKS=gpu-{0..6} VM_TYPE=a3-megagpu-8g
    -> GPU_SUBNETWORKS: names 7, and a3-megagpu-8g has 8 interfaces beside the first
    | 8 of them, such as gpu-{1..8}
@8_GPUS VM_TYPE=a3-megagpu-8g
    -> GPU_SUBNETWORKS: has no effect | NETWORK_CONFIG=existing, or remove GPU_SUBNETWORKS
MAKE_FIREWALL=yes NETWORK_CONFIG=new_network
    -> MAKE_FIREWALL: has no effect with NETWORK_CONFIG=new_network
    | NETWORK_CONFIG=existing, or remove MAKE_FIREWALL
@EXISTING MAKE_FIREWALL=yes SKIP_CHECKS=subnetwork
    -> MAKE_FIREWALL: can't stand beside SKIP_CHECKS=subnetwork
    | remove one of MAKE_FIREWALL and SKIP_CHECKS

@GKE NETWORK_CONFIG=new_network -> NETWORK_CONFIG: has no effect
@GKE @EXISTING GKE_SERVICES_RANGE=services
    -> GKE_PODS_RANGE: is required with NETWORK_CONFIG=existing | GKE_PODS_RANGE=<its name>
@GKE GKE_PODS_RANGE=pods
    -> GKE_PODS_RANGE: has no effect | NETWORK_CONFIG=existing, or remove GKE_PODS_RANGE
@GKE @EXISTING VM_TYPE=a3-megagpu-8g GKE_PODS_RANGE=pods GKE_SERVICES_RANGE=services
    -> NETWORK_CONFIG: is not for GKE nodes of a3-megagpu-8g | a VM group
@OF_THE_PROJECT VM_TYPE=a3-megagpu-8g
    -> NETWORK_CONFIG: is not for GKE nodes of a3-megagpu-8g | GPU_SUBNETWORKS=gpu-{1..8}
@OF_THE_PROJECT @8_GPUS
    GKE_NODE_POOLS=name=a,vm_type=a3-megagpu-8g,count=1;name=b,vm_type=a3-highgpu-8g,count=1
    -> NETWORK_CONFIG: is not for GKE nodes of a3-megagpu-8g | pools of one of them
@OF_THE_PROJECT GPU_SUBNETWORKS=gvnic-1,rdma-{0..7}
    GKE_NODE_POOLS=name=a,vm_type=a3-ultragpu-8g,count=1;name=b,vm_type=a4x-highgpu-4g,count=1
    -> NETWORK_CONFIG: is not for GKE nodes of a3-ultragpu-8g | pools of one of them
@OF_THE_PROJECT GPU_SUBNETWORKS=gpu-{1..4} VM_TYPE=a3-megagpu-8g
    -> GPU_SUBNETWORKS: names 4, and a3-megagpu-8g has 8 interfaces beside the first
    | 8 of them, such as gpu-{1..8}
@OF_THE_PROJECT GPU_SUBNETWORKS=gpu-{1..4} VM_TYPE=g2-standard-24
    -> GPU_SUBNETWORKS: means nothing with g2-standard-24 | remove GPU_SUBNETWORKS
@GKE @EXISTING GKE_PODS_RANGE=10.64.8.0/21 GKE_SERVICES_RANGE=services
    -> GKE_PODS_RANGE: is an IP range, and has to be the name of one | GKE_PODS_RANGE=<its name>

NETWORK_RANGE=10.64.0.0/24
    -> NETWORK_RANGE: has no effect with NETWORK_CONFIG=default_network
    | NETWORK_CONFIG=new_network, or remove NETWORK_RANGE
@EXISTING NETWORK_RANGE=10.64.0.0/24
    -> NETWORK_RANGE: has no effect with NETWORK_CONFIG=existing | remove NETWORK_RANGE
@NEW NETWORK_RANGE=10.64.0.0/29 INSTANCE_COUNT=5
    -> NETWORK_RANGE: '10.64.0.0/29' has room for 4, and not for 5 VMs
    | a /28 or larger, or INSTANCE_COUNT=4
NETWORK_CONFIG=multi_nic_network VM_TYPE=a3-megagpu-8g NETWORK_RANGE=10.64.0.0/24 INSTANCE_COUNT=13
    -> NETWORK_RANGE: has room for 12, and not for 13 VMs, of which each interface has a /28
    | a /23 or larger, or INSTANCE_COUNT=12
@GKE NETWORK_RANGE=10.64.0.0/29
    -> NETWORK_RANGE: has room for 2, and not for 4 nodes | a /28 or larger, or fewer nodes
@GKE GKE_PODS_RANGE=10.64.8.0/22
    -> GKE_PODS_RANGE: '10.64.8.0/22' has room for 3, and not for 4 nodes
    | a /21 or larger, or fewer nodes (GKE_MAX_NODE_COUNT, max of SYSTEM_NODE_POOL), or
@GKE NETWORK_RANGE=10.16.0.0/24
    -> NETWORK_RANGE: overlaps GKE_PODS_RANGE, which is 10.16.0.0/12 if unset
    | another NETWORK_RANGE or GKE_PODS_RANGE
@GKE GKE_SERVICES_RANGE=10.64.0.0/29 -> GKE_SERVICES_RANGE: is a /29 | a /20
@GKE GKE_SERVICES_RANGE=10.64.0.0/28 ~> GKE_SERVICES_RANGE: is a /28 | a /20
@NEW NETWORK_RANGE=100.64.0.0/24 NFS_FILESHARE_LIST=/mnt/nfs:BASIC_SSD
    -> NETWORK_RANGE: can't mount the shares | GCS_MOUNT_LIST
# A range for pods of one's own decides how many nodes fit.
@GKE @MANY -> GKE_NODE_POOL_COUNT: 5003 nodes
@GKE @MANY GKE_MAX_PODS_PER_NODE=32 --
@GKE @MANY GKE_PODS_RANGE=10.128.0.0/14
    -> GKE_PODS_RANGE: '10.128.0.0/14' has room for 1023
"""


@rows(
    TABLE,
    EXISTING=f"NETWORK_CONFIG=existing NETWORK={NETWORK} SUBNETWORK={SUBNETWORK}",
    NETWORK=f"NETWORK={NETWORK}",
    SUBNETWORK=f"SUBNETWORK={SUBNETWORK}",
    NEW="NETWORK_CONFIG=new_network",
    GKE="ORCHESTRATOR_TYPE=gke",
    OF_THE_PROJECT="ORCHESTRATOR_TYPE=gke NETWORK_CONFIG=existing NETWORK=my-vpc SUBNETWORK=nodes"
    " GKE_PODS_RANGE=pods GKE_SERVICES_RANGE=services",
    MANY="VM_TYPE=g2-standard-8 GKE_NODE_POOL_COUNT=5 GKE_MIN_NODE_COUNT=0 GKE_MAX_NODE_COUNT=1000",
    **{"8_GPUS": "GPU_SUBNETWORKS=gpu-{1..8}"},
)
def test_what_is_said_of_networks_goes_together(given: Given, row: Row) -> None:
    row.holds(given)


@pytest.mark.parametrize(
    ("network", "subnetwork", "project"),
    [
        ("my-vpc", "gpus", "my-project"),
        (NETWORK, "gpus", "my-host"),
        ("my-vpc", SUBNETWORK, "my-host"),
        (
            f"https://www.googleapis.com/compute/v1/{NETWORK}",
            f"https://compute.googleapis.com/compute/v1/{SUBNETWORK}",
            "my-host",
        ),
    ],
)
def test_a_name_alone_is_of_the_project_that_the_other_has(
    network: str, subnetwork: str, project: str
) -> None:
    spec = vm_spec(NETWORK_CONFIG="existing", NETWORK=network, SUBNETWORK=subnetwork)

    assert spec.existing is not None
    assert spec.existing.path == f"projects/{project}/global/networks/my-vpc"
    there = f"projects/{project}/regions/{{}}/subnetworks/gpus"
    assert spec.existing.subnetwork.path == there.format("us-central1")
    assert not spec.makes_network
    assert not spec.group.external_ip
    moved = spec.in_zone("europe-west4-a").existing
    assert moved is not None
    assert moved.subnetwork.path == there.format("europe-west4")


def test_subnetworks_of_gpus_are_named_one_by_one_or_by_their_numbers() -> None:
    gpus = f"gvnic,rdma-{{0..6}},{HOST}/regions/us-central1/subnetworks/last"
    ultra = {"VM_TYPE": "a3-ultragpu-8g", "ZONE": "us-central1-b", "ENABLE_SPOT": "yes"}
    ultra |= {"NETWORK_CONFIG": "existing", "NETWORK": NETWORK, "SUBNETWORK": SUBNETWORK}
    spec = vm_spec(GPU_SUBNETWORKS=gpus, **ultra)

    assert spec.existing is not None
    names = ["gvnic", *(f"rdma-{number}" for number in range(7)), "last"]
    assert [it.name for it in spec.existing.gpus] == names
    there = {it.path.rpartition("/")[0] for it in spec.existing.gpus}
    assert there == {f"{HOST}/regions/us-central1/subnetworks"}
