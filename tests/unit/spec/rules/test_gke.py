"""Node pools, and clusters of them.

F and its number is a rule of Google's for pools of flex start, Q for queued provisioning. A rule is
refused here with its reason and a way out, or kept by what is made of the settings. The rules about
Kubernetes objects (F13, Q10, Q12-Q14, Q17-Q19) are kept by those objects.
"""

from pathlib import Path
from typing import Any

import pytest

from provision.deployment.deployment import RunInputs
from provision.google.owner import Owner
from provision.kinds.gke import variables
from provision.settings.model import Settings
from provision.spec import cluster
from provision.spec import pools as node_pools
from provision.spec.capacity import Mode
from provision.state.location import StateLocation
from tests.unit.conftest import MANDATORY, Given
from tests.unit.table import Row, rows

EXAMPLES = Path(__file__).parents[4] / "examples"
GKE = {"ORCHESTRATOR_TYPE": "gke"}
ULTRA = GKE | {"VM_TYPE": "a3-ultragpu-8g", "ZONE": "us-central1-b", "INSTANCE_COUNT": "4"}
FLEX = {"ENABLE_FLEX_START": "yes"}
QUEUED = {"ENABLE_QUEUED_PROVISIONING": "yes"}
LOCATION = StateLocation("bucket", "np-deployment", is_default=True)

