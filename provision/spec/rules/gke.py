"""Rules about the settings of a GKE cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from provision.catalogue import zones
from provision.codes import Code
from provision.settings.choices import Orchestrator
from provision.spec.rules import capacity, gke_cluster, machines
from provision.spec.rules import pools as pool_rules
from provision.spec.rules.findings import Case, Finding, Rule

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from provision.settings.pools import NodePool

_REPLACED: Final = ("vm_type", "gpu_count", "accelerator_type", "gke_node_pool_count")


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
            fix=f"set {missing.upper()} too",
        )
    elif least is not None and most is not None and least > most:
        yield Finding(
            code=Code.INVALID_VALUE,
            field="gke_min_node_count",
            what=f"is more than GKE_MAX_NODE_COUNT, {most}",
            why="the minimum can't be larger than the maximum",
            fix=f"GKE_MIN_NODE_COUNT={most}",
        )


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


def _system_zone(case: Case) -> Iterator[Finding]:
    region, zone = zones.region_of(case.settings.zone), case.settings.system_node_pool.zone
    if zone is not None and zones.region_of(zone) != region:
        yield Finding(
            field="system_node_pool",
            what=f"has a zone that is not in {region}",
            why="all pools of a cluster are in its region",
            fix=f"SYSTEM_NODE_POOL=zone={case.settings.zone}",
        )


def _replaced(case: Case) -> Iterator[Finding]:
    if case.asked("gke_node_pools"):
        for name in filter(case.asked, _REPLACED):
            yield Finding(
                field=name,
                what="can't be combined with GKE_NODE_POOLS",
                why="each of those pools has its own machine type and GPUs",
                fix=f"remove {case.name(name)}, or GKE_NODE_POOLS",
            )


def _pools(case: Case) -> Iterator[Finding]:
    pools = case.settings.gke_node_pools or ()
    seen: set[str] = set()
    for pool in pools:
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
        subject = finding.field.upper()
        return Finding(
            code=finding.code,
            field="gke_node_pools",
            what=f"has pool {pool.name}, for which {subject} {finding.what}",
            why=finding.why,
            fix=finding.fix,
        )
    value = getattr(pool, finding.field, None)
    if isinstance(value, bool):
        value = "yes" if value else "no"
    subject = finding.field if value is None else f"{finding.field}={value}"
    return Finding(
        code=finding.code,
        field="gke_node_pools",
        what=f"has pool {pool.name}, whose {subject} {finding.what}",
        why=finding.why,
        fix=finding.fix.lower(),
    )


def _of_a_cluster(touches: tuple[str, ...], check: Callable[[Case], Iterator[Finding]]) -> Rule:
    """A rule for GKE clusters; elsewhere it is enough to say that a setting has no effect."""

    def checked(case: Case) -> Iterator[Finding]:
        if case.settings.orchestrator_type is Orchestrator.GKE:
            yield from check(case)

    return Rule(("orchestrator_type", *touches), checked)


RULES: Final = (
    _of_a_cluster(("gke_min_node_count", "gke_max_node_count"), _limits),
    _of_a_cluster(("instance_count", "gke_min_node_count", "gke_max_node_count"), _fixed_size),
    _of_a_cluster(("system_node_pool",), _system_pool),
    _of_a_cluster(("system_node_pool", "zone"), _system_zone),
    _of_a_cluster(("gke_node_pools",), _replaced),
    _of_a_cluster(("gke_node_pools", "zone"), _pools),
    *pool_rules.RULES,
    *gke_cluster.RULES,
)
