"""Test for GKE clusters: look at nodes of each pool, and measure NCCL's bandwidth between them.

What a node should have is known by its machine type, and the bandwidth by published figures. Where
it is too low, pairs of nodes tell which is at fault.
"""

from __future__ import annotations

import dataclasses
import functools
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Final

from provision import words
from provision.catalogue import names
from provision.codes import Code
from provision.cost import rates
from provision.errors import (
    CapacityError,
    ClusterError,
    ProvisionError,
    SettingsError,
    StillWaiting,
)
from provision.kinds.gke import control_plane, pools, verdict
from provision.kinds.gke.kubernetes import all_gather, stages, trials
from provision.kinds.gke.kubernetes import nodes as nodes_module
from provision.kinds.gke.kubernetes.kueue import POOL_LABEL
from provision.lifecycle import pricing
from provision.screens import amounts, layout
from provision.screens import checks as screen

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from provision.catalogue.prices import Prices
    from provision.context import Cloud, Context
    from provision.kinds.gke.kubernetes.client import Cluster
    from provision.kinds.gke.kubernetes.facts import ClusterFacts, GpuPool
    from provision.kinds.gke.kubernetes.nodes import Node
    from provision.kinds.gke.kubernetes.trials import Ran
    from provision.kinds.gke.verdict import Tested
    from provision.spec.pools import Pool
    from provision.state.record import Record

_CHANGING: Final = 60.0  # seconds of cloud time
_POLL: Final = 2.0


@dataclass(frozen=True, kw_only=True)
class Part:
    """A pool that is to be tested."""

    pool: GpuPool
    nodes: int  # on how many of its nodes
    per_hour: Decimal | None = None  # what these cost in an hour, in USD; None if not known
    is_estimate: bool = False  # whether a price in it is an estimate

    @property
    def gpus(self) -> int:
        """The number of GPUs that take part."""
        return self.nodes * self.pool.gpus

    def __str__(self) -> str:
        """Its size, and its price where one is known."""
        about = "≈ " if self.is_estimate else ""
        cost = "" if self.per_hour is None else f", {about}{amounts.usd(self.per_hour)}/h"
        size = f"{layout.counted(self.nodes, 'node')}, {layout.counted(self.gpus, 'GPU')}"
        return f"{self.pool.name} ({size}{cost})"


def run(context: Context, cloud: Cloud, record: Record) -> str:
    """Test the pool of --pool, or each pool; what a test makes is always deleted afterwards.

    Raises:
        CapacityError: Google refused the nodes of a pool.
        StillWaiting: The nodes of a pool did not come in time.
        ClusterError: There are faults; the error has those of all pools.
    """
    settings = context.settings
    facts = control_plane.finished(cloud.folder, record)
    control_plane.require_settings(cloud.folder, record)
    if "test_nodes" in settings.model_fields_set:  # of this run; else that of the last Create
        facts = dataclasses.replace(facts, test_nodes=settings.test_nodes)
    document = control_plane.find(cloud.api, record)
    cluster = control_plane.reach(document, cloud.api, context.environ)
    deadline = context.progress.deadline(_CHANGING, _POLL)
    deadline.retry(lambda: stages.require_sources(cluster, facts), "look at the account of pods")
    prices = pricing.known(context, cloud)
    made = pools.made(document, facts) if prices else {}
    parts = chosen(facts, settings.test_pool, record.name_prefix, made, prices)
    context.console.progress(told(parts, settings.capacity_timeout))
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
            failed.append(_of_pool(error, part) if len(parts) > 1 else error)
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


# ------------------------------------------------------------------ which pools


def chosen(
    facts: ClusterFacts,
    asked: str | None,
    prefix: str,
    made: Mapping[str, Pool],
    listed: Prices | None,
) -> list[Part]:
    """The pools to test, the cheapest first: what is wrong there is known before the dear ones.

    `asked`: the pool of --pool; None for every pool that can be tested. `made`: name -> a pool
    as prices are looked up for it. `listed`: the prices; None if none are wanted.
    """
    known = [pool.name for pool in facts.pools]
    wanted = known if asked is None else [names.own_pool(prefix, asked, known)]
    # The images with NCCL's tests are for x86 alone.
    fit = [pool for pool in facts.pools if pool.name in wanted and not pool.is_arm]
    if not fit:
        raise SettingsError(
            "There is no pool to test" if asked is None else f"There is no pool {asked} to test",
            setting="" if asked is None else "--pool",
            code=Code.INVALID_VALUE,
            why=f"the cluster has {words.listed(known) or 'no GPU pools'}; on Arm machines nothing"
            " is tested, as there is no image of NCCL's tests for them",
            fix="" if asked is None else "remove --pool: then Test tests each pool that it can",
        )
    parts = [_part(facts, pool, made.get(pool.name), listed) for pool in fit]
    return sorted(parts, key=lambda it: (it.per_hour is None, it.per_hour or Decimal(0), it.gpus))


