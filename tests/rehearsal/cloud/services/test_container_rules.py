"""Kubernetes Engine refuses the pools that Google's rules of flex start and queueing forbid."""

from typing import Any

import pytest

from tests.rehearsal.cloud.services.conftest import BODY, CLUSTERS, NO_RESERVATION, POOLS, Api, Json
from tests.rehearsal.cloud.services.conftest import L4 as PLAIN

L4: Json = PLAIN | NO_RESERVATION
POOL: Json = {
    "name": "p",
    "locations": ["us-central1-a"],
    "config": L4,
    "autoscaling": {"enabled": True, "totalMaxNodeCount": 4, "locationPolicy": "ANY"},
    "management": {"autoUpgrade": True},
}

FLEX = {**POOL, "config": {**L4, "flexStart": True}}
QUEUED = {**POOL, "queuedProvisioning": {"enabled": True}}
REPAIRED = {"management": {"autoUpgrade": True, "autoRepair": True}}
BOTH = {**FLEX, "queuedProvisioning": {"enabled": True}}


EXTENDED: Json = {"releaseChannel": {"channel": "EXTENDED"}}


def _make(api: Api, pool: Json) -> None:
    api.gke("POST", POOLS, {"nodePool": pool})


@pytest.mark.parametrize(
    ("version", "pool", "strategy"),
    [
        ("", POOL, "SURGE"),
        ("", FLEX, "SHORT_LIVED"),
        ("", QUEUED, "SHORT_LIVED"),
        ("1.31.14-gke.1986000", QUEUED, "SURGE"),
    ],
)
def test_google_chooses_how_a_pool_is_upgraded(
    api: Api, version: str, pool: Json, strategy: str
) -> None:
    api.cluster(initialClusterVersion=version, **EXTENDED)
    _make(api, pool)
    (made,) = (it for it in api.gke("GET", POOLS)["nodePools"] if it["name"] == pool["name"])
    assert made["upgradeSettings"]["strategy"] == strategy


def _refusal(api: Api, pool: Json) -> str:
    code, reason, words = api.refused("container", "POST", POOLS, {"nodePool": pool})
    assert (code, reason) == (400, "invalid")
    assert [it["name"] for it in api.gke("GET", POOLS)["nodePools"]] == ["default-pool"]
    return words


