"""What a run's cluster costs, in its report."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provision.catalogue import prices
from provision.cost import estimate

if TYPE_CHECKING:
    from provision.context import Context
    from provision.spec.cluster import ClusterSpec


def tell(context: Context, spec: ClusterSpec) -> None:
    """Add what a cluster costs to the report."""
    context.report.cost = estimate.of(spec, prices.listed())