def _part(facts: ClusterFacts, pool: GpuPool, made: Pool | None, listed: Prices | None) -> Part:
    nodes = min(facts.test_nodes, pool.max_nodes)
    if made is None or listed is None:
        return Part(pool=pool, nodes=nodes)
    rate = rates.machine(made, listed)
    return Part(
        pool=pool,
        nodes=nodes,
        per_hour=None if rate.usd is None else nodes * rate.usd,
        is_estimate=any(source.is_estimate for source in rate.sources),
    )


def told(parts: Sequence[Part], wait: float) -> str:
    """What a Test is about to use, in one sentence."""
    order, in_all, one = "", "", "measures"
    if len(parts) > 1:
        order, in_all, one = (
            f"{len(parts)} pools, the cheapest first: ",
            " in all",
            "each is measured",
        )
    longest, measured = words.duration(wait), words.duration(all_gather.SECONDS)
    return (
        f"Test of {order}{', '.join(map(str, parts))}; waits for nodes at most {longest}{in_all},"
        f" {one} at most {measured}"
    )


# ------------------------------------------------------------------ one pool


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
        ran = trials.bandwidth(
            cluster, facts, pool, nodes, timeout=timeout, progress=context.progress
        )
        tested, waited = verdict.of(pool, ran, unfit), ran.waited
        if facts.ray_operator:
            left = max(timeout - waited, 0.0)
            try:
                ray, more = trials.ray(
                    cluster, facts, pool, nodes, timeout=left, progress=context.progress
                )
                tested, waited = dataclasses.replace(tested, ray=ray), waited + more
            except (CapacityError, StillWaiting) as error:
                no_ray = error  # what was measured is told first
        there = _nodes(context, cluster, pool.name)
    elif unfit:
        tested = verdict.Tested(pool=pool, nodes=(), told=None, checked=unfit)
    else:
        raise ClusterError(
            f"No node of {pool.name} can be tested: all are cordoned",
            code=Code.TEST_FAILED,
            why=f"the pool may have {pool.max_nodes}, and {words.listed(out_of_use)} take no new"
            " pods",
            fix=f"kubectl uncordon {' '.join(sorted(out_of_use))}",
        )
    tested = dataclasses.replace(tested, zones={node.name: node.zone for node in there})
    if context.settings.test_cordon:
        tested = _cordoned(context, cluster, tested)
    _show(context, tested, ran)
    if no_ray is not None:
        raise no_ray
    return tested, waited


def _show(context: Context, tested: Tested, ran: Ran | None) -> None:
    """Show what was found, and add it to the report."""
    known = {tested.pool.name: tested.document}
    context.report.checks = {**(context.report.checks or {}), **known}
    context.console.show(screen.lines(known, context.console.width), as_result=True)
    if tested.told is not None and tested.told.whole.table:
        context.console.result(tested.told.whole.table)
    elif ran is not None and ran.logs:
        for line in ran.logs[0].splitlines():
            context.console.progress(line)


def _cordoned(context: Context, cluster: Cluster, tested: Tested) -> Tested:
    """Cordon the nodes that are certainly bad."""
    deadline = context.progress.deadline(_CHANGING, _POLL)
    done = []
    for name in tested.bad:
        why = tested.why(name)
        cordon = functools.partial(nodes_module.cordon, cluster, name, why)
        if deadline.retry(cordon, f"cordon {name}"):
            context.console.progress(f"{name} is cordoned: {why}; undo: kubectl uncordon {name}")
            done.append(name)
    return dataclasses.replace(tested, cordoned=tuple(done))


def _nodes(context: Context, cluster: Cluster, pool: str) -> Sequence[Node]:
    deadline = context.progress.deadline(_CHANGING, _POLL)
    found = deadline.retry(
        lambda: cluster.all("v1", "Node", selector=f"{POOL_LABEL}={pool}"), "look at the nodes"
    )
    return [node for one in nodes_module.read(found) for node in one.each]


def _of_pool(error: ProvisionError, part: Part) -> ProvisionError:
    """An error that says which pool it is about."""
    name = part.pool.name
    return type(error).of(
        [dataclasses.replace(it, what=f"{name}: {it.what}") for it in error.problems]
    )


def _together(failed: Sequence[ProvisionError]) -> ProvisionError:
    """One error: faults count more than machines that Google refuses, and these than a wait."""
    if len(failed) == 1:
        return failed[0]
    problems = [problem for error in failed for problem in error.problems]
    kinds = (ClusterError, CapacityError, StillWaiting)
    worst = next(kind for kind in kinds if any(isinstance(error, kind) for error in failed))
    return worst.of(problems)
