"""What Kubernetes Engine refuses of clusters and pools, beyond the form of a request.

The rules of flex start and queued provisioning are those of Google's pages on ProvisioningRequest
and flex start; the ids F1, Q3, ... are those by which this project calls them.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from rehearsal.cloud.container import versions
from rehearsal.cloud.facts import gke_versions, machines, offers
from rehearsal.cloud.facts.machines import Machine
from rehearsal.cloud.wire import GoogleError

# Seconds that nodes run: by flex start, and else. So the autoscaler of GKE checks the pools that it
# makes itself (its published source, 2026-08-21); that the API does the same is believed.
_FLEX_RUN: Final = (600, 604_800)
_ANY_RUN: Final = (30, 120 * 86_400)
_MOST_NODES: Final = 1000
_COMPACT_FLEX: Final = ("a3-ultragpu-", "a4-", "h4d-")
# The oldest versions with a feature: Google's pages on ProvisioningRequest (of 2026-04-08) and on
# the Ray operator.
FLEX_START: Final = "1.32.2-gke.1652000"
QUEUED: Final = "1.28.5-gke.1355000"
RAY_OPERATOR: Final = "1.29.8-gke.1054000"
# GKE, "Run GPUs in Standard node pools", of 2026-04.
GPU_PARTS: Final = "1.34.5-gke.1153000"
# "Allocate network resources by using GKE managed DRANET" (2026-04-10): versions, machine types.
_DRANET: Final = "1.34.1-gke.1829001"
_PROFILED: Final = ("a3-", "a4-", "a4x-", "ct6e-", "tpu7x-")
_STRATEGY: Final = ("a3-ultragpu-8g", "a4-highgpu-8g")
# Believed: no source says which version was the first to take the strategy RDMA. The provider's
# test took the newest of us-central1 in April 2026, when there was no 1.36.
_MANAGED_RDMA: Final = "1.36.0-gke.0"
_WITH_PARTS: Final = ("g4-standard-6", "g4-standard-12", "g4-standard-24")
_TPU: Final = ("ct4p-", "ct5lp-", "ct5p-", "ct6e-", "tpu7x-")

Pool = dict[str, Any]


def check_cluster(cluster: Mapping[str, Any]) -> None:
    """Refuse what no cluster may be."""
    channel = (cluster.get("releaseChannel") or {}).get("channel", "UNSPECIFIED")
    addons = cluster.get("addonsConfig") or {}
    version = versions.resolve(cluster.get("initialClusterVersion", ""), channel)
    if (addons.get("rayOperatorConfig") or {}).get("enabled"):
        _check_version("The Ray operator", RAY_OPERATOR, version)
    network = cluster.get("networkConfig") or {}
    if network.get("enableMultiNetworking") and network.get("datapathProvider") != (
        "ADVANCED_DATAPATH"
    ):
        raise _refusal("Multi-networking requires GKE Dataplane V2 (ADVANCED_DATAPATH).")


def check_pool(cluster: Mapping[str, Any], pool: Pool, scenarios: frozenset[str]) -> None:
    """Refuse a pool that the cluster can't have."""
    for problem in (*_problems(cluster, pool), *_not_given(pool, scenarios)):
        raise _refusal(problem)
    version = str(cluster["currentMasterVersion"])
    nodes = str(pool.get("version") or version)
    if gke_versions.numbers(nodes)[:2] > gke_versions.numbers(version)[:2]:
        # The sentence: hashicorp/terraform-provider-google#6405 (2020).
        raise _refusal(
            f'Node version "{nodes}" must not have a greater minor version than master version'
            f' "{version}".'
        )
    machine = str((pool.get("config") or {}).get("machineType"))
    if machine in _WITH_PARTS:
        _check_version("A machine type with a part of a GPU", GPU_PARTS, version)
    if lacking := gke_versions.lacking(machine, version):
        _check_version(f"Machine type {machine}", lacking, version)
    if (pool.get("networkConfig") or {}).get(_PROFILE):
        _check_version("An accelerator network profile", _DRANET, version)
    if _strategy(pool):
        _check_version("GPUDirect strategy RDMA", _MANAGED_RDMA, version)
    if is_flex(pool):
        _check_version("Flex start", FLEX_START, version)
    elif is_queued(pool):
        _check_version("Queued provisioning with a limited run", QUEUED, version)


def _refusal(words: str) -> GoogleError:
    return GoogleError(400, words, status=None)


def _check_version(feature: str, oldest: str, version: str) -> None:
    if gke_versions.numbers(version) < gke_versions.numbers(oldest):
        raise _refusal(
            f"{feature} requires GKE version {oldest} or later; the cluster has {version}."
        )


