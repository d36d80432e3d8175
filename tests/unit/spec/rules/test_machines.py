"""Machine types, GPUs, disks and network interfaces that go together, and those that do not."""

from tests.unit.conftest import Given
from tests.unit.table import Row, rows

TABLE = """
GPU_COUNT=4 -> GPU_COUNT: not the number of GPUs of a2-highgpu-2g
ACCELERATOR_TYPE=nvidia-l4 -> ACCELERATOR_TYPE: not the GPU of a2-highgpu-2g
GPU_COUNT=2 ACCELERATOR_TYPE=nvidia-tesla-a100 --
VM_TYPE=a3-megagpu-8g GPU_COUNT=4 -> GPU_COUNT: a3-megagpu-8g
@N1 GPU_COUNT=1 -> ACCELERATOR_TYPE: is required
@N1 ACCELERATOR_TYPE=nvidia-tesla-t4 -> GPU_COUNT: is required for n1-standard-8
@N1 ACCELERATOR_TYPE=nvidia-l4 GPU_COUNT=1 -> ACCELERATOR_TYPE: can't be attached
@N1 ACCELERATOR_TYPE=nvidia-tesla-t4 GPU_COUNT=3 -> GPU_COUNT: is not a number of nvidia-tesla-t4
VM_TYPE=n1-highmem-96 ACCELERATOR_TYPE=nvidia-tesla-t4 GPU_COUNT=2
    -> GPU_COUNT: is not a number of nvidia-tesla-t4

DISK_TYPE=pd-extreme -> DISK_TYPE: can't be the boot disk of a2-highgpu-2g
VM_TYPE=a4-highgpu-8g DISK_TYPE=pd-ssd -> DISK_TYPE: a4-highgpu-8g
VM_TYPE=a4-highgpu-8g DISK_TYPE=hyperdisk-balanced ENABLE_SPOT=yes --
# What is not known is decided by Google.
VM_TYPE=c3-standard-4 DISK_TYPE=pd-extreme GPU_COUNT=3 --
VM_TYPE=a9-highgpu-8g ~> VM_TYPE: does not know
# What Google has, and this tool can make nothing of.
VM_TYPE=(a5x-highgpu-4g-metal|a5x-highgpu-4g-metal-nolssd) -> VM_TYPE: does not set up | bare metal
@GKE VM_TYPE=a5x-highgpu-4g-metal -> VM_TYPE: does not set up
VM_TYPE=a2-higgpu-2g ~> VM_TYPE: does not know | did you mean a2-highgpu-2g?
VM_TYPE=a2-highgpu-3g ~> VM_TYPE: does not know | did you mean a2-highgpu-2g or a2-highgpu-4g?
@GKE VM_TYPE=a2-higgpu-2g -> ACCELERATOR_TYPE: did you mean a2-highgpu-2g?
@GKE VM_TYPE=a2-highgpu-3g -> ACCELERATOR_TYPE: did you mean a2-highgpu-2g or a2-highgpu-4g?

@MULTI VM_TYPE=g2-standard-4
    -> NETWORK_CONFIG: gives each VM 5 network interfaces, more than g2-standard-4 supports
    | with its 4 vCPUs it supports 4: | NETWORK_CONFIG=new_network, or VM_TYPE=g2-standard-8
@MULTI VM_TYPE=g2-standard-8 --
@MULTI VM_TYPE=n1-highcpu-2 @T4
    -> NETWORK_CONFIG: with its 2 vCPUs it supports 2: | VM_TYPE=n1-highcpu-8
@MULTI VM_TYPE=n1-highcpu-8 @T4 --
@MULTI VM_TYPE=(g2-standard-8|g4-standard-48)
    ~> NETWORK_CONFIG: gives each VM 4 more network interfaces, which nothing uses
    | NCCL is told the first interface | NETWORK_CONFIG=new_network
VM_TYPE=a3-megagpu-8g INSTANCE_COUNT=2 NETWORK_CONFIG=(default_network|new_network)
    ~> NETWORK_CONFIG: one network interface instead of 9 | GPUDirect-TCPXO
    | NETWORK_CONFIG=multi_nic_network
VM_TYPE=a3-megagpu-8g INSTANCE_COUNT=2 ~> NETWORK_CONFIG: one network interface instead of 9
# one VM has no other's GPUs to reach, and no setting gives VMs of A3 High their network
VM_TYPE=(a3-megagpu-8g|a3-highgpu-8g) -- NETWORK_CONFIG, VM_TYPE
VM_TYPE=a3-highgpu-8g INSTANCE_COUNT=2 NETWORK_CONFIG=(new_network|multi_nic_network)
    -- NETWORK_CONFIG
VM_TYPE=a3-highgpu-8g INSTANCE_COUNT=2 NETWORK_CONFIG=new_network
    ~> VM_TYPE: GPUDirect-TCPX on VMs | about 24 GB/s | instead of 83 | a GKE cluster
SECURE_BOOT=yes VM_TYPE=a3-megagpu-8g INSTANCE_COUNT=2 @SIGNED
    ~> NETWORK_CONFIG: NETWORK_CONFIG=multi_nic_network and SECURE_BOOT=no
@MULTI VM_TYPE=(a3-megagpu-8g|a9-highgpu-8g) -- NETWORK_CONFIG
VM_TYPE=g2-standard-4 NETWORK_CONFIG=new_network -- NETWORK_CONFIG
@GKE VM_TYPE=(a3-megagpu-8g|g2-standard-4) -- NETWORK_CONFIG
VM_TYPE=g4-standard-384 ENABLE_SPOT=yes ~> VM_TYPE: two network interfaces | half the bandwidth
@GKE VM_TYPE=g4-standard-384 ENABLE_SPOT=yes ~> VM_TYPE: two network interfaces
VM_TYPE=g4-standard-192 ENABLE_SPOT=yes -- VM_TYPE
"""


@rows(
    TABLE,
    GKE="ORCHESTRATOR_TYPE=gke",
    MULTI="NETWORK_CONFIG=multi_nic_network",
    SIGNED="IMAGE_PROJECT=ubuntu-os-accelerator-images IMAGE_NAME=u",
    N1="VM_TYPE=n1-standard-8",
    T4="ACCELERATOR_TYPE=nvidia-tesla-t4 GPU_COUNT=1",
)
def test_a_machine_gets_what_it_can_have(given: Given, row: Row) -> None:
    row.holds(given)


def test_a_type_that_nobody_meant_gets_no_guess(given: Given) -> None:
    assert given(VM_TYPE="a9-highgpu-8g")["GPU_COUNT"] is None
    assert not given(VM_TYPE="a9-new-8g").note("VM_TYPE").fix
    pool = given(VM_TYPE="a9-new-8g", ORCHESTRATOR_TYPE="gke").problem("ACCELERATOR_TYPE")
    assert "did you mean" not in pool.why


def test_a_rule_is_silent_while_what_it_compares_is_bad(given: Given) -> None:
    case = given(VM_TYPE="A2-highgpu-3g", GPU_COUNT="7", DISK_TYPE="pd-extreme", REGION="nowhere")

    assert case.refused == {"VM_TYPE", "REGION"}


def test_a_rule_that_asks_for_the_kind_is_silent_while_nobody_knows_it(given: Given) -> None:
    case = given(ORCHESTRATOR_TYPE="nomad", RAY_VERSION="2.40.0", HTTPS_PROXY="http://localhost:1")

    assert case.refused == {"ORCHESTRATOR_TYPE"}
    assert "HTTPS_PROXY" not in case.noted
    assert "HTTPS_PROXY" in given(HTTPS_PROXY="http://localhost:1").noted
