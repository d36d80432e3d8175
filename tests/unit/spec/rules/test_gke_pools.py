"""Google's rules for GKE pools of flex start (F) and of queued provisioning (Q), one by one.

A rule is refused here with its reason and a way out, or kept by what is made of the settings. The
rules about Kubernetes objects (F13, Q10, Q12-Q14, Q17-Q19) are kept by those objects.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from provision.deployment.deployment import RunInputs
from provision.google.owner import Owner
from provision.kinds.gke import variables
from provision.settings.model import Settings
from provision.spec import cluster
from provision.spec import pools as node_pools
from provision.spec.capacity import Mode
from provision.state.location import StateLocation

if TYPE_CHECKING:
    from tests.unit.conftest import Given

EXAMPLES = Path(__file__).parents[4] / "examples"
GKE = {"ORCHESTRATOR_TYPE": "gke"}
ULTRA = GKE | {"VM_TYPE": "a3-ultragpu-8g", "ZONE": "us-central1-b", "INSTANCE_COUNT": "4"}
FLEX = {"ENABLE_FLEX_START": "yes"}
ONE_NODE = {"INSTANCE_COUNT": "1"}
QUEUED = {"ENABLE_QUEUED_PROVISIONING": "yes"}
A100 = {"VM_TYPE": "a2-highgpu-1g", "ZONE": "us-central1-a"}
MANDATORY = {"PROJECT_ID": "my-project", "NAME_PREFIX": "np", "ZONE": "us-central1-a"}
LOCATION = StateLocation("bucket", "np-deployment", is_default=True)

each_dws = pytest.mark.parametrize(
    "asked", [FLEX, QUEUED, FLEX | QUEUED], ids=["flex", "queued", "flex+queued"]
)


def _settings(**environ: str) -> Settings:
    return Settings({name.lower(): text for name, text in (MANDATORY | environ).items()})


def _variables(**environ: str) -> dict[str, Any]:
    return variables.variables(
        cluster.gke(_settings(**environ)), Owner("3f9c2a71"), LOCATION, RunInputs()
    )


def _pool(**environ: str) -> dict[str, Any]:
    """The variables of the first pool."""
    pool: dict[str, Any] = next(iter(_variables(**environ)["node_pools"].values()))
    return pool


def _refused(given: Given, setting: str, what: str, **environ: str) -> None:
    told = [it for it in given(**environ).loaded.problems if it.setting == setting]

    assert any(what in problem.what for problem in told), told
    assert all(problem.why and problem.fix for problem in told)


@each_dws
def test_f1_q6_the_model_by_which_terraform_turns_repair_off_is_handed_over(
    asked: dict[str, str],
) -> None:
    model = _pool(**ULTRA, **asked)["capacity"]["model"]

    assert Mode(model).means.requested


@each_dws
def test_f2_q2_a_fixed_number_of_nodes_is_refused(given: Given, asked: dict[str, str]) -> None:
    pools = "name=a,vm_type=a3-ultragpu-8g,count=2"

    _refused(
        given, "GKE_NODE_POOLS", "count can't be a fixed", **GKE, **asked, GKE_NODE_POOLS=pools
    )


@each_dws
def test_f2_q2_a_fixed_number_by_the_old_name_is_refused(
    given: Given, asked: dict[str, str]
) -> None:
    name = "GKE_NODE_COUNT_PER_NODE_POOL"
    environ = {key: value for key, value in ULTRA.items() if key != "INSTANCE_COUNT"}

    _refused(given, name, "a fixed number of nodes", **environ, **asked, **{name: "2"})


@pytest.mark.parametrize("asked", [FLEX, QUEUED], ids=["F3", "Q3"])
def test_f3_q3_a_reservation_is_refused(given: Given, asked: dict[str, str]) -> None:
    _refused(
        given, "RESERVATION_NAME", "can't be combined", **ULTRA, **asked, RESERVATION_NAME="mine"
    )


@pytest.mark.parametrize("asked", [FLEX, QUEUED], ids=["F4", "Q5"])
def test_f4_q5_spot_is_refused(given: Given, asked: dict[str, str]) -> None:
    _refused(given, "ENABLE_SPOT", "can't be combined", **ULTRA, **asked, ENABLE_SPOT="yes")


@each_dws
def test_f5_q1_pools_start_empty_and_grow_to_what_was_asked(asked: dict[str, str]) -> None:
    assert _pool(**ULTRA, **asked)["size"] == {"count": None, "min": 0, "max": 4}


@each_dws
def test_f5_q1_fewest_nodes_above_none_are_refused(given: Given, asked: dict[str, str]) -> None:
    limits = {"GKE_MIN_NODE_COUNT": "1", "GKE_MAX_NODE_COUNT": "2"}
    pools = {"GKE_NODE_POOLS": "name=a,vm_type=a3-ultragpu-8g,min=1,max=2"}

    _refused(given, "GKE_MIN_NODE_COUNT", "must be 0", **ULTRA, **asked, **limits)
    _refused(given, "GKE_NODE_POOLS", "min must be 0", **GKE, **asked, **pools)


def test_f6_q11_all_nodes_of_a_pool_are_one_type_in_one_zone() -> None:
    pool = _pool(**ULTRA, **FLEX, **QUEUED)

    assert (pool["machine_type"], pool["zone"]) == ("a3-ultragpu-8g", "us-central1-b")


@pytest.mark.parametrize(("asked", "seconds"), [({}, 604800), ({"MAX_RUN_DURATION": "12h"}, 43200)])
def test_f7_q9_nodes_of_flex_start_end_after_a_week_or_before(
    asked: dict[str, str], seconds: int
) -> None:
    assert _pool(**ULTRA, **FLEX, **asked)["capacity"]["max_run_seconds"] == seconds
    (pool,) = node_pools.of(_settings(**ULTRA, **FLEX, **QUEUED, **asked))
    assert pool.max_run_seconds == seconds


def test_f7_q9_more_than_a_week_is_refused(given: Given) -> None:
    assert "MAX_RUN_DURATION" in given(**ULTRA, **FLEX, MAX_RUN_DURATION="8d").refused


@pytest.mark.parametrize("asked", [FLEX, QUEUED, FLEX | QUEUED])
def test_m3_a_run_of_less_than_ten_minutes_is_refused_where_nodes_are_requested(
    given: Given, asked: dict[str, str]
) -> None:
    assert "MAX_RUN_DURATION" in given(**ULTRA, **asked, MAX_RUN_DURATION="9m").refused
    assert "MAX_RUN_DURATION" not in given(**ULTRA, **asked, MAX_RUN_DURATION="10m").refused
    pools = "name=a,vm_type=a3-ultragpu-8g,max_run_duration=9m"
    _refused(given, "GKE_NODE_POOLS", "too short", **GKE, **asked, GKE_NODE_POOLS=pools)


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


@pytest.mark.parametrize(
    ("asked", "version", "feature"),
    [
        (FLEX, "1.31.", "flex start"),
        (FLEX | QUEUED, "1.32.2-gke.1651999", "flex start"),
        (FLEX, "1.32.1", "flex start"),
        (QUEUED, "1.28.4", "queued provisioning"),
        ({"ENABLE_RAY_OPERATOR": "yes"}, "1.29.7", "the Ray operator"),
    ],
)
def test_f8_q8_a_version_that_is_too_old_is_refused(
    given: Given, asked: dict[str, str], version: str, feature: str
) -> None:
    settings = ULTRA | A100 | asked | {"GKE_VERSION": version}
    _refused(given, "GKE_VERSION", f"older than {feature}", **settings)


@pytest.mark.parametrize(
    ("asked", "version", "feature", "least"),
    [
        ({"VM_TYPE": "a4-highgpu-8g"}, "1.32.1", "GPUDirect RDMA on A4", "1.32.2-gke.1475000"),
        ({"VM_TYPE": "g4-standard-48"}, "1.33.", "G4", "1.34.0-gke.1662000"),
        ({"VM_TYPE": "g4-standard-6"}, "1.35.1", "machine types with a", "1.35.2-gke.1485000"),
        ({"VM_TYPE": "a3-ultragpu-8g"}, "1.31.4", "the default driver", "1.31.5-gke.1169000"),
        (
            {"GKE_NODE_POOLS": "name=a,vm_type=g2-standard-4;name=b,vm_type=a3-megagpu-8g"},
            "1.28.8",
            "GPUDirect-TCPXO on A3 Mega",
            "1.28.9-gke.1250000",
        ),
    ],
)
def test_a_version_older_than_a_machine_type_is_refused(
    given: Given, asked: dict[str, str], version: str, feature: str, least: str
) -> None:
    case = given(**GKE, **asked, ENABLE_SPOT="yes", GKE_VERSION=version)
    problem = case.problem("GKE_VERSION")
    assert problem.what == f"is older than {feature} needs" or feature in problem.what
    assert problem.why == f"{least} or newer"
    assert "GKE_VERSION" in problem.fix


def test_the_latest_driver_mends_an_old_version_for_h200(given: Given) -> None:
    asked = {**GKE, "VM_TYPE": "a3-ultragpu-8g", "ENABLE_SPOT": "yes"}
    version = {"GKE_VERSION": "1.31.4-gke.1183000"}
    assert "GPU_DRIVER_VERSION=LATEST" in given(**asked, **version).problem("GKE_VERSION").fix
    latest = given(**asked, **version, GPU_DRIVER_VERSION="LATEST")
    assert "GKE_VERSION" not in latest.refused


@pytest.mark.parametrize(
    ("asked", "version"),
    [
        (FLEX, "1.32."),
        (FLEX, "1.32"),
        (FLEX, "1.32.2-gke.1652000"),
        (FLEX, "1.100."),
        (QUEUED, "1.28."),
        ({}, "1.27.3-gke.100"),
    ],
)
def test_f8_q8_a_version_that_may_be_new_enough_passes(
    given: Given, asked: dict[str, str], version: str
) -> None:
    settings = ULTRA | A100 | asked | {"GKE_VERSION": version}
    assert "GKE_VERSION" not in given(**settings).refused


def test_f9_compact_placement_with_flex_start_is_for_few_machines(given: Given) -> None:
    compact = GKE | FLEX | {"ENABLE_COMPACT_PLACEMENT": "yes"}

    _refused(given, "ENABLE_COMPACT_PLACEMENT", "flex start for a2-highgpu-2g", **compact)
    assert _pool(**compact, VM_TYPE="a3-ultragpu-8g")["compact"]


def test_a_pool_may_be_compact_beside_others_that_are_not() -> None:
    pools = "name=a,vm_type=a3-megagpu-8g,compact=yes;name=b,vm_type=g2-standard-4"
    made = _variables(**GKE, GKE_NODE_POOLS=pools)["node_pools"]
    assert [pool["compact"] for pool in made.values()] == [True, False]

    pools = (
        "name=a,vm_type=a3-megagpu-8g;name=b,vm_type=a3-ultragpu-8g,flex_start=1,queued=1,compact=0"
    )
    asked = GKE | {"ENABLE_COMPACT_PLACEMENT": "yes", "GKE_NODE_POOLS": pools}
    assert [pool["compact"] for pool in _variables(**asked)["node_pools"].values()] == [True, False]


def test_a_compact_pool_is_held_to_the_same_rules_as_a_compact_cluster(given: Given) -> None:
    pools = "name=a,vm_type=a3-ultragpu-8g,queued=yes,compact=yes"
    _refused(given, "GKE_NODE_POOLS", "can't be combined with queued", **GKE, GKE_NODE_POOLS=pools)
    pools = "name=a,vm_type=a2-highgpu-1g,flex_start=yes,compact=yes"
    _refused(given, "GKE_NODE_POOLS", "flex start for a2-highgpu-1g", **GKE, GKE_NODE_POOLS=pools)


def test_pools_with_different_gpu_networks_may_be_in_one_cluster(given: Given) -> None:
    pools = "name=a,vm_type=a3-ultragpu-8g,spot=1;name=b,vm_type=a3-megagpu-8g,spot=1"
    found = given(**GKE | {"ZONE": "us-central1-b"}, GKE_NODE_POOLS=pools)
    assert not found.refused


def test_q4_compact_placement_with_queueing_is_refused(given: Given) -> None:
    asked = ULTRA | QUEUED | {"ENABLE_COMPACT_PLACEMENT": "yes"}

    _refused(given, "ENABLE_COMPACT_PLACEMENT", "can't be combined", **asked)


def test_f11_a_pool_that_is_neither_flex_nor_queued_is_always_there(given: Given) -> None:
    assert _variables(**ULTRA, **FLEX, **QUEUED)["system_pool"]["min"] == 1
    assert "SYSTEM_NODE_POOL" in given(**ULTRA, **FLEX, SYSTEM_NODE_POOL="min=0").refused


@pytest.mark.parametrize("channel", ["REGULAR", "UNSPECIFIED"])
def test_f12_q6_the_channel_that_decides_about_upgrades_is_handed_over(channel: str) -> None:
    made = _variables(**ULTRA, **QUEUED, GKE_RELEASE_CHANNEL=channel)

    assert made["cluster"]["release_channel"] == channel


@pytest.mark.parametrize("vm_type", ["ct5lp-hightpu-4t", "tpu7x-standard-4t"])
def test_q20_tpus_are_refused(given: Given, vm_type: str) -> None:
    _refused(given, "VM_TYPE", "machine with TPUs", **GKE, **FLEX, **QUEUED, VM_TYPE=vm_type)


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
def test_f14_q21_each_way_to_get_nodes_is_another_pool_to_terraform(
    asked: dict[str, str], model: str
) -> None:
    capacity = _pool(**ULTRA, **asked)["capacity"]

    assert capacity["model"] == model
    assert capacity["reservation"] == asked.get("RESERVATION_NAME")


# --- What else pools must agree with


@pytest.mark.parametrize(
    ("pools", "what"),
    [
        ("name=a,vm_type=a9-highgpu-8g", "accelerator_type is required for a9-highgpu-8g"),
        ("name=a,vm_type=a4x-highgpu-4g,reservation=r", "vm_type is not supported in node pools"),
        ("name=a,vm_type=a3-highgpu-1g", "are not available as on-demand"),
        ("name=a,vm_type=a2-highgpu-1g,min=2", "min is more than the pool's maximum"),
        (
            "name=a,vm_type=a3-ultragpu-8g;name=b,vm_type=a4-highgpu-8g,zone=us-central1-b,spot=1",
            "RDMA in us-central1-a and us-central1-b",
        ),
        ("name=system,vm_type=a2-highgpu-1g", "a pool with the name system"),
        (
            ";".join(f"name=p{number},vm_type=g2-standard-4,max=1000" for number in range(5)),
            "up to 5003 nodes",
        ),
    ],
)
def test_pools_that_cannot_be_made_are_refused(given: Given, pools: str, what: str) -> None:
    _refused(given, "GKE_NODE_POOLS", what, **GKE, GKE_NODE_POOLS=pools)


@pytest.mark.parametrize(
    ("setting", "environ", "what"),
    [
        ("NAME_PREFIX", {"NAME_PREFIX": 22 * "a"}, "too long for a GKE cluster"),
        ("INSTANCE_COUNT", {"INSTANCE_COUNT": "1001"}, "more than a pool can have"),
        (
            "GKE_NODE_POOL_COUNT",
            {"GKE_NODE_POOL_COUNT": "50", "INSTANCE_COUNT": "100"},
            "up to 5003 nodes",
        ),
        (
            "DISK_TYPE",
            {"GKE_NODE_POOLS": "name=a,vm_type=a3-ultragpu-8g", "DISK_TYPE": "pd-ssd"},
            "can't be the boot disk of a3-ultragpu-8g",
        ),
    ],
)
def test_settings_of_a_cluster_that_cannot_be_made_are_refused(
    given: Given, setting: str, environ: dict[str, str], what: str
) -> None:
    _refused(given, setting, what, **GKE, **environ)


def test_a_prefix_as_long_as_gke_takes_passes(given: Given) -> None:
    assert "NAME_PREFIX" not in given(**GKE, NAME_PREFIX=21 * "a").refused


def test_what_is_wrong_with_a_cluster_wide_value_is_said_once(given: Given) -> None:
    pools = "name=a,vm_type=a3-ultragpu-8g;name=b,vm_type=a4-highgpu-8g,spot=yes"
    case = given(**GKE, GKE_NODE_POOLS=pools, DISK_TYPE="pd-ssd")

    assert len([it for it in case.loaded.problems if it.setting == "DISK_TYPE"]) == 2
    assert len([it for it in case.loaded.problems if it.setting == "GKE_NODE_POOLS"]) == 0


def test_queued_pools_are_not_left_without_their_queue(given: Given) -> None:
    _refused(given, "ENABLE_KUEUE", "gets its nodes by", **ULTRA, **QUEUED, ENABLE_KUEUE="no")
    assert not given(**GKE, ENABLE_KUEUE="no").refused


@pytest.mark.parametrize(
    ("asked", "noted"),
    [(FLEX, True), (FLEX | QUEUED, False), (FLEX | ONE_NODE, False), ({}, False)],
)
def test_nodes_that_come_one_by_one_are_noted_where_a_job_may_want_several(
    given: Given, asked: dict[str, str], *, noted: bool
) -> None:
    case = given(**{**ULTRA, **asked})
    said = [it.what for it in case.loaded.notes if it.setting == "ENABLE_FLEX_START"]
    assert not case.refused
    assert any("one by one" in it for it in said) == noted


def test_queues_share_out_no_more_gpus_than_there_are(given: Given) -> None:
    two = GKE | {"INSTANCE_COUNT": "2"}  # of a2-highgpu-2g
    assert not given(**two, KUEUE_QUEUES="a:2,b:2").refused
    _refused(given, "KUEUE_QUEUES", "shares out 5 GPUs", **two, KUEUE_QUEUES="a:3,b:2")
    fewer = two | {"KUEUE_GPU_QUOTA": "3"}
    _refused(given, "KUEUE_QUEUES", "shares out 4 GPUs", **fewer, KUEUE_QUEUES="a:4")
    _refused(given, "KUEUE_QUEUES", "without Kueue", **two, KUEUE_QUEUES="a:1", ENABLE_KUEUE="no")


@pytest.mark.parametrize(
    ("asked", "lacking"),
    [
        pytest.param({"SYSTEM_NODE_POOL": "vm_type=e2-small"}, "kube-dns", id="too-small"),
        pytest.param(
            {"SYSTEM_NODE_POOL": "vm_type=e2-medium", "ENABLE_RAY_OPERATOR": "yes"},
            "the head of a Ray cluster",
            id="too-small-for-ray",
        ),
        pytest.param({}, "", id="default"),
        pytest.param({"ENABLE_RAY_OPERATOR": "yes"}, "", id="default-with-ray"),
    ],
)
def test_a_system_pool_without_room_for_its_pods_is_told(
    given: Given, asked: dict[str, str], lacking: str
) -> None:
    loaded = given(**GKE, **asked).loaded
    told = [it for it in loaded.notes if it.setting == "SYSTEM_NODE_POOL"]
    assert [lacking in str(it.why) for it in told] == ([True] if lacking else [])


def test_no_example_asks_for_what_a_page_of_googles_forbids_or_has_no_room_for(
    given: Given,
) -> None:
    for path in sorted(EXAMPLES.glob("*.env.list")):
        text = dict(
            line.split("=", 1)
            for line in path.read_text().splitlines()
            if line and not line.startswith("#")
        )
        loaded = given(**text).loaded
        assert not [it for it in loaded.notes if it.setting == "SYSTEM_NODE_POOL"], path
        # "No workload policy on the MIG": AI Hypercomputer, "Create a MIG" for A4 and A3 Ultra.
        forbidden = {"ENABLE_FLEX_START", "ENABLE_COMPACT_PLACEMENT"}
        assert not forbidden <= text.keys(), path


@pytest.mark.parametrize(("quota", "noted"), [("4", False), ("5", True)])
def test_a_quota_of_more_gpus_than_the_pools_have_is_noted(
    given: Given, quota: str, *, noted: bool
) -> None:
    two = GKE | {"INSTANCE_COUNT": "2"}  # of a2-highgpu-2g
    case = given(**two, KUEUE_GPU_QUOTA=quota)
    said = [it.what for it in case.loaded.notes if it.setting == "KUEUE_GPU_QUOTA"]
    assert not case.refused
    assert any("than the 4 GPUs that the pools have" in it for it in said) == noted


@pytest.mark.parametrize(("ranges", "noted"), [("203.0.113.0/24", False), ("::/0", True)])
def test_an_endpoint_that_every_address_reaches_is_noted(
    given: Given, ranges: str, *, noted: bool
) -> None:
    said = given(**GKE, AUTHORIZED_CIDR=ranges).loaded.notes
    assert any("lets every address reach" in it.what for it in said) == noted
