"""Rules about GPU node pools: what GKE and flex start allow.

These rules check the pools as they will be created, with cluster-wide values filled in. A finding
is reported for the key of a pool in GKE_NODE_POOLS, or for the setting that all equal pools share.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from provision.catalogue import limits, suggestions
from provision.catalogue.machines import Consumption, Offered
from provision.codes import Code
from provision.settings.choices import Orchestrator
from provision.spec import pools
from provision.spec.capacity import ASKED_FOR, POOL_KEYS
from provision.spec.rules import machines
from provision.spec.rules.findings import Case, Finding, Rule

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from provision.settings.pools import NodePool
    from provision.spec.pools import Pool

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


def _starts_empty(pool: Pool) -> Iterator[Finding]:
    if not pool.mode.means.requested:
        return
    why = "with flex start and queued provisioning, nodes are created when a job needs them"
    if pool.size.count is not None:
        yield Finding(
            field="count",
            what="can't be a fixed number with flex start or queued provisioning",
            why=why,
            fix=f"MAX={pool.size.count}",
        )
    if pool.size.min:
        yield Finding(
            field="min",
            what="must be 0 with flex start or queued provisioning",
            why=f"{why}, so the pool starts empty",
            fix="MIN=0",
        )


def _most(pool: Pool) -> Iterator[Finding]:
    if pool.size.most > limits.MOST_NODES:
        key = "max" if pool.size.count is None else "count"
        yield Finding(
            code=Code.INVALID_VALUE,
            field=key,
            what="is more than a pool can have",
            why=f"GKE allows at most {limits.MOST_NODES} nodes in a pool",
            fix=f"{key.upper()}={limits.MOST_NODES}",
        )


def _machine(pool: Pool) -> Iterator[Finding]:
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
            why="GKE needs DRANET for its GPU network, which this tool does not set up",
            fix="VM_TYPE=a4-highgpu-8g",
        )


def _offered(pool: Pool) -> Iterator[Finding]:
    way = pool.mode.means.consumption
    if pool.machine is None or pool.machine.family.arm:
        return
    offered = pool.machine.offered(way)
    if offered is Offered.YES:
        return
    ways = " or ".join(str(it) for it in Consumption if it in pool.machine.consumption)
    fix = "SPOT=yes" if Consumption.SPOT in pool.machine.consumption else "RESERVATION=..."
    if offered is Offered.NO:
        what = f"can't get {pool.machine_type} nodes: they are not available as {way}"
        why = f"{pool.machine_type} is only available as {ways}"
    else:
        what = f"may not get {pool.machine_type} nodes: they may not be available as {way}"
        why = f"Google's pages disagree or do not tell; for certain they are available as {ways}"
        fix += ", if Google refuses it"
    yield Finding(
        code=Code.NOT_OFFERED,
        field=_key(way),
        what=what,
        why=why,
        fix=fix,
        note=offered is Offered.DOUBTFUL,
    )


def _key(way: Consumption) -> str:
    """The key with which a pool selects a consumption option."""
    name, _ = ASKED_FOR[way]
    return POOL_KEYS.get(name, name)


_OF_A_POOL: Final[tuple[Callable[[Pool], Iterator[Finding]], ...]] = (
    _starts_empty,
    _most,
    _machine,
    _offered,
)


def _equal_pools(case: Case) -> Iterator[Finding]:
    settings = case.settings
    if settings.orchestrator_type is Orchestrator.GKE and settings.gke_node_pools is None:
        pool = pools.of(settings)[0]
        for check in _OF_A_POOL:
            yield from map(_of_the_cluster, check(pool))


def _written_pools(case: Case) -> Iterator[Finding]:
    found: list[Finding] = []
    made = pools.of(case.settings)
    for written, pool in zip(case.settings.gke_node_pools or (), made, strict=False):
        findings = [finding for check in _OF_A_POOL for finding in check(pool)]
        findings += _left_open(written, pool)
        found += [_told(written, finding, case) for finding in findings]
    # A wrong cluster-wide value is found in many pools; report it once.
    yield from dict.fromkeys(found)


def _left_open(written: NodePool, pool: Pool) -> Iterator[Finding]:
    """Check a pool's own keys against the cluster-wide values for keys that it does not set."""
    if written.disk_type is None:
        yield from machines.disk_finding(pool.machine_type, pool.disk_type)
    if written.max is None and (written.min or 0) > pool.size.most:
        yield Finding(
            field="min",
            what=f"is more than the pool's maximum of {pool.size.most} nodes",
            why="the minimum can't be larger than the maximum",
            fix=f"MAX={written.min}",
        )


def _told(written: NodePool, finding: Finding, case: Case) -> Finding:
    """Turn a finding into one about the pool's key, or about the cluster-wide setting for it."""
    own = getattr(written, finding.field) is not None
    if not own and case.asked(_SETTINGS[finding.field]):
        return _of_the_cluster(finding)
    return Finding(
        code=finding.code,
        field="gke_node_pools",
        what=f"has pool {written.name}, whose {finding.field} {finding.what}",
        why=finding.why,
        fix=re.sub(r"\b[A-Z_]+=", lambda key: key[0].lower(), finding.fix),
        note=finding.note,
    )


def _of_the_cluster(finding: Finding) -> Finding:
    return Finding(
        code=finding.code,
        field=_SETTINGS[finding.field],
        what=finding.what,
        why=finding.why,
        fix=re.sub(
            r"\b([A-Z_]+)=",
            lambda key: f"{_SETTINGS.get(key[1].lower(), key[1]).upper()}=",
            finding.fix,
        ),
        note=finding.note,
    )


MAKES_POOLS: Final = (
    "orchestrator_type",
    "gke_node_pools",
    "gke_node_pool_count",
    "instance_count",
    "gke_min_node_count",
    "gke_max_node_count",
    "vm_type",
    "gpu_count",
    "accelerator_type",
    "disk_type",
    "enable_flex_start",
    "enable_queued_provisioning",
    "enable_spot",
    "reservation_name",
    "zone",
    "name_prefix",
)
"""The settings that determine the pools."""

RULES: Final = (
    Rule(MAKES_POOLS, _equal_pools),
    Rule(MAKES_POOLS, _written_pools),
)
