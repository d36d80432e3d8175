"""Rules about GPU node pools: what GKE and flex start allow.

These rules check the pools as they will be created, with cluster-wide values filled in. A finding
is reported for the key of a pool in GKE_NODE_POOLS, or for the setting that all equal pools share.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from provision import words
from provision.catalogue import limits, suggestions, zones
from provision.catalogue.machines import Consumption, Offered
from provision.codes import Code
from provision.spec import pools
from provision.spec.capacity import ASKED_FOR, POOL_KEYS
from provision.spec.rules import capacity, machines
from provision.spec.rules.findings import Case, Finding, Rules

if TYPE_CHECKING:
    from collections.abc import Iterator

    from provision.catalogue.machines import MachineType
    from provision.settings.gke import NodePool
    from provision.spec.pools import Pool

RULES: Final = Rules()

# A pool's key -> the setting that has it for equal pools.
_SETTINGS: Final = {
    "accelerator_type": "accelerator_type",
    "count": "instance_count",
    "disk_type": "disk_type",
    "flex_start": "enable_flex_start",
    "gpu_count": "gpu_count",
    "max": "gke_max_node_count",
    "min": "gke_min_node_count",
    "queued": "enable_queued_provisioning",
    "reservation": "reservation_name",
    "spot": "enable_spot",
    "vm_type": "vm_type",
}
MAKES_POOLS: Final = (
    *_SETTINGS.values(),
    *("gke_node_pools", "gke_node_pool_count", "zone", "name_prefix"),
)
"""The settings that determine the pools."""
_REPLACED: Final = ("vm_type", "gpu_count", "accelerator_type", "gke_node_pool_count")


@RULES.on("gke_min_node_count", "gke_max_node_count", gke=True)
def _limits(case: Case) -> Iterator[Finding]:
    least, most = case.settings.gke_min_node_count, case.settings.gke_max_node_count
    if (least is None) != (most is None):
        given, missing = "gke_min_node_count", "gke_max_node_count"
        if least is None:
            given, missing = missing, given
        yield Finding(
            code=Code.MISSING_SETTING,
            field=given,
            what=f"is set without {missing.upper()}",
            why="autoscaling needs both limits; without both, pools have a fixed size",
            fix=f"{missing.upper()}={0 if least is None else max(1, least)}, or remove"
            f" {given.upper()}",
        )
    elif least is not None and most is not None and least > most:
        yield Finding(
            code=Code.INVALID_VALUE,
            field="gke_min_node_count",
            what=f"is more than GKE_MAX_NODE_COUNT, {most}",
            why="the minimum can't be larger than the maximum",
            fix=f"GKE_MIN_NODE_COUNT={most}",
        )


@RULES.on("instance_count", "gke_min_node_count", "gke_max_node_count", gke=True)
def _fixed_size(case: Case) -> Iterator[Finding]:
    spelled = case.names.get("instance_count")
    limits = {case.settings.gke_min_node_count, case.settings.gke_max_node_count}
    asked = case.asked("gke_min_node_count") or case.asked("gke_max_node_count")
    if spelled == "GKE_NODE_COUNT_PER_NODE_POOL" and asked:
        if limits == {case.settings.instance_count}:
            return
        yield Finding(
            field="instance_count",
            what="can't be combined with autoscaling limits",
            why="it sets a fixed size, GKE_MIN_NODE_COUNT and GKE_MAX_NODE_COUNT set limits for"
            " autoscaling",
            fix=f"remove {spelled}, or the limits",
        )


@RULES.on("gke_node_pools", gke=True)
def _replaced(case: Case) -> Iterator[Finding]:
    if case.asked("gke_node_pools"):
        for name in filter(case.asked, _REPLACED):
            yield Finding(
                field=name,
                what="can't be combined with GKE_NODE_POOLS",
                why="each of those pools has its own machine type and GPUs",
                fix=f"remove {case.name(name)}, or GKE_NODE_POOLS",
            )


@RULES.on("gke_node_pools", "zone", gke=True)
def _pools(case: Case) -> Iterator[Finding]:
    seen: set[str] = set()
    for pool in case.settings.gke_node_pools or ():
        if pool.name in seen:
            yield Finding(
                field="gke_node_pools",
                what=f"has two pools with the name {pool.name}",
                why="the names of pools must be unique",
                fix=f"another name, such as {pool.name}-2",
            )
        seen.add(pool.name)
        for finding in _of_one_pool(pool, case):
            yield _in_pool(pool, finding)


def _of_one_pool(pool: NodePool, case: Case) -> Iterator[Finding]:
    yield from machines.gpu_findings(pool.vm_type, pool.gpu_count, pool.accelerator_type)
    if pool.disk_type is not None:
        yield from machines.disk_finding(pool.vm_type, pool.disk_type.value)
    region = zones.region_of(case.settings.zone)
    if pool.zone is not None and zones.region_of(pool.zone) != region:
        yield Finding(
            field="zone",
            what=f"is not in {region}",
            why="all pools of a cluster are in its region",
            fix=f"zone={case.settings.zone}",
        )
    if pool.count is not None and (pool.min is not None or pool.max is not None):
        yield Finding(
            field="count",
            what="can't be combined with min or max",
            why="count is a fixed size, min and max are limits for autoscaling",
            fix=f"max={pool.count}",
        )
    if pool.min is not None and pool.max is not None and pool.min > pool.max:
        yield Finding(
            field="min",
            what=f"is more than max, {pool.max}",
            why="the minimum can't be larger than the maximum",
            fix=f"min={pool.max}",
        )
    yield from capacity.of_pool(pool, case)


def _in_pool(pool: NodePool, finding: Finding) -> Finding:
    """Turn a finding about a pool's key into one about GKE_NODE_POOLS."""
    if finding.field not in type(pool).model_fields:
        # A setting of the whole cluster, which pools have no key for.
        what = f"has pool {pool.name}, for which {finding.field.upper()} {finding.what}"
        return replace(finding, field="gke_node_pools", what=what)
    value = getattr(pool, finding.field, None)
    if isinstance(value, bool):
        value = "yes" if value else "no"
    subject = finding.field if value is None else f"{finding.field}={value}"
    what = f"has pool {pool.name}, whose {subject} {finding.what}"
    return replace(finding, field="gke_node_pools", what=what, fix=finding.fix.lower())


