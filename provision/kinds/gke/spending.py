"""What a GKE cluster that exists costs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from provision.kinds import spending
from provision.settings.choices import NetworkConfig
from provision.spec.capacity import Mode
from provision.spec.pools import Pool, Size

if TYPE_CHECKING:
    from collections.abc import Mapping

    from provision.kinds.gke.kubernetes import status
    from provision.kinds.gke.kubernetes.facts import ClusterFacts, GpuPool
    from provision.kinds.spending import Existing
    from provision.state.record import Record
    from provision.time.clock import Clock


def existing(
    record: Record,
    document: Mapping[str, Any] | None,
    facts: ClusterFacts | None,
    told: status.Status,
    clock: Clock,
) -> Existing | None:
    """The cluster as far as its cost goes; None without what Create has kept of it.

    `document`: the cluster as Google's API returns it; None if it does not exist. `facts`: what
    Create has kept of its pools; None if no Create has.
    """
    if document is None or facts is None:
        return None
    known = {pool.name: pool for pool in facts.pools}
    pools = [pool_of(pool, known.get(pool["name"])) for pool in document.get("nodePools", [])]
    return spending.Existing(
        project_id=record.project_id,
        name_prefix=record.name_prefix,
        region=record.region,
        zone=record.zone,
        shares=spending.shares(record),
        machines=tuple(pool for pool in pools if pool.name in known),
        system=tuple(pool for pool in pools if pool.name not in known),
        network_is_made=record.settings.get("NETWORK_CONFIG") != NetworkConfig.EXISTING,
        has_control_plane=True,
        ages={
            one.pool: [spending.hours(created, clock) or 0.0 for created in one.created]
            for one in told.nodes
        },
        age=spending.hours(document.get("createTime"), clock),
    )


def made(document: Mapping[str, Any] | None, facts: ClusterFacts) -> Mapping[str, Pool]:
    """The pools that run jobs, by their names, as prices are looked up for them."""
    mine = {pool.name: pool for pool in facts.pools}
    there = (document or {}).get("nodePools", [])
    return {it["name"]: pool_of(it, mine[it["name"]]) for it in there if it["name"] in mine}


def pool_of(pool: Mapping[str, Any], mine: GpuPool | None) -> Pool:
    """A node pool as a specification has it, by what Google says of it.

    `mine`: what Create has kept of it; None for a pool that runs no jobs.
    """
    config = pool["config"]
    least, most = scale(pool)
    usual = Mode.SPOT if config.get("spot") else Mode.STANDARD
    count = mine.max_nodes if mine else int(pool.get("initialNodeCount", 0))
    return Pool(
        name=pool["name"],
        machine_type=config["machineType"],
        zone=next(iter(pool.get("locations", [])), ""),
        gpu_type=mine.accelerator if mine else None,
        gpu_count=mine.gpus if mine else None,
        mode=Mode(mine.mode) if mine else usual,
        max_run_seconds=mine.max_run_seconds if mine else None,
        size=Size(count=count) if most is None else Size(min=least, max=most),
        disk_size_gb=int(config.get("diskSizeGb", 100)),
        disk_type=str(config.get("diskType", "pd-balanced")),
    )


def scale(pool: Mapping[str, Any]) -> tuple[int | None, int | None]:
    """The least and the greatest number of nodes; None for a pool that does not autoscale.

    `pool`: the node pool as Google's API returns it.
    """
    scaling = pool.get("autoscaling") or {}
    if not scaling.get("enabled"):
        return None, None
    return scaling.get("totalMinNodeCount", 0), scaling.get("totalMaxNodeCount")
