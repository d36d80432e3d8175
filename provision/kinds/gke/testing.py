"""Test for GKE clusters: look at nodes of each pool, and measure NCCL's bandwidth between them.

What a node should have is known by its machine type, and the bandwidth by published figures. Where
it is too low, pairs of nodes tell which is at fault.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Final

from provision import words
from provision.codes import Code
from provision.errors import (
    CapacityError,
    ClusterError,
    Problem,
    ProvisionError,
    StillWaiting,
)
from provision.kinds.gke import control_plane, spending, tested_pools, verdict
from provision.kinds.gke.kubernetes import bandwidth_test, cordon, ray_test
from provision.kinds.gke.kubernetes import nodes as nodes_module
from provision.kinds.gke.kubernetes.kueue import POOL_LABEL
from provision.lifecycle import pricing
from provision.screens import checks as screen

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from provision.context import Cloud, Context
    from provision.documents.checks import Bandwidth
    from provision.kinds.gke.kubernetes.bandwidth_test import Ran
    from provision.kinds.gke.kubernetes.client import Cluster
    from provision.kinds.gke.kubernetes.facts import ClusterFacts, GpuPool
    from provision.kinds.gke.kubernetes.nodes import Node
    from provision.kinds.gke.tested_pools import Part
    from provision.kinds.gke.verdict import Tested
    from provision.state.record import Record

_CHANGING: Final = 60.0  # seconds of cloud time
_POLL: Final = 2.0


def run(context: Context, cloud: Cloud, record: Record) -> str:
    """Test the pool of --pool, or each pool; what a test makes is always deleted afterwards.

    Raises:
        CapacityError: Google refused the nodes of a pool.
        StillWaiting: The nodes of a pool did not come in time.
        ClusterError: There are faults; the error has those of all pools.
    """
    settings = context.settings
    facts = _facts(context, cloud, record)
    document = control_plane.find(cloud.api, record)
    cluster = control_plane.reach(document, cloud.api, context.environ)
    prices = pricing.known(context, cloud)
    made = spending.made(document, facts) if prices else {}
    parts = tested_pools.of(facts, settings.test_pool, record.name_prefix, made, prices)
    context.console.progress(tested_pools.told(parts, settings.capacity_timeout))
    left = float(settings.capacity_timeout)
    failed: list[ProvisionError] = []
    found: list[str] = []
    for number, part in enumerate(parts):
        # Who waits long leaves less to the others, but never nothing.
        share = left / (len(parts) - number)
        try:
            tested, waited = _test(context, cluster, facts, part, share)
        except (CapacityError, StillWaiting, ClusterError) as error:
            left -= share if isinstance(error, StillWaiting) else 0.0
            failed.append(_of_pool(error, part, parts))
            continue
        left -= min(waited, share)
        problems = verdict.problems(tested)
        if problems:
            failed.append(ClusterError.of(problems))
        else:
            found.append(verdict.passed(tested))
    if failed:
        for passed in found:
            context.console.progress(passed)
        raise _together(failed)
    return "\n".join(found)


def _test(
    context: Context, cluster: Cluster, facts: ClusterFacts, part: Part, timeout: float
) -> tuple[Tested, float]:
    """Test a pool, and show what was found; also the seconds that it waited for nodes.

    Raises:
        ClusterError: All nodes that the pool may have are cordoned.
    """
    pool, ran, waited = part.pool, None, 0.0
    no_ray: CapacityError | StillWaiting | None = None
    there = _nodes(context, cluster, pool.name)
    unfit = verdict.unfit(there, pool)
    out_of_use = {node.name for node in there if node.cordoned} | unfit.keys()
    nodes = min(part.nodes, pool.max_nodes - len(out_of_use))
    if nodes > 0:
        ran = bandwidth_test.run(
            cluster, facts, pool, nodes, timeout=timeout, progress=context.progress
        )
        tested, waited = verdict.of(pool, ran, unfit), ran.waited
        if facts.ray_operator:
            left = max(timeout - waited, 0.0)
            try:
                ray, more = ray_test.run(
                    cluster, facts, pool, nodes, timeout=left, progress=context.progress
                )
                tested, waited = dataclasses.replace(tested, ray=ray), waited + more
            except (CapacityError, StillWaiting) as error:
                no_ray = error  # what was measured is told first
        there = _nodes(context, cluster, pool.name)
    elif unfit:
        tested = verdict.Tested(pool=pool, nodes=(), told=None, checked=unfit)
    else:
        raise _all_cordoned(pool, out_of_use)
    tested = dataclasses.replace(tested, zones={node.name: node.zone for node in there})
    if context.settings.test_cordon:
        tested = _cordoned(context, cluster, tested)
    _show(context, tested, ran)
    if no_ray is not None:
        raise no_ray
    return tested, waited


def _show(context: Context, tested: Tested, ran: Ran | None) -> None:
    """Show what was found, and add it to the report."""
    known: Mapping[str, Bandwidth] = {tested.pool.name: tested.document}
    context.report.checks = {**(context.report.checks or {}), **known}
    context.console.show(screen.lines(known, context.console.width), as_result=True)
    if tested.told is not None and tested.told.whole.table:
        context.console.result(tested.told.whole.table)
    elif ran is not None and ran.logs:
        for line in ran.logs[0].splitlines():
            context.console.progress(line)


def _all_cordoned(pool: GpuPool, names: Collection[str]) -> ClusterError:
    return ClusterError(
        f"No node of {pool.name} can be tested: all are cordoned",
        code=Code.TEST_FAILED,
        why=f"the pool may have {pool.max_nodes}, and {words.listed(names)} take no new pods",
        fix=f"kubectl uncordon {' '.join(sorted(names))}",
    )


def _cordoned(context: Context, cluster: Cluster, tested: Tested) -> Tested:
    """Cordon the nodes that are certainly bad."""
    deadline = context.progress.deadline(_CHANGING, _POLL)
    done = []
    for name in tested.bad:
        why = tested.why(name)
        if deadline.retry(lambda: cordon.add(cluster, name, why), f"cordon {name}"):  # noqa: B023 - called at once
            context.console.progress(f"{name} is cordoned: {why}; undo: kubectl uncordon {name}")
            done.append(name)
    return dataclasses.replace(tested, cordoned=tuple(done))


def _nodes(context: Context, cluster: Cluster, pool: str) -> Sequence[Node]:
    deadline = context.progress.deadline(_CHANGING, _POLL)
    selector = f"{POOL_LABEL}={pool}"
    found = deadline.retry(
        lambda: cluster.all("v1", "Node", selector=selector), "look at the nodes"
    )
    return [node for one in nodes_module.read(found) for node in one.each]


def _of_pool(error: ProvisionError, part: Part, parts: Sequence[Part]) -> ProvisionError:
    """An error that says which pool it is about, where there are several."""
    if len(parts) == 1:
        return error
    named: list[Problem] = [
        dataclasses.replace(problem, what=f"{part.pool.name}: {problem.what}")
        for problem in error.problems
    ]
    return type(error).of(named)


def _together(failed: Sequence[ProvisionError]) -> ProvisionError:
    """One error: faults count more than machines that Google refuses, and these than a wait."""
    if len(failed) == 1:
        return failed[0]
    problems = [problem for error in failed for problem in error.problems]
    kinds = (ClusterError, CapacityError, StillWaiting)
    worst = next(kind for kind in kinds if any(isinstance(error, kind) for error in failed))
    return worst.of(problems)


def _facts(context: Context, cloud: Cloud, record: Record) -> ClusterFacts:
    """The facts of the cluster; --nodes of this run overrides that of the last Create."""
    facts = control_plane.finished(cloud.folder, record)
    control_plane.require_settings(cloud.folder, record)
    if "test_nodes" in context.settings.model_fields_set:
        return dataclasses.replace(facts, test_nodes=context.settings.test_nodes)
    return facts