TABLE = """
# F2, Q2: no fixed number of nodes, by the old name neither
@GKE @DWS GKE_NODE_POOLS=name=a,vm_type=a3-ultragpu-8g,count=2
    -> GKE_NODE_POOLS: count can't be a fixed
@GKE VM_TYPE=a3-ultragpu-8g ZONE=us-central1-b @DWS GKE_NODE_COUNT_PER_NODE_POOL=2
    -> GKE_NODE_COUNT_PER_NODE_POOL: a fixed number of nodes
# F3, Q3: no reservation; F4, Q5: no Spot
@ULTRA @FLEX_OR_QUEUED RESERVATION_NAME=mine -> RESERVATION_NAME: can't be combined
@ULTRA @FLEX_OR_QUEUED ENABLE_SPOT=yes -> ENABLE_SPOT: can't be combined
# F5, Q1: pools start empty
@ULTRA @DWS GKE_MIN_NODE_COUNT=1 GKE_MAX_NODE_COUNT=2 -> GKE_MIN_NODE_COUNT: must be 0
@GKE @DWS GKE_NODE_POOLS=name=a,vm_type=a3-ultragpu-8g,min=1,max=2
    -> GKE_NODE_POOLS: min must be 0
# F7, Q9, M3: ten minutes to a week
@ULTRA ENABLE_FLEX_START=yes MAX_RUN_DURATION=8d -> MAX_RUN_DURATION: at most 7d
@ULTRA @DWS MAX_RUN_DURATION=9m -> MAX_RUN_DURATION: too short
@ULTRA @DWS MAX_RUN_DURATION=10m -- MAX_RUN_DURATION
@GKE @DWS GKE_NODE_POOLS=name=a,vm_type=a3-ultragpu-8g,max_run_duration=9m
    -> GKE_NODE_POOLS: too short
# F8, Q8: versions
@A100 ENABLE_FLEX_START=yes GKE_VERSION=1.31. -> GKE_VERSION: older than flex start
@A100 ENABLE_FLEX_START=yes ENABLE_QUEUED_PROVISIONING=yes GKE_VERSION=1.32.2-gke.1651999
    -> GKE_VERSION: older than flex start
@A100 ENABLE_FLEX_START=yes GKE_VERSION=1.32.1 -> GKE_VERSION: older than flex start
@A100 ENABLE_QUEUED_PROVISIONING=yes GKE_VERSION=1.28.4
    -> GKE_VERSION: older than queued provisioning
@A100 ENABLE_RAY_OPERATOR=yes GKE_VERSION=1.29.7 -> GKE_VERSION: older than the Ray operator
@A100 ENABLE_FLEX_START=yes GKE_VERSION=(1.32.|1.32|1.32.2-gke.1652000|1.100.) -- GKE_VERSION
@A100 ENABLE_QUEUED_PROVISIONING=yes GKE_VERSION=1.28. -- GKE_VERSION
@A100 GKE_VERSION=1.27.3-gke.100 -- GKE_VERSION
@SPOT VM_TYPE=a4-highgpu-8g GKE_VERSION=1.32.1
    -> GKE_VERSION: GPUDirect RDMA on A4 | 1.32.2-gke.1475000 or newer | GKE_VERSION
@SPOT VM_TYPE=g4-standard-48 GKE_VERSION=1.33.
    -> GKE_VERSION: is older than G4 needs | 1.34.0-gke.1662000 or newer
@SPOT VM_TYPE=g4-standard-6 GKE_VERSION=1.35.1
    -> GKE_VERSION: machine types with a | 1.35.2-gke.1485000 or newer
@SPOT VM_TYPE=a3-ultragpu-8g GKE_VERSION=1.31.4
    -> GKE_VERSION: the default driver | 1.31.5-gke.1169000 or newer
@SPOT GKE_NODE_POOLS=name=a,vm_type=g2-standard-4;name=b,vm_type=a3-megagpu-8g GKE_VERSION=1.28.8
    -> GKE_VERSION: GPUDirect-TCPXO on A3 Mega | 1.28.9-gke.1250000 or newer
@SPOT VM_TYPE=a3-ultragpu-8g GKE_VERSION=1.31.4-gke.1183000
    -> GKE_VERSION: GPU_DRIVER_VERSION=LATEST
@SPOT VM_TYPE=a3-ultragpu-8g GKE_VERSION=1.31.4-gke.1183000 GPU_DRIVER_VERSION=LATEST
    -- GKE_VERSION
# F9, Q4: compact placement
@GKE ENABLE_FLEX_START=yes ENABLE_COMPACT_PLACEMENT=yes
    -> ENABLE_COMPACT_PLACEMENT: flex start for a2-highgpu-2g
@ULTRA ENABLE_QUEUED_PROVISIONING=yes ENABLE_COMPACT_PLACEMENT=yes
    -> ENABLE_COMPACT_PLACEMENT: can't be combined | ENABLE_QUEUED_PROVISIONING
@GKE GKE_NODE_POOLS=name=a,vm_type=a3-ultragpu-8g,queued=yes,compact=yes
    -> GKE_NODE_POOLS: can't be combined with queued
@GKE GKE_NODE_POOLS=name=a,vm_type=a2-highgpu-1g,flex_start=yes,compact=yes
    -> GKE_NODE_POOLS: flex start for a2-highgpu-1g
# F11: a pool that is neither is always there; Q20: no TPUs
@ULTRA ENABLE_FLEX_START=yes SYSTEM_NODE_POOL=min=0 -> SYSTEM_NODE_POOL: min
@GKE ENABLE_FLEX_START=yes ENABLE_QUEUED_PROVISIONING=yes
    VM_TYPE=(ct5lp-hightpu-4t|tpu7x-standard-4t) -> VM_TYPE: machine with TPUs
# Nodes that come one by one
@ULTRA ENABLE_FLEX_START=yes ~> ENABLE_FLEX_START: one by one
@ULTRA ENABLE_FLEX_START=yes ENABLE_QUEUED_PROVISIONING=yes -- ENABLE_FLEX_START
@ULTRA ENABLE_FLEX_START=yes INSTANCE_COUNT=1 -- ENABLE_FLEX_START

# Sizes
@GKE GKE_MIN_NODE_COUNT=1 -> GKE_MIN_NODE_COUNT: without GKE_MAX_NODE_COUNT
@GKE GKE_MAX_NODE_COUNT=1 -> GKE_MAX_NODE_COUNT: without GKE_MIN_NODE_COUNT
@GKE GKE_MIN_NODE_COUNT=3 GKE_MAX_NODE_COUNT=2
    -> GKE_MIN_NODE_COUNT: more than GKE_MAX_NODE_COUNT, 2
@GKE GKE_NODE_COUNT_PER_NODE_POOL=2 GKE_MIN_NODE_COUNT=1 GKE_MAX_NODE_COUNT=2
    -> GKE_NODE_COUNT_PER_NODE_POOL: can't be combined with autoscaling limits
@GKE SYSTEM_NODE_POOL=min=4 -> SYSTEM_NODE_POOL: more than its max, 3
@GKE SYSTEM_NODE_POOL=zone=us-east1-b -> SYSTEM_NODE_POOL: not in us-central1
@GKE INSTANCE_COUNT=1001 -> INSTANCE_COUNT: more than a pool can have
@GKE GKE_NODE_POOL_COUNT=50 INSTANCE_COUNT=100 -> GKE_NODE_POOL_COUNT: up to 5003 nodes
@GKE NAME_PREFIX=aaaaaaaaaaaaaaaaaaaaaa -> NAME_PREFIX: too long for a GKE cluster
@GKE NAME_PREFIX=aaaaaaaaaaaaaaaaaaaaa -- NAME_PREFIX

# Pools that are written
@POOLS=a2-highgpu-1g,gpu_count=2 -> GKE_NODE_POOLS: pool a, whose gpu_count=2
@POOLS=n1-standard-2,gpu_count=1 -> GKE_NODE_POOLS: pool a, whose accelerator_type is required
@POOLS=a2-highgpu-1g,zone=us-east1-b
    -> GKE_NODE_POOLS: zone=us-east1-b is not in us-central1
@POOLS=a4-highgpu-8g,spot=yes,disk_type=pd-ssd -> GKE_NODE_POOLS: whose disk_type=pd-ssd
@POOLS=a2-highgpu-1g,count=1,max=2
    -> GKE_NODE_POOLS: count=1 can't be combined with min or max
@POOLS=a2-highgpu-1g,min=3,max=2 -> GKE_NODE_POOLS: min=3 is more than max, 2
@POOLS=a2-highgpu-1g,spot=yes,flex_start=on
    -> GKE_NODE_POOLS: spot=yes can't be combined
@POOLS=a2-highgpu-1g,reservation=r,queued=1
    -> GKE_NODE_POOLS: reservation=r can't be combined
@POOLS=a2-highgpu-1g;name=a,vm_type=a2-highgpu-2g
    -> GKE_NODE_POOLS: two pools with the name a
@POOLS=a2-highgpu-1g,queued=yes ENABLE_SPOT=yes
    -> GKE_NODE_POOLS: spot can't be combined with queued
@POOLS=a9-highgpu-8g
    -> GKE_NODE_POOLS: accelerator_type is required for a9-highgpu-8g
@POOLS=a4x-highgpu-4g,reservation=r
    -> GKE_NODE_POOLS: vm_type is not supported in node pools
@POOLS=a3-highgpu-1g -> GKE_NODE_POOLS: are not available as on-demand
@POOLS=a2-highgpu-1g,min=2 -> GKE_NODE_POOLS: min is more than the pool's maximum
@POOLS=a3-ultragpu-8g;name=b,vm_type=a4-highgpu-8g,zone=us-central1-b,spot=1
    -> GKE_NODE_POOLS: RDMA in us-central1-a and us-central1-b
@POOLS=a3-ultragpu-8g,spot=1;name=b,vm_type=a3-megagpu-8g,spot=1 ZONE=us-central1-b --
@GKE GKE_NODE_POOLS=name=system,vm_type=a2-highgpu-1g
    -> GKE_NODE_POOLS: a pool with the name system
@POOLS=g2-standard-4,max=1000;name=b,@LARGE;name=c,@LARGE;name=d,@LARGE;name=e,@LARGE
    -> GKE_NODE_POOLS: up to 5003 nodes
@POOLS=a3-ultragpu-8g DISK_TYPE=pd-ssd
    -> DISK_TYPE: can't be the boot disk of a3-ultragpu-8g
@POOLS=a2-highgpu-1g VM_TYPE=a2-highgpu-2g
    -> VM_TYPE: can't be combined with GKE_NODE_POOLS
@POOLS=a2-highgpu-1g GPU_COUNT=4 -> GPU_COUNT: can't be combined with GKE_NODE_POOLS
@POOLS=a2-highgpu-1g GKE_NODE_POOL_COUNT=2
    -> GKE_NODE_POOL_COUNT: can't be combined with GKE_NODE_POOLS

# Queues, of two machines of a2-highgpu-2g
@ULTRA ENABLE_QUEUED_PROVISIONING=yes ENABLE_KUEUE=no -> ENABLE_KUEUE: gets its nodes by
@GKE ENABLE_KUEUE=no --
@TWO KUEUE_QUEUES=a:2,b:2 --
@TWO KUEUE_QUEUES=a:3,b:2 -> KUEUE_QUEUES: shares out 5 GPUs
@TWO KUEUE_GPU_QUOTA=3 KUEUE_QUEUES=a:4 -> KUEUE_QUEUES: shares out 4 GPUs
@TWO KUEUE_QUEUES=a:1 ENABLE_KUEUE=no -> KUEUE_QUEUES: without Kueue
@TWO KUEUE_GPU_QUOTA=4 -- KUEUE_GPU_QUOTA
@TWO KUEUE_GPU_QUOTA=5 ~> KUEUE_GPU_QUOTA: than the 4 GPUs that the pools have

# Room for the system's pods, and an endpoint for every address
@GKE SYSTEM_NODE_POOL=vm_type=e2-small ~> SYSTEM_NODE_POOL: kube-dns
@GKE SYSTEM_NODE_POOL=vm_type=e2-medium ENABLE_RAY_OPERATOR=yes
    ~> SYSTEM_NODE_POOL: the head of a Ray cluster
@GKE ENABLE_RAY_OPERATOR=(yes|no) -- SYSTEM_NODE_POOL
@GKE AUTHORIZED_CIDR=203.0.113.0/24 -- AUTHORIZED_CIDR
@GKE AUTHORIZED_CIDR=::/0 ~> AUTHORIZED_CIDR: lets every address reach
"""


