"""Which pools a Test goes over, in what order, and what their nodes cost meanwhile."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING

from provision import words
from provision.catalogue import names
from provision.codes import Code
from provision.cost import rates
from provision.errors import SettingsError
from provision.kinds.gke.kubernetes import all_gather
from provision.screens import amounts, layout

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from provision.catalogue.prices import Prices
    from provision.kinds.gke.kubernetes.facts import ClusterFacts, GpuPool
    from provision.spec.pools import Pool


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


def of(
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
    chosen = facts.pools
    if asked is not None:
        name = names.own_pool(prefix, asked, known)
        chosen = tuple(pool for pool in facts.pools if pool.name == name)
    # The images with NCCL's tests are for x86 alone.
    fit = [pool for pool in chosen if not pool.is_arm]
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


def told(parts: Sequence[Part], wait: float) -> str:
    """What a Test is about to use, in one sentence."""
    each = ", ".join(map(_told, parts))
    order = f"{len(parts)} pools, the cheapest first: " if len(parts) > 1 else ""
    measured = words.duration(all_gather.SECONDS)
    one = "each is measured" if len(parts) > 1 else "measures"
    waits = f"waits for nodes at most {words.duration(wait)}{' in all' if len(parts) > 1 else ''}"
    return f"Test of {order}{each}; {waits}, {one} at most {measured}"


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


def _told(part: Part) -> str:
    size = f"{layout.counted(part.nodes, 'node')}, {layout.counted(part.gpus, 'GPU')}"
    if part.per_hour is None:
        return f"{part.pool.name} ({size})"
    about = "≈ " if part.is_estimate else ""
    return f"{part.pool.name} ({size}, {about}{amounts.usd(part.per_hour)}/h)"