def is_flex(pool: Pool) -> bool:
    """Whether the nodes of a pool come by flex start."""
    return bool((pool.get("config") or {}).get("flexStart"))


def is_queued(pool: Pool) -> bool:
    """Whether the nodes of a pool come by requests from a queue."""
    return bool((pool.get("queuedProvisioning") or {}).get("enabled"))


def _problems(cluster: Mapping[str, Any], pool: Pool) -> Iterator[str]:
    yield from _sizes(pool)
    yield from _placement(pool)
    yield from _machine(pool)
    yield from _networks(cluster, pool)
    channel = (cluster.get("releaseChannel") or {}).get("channel", "UNSPECIFIED")
    management = pool.get("management")
    if management is not None and channel != "UNSPECIFIED" and not management.get("autoUpgrade"):
        yield f"Auto_upgrade must be true when release_channel {channel} is set."
    if is_flex(pool):
        yield from _managed("Flex_start", pool)  # F1, F3, F4, F5
    if is_queued(pool):
        yield from _managed("Queued_provisioning", pool)  # Q1, Q2, Q3, Q5, Q6
        yield from _queueing(pool)


def _not_given(pool: Pool, scenarios: frozenset[str]) -> Iterator[str]:
    """What Google never gives in that way; the words are believed."""
    config = pool.get("config") or {}
    affinity = (config.get("reservationAffinity") or {}).get("consumeReservationType")
    if affinity == "SPECIFIC_RESERVATION":
        return
    model, words = "STANDARD", "on-demand"
    if is_flex(pool) or is_queued(pool):
        model, words = "FLEX_START", "flex-start"
    elif config.get("spot") or config.get("preemptible"):
        model, words = "SPOT", "Spot"
    machine = config["machineType"]
    if not offers.is_given(machine, model, scenarios):
        yield f"Machine type {machine} is not available as {words} VMs."


def _managed(word: str, pool: Pool) -> Iterator[str]:
    """What flex start and queued provisioning both need."""
    config = pool.get("config") or {}
    affinity = (config.get("reservationAffinity") or {}).get("consumeReservationType")
    if affinity != "NO_RESERVATION":
        yield f"{word} requires reservation affinity to be set to none."
    if config.get("spot") or config.get("preemptible"):
        yield f"{word} is not supported with Spot or preemptible VMs."
    if (pool.get("management") or {}).get("autoRepair"):
        yield f"{word} requires auto-repair to be disabled."
    autoscaling = pool.get("autoscaling") or {}
    if not autoscaling.get("enabled"):
        yield f"{word} requires autoscaling to be enabled."
    if autoscaling.get("minNodeCount") or autoscaling.get("totalMinNodeCount"):
        yield f"{word} requires the minimum number of nodes to be 0."
    if autoscaling.get("locationPolicy", "ANY") != "ANY":
        yield f"{word} requires location policy ANY."


def _queueing(pool: Pool) -> Iterator[str]:
    if pool.get("initialNodeCount"):
        yield "Queued_provisioning requires the initial number of nodes to be 0."
    if (pool.get("placementPolicy") or {}).get("type") == "COMPACT":
        yield "Queued_provisioning does not support compact placement."
    config = pool.get("config") or {}
    machine = config.get("machineType", "")
    if config.get("maxRunDuration") and not is_flex(pool):
        yield "MaxRunDuration cannot be set on non-bulk QueuedProvisioning pools."
    if is_flex(pool) and machine.startswith(_TPU):
        yield "Flex start node pools don't support TPUs with queued provisioning."


def _sizes(pool: Pool) -> Iterator[str]:
    autoscaling = pool.get("autoscaling") or {}
    each = (autoscaling.get("minNodeCount") or 0, autoscaling.get("maxNodeCount") or 0)
    total = (autoscaling.get("totalMinNodeCount") or 0, autoscaling.get("totalMaxNodeCount") or 0)
    if autoscaling.get("enabled"):
        if any(each) and any(total):
            yield "Limits per zone and total limits are mutually exclusive."
        low, high = max(each, total)
        if high < 1 or low > high:
            yield f"Autoscaling limits are invalid: minimum {low}, maximum {high}."
    if max(*each, *total, pool.get("initialNodeCount") or 0) > _MOST_NODES:
        yield f"A node pool has at most {_MOST_NODES} nodes."


