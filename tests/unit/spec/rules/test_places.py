"""Where Google offers what, in which ways, and until when: what is said before it is asked."""

import pytest

from tests.unit.conftest import Given
from tests.unit.table import Row, rows

TABLE = """
REGION=us-east1 -> REGION: does not contain the zone us-central1-a
REGION=us-central1 --

# The pools of a cluster go from zone to zone within what it can be.
@GKE ZONE=us-central1-a,us-east4-b -> ZONE: zones of us-central1 and of us-east4 | ZONE=us
@GKE ZONE=any VM_TYPE=a3-megagpu-8g -> ZONE: names zones of | REGION=asia-east1, or
@GKE ZONE=us-central1-* GKE_NODE_POOLS=name=a,vm_type=g2-standard-8,zone=us-central1-a
    -> ZONE: each pool of GKE_NODE_POOLS has its own | ZONE=us-central1-a, or leave zone out
@GKE ZONE=us-central1-a,us-central1-b
    GKE_NODE_POOLS=name=a,vm_type=a3-ultragpu-8g,count=2,zone=us-central1-b;name=b,@TWO_ULTRA
    -> GKE_NODE_POOLS: has pools with RDMA in us-central1-a and us-central1-b
    | zone=us-central1-a for all of them
@GKE ZONE=us-central1-* --
@GKE ZONE=any REGION=us-central1 --

# Zones and regions that are not in the list.
ZONE=us-central1-z ~> ZONE: list of zones
ZONE=(us-west8-a|us-east7-b|europe-west15-c) VM_TYPE=c3-standard-4
    ~> ZONE: a region that is not in this tool's list | 2026-04-27
ZONE=us-cental1-b ~> ZONE: did you mean us-central1-b?
ZONE=(us-central1-ai1a|us-south1-ai1b|europe-west4-ai1a) VM_TYPE=g4-standard-48
    ~> ZONE: only once they are turned on | ai-zones-visibility

# What is not in the list of a zone.
ZONE=us-west2-a VM_TYPE=a3-ultragpu-8g ENABLE_SPOT=yes
    ~> ZONE: a zone where a3-ultragpu-8g was not offered on 2026-08-17
    | it in us-central1, us-east4, us-east5, us-south1, us-west1, asia-south1,
    | the online check decides
ZONE=europe-north1-a VM_TYPE=a3-ultragpu-8g ENABLE_SPOT=yes
    ~> ZONE: europe-west1, europe-west4, asia-south1
ZONE=us-west2-b ACCELERATOR_TYPE=nvidia-tesla-t4 @N1 -- ZONE
ZONE=us-east5-a ACCELERATOR_TYPE=nvidia-tesla-v100 @N1 IMAGE_NAME=mine
    ~> ZONE: nvidia-tesla-v100 was not offered on 2026-08-10
@GKE ZONE=us-east4-a
    GKE_NODE_POOLS=name=a,vm_type=a2-megagpu-16g;name=b,vm_type=g2-standard-4,zone=us-east4-b
    ~> GKE_NODE_POOLS: has a pool in us-east4-a, where a2-megagpu-16g
ZONE=africa-south1-a VM_TYPE=c3-standard-4 -- ZONE

# Parts of a GPU, and GPUs whose support ends.
@HERE VM_TYPE=g4-standard-6 ~> VM_TYPE: has 1/8 of a GPU, which counts as one GPU | vGPU driver
@HERE VM_TYPE=g4-standard-12 ~> VM_TYPE: has 1/4 of a GPU, which counts as one GPU | vGPU driver
@HERE VM_TYPE=g4-standard-24 ~> VM_TYPE: has 1/2 of a GPU, which counts as one GPU | vGPU driver
@HERE VM_TYPE=g4-standard-6 @GKE GKE_VERSION=1.33. -> GKE_VERSION: 1.34.5-gke.1153000
@HERE VM_TYPE=g4-standard-96 GPU_COUNT=1 -> GPU_COUNT: VM_TYPE=g4-standard-48
@N1 ACCELERATOR_TYPE=nvidia-tesla-p100
    -> ACCELERATOR_TYPE: is a GPU whose support Google has ended on 2026-09-15
@N1 IMAGE_NAME=with-its-driver ACCELERATOR_TYPE=nvidia-tesla-(t4|p4)
    ~> ACCELERATOR_TYPE: supports until 2027-08-01

# What Google never gives in a way, and what its pages disagree about.
@HERE VM_TYPE=(a4-highgpu-8g|a4x-highgpu-4g) -> VM_TYPE: is not available
    | future reservation of AI Hypercomputer | RESERVATION_NAME=<your reservation>
@HERE VM_TYPE=a4x-(highgpu-4g|maxgpu-4g-metal) ENABLE_SPOT=yes -> ENABLE_SPOT: is not available
    | future reservation of AI Hypercomputer | RESERVATION_NAME=<your reservation>
@HERE VM_TYPE=a4x-highgpu-4g ENABLE_FLEX_START=yes -> ENABLE_FLEX_START: is not available
    | future reservation of AI Hypercomputer | RESERVATION_NAME=<your reservation>
@HERE VM_TYPE=(a4-highgpu-8g|a4x-highgpu-4g|a4x-maxgpu-4g-metal) RESERVATION_NAME=r --
@HERE VM_TYPE=a3-ultragpu-8g ~> VM_TYPE: may not be available on demand
    | spot, flex start, reservation in calendar mode or future reservation
@HERE @GKE VM_TYPE=a3-ultragpu-8g ~> VM_TYPE: may not get a3-ultragpu-8g nodes
@HERE @GKE VM_TYPE=a4-highgpu-8g -> VM_TYPE: can't get a4-highgpu-8g nodes
"""


@rows(
    TABLE,
    GKE="ORCHESTRATOR_TYPE=gke",
    HERE="ZONE=us-central1-b",
    N1="VM_TYPE=n1-standard-8 GPU_COUNT=1",
    TWO_ULTRA="vm_type=a3-ultragpu-8g,count=2",
)
def test_what_is_asked_for_is_where_it_is_asked_for(given: Given, row: Row) -> None:
    row.holds(given)


@pytest.mark.parametrize("zone", ["us-west8-a", "us-east7-b", "europe-west15-c"])
def test_a_region_that_is_not_in_the_list_gets_no_wrong_guess(given: Given, zone: str) -> None:
    case = given(ZONE=zone, VM_TYPE="c3-standard-4")

    assert case["REGION"] == zone[:-2]
    assert not case.note("ZONE").fix


@pytest.mark.parametrize(
    ("vm_type", "way"),
    [
        ("g4-standard-6", {}),
        ("g4-standard-12", {"ENABLE_SPOT": "yes"}),
        ("g4-standard-24", {"ENABLE_FLEX_START": "yes"}),
        ("a3-ultragpu-8g-nolssd", {"ENABLE_SPOT": "yes"}),
        ("a3-edgegpu-8g", {"ENABLE_SPOT": "yes"}),
        ("a3-edgegpu-8g-nolssd", {"RESERVATION_NAME": "r"}),
        ("a4x-maxgpu-4g-metal", {"RESERVATION_NAME": "r"}),
    ],
)
def test_a_type_that_exists_is_known(given: Given, vm_type: str, way: dict[str, str]) -> None:
    case = given(VM_TYPE=vm_type, ZONE="us-central1-b", **way)

    assert not case.loaded.problems
    assert case["GPU_COUNT"] == 1 if "g4" in vm_type else case["GPU_COUNT"]
    assert not [it for it in case.loaded.notes if "does not know" in it.what]