def _of_pool(pool: Pool) -> Iterator[Finding]:
    """Check a pool as it will be made, by the keys of a pool in GKE_NODE_POOLS."""
    why = "with flex start and queued provisioning, nodes are created when a job needs them"
    if pool.mode.means.requested and pool.size.count is not None:
        yield Finding(
            field="count",
            what="can't be a fixed number with flex start or queued provisioning",
            why=why,
            fix=f"MAX={pool.size.count}",
        )
    if pool.mode.means.requested and pool.size.min:
        yield Finding(
            field="min",
            what="must be 0 with flex start or queued provisioning",
            why=f"{why}, so the pool starts empty",
            fix="MIN=0",
        )
    if pool.size.most > limits.MOST_NODES:
        key = "max" if pool.size.count is None else "count"
        yield Finding(
            code=Code.INVALID_VALUE,
            field=key,
            what="is more than a pool can have",
            why=f"GKE allows at most {limits.MOST_NODES} nodes in a pool",
            fix=f"{key.upper()}={limits.MOST_NODES}",
        )
    if pool.machine is None and not (pool.gpu_type and pool.gpu_count):
        like = suggestions.like(pool.machine_type)
        guess = f"; did you mean {' or '.join(like)}?" if like else ""
        yield Finding(
            code=Code.MISSING_SETTING,
            field="accelerator_type" if pool.gpu_type is None else "gpu_count",
            what=f"is required for {pool.machine_type}",
            why="this tool does not know the machine type, and a node pool needs the type and the"
            f" number of its GPUs{guess}",
            fix=f"VM_TYPE={like[0]}" if like else "ACCELERATOR_TYPE=nvidia-b200, GPU_COUNT=8",
        )
    elif pool.machine is not None and pool.machine.family.arm:
        yield Finding(
            code=Code.NOT_OFFERED,
            field="vm_type",
            what="is not supported in node pools",
            why="GKE installs no gIB for Arm, and a job needs an IMEX domain by NVIDIA's DRA"
            " driver: this tool sets up neither",
            fix="VM_TYPE=a4-highgpu-8g",
        )
    elif pool.machine is not None:
        yield from _offered(pool, pool.machine)