@rows(
    TABLE,
    A100="ORCHESTRATOR_TYPE=gke VM_TYPE=a2-highgpu-1g INSTANCE_COUNT=4",
    DWS="(ENABLE_FLEX_START=yes|ENABLE_QUEUED_PROVISIONING=yes"
    "|ENABLE_FLEX_START=yes ENABLE_QUEUED_PROVISIONING=yes)",
    FLEX_OR_QUEUED="(ENABLE_FLEX_START|ENABLE_QUEUED_PROVISIONING)=yes",
    GKE="ORCHESTRATOR_TYPE=gke",
    LARGE="vm_type=g2-standard-4,max=1000",
    POOLS="ORCHESTRATOR_TYPE=gke GKE_NODE_POOLS=name=a,vm_type",
    SPOT="ORCHESTRATOR_TYPE=gke ENABLE_SPOT=yes",
    TWO="ORCHESTRATOR_TYPE=gke INSTANCE_COUNT=2",
    ULTRA="ORCHESTRATOR_TYPE=gke VM_TYPE=a3-ultragpu-8g ZONE=us-central1-b INSTANCE_COUNT=4",
)
def test_a_cluster_can_be_made_and_is_of_use(given: Given, row: Row) -> None:
    row.holds(given)


def _settings(**environ: str) -> Settings:
    return Settings({name.lower(): text for name, text in (MANDATORY | environ).items()})


