"""What nodes a job takes: how many, which of them come for it, and what those cost."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

from provision.catalogue import limits
from provision.cost import estimate
from provision.deployment.jobs import Needs
from provision.kinds import machine_words
from provision.kinds.gke.kubernetes import kueue
from provision.screens import amounts, layout

if TYPE_CHECKING:
    from provision.catalogue.prices import Prices
    from provision.kinds.gke.kubernetes.facts import GpuPool
    from provision.spec.job import JobSpec
    from provision.spec.pools import Pool


def by_default(made: Pool | None, most: int) -> int:
    """How many nodes a job gets that names no number: of those that are there in any case, all."""
    return most if made is not None and made.size.count is not None else min(most, 1)


def needs(
    spec: JobSpec, pool: GpuPool, made: Pool | None, coming: int, listed: Prices | None
) -> Needs:
    """What a job takes that has its number of nodes, of which so many come for it."""
    nodes = spec.nodes or 0
    parts = estimate.of_machines(made, coming, listed) if made and listed and coming else ()
    price = amounts.of_parts(parts) if coming else "there already, at no more cost"
    facts = [
        f"{layout.counted(nodes, 'node')} of {pool.name}",
        f"{nodes * pool.gpus} x {machine_words.kind(pool.accelerator)}",
        f"{coming} of them new" if 0 < coming < nodes else "",
        "at an unknown price" if price == "unknown" else price,
        _until(spec, pool),
    ]
    more = sum((part.most for part in parts if part.most is not None), Decimal(0))
    return Needs(words=f"The job takes {', '.join(filter(None, facts))}", more=more)


def _until(spec: JobSpec, pool: GpuPool) -> str:
    longest = spec.seconds or limits.LONGEST_RUN
    most = kueue.run_seconds(pool, longest) if pool.queued else longest
    if spec.seconds == most:
        return f"until --time ({amounts.span(most)}) is over"
    if pool.queued:
        return f"until it ends, {amounts.span(most)} at most"
    run = pool.max_run_seconds
    return "until it ends" + (f", each node {amounts.span(run)} at most" if run else "")
