"""Kubernetes Engine refuses the pools that Google's rules of flex start and queueing forbid."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.rehearsal.cloud.services.conftest import Api

CLUSTERS = "projects/proj-a1/locations/us-central1/clusters"
L4 = {
    "machineType": "g2-standard-4",
    "accelerators": [{"acceleratorType": "nvidia-l4", "acceleratorCount": "1"}],
    "reservationAffinity": {"consumeReservationType": "NO_RESERVATION"},
}
POOL: dict[str, Any] = {
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


def _cluster(api: Api, **changes: Any) -> None:
    body = {
        "name": "loom",
        "initialNodeCount": 1,
        "networkConfig": {"datapathProvider": "ADVANCED_DATAPATH"},
        "ipAllocationPolicy": {"useIpAliases": True},
        "releaseChannel": {"channel": "REGULAR"},
        **changes,
    }
    api.json("container", "POST", CLUSTERS, {"cluster": body})


def _refusal(api: Api, pool: dict[str, Any]) -> str:
    path = f"{CLUSTERS}/loom/nodePools"
    code, reason, words = api.refused("container", "POST", path, {"nodePool": pool})
    assert (code, reason) == (400, "invalid")
    assert [it["name"] for it in api.json("container", "GET", path)["nodePools"]] == [
        "default-pool"
    ]
    return words


@pytest.mark.parametrize(
    "pool", [POOL, FLEX, QUEUED, BOTH], ids=["plain", "flex", "queued", "both"]
)
def test_a_pool_that_keeps_the_rules_is_made(api: Api, pool: dict[str, Any]) -> None:
    _cluster(api)
    api.json("container", "POST", f"{CLUSTERS}/loom/nodePools", {"nodePool": pool})


def _with(pool: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """The pool with changes, which go into its blocks."""
    return {**pool, **{key: _in(pool.get(key), value) for key, value in changes.items()}}


def _in(before: Any, value: Any) -> Any:
    both = isinstance(before, dict) and isinstance(value, dict)
    return {**before, **value} if both else value


# Rule of flex start, rule of queueing -> what breaks them, and the end of Google's words.
COMMON = [
    pytest.param({"management": {"autoRepair": True}}, "auto-repair", id="F1-Q6"),
    pytest.param(
        {"config": {"reservationAffinity": {"consumeReservationType": "ANY_RESERVATION"}}},
        "reservation affinity to be set to none",
        id="F3-Q3",
    ),
    pytest.param({"config": {"reservationAffinity": None}}, "set to none", id="F3-Q3-omitted"),
    pytest.param({"config": {"spot": True}}, "Spot", id="F4-Q5"),
    pytest.param({"autoscaling": {"enabled": False}}, "autoscaling to be enabled", id="F5"),
    pytest.param({"autoscaling": {"totalMinNodeCount": 1}}, "to be 0", id="F5-Q1"),
    pytest.param({"autoscaling": {"locationPolicy": "BALANCED"}}, "policy ANY", id="F6"),
    pytest.param({"placementPolicy": {"type": "COMPACT"}}, "ompact placement", id="F9-Q4"),
]


@pytest.mark.parametrize("pool", [FLEX, QUEUED, BOTH], ids=["flex", "queued", "both"])
@pytest.mark.parametrize(("changes", "words"), COMMON)
def test_what_flex_start_and_queueing_forbid_is_refused(
    api: Api, pool: dict[str, Any], changes: dict[str, Any], words: str
) -> None:
    _cluster(api)
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
def test_how_long_nodes_may_run(api: Api, pool: dict[str, Any], run: str, words: str) -> None:
    # What the autoscaler checks of the pools that it makes itself (row 21 of its differences); with
    # flex start and a queue it is stricter than this (ADR 17).
    _cluster(api)
    assert words in _refusal(api, _with(pool, {"config": {"maxRunDuration": run}}))


def test_without_flex_start_nodes_may_run_for_months(api: Api) -> None:
    _cluster(api)
    pool = _with(POOL, {"config": {"maxRunDuration": "10368000s"}})
    api.json("container", "POST", f"{CLUSTERS}/loom/nodePools", {"nodePool": pool})


@pytest.mark.parametrize(
    ("pool", "words"),
    [
        pytest.param(_with(QUEUED, {"initialNodeCount": 1}), "initial number", id="Q2"),
        pytest.param(
            _with(POOL, {"locations": ["us-central1-a", "us-central1-b"]})
            | {"placementPolicy": {"type": "COMPACT"}},
            "exactly one zone",
            id="F9-zones",
        ),
        pytest.param(
            _with(BOTH, {"config": {"machineType": "ct6e-standard-4t", "accelerators": None}}),
            "Flex start node pools don't support TPUs with queued provisioning.",
            id="Q20",
        ),
        pytest.param(
            _with(POOL, {"autoscaling": {"maxNodeCount": 3}}), "mutually exclusive", id="limits"
        ),
        pytest.param(
            _with(POOL, {"autoscaling": {"totalMinNodeCount": 5}}), "minimum 5", id="order"
        ),
        pytest.param(_with(POOL, {"autoscaling": {"totalMaxNodeCount": 1001}}), "1000", id="most"),
        pytest.param(
            _with(POOL, {"management": {"autoUpgrade": False}}),
            "Auto_upgrade must be true when release_channel REGULAR is set.",
            id="Q6-upgrade",
        ),
        pytest.param(
            _with(POOL, {"config": {"machineType": "g2-standard-24"}}), "requires 2", id="gpus"
        ),
        pytest.param(
            _with(
                POOL,
                {
                    "config": {
                        "machineType": "a3-highgpu-8g",
                        "ephemeralStorageLocalSsdConfig": {"localSsdCount": 15},
                    }
                },
            ),
            "Machine type a3-highgpu-8g requires 16 local SSDs; received 15.",
            id="local-ssds",
        ),
        pytest.param(
            POOL | {"networkConfig": {"additionalNodeNetworkConfigs": [{"network": "n"}]}},
            "multi-networking",
            id="networks",
        ),
    ],
)
def test_what_no_pool_may_be_is_refused(api: Api, pool: dict[str, Any], words: str) -> None:
    _cluster(api)
    assert words in _refusal(api, pool)


@pytest.mark.parametrize("pool", [FLEX, BOTH], ids=["F8", "Q8"])
def test_flex_start_needs_its_version(api: Api, pool: dict[str, Any]) -> None:
    _cluster(api, initialClusterVersion="1.31", releaseChannel={"channel": "EXTENDED"})
    assert _refusal(api, pool) == (
        "Flex start requires GKE version 1.32.2-gke.1652000 or later; the cluster has"
        " 1.31.14-gke.1986000."
    )
    api.json("container", "POST", f"{CLUSTERS}/loom/nodePools", {"nodePool": QUEUED})


def test_a_cluster_on_no_channel_takes_pools_that_are_not_upgraded(api: Api) -> None:
    _cluster(api, releaseChannel={"channel": "UNSPECIFIED"})
    pool = _with(QUEUED, {"management": {"autoUpgrade": False}})
    api.json("container", "POST", f"{CLUSTERS}/loom/nodePools", {"nodePool": pool})


def test_compact_placement_with_flex_start_is_for_a_few_machines(api: Api) -> None:
    _cluster(api)
    config = {
        "machineType": "a3-ultragpu-8g",
        "diskType": "hyperdisk-balanced",
        "accelerators": [{"acceleratorType": "nvidia-h200-141gb", "acceleratorCount": "8"}],
    }
    pool = _with(FLEX, {"config": config, "placementPolicy": {"type": "COMPACT"}})
    pool["locations"] = ["us-central1-b"]
    answer = api("container", "POST", f"{CLUSTERS}/loom/nodePools", {"nodePool": pool})
    assert "ompact" not in str(answer.body)


@pytest.mark.parametrize(
    ("method", "body", "words"),
    [
        ("setManagement", REPAIRED, "auto-repair to be disabled."),
        ("setAutoscaling", {"autoscaling": {"enabled": False}}, "autoscaling to be enabled."),
    ],
)
def test_an_update_is_held_to_the_same_rules(
    api: Api, method: str, body: dict[str, Any], words: str
) -> None:
    _cluster(api)
    path = f"{CLUSTERS}/loom/nodePools"
    api.json("container", "POST", path, {"nodePool": FLEX})
    refused = api.refused("container", "POST", f"{path}/p:{method}", body)
    assert refused[2] == f"Flex_start requires {words}"


def _of(machine: str, gpu: str, count: int, **config: Any) -> dict[str, Any]:
    """A pool of machines with GPUs of their own, in the zone that has them all."""
    own = {
        "machineType": machine,
        "diskType": "hyperdisk-balanced",
        "accelerators": [{"acceleratorType": gpu, "acceleratorCount": str(count)}],
        **config,
    }
    return {**POOL, "locations": ["us-central1-b"], "config": own}


@pytest.mark.parametrize(
    ("pool", "words"),
    [
        (_of("a4-highgpu-8g", "nvidia-b200", 8), "a4-highgpu-8g is not available as on-demand VMs"),
        (
            _of("a3-highgpu-2g", "nvidia-h100-80gb", 2),
            "a3-highgpu-2g is not available as on-demand",
        ),
        (
            _of("a4x-highgpu-4g", "nvidia-gb200", 4, spot=True),
            "a4x-highgpu-4g is not available as Spot VMs",
        ),
    ],
)
def test_a_pool_that_google_never_gives_in_that_way_is_refused(
    api: Api, pool: dict[str, Any], words: str
) -> None:
    _cluster(api)
    assert words in _refusal(api, pool)


def test_a_pool_that_comes_in_another_way_is_made(api: Api) -> None:
    _cluster(api)
    pool = _of("a4-highgpu-8g", "nvidia-b200", 8, spot=True)
    api.json("container", "POST", f"{CLUSTERS}/loom/nodePools", {"nodePool": pool})


def test_a_pool_in_a_zone_without_its_machines_is_refused(api: Api) -> None:
    _cluster(api)
    pool = {**_of("a4-highgpu-8g", "nvidia-b200", 8, spot=True), "locations": ["us-central1-a"]}
    assert "machineTypes/a4-highgpu-8g' was not found" in _refusal(api, pool)


def test_a_part_of_a_gpu_needs_its_version(api: Api) -> None:
    _cluster(api, initialClusterVersion="1.33", releaseChannel={"channel": "EXTENDED"})
    words = _refusal(api, _of("g4-standard-6", "nvidia-rtx-pro-6000", 1))
    assert words.startswith("A machine type with a part of a GPU requires GKE version 1.34.5-gke.")


@pytest.mark.parametrize(
    ("machine", "gpu", "oldest"),
    [
        ("a4-highgpu-8g", "nvidia-b200", "1.32.2-gke.1475000"),
        ("g4-standard-384", "nvidia-rtx-pro-6000", "1.34.0-gke.1662000"),
    ],
)
def test_machines_need_the_version_that_came_with_them(
    api: Api, machine: str, gpu: str, oldest: str
) -> None:
    _cluster(api, initialClusterVersion="1.31", releaseChannel={"channel": "EXTENDED"})
    assert _refusal(api, _of(machine, gpu, 8, spot=True)) == (
        f"Machine type {machine} requires GKE version {oldest} or later; the cluster has"
        " 1.31.14-gke.1986000."
    )
