"""Rules about a GKE cluster as a whole: networks, names, number of nodes, queue, version."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from provision import words
from provision.catalogue import gke_versions, limits, machine_sizes, names, zones
from provision.codes import Code
from provision.settings.resource_paths import EVERY_ADDRESS
from provision.spec import pools
from provision.spec.capacity import Mode
from provision.spec.rules.findings import Case, Finding, Rules
from provision.spec.rules.pools import MAKES_POOLS

if TYPE_CHECKING:
    from collections.abc import Iterator

RULES: Final = Rules()


@RULES.on("system_node_pool", gke=True)
def _system_pool(case: Case) -> Iterator[Finding]:
    pool = case.settings.system_node_pool
    if pool.min > pool.max:
        yield Finding(
            code=Code.INVALID_VALUE,
            field="system_node_pool",
            what=f"has a min that is more than its max, {pool.max}",
            why="the minimum can't be larger than the maximum",
            fix=f"SYSTEM_NODE_POOL=min={pool.max}",
        )


@RULES.on("system_node_pool", "zone", gke=True)
def _system_zone(case: Case) -> Iterator[Finding]:
    region, zone = zones.region_of(case.settings.zone), case.settings.system_node_pool.zone
    if zone is not None and zones.region_of(zone) != region:
        yield Finding(
            field="system_node_pool",
            what=f"has a zone that is not in {region}",
            why="all pools of a cluster are in its region",
            fix=f"SYSTEM_NODE_POOL=zone={case.settings.zone}",
        )


@RULES.on(*MAKES_POOLS)
def _fixed_by_name(case: Case) -> Iterator[Finding]:
    """Refuse a fixed size for pools that always scale."""
    spelled = case.names.get("instance_count")
    settings = case.settings
    if spelled == "GKE_NODE_COUNT_PER_NODE_POOL" and any(
        pool.mode.means.requested and pool.size.max == settings.instance_count
        for pool in pools.of(settings)
    ):
        yield Finding(
            field="instance_count",
            what="sets a fixed number of nodes, with flex start or queued provisioning",
            why="those nodes are created when a job needs them, so their number can't be fixed",
            fix=f"remove {spelled}, and GKE_MIN_NODE_COUNT=0 and"
            f" GKE_MAX_NODE_COUNT={settings.instance_count} in its place",
        )


@RULES.on(*MAKES_POOLS, gke=True)
def _networks(case: Case) -> Iterator[Finding]:
    # The name of a profile begins with a zone.
    found = [it for it in pools.of(case.settings) if any(one.profile for one in it.networks)]
    places = {pool.zone for pool in found}
    if len({pool.zone_setting for pool in found}) > 1:
        places.update(case.settings.places.zones)  # some go from zone to zone, others stay
    zones = sorted(places)
    if len(zones) > 1:
        yield Finding(
            field="gke_node_pools",
            what=f"has pools with RDMA in {' and '.join(zones)}",
            why="a network for RDMA is in one zone",
            fix=f"zone={zones[0]} for all of them, or a cluster for each zone",
        )


@RULES.on(*MAKES_POOLS, gke=True)
def _names(case: Case) -> Iterator[Finding]:
    settings = case.settings
    tightest = names.TIGHTEST_OF_GKE
    if len(settings.name_prefix) > tightest.longest_prefix:
        yield Finding(
            code=Code.INVALID_VALUE,
            field="name_prefix",
            what=f"is too long for a GKE cluster: {len(settings.name_prefix)} characters",
            why=f"at most {tightest.longest_prefix}, because the {tightest.kind} is named"
            f" <NAME_PREFIX>{tightest.suffix} and Google allows {tightest.limit} characters",
            fix=f"NAME_PREFIX={settings.name_prefix[: tightest.longest_prefix].rstrip('-')}",
        )
    system = names.SYSTEM_POOL.of(settings.name_prefix)
    if any(pool.name == system for pool in pools.of(settings)):
        yield Finding(
            field="gke_node_pools",
            what="has a pool with the name system",
            why="that is the name of the pool for system pods",
            fix="name=gpus",
        )


@RULES.on(*MAKES_POOLS, "system_node_pool", gke=True)
def _room(case: Case) -> Iterator[Finding]:
    settings = case.settings
    if case.asked("gke_pods_range") or case.asked("gke_max_pods_per_node"):
        return  # `networks` counts what fits there, or the online check in a range that exists
    nodes = settings.system_node_pool.max + sum(pool.size.most for pool in pools.of(settings))
    if nodes > limits.MOST_CLUSTER_NODES:
        several = settings.gke_node_pools is not None
        yield Finding(
            code=Code.INVALID_VALUE,
            field="gke_node_pools" if several else "gke_node_pool_count",
            what=f"makes a cluster of up to {nodes} nodes",
            why=f"its IP range for pods is large enough for {limits.MOST_CLUSTER_NODES} nodes,"
            " including the system pool",
            fix="fewer or smaller pools, or several clusters",
        )


@RULES.on("enable_kueue", "enable_ray_operator", "system_node_pool", gke=True)
def _system_nodes(case: Case) -> Iterator[Finding]:
    """Warn where the pods that keep the queue going find no place: no job would ever start."""
    settings = case.settings
    wanted = [*machine_sizes.OF_GKE, machine_sizes.JOBSET]
    wanted += [machine_sizes.KUEUE] if settings.enable_kueue else []
    wanted += [machine_sizes.RAY_HEAD] if settings.enable_ray_operator else []
    pool = settings.system_node_pool
    machine, most = pool.vm_type, pool.max
    missing = machine_sizes.left_out(machine, most, wanted)
    if missing:
        yield Finding(
            code=Code.NOTE,
            field="system_node_pool",
            what="may be too small for the system's pods",
            why=f"beside what GKE runs on each node, max={most} of {machine} have"
            f" no place for {words.listed({it.name for it in missing})}",
            fix="SYSTEM_NODE_POOL=vm_type=e2-standard-4",
            note=True,
        )


@RULES.on(*MAKES_POOLS, "enable_kueue", "kueue_queues", "kueue_gpu_quota", gke=True)
def _queue(case: Case) -> Iterator[Finding]:
    settings = case.settings
    made = pools.of(settings)
    queued = [pool for pool in made if pool.mode.means.queued]
    if not settings.enable_kueue and queued:
        yield Finding(
            field="enable_kueue",
            what=f"leaves out the queue that {queued[0].name} gets its nodes by",
            why="nodes of queued pools come by Kueue's requests alone",
            fix="ENABLE_KUEUE=yes, or ENABLE_QUEUED_PROVISIONING=no",
        )
    have = sum(pool.size.most * pool.gpus for pool in made)
    if settings.kueue_gpu_quota is not None and settings.kueue_gpu_quota > have:
        yield Finding(
            field="kueue_gpu_quota",
            what=f"is more than the {words.counted(have, 'GPU')} that the pools have at most",
            why=f"a job that asks for more than {have} is admitted, and waits for nodes that never"
            " come",
            fix=f"KUEUE_GPU_QUOTA={have}, or larger pools",
            note=True,
        )
    if not settings.kueue_queues:
        return
    if not settings.enable_kueue:
        yield Finding(
            field="kueue_queues",
            what="names queues, without Kueue",
            why="ENABLE_KUEUE=no",
            fix="ENABLE_KUEUE=yes, or remove KUEUE_QUEUES",
        )
    shared = sum(queue.gpus for queue in settings.kueue_queues)
    most = settings.kueue_gpu_quota or have
    if shared > most:
        yield Finding(
            field="kueue_queues",
            what=f"shares out {words.counted(shared, 'GPU')}",
            why=f"KUEUE_GPU_QUOTA has {most}"
            if case.asked("kueue_gpu_quota")
            else f"the pools have {most} at most",
            fix="smaller shares; what one queue leaves idle, the others borrow",
        )


@RULES.on(*MAKES_POOLS, "gke_version", "gpu_driver_version", "enable_ray_operator")
def _floors(case: Case) -> Iterator[Finding]:
    settings = case.settings
    version = settings.gke_version
    if not case.is_gke or version is None:
        return
    needed = pools.floors(
        pools.of(settings),
        driver=str(settings.gpu_driver_version),
        ray_operator=settings.enable_ray_operator,
    )
    for floor in needed:
        if floor.refuses(version):
            by_driver = floor is gke_versions.DRIVER_OF_H200
            yield Finding(
                code=Code.INVALID_VALUE,
                field="gke_version",
                what=f"is older than {floor.feature} needs",
                why=f"{floor.of(version)} or newer",
                fix="remove GKE_VERSION, or set a newer one"
                + (", or GPU_DRIVER_VERSION=LATEST" if by_driver else ""),
            )
            return


@RULES.on(*MAKES_POOLS, gke=True)
def _one_by_one(case: Case) -> Iterator[Finding]:
    for pool in pools.of(case.settings):
        if pool.mode is Mode.FLEX_START and pool.size.count is None and pool.size.most > 1:
            yield Finding(
                field="enable_flex_start",
                what=f"brings the nodes of {pool.name} one by one",
                why="a job on several nodes may get some of them, which are billed while it waits"
                " for the others; after half an hour it gives them back and tries again",
                fix="ENABLE_QUEUED_PROVISIONING=yes, which asks for all nodes of a job at once, or"
                " jobs of one node",
                note=True,
            )
            return


@RULES.on("authorized_cidr")
def _endpoint(case: Case) -> Iterator[Finding]:
    if not EVERY_ADDRESS.isdisjoint(case.settings.authorized_cidr or ()):
        yield Finding(
            field="authorized_cidr",
            what="lets every address reach the cluster's IP endpoint",
            why="whoever has a credential of the cluster then uses it from anywhere",
            fix="the ranges of your own network, or leave it out: the DNS endpoint needs none",
            note=True,
        )