def _offered(pool: Pool, machine: MachineType) -> Iterator[Finding]:
    way = pool.mode.means.consumption
    offered = machine.offered(way)
    if offered is Offered.YES:
        return
    ways = " or ".join(str(it) for it in Consumption if it in machine.consumption)
    fix = "SPOT=yes" if Consumption.SPOT in machine.consumption else "RESERVATION=..."
    key, _ = ASKED_FOR[way]
    if offered is Offered.NO:
        what = f"can't get {pool.machine_type} nodes: they are not available as {way}"
        why = f"{pool.machine_type} is only available as {ways}"
    else:
        what = f"may not get {pool.machine_type} nodes: they may not be available as {way}"
        why = f"Google's pages disagree or do not tell; for certain they are available as {ways}"
        fix += ", if Google refuses it"
    yield Finding(
        code=Code.NOT_OFFERED,
        field=POOL_KEYS.get(key, key),
        what=what,
        why=why,
        fix=fix,
        note=offered is Offered.DOUBTFUL,
    )


@RULES.on(*MAKES_POOLS)
def _as_made(case: Case) -> Iterator[Finding]:
    made, written = pools.of(case.settings), case.settings.gke_node_pools
    found: list[Finding] = []
    if case.is_gke and written is None:
        found += map(_of_the_cluster, _of_pool(made[0]))
    for asked, pool in zip(written or (), made, strict=False):
        findings = [*_of_pool(pool), *_left_open(asked, pool)]
        found += [_told(asked, finding, case) for finding in findings]
    # A wrong cluster-wide value is found in many pools; report it once.
    yield from dict.fromkeys(found)


def _left_open(written: NodePool, pool: Pool) -> Iterator[Finding]:
    """Check a pool's own keys against the cluster-wide values for keys that it does not set."""
    if written.disk_type is None:
        yield from machines.disk_finding(pool.machine_type, pool.disk_type)
    if written.max is None and (written.min or 0) > pool.size.most:
        yield Finding(
            field="min",
            what=f"is more than the pool's maximum of {words.counted(pool.size.most, 'node')}",
            why="the minimum can't be larger than the maximum",
            fix=f"MAX={written.min}",
        )


def _told(written: NodePool, finding: Finding, case: Case) -> Finding:
    """Turn a finding into one about the pool's key, or about the cluster-wide setting for it."""
    own = getattr(written, finding.field) is not None
    if not own and case.asked(_SETTINGS[finding.field]):
        return _of_the_cluster(finding)
    what = f"has pool {written.name}, whose {finding.field} {finding.what}"
    fix = re.sub(r"\b[A-Z_]+=", lambda key: key[0].lower(), finding.fix)
    return replace(finding, field="gke_node_pools", what=what, fix=fix)


def _of_the_cluster(finding: Finding) -> Finding:
    fix = re.sub(
        r"\b([A-Z_]+)=",
        lambda key: f"{_SETTINGS.get(key[1].lower(), key[1]).upper()}=",
        finding.fix,
    )
    return replace(finding, field=_SETTINGS[finding.field], fix=fix)