def _variables(**environ: str) -> dict[str, Any]:
    spec = cluster.gke(_settings(**environ))
    return variables.variables(spec, Owner("3f9c2a71"), LOCATION, RunInputs())


def _pool(**environ: str) -> dict[str, Any]:
    """The variables of the first pool."""
    pool: dict[str, Any] = next(iter(_variables(**environ)["node_pools"].values()))
    return pool


@pytest.mark.parametrize(
    ("asked", "model"),
    [
        ({}, "standard"),
        ({"ENABLE_SPOT": "yes"}, "spot"),
        ({"RESERVATION_NAME": "mine"}, "reservation"),
        (FLEX, "flex_start"),
        (QUEUED, "queued"),
        (FLEX | QUEUED, "flex_start_queued"),
    ],
)
def test_f1_f14_q6_q21_each_way_to_get_nodes_is_another_pool_to_terraform(
    asked: dict[str, str], model: str
) -> None:
    pool = _pool(**ULTRA, **asked)

    assert pool["capacity"]["model"] == model
    assert pool["capacity"]["reservation"] == asked.get("RESERVATION_NAME")
    # F6, Q11: all nodes of a pool are one type in one zone.
    assert (pool["machine_type"], pool["zone"]) == ("a3-ultragpu-8g", "us-central1-b")
    if FLEX.items() <= asked.items() or QUEUED.items() <= asked.items():
        # F5, Q1: it starts empty; F1, Q6: by the model Terraform turns repair off.
        assert pool["size"] == {"count": None, "min": 0, "max": 4}
        assert Mode(model).means.requested