def _with(pool: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """The pool with changes, which go into its blocks."""
    return {**pool, **{key: _in(pool.get(key), value) for key, value in changes.items()}}


def _in(before: Any, value: Any) -> Any:
    both = isinstance(before, dict) and isinstance(value, dict)
    return {**before, **value} if both else value


# Rule of flex start, rule of queueing -> what breaks them, and the end of Google's words.

# Rule of flex start, rule of queueing -> what breaks them, and the end of Google's words.
ANY = {"reservationAffinity": {"consumeReservationType": "ANY_RESERVATION"}}
COMMON: dict[str, tuple[Json, str]] = {
    "F1-Q6": ({"management": {"autoRepair": True}}, "auto-repair"),
    "F3-Q3": ({"config": ANY}, "reservation affinity to be set to none"),
    "F3-Q3-omitted": ({"config": {"reservationAffinity": None}}, "set to none"),
    "F4-Q5": ({"config": {"spot": True}}, "Spot"),
    "F5": ({"autoscaling": {"enabled": False}}, "autoscaling to be enabled"),
    "F5-Q1": ({"autoscaling": {"totalMinNodeCount": 1}}, "to be 0"),
    "F6": ({"autoscaling": {"locationPolicy": "BALANCED"}}, "policy ANY"),
    "F9-Q4": ({"placementPolicy": {"type": "COMPACT"}}, "ompact placement"),
}


@pytest.mark.parametrize("rule", COMMON)
def test_what_flex_start_and_queueing_forbid_is_refused(api: Api, rule: str) -> None:
    changes, words = COMMON[rule]
    api.cluster()
    for pool in (FLEX, QUEUED, BOTH):
        assert words in _refusal(api, _with(pool, changes))


@pytest.mark.parametrize(
    ("pool", "run", "words"),
    [
        (FLEX, "604801s", "between 600s and 604800s"),
        (FLEX, "7d", "between 600s and 604800s"),
        (FLEX, "599s", "between 600s and 604800s"),
        (BOTH, "599s", "between 600s and 604800s"),
        (POOL, "29s", "between 30s and 10368000s"),
        (QUEUED, "3600s", "MaxRunDuration cannot be set on non-bulk QueuedProvisioning pools."),
    ],
)
def test_how_long_nodes_may_run(api: Api, pool: Json, run: str, words: str) -> None:
    # What the autoscaler checks of the pools that it makes itself (row 21 of its differences); with
    # flex start and a queue it is stricter than this (ADR 17).
    api.cluster()
    assert words in _refusal(api, _with(pool, {"config": {"maxRunDuration": run}}))


TPU = {"machineType": "ct6e-standard-4t", "accelerators": None}
SSDS = {"machineType": "a3-highgpu-8g", "ephemeralStorageLocalSsdConfig": {"localSsdCount": 15}}
TWO_ZONES = {
    "locations": ["us-central1-a", "us-central1-b"],
    "placementPolicy": {"type": "COMPACT"},
}
UPGRADE = "Auto_upgrade must be true when release_channel REGULAR is set."
REFUSED: dict[str, tuple[Json, Json, str]] = {
    "Q2": (QUEUED, {"initialNodeCount": 1}, "initial number"),
    "F9-zones": (POOL, TWO_ZONES, "exactly one zone"),
    "Q20": (
        BOTH,
        {"config": TPU},
        "Flex start node pools don't support TPUs with queued provisioning.",
    ),
    "limits": (POOL, {"autoscaling": {"maxNodeCount": 3}}, "mutually exclusive"),
    "order": (POOL, {"autoscaling": {"totalMinNodeCount": 5}}, "minimum 5"),
    "most": (POOL, {"autoscaling": {"totalMaxNodeCount": 1001}}, "1000"),
    "Q6-upgrade": (POOL, {"management": {"autoUpgrade": False}}, UPGRADE),
    "gpus": (POOL, {"config": {"machineType": "g2-standard-24"}}, "requires 2"),
    "local-ssds": (
        POOL,
        {"config": SSDS},
        "Machine type a3-highgpu-8g requires 16 local SSDs; received 15.",
    ),
    "networks": (
        POOL,
        {"networkConfig": {"additionalNodeNetworkConfigs": [{"network": "n"}]}},
        "multi-networking",
    ),
}


@pytest.mark.parametrize("rule", REFUSED)
def test_what_no_pool_may_be_is_refused(api: Api, rule: str) -> None:
    api.cluster(networkConfig={"datapathProvider": "ADVANCED_DATAPATH"})
    pool, changes, words = REFUSED[rule]
    assert words in _refusal(api, _with(pool, changes))


@pytest.mark.parametrize("pool", [FLEX, BOTH], ids=["F8", "Q8"])
def test_flex_start_needs_its_version(api: Api, pool: Json) -> None:
    api.cluster(initialClusterVersion="1.31", **EXTENDED)
    assert _refusal(api, pool) == (
        "Flex start requires GKE version 1.32.2-gke.1652000 or later; the cluster has"
        " 1.31.14-gke.1986000."
    )
    _make(api, QUEUED)


def test_a_cluster_on_no_channel_takes_pools_that_are_not_upgraded(api: Api) -> None:
    api.cluster(releaseChannel={"channel": "UNSPECIFIED"})
    _make(api, _with(QUEUED, {"management": {"autoUpgrade": False}}))


def test_compact_placement_with_flex_start_is_for_a_few_machines(api: Api) -> None:
    api.cluster()
    config = _of("a3-ultragpu-8g", "nvidia-h200-141gb", 8)["config"]
    pool = _with(FLEX, {"config": config, "placementPolicy": {"type": "COMPACT"}})
    answer = api("container", "POST", POOLS, {"nodePool": pool | {"locations": ["us-central1-b"]}})
    assert "ompact" not in str(answer.body)


def test_an_update_is_held_to_the_same_rules(api: Api) -> None:
    api.cluster()
    _make(api, FLEX)
    for method, body, words in (
        ("setManagement", REPAIRED, "auto-repair to be disabled."),
        ("setAutoscaling", {"autoscaling": {"enabled": False}}, "autoscaling to be enabled."),
    ):
        refused = api.gke_refused("POST", f"{POOLS}/p:{method}", body)
        assert refused == f"400 Flex_start requires {words}"


def _of(machine: str, gpu: str, count: int, **config: Any) -> dict[str, Any]:
    """A pool of machines with GPUs of their own, in the zone that has them all."""
    own = {
        "machineType": machine,
        "diskType": "hyperdisk-balanced",
        "accelerators": [{"acceleratorType": gpu, "acceleratorCount": str(count)}],
        **config,
    }
    return {**POOL, "locations": ["us-central1-b"], "config": own}


def test_a_pool_that_google_never_gives_in_that_way_is_refused(api: Api) -> None:
    api.cluster()
    for pool, words in (
        (_of("a4-highgpu-8g", "nvidia-b200", 8), "a4-highgpu-8g is not available as on-demand VMs"),
        (_of("a3-highgpu-2g", "nvidia-h100-80gb", 2), "a3-highgpu-2g is not available as on-dem"),
        (_of("a4x-highgpu-4g", "nvidia-gb200", 4, spot=True), "4g is not available as Spot VMs"),
    ):
        assert words in _refusal(api, pool)
    spot = _of("a4-highgpu-8g", "nvidia-b200", 8, spot=True)
    elsewhere = {**spot, "locations": ["us-central1-a"]}
    assert "machineTypes/a4-highgpu-8g' was not found" in _refusal(api, elsewhere)
    _make(api, spot)


@pytest.mark.parametrize(
    "pool",
    [POOL, FLEX, QUEUED, BOTH, _with(POOL, {"config": {"maxRunDuration": "10368000s"}})],
    ids=["plain", "flex", "queued", "both", "for months"],
)
def test_a_pool_that_keeps_the_rules_is_made(api: Api, pool: Json) -> None:
    api.cluster()
    _make(api, pool)


def test_a_part_of_a_gpu_needs_its_version(api: Api) -> None:
    api.cluster(initialClusterVersion="1.33", **EXTENDED)
    words = _refusal(api, _of("g4-standard-6", "nvidia-rtx-pro-6000", 1))
    assert words.startswith("A machine type with a part of a GPU requires GKE version 1.34.5-gke.")


def test_machines_need_the_version_that_came_with_them(api: Api) -> None:
    api.cluster(initialClusterVersion="1.31", **EXTENDED)
    for machine, gpu, oldest in (
        ("a4-highgpu-8g", "nvidia-b200", "1.32.2-gke.1475000"),
        ("g4-standard-384", "nvidia-rtx-pro-6000", "1.34.0-gke.1662000"),
    ):
        assert _refusal(api, _of(machine, gpu, 8, spot=True)) == (
            f"Machine type {machine} requires GKE version {oldest} or later; the cluster has"
            " 1.31.14-gke.1986000."
        )


MORE: Json = {"additionalNodeNetworkConfigs": [{"network": "n", "subnetwork": "s"}]}
NEW, OLDER = "1.36.4-gke.1082000", "1.35.7-gke.1222000"
ULTRA: Json = {
    "machineType": "a3-ultragpu-8g",
    "diskType": "hyperdisk-balanced",
    "spot": True,
    "gpuDirectConfig": {"gpuDirectStrategy": "RDMA"},
    **NO_RESERVATION,
}
BY_GKE: Json = {
    "name": "p",
    "locations": ["us-central1-b"],
    "config": ULTRA,
    "networkConfig": {"acceleratorNetworkProfile": "auto"},
}


@pytest.mark.parametrize(
    ("version", "change", "words"),
    [
        pytest.param(NEW, {}, "", id="as_it_should_be"),
        pytest.param(
            OLDER, {}, "GPUDirect strategy RDMA requires GKE version 1.36.0-gke.0", id="too_old"
        ),
        pytest.param(
            NEW, {"networkConfig": {}}, "requires an accelerator network profile", id="no_profile"
        ),
        pytest.param(
            NEW, {"config": L4}, "g2-standard-4 has no accelerator network profile", id="another"
        ),
        pytest.param(
            NEW,
            {"networkConfig": {"acceleratorNetworkProfile": "auto", **MORE}},
            "can't be given with an accelerator network profile",
            id="networks_too",
        ),
        pytest.param(
            NEW, {"locations": ["us-central1-a", "us-central1-b"]}, "exactly one zone", id="zones"
        ),
    ],
)
def test_gke_manages_rdma_of_its_machines_alone(
    api: Api, version: str, change: Json, words: str
) -> None:
    body = {**BODY, "name": "other", "initialClusterVersion": version}
    api.gke("POST", CLUSTERS, {"cluster": body})
    own = {"nodePool": {**BY_GKE, **change}}
    path = f"{CLUSTERS}/other/nodePools"
    if words:
        assert words in api.refused("container", "POST", path, own)[2]
        return
    api.gke("POST", path, own)
    made = api.gke("GET", f"{path}/p")["networkConfig"]
    assert len(made["additionalNodeNetworkConfigs"]) == 9