def _placement(pool: Pool) -> Iterator[str]:
    policy = pool.get("placementPolicy") or {}
    if policy.get("type") != "COMPACT":
        return
    if len(pool["locations"]) != 1:
        yield "Compact placement requires exactly one zone."
    machine = (pool.get("config") or {}).get("machineType", "")
    if is_flex(pool) and not machine.startswith((*_COMPACT_FLEX, *_TPU)):
        yield f"Compact placement with flex start is not supported for {machine}."


def _machine(pool: Pool) -> Iterator[str]:
    config = pool.get("config") or {}
    run = config.get("maxRunDuration")
    shortest, longest = _FLEX_RUN if is_flex(pool) else _ANY_RUN
    if run and not shortest <= _seconds(run) <= longest:
        yield f'Max_run_duration "{run}" must be between {shortest}s and {longest}s.'
    known = machines.find(config["machineType"])
    if known is None or not known.gpu:
        return
    yield from _local_ssds(known, config)
    asked = [
        (it.get("acceleratorType"), int(it.get("acceleratorCount", 0)))
        for it in config.get("accelerators") or []
    ]
    fits = all(it == (known.gpu, known.gpus) for it in asked)
    if not fits and not any((it.get("gpuPartitionSize")) for it in config["accelerators"]):
        yield (
            f"Machine type {known.name} requires {known.gpus} accelerators of type"
            f" {known.gpu}; received {asked}."
        )


def _local_ssds(machine: Machine, config: Mapping[str, Any]) -> Iterator[str]:
    """Local SSDs that are part of a machine are all used, or none is named."""
    for field in ("ephemeralStorageLocalSsdConfig", "localNvmeSsdBlockConfig"):
        asked = int((config.get(field) or {}).get("localSsdCount") or 0)
        if machine.local_ssds and asked not in (0, machine.local_ssds):
            yield (
                f"Machine type {machine.name} requires {machine.local_ssds} local SSDs;"
                f" received {asked}."
            )


def _networks(cluster: Mapping[str, Any], pool: Pool) -> Iterator[str]:
    more = (pool.get("networkConfig") or {}).get("additionalNodeNetworkConfigs")
    profile = (pool.get("networkConfig") or {}).get(_PROFILE)
    machine = (pool.get("config") or {}).get("machineType", "")
    if more and not profile and not cluster["networkConfig"].get("enableMultiNetworking"):
        yield "Additional node networks require a cluster with multi-networking enabled."
    yield from _profiled(cluster, pool) if profile else ()
    if _strategy(pool):
        if machine not in _STRATEGY:
            yield f"GPUDirect strategy RDMA is not supported for machine type {machine}."
        if not profile:  # as GKE's ComputeClass has it
            yield "GPUDirect strategy RDMA requires an accelerator network profile."


def _profiled(cluster: Mapping[str, Any], pool: Pool) -> Iterator[str]:
    """What a profile takes: the conditions are those of Google's page, the words are believed."""
    networks = pool["networkConfig"]
    profile, more = networks[_PROFILE], networks.get("additionalNodeNetworkConfigs")
    machine = (pool.get("config") or {}).get("machineType", "")
    if profile != "auto":
        yield f'Accelerator network profile "{profile}" is not supported; use "auto".'
    if more and more != networks_of(pool):
        yield "Additional node networks can't be given with an accelerator network profile."
    if cluster["networkConfig"].get("datapathProvider") != "ADVANCED_DATAPATH":
        yield "An accelerator network profile requires GKE Dataplane V2 (ADVANCED_DATAPATH)."
    if len(pool["locations"]) != 1:
        yield "An accelerator network profile requires exactly one zone."
    if not machine.startswith(_PROFILED):
        yield f"Machine type {machine} has no accelerator network profile."


_PROFILE: Final = "acceleratorNetworkProfile"


def _strategy(pool: Pool) -> bool:
    direct = (pool.get("config") or {}).get("gpuDirectConfig") or {}
    return bool(direct.get("gpuDirectStrategy") == "RDMA")


def networks_of(pool: Pool) -> list[dict[str, str]]:
    """The networks of a pool with a profile, which GKE makes; what it calls them is believed."""
    machine = machines.find((pool.get("config") or {}).get("machineType", ""))
    name = f"gke-{pool['name']}-net"
    return [
        {"network": f"{name}-{number}", "subnetwork": f"{name}-{number}-sub"}
        for number in range(1, machine.most_nics if machine else 1)
    ]


def _seconds(duration: str) -> float:
    """A duration as Google writes it ("604800s"); one of another form counts as endless."""
    number = duration.removesuffix("s")
    return float(number) if duration.endswith("s") and number.isdecimal() else float("inf")