@pytest.mark.parametrize(("asked", "seconds"), [({}, 604800), ({"MAX_RUN_DURATION": "12h"}, 43200)])
def test_f7_q9_nodes_of_flex_start_end_after_a_week_or_before(
    asked: dict[str, str], seconds: int
) -> None:
    assert _pool(**ULTRA, **FLEX, **asked)["capacity"]["max_run_seconds"] == seconds
    (pool,) = node_pools.of(_settings(**ULTRA, **FLEX, **QUEUED, **asked))
    assert pool.max_run_seconds == seconds


def test_f7_a_pool_without_flex_start_has_no_end_by_default() -> None:
    pools = "name=a,vm_type=a3-ultragpu-8g;name=b,vm_type=g2-standard-4,flex_start=no"
    made = _variables(**GKE, **FLEX, GKE_NODE_POOLS=pools)["node_pools"]

    assert made["np-a"]["capacity"]["max_run_seconds"] == 604800
    assert made["np-b"]["capacity"]["max_run_seconds"] is None
    assert made["np-b"]["size"] == {"count": 1, "min": None, "max": None}


@pytest.mark.parametrize("flex", [{}, FLEX], ids=["queued", "flex-start-queued"])
def test_q9_in_a_queue_the_request_says_the_end(flex: dict[str, str]) -> None:
    asked = ULTRA | QUEUED | flex | {"MAX_RUN_DURATION": "12h"}
    assert _pool(**asked)["capacity"]["max_run_seconds"] is None
    assert node_pools.of(_settings(**asked))[0].max_run_seconds == 43200


def test_f9_a_pool_may_be_compact_beside_others_that_are_not() -> None:
    compact = {"ENABLE_COMPACT_PLACEMENT": "yes"}
    assert _pool(**GKE, **FLEX, **compact, VM_TYPE="a3-ultragpu-8g")["compact"]
    mega, flex = "name=a,vm_type=a3-megagpu-8g", "flex_start=1,queued=1,compact=0"
    for asked, pools in (
        ({}, f"{mega},compact=yes;name=b,vm_type=g2-standard-4"),
        (compact, f"{mega};name=b,vm_type=a3-ultragpu-8g,{flex}"),
    ):
        made = _variables(**GKE, **asked, GKE_NODE_POOLS=pools)["node_pools"]
        assert [pool["compact"] for pool in made.values()] == [True, False]


def test_f11_a_pool_that_is_neither_flex_nor_queued_is_always_there() -> None:
    assert _variables(**ULTRA, **FLEX, **QUEUED)["system_pool"]["min"] == 1


@pytest.mark.parametrize("channel", ["REGULAR", "UNSPECIFIED"])
def test_f12_q6_the_channel_that_decides_about_upgrades_is_handed_over(channel: str) -> None:
    made = _variables(**ULTRA, **QUEUED, GKE_RELEASE_CHANNEL=channel)

    assert made["cluster"]["release_channel"] == channel


def test_what_is_wrong_with_a_cluster_wide_value_is_said_once(given: Given) -> None:
    pools = "name=a,vm_type=a3-ultragpu-8g;name=b,vm_type=a4-highgpu-8g,spot=yes"
    case = given(**GKE, GKE_NODE_POOLS=pools, DISK_TYPE="pd-ssd")

    assert len([it for it in case.loaded.problems if it.setting == "DISK_TYPE"]) == 2
    assert len([it for it in case.loaded.problems if it.setting == "GKE_NODE_POOLS"]) == 0


def test_no_example_asks_for_what_a_page_of_googles_forbids_or_has_no_room_for(
    given: Given,
) -> None:
    for path in sorted(EXAMPLES.glob("*.env.list")):
        lines = [it for it in path.read_text().splitlines() if it and not it.startswith("#")]
        text = dict(line.split("=", 1) for line in lines)
        loaded = given(**text).loaded
        assert not [it for it in loaded.notes if it.setting == "SYSTEM_NODE_POOL"], path
        # "No workload policy on the MIG": AI Hypercomputer, "Create a MIG" for A4 and A3 Ultra.
        forbidden = {"ENABLE_FLEX_START", "ENABLE_COMPACT_PLACEMENT"}
        assert not forbidden <= text.keys(), path
