"""What a cluster that exists costs, by list prices: now, at most, and so far."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from provision.catalogue.filestores import Tier
from provision.cost import estimate
from provision.documents.status import SoFar
from provision.settings.storage import Share
from provision.spec.cluster import ClusterSpec

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from provision.catalogue import gpu_networks
    from provision.catalogue.prices import Prices
    from provision.documents.cost import Cost, Part
    from provision.spec.pools import Pool
    from provision.state.record import Record
    from provision.time.clock import Clock

_HOUR: Final = 3600
_EXACT: Final = Decimal("0.01")


@dataclass(frozen=True, kw_only=True)
class Existing(ClusterSpec):
    """A cluster that exists, as far as its cost goes: by what Google says of its machines."""

    machines: tuple[Pool, ...]  # the machines that run jobs
    system: tuple[Pool, ...] = ()  # those that run none
    network_is_made: bool = False  # whether it has a network of its own
    has_control_plane: bool = False  # whether Google runs a control plane for it
    # name of a pool -> how long each of its machines has existed, in hours of cloud time
    ages: Mapping[str, Sequence[float]]
    age: float | None  # how long all else has existed; None if not known

    @property
    def pools(self) -> tuple[Pool, ...]:
        """All machines."""
        return (*self.machines, *self.system)

    @property
    def system_pools(self) -> tuple[Pool, ...]:
        """The machines that run no jobs."""
        return self.system

    @property
    def makes_network(self) -> bool:
        """Whether it has a network of its own."""
        return self.network_is_made

    def with_each(self, change: Callable[[Pool], Pool]) -> Mapping[str, Any]:
        """The machines that run jobs, changed."""
        return {"machines": tuple(map(change, self.machines))}

    @property
    def gpu_networks(self) -> tuple[gpu_networks.Network, ...]:
        """None: networks cost nothing."""
        return ()


def of(existing: Existing | None, listed: Prices | None) -> tuple[Cost | None, SoFar | None]:
    """What a cluster costs now and at most, and what exists now has cost so far.

    `existing`: the cluster; None if not enough is known of it. `listed`: the prices; None if none
    are wanted.
    """
    if existing is None or listed is None:
        return None, None
    running = {pool.name: len(existing.ages.get(pool.name, ())) for pool in existing.pools}
    cost = estimate.of(existing, listed, running)
    return cost, _so_far(cost, existing)


def hours(created: str | None, clock: Clock) -> float | None:
    """The age of something, in hours of cloud time; None if not known.

    `created`: when it came, in RFC 3339 format; None if not known.
    """
    if not created:
        return None
    return clock.since(dt.datetime.fromisoformat(created).timestamp()) / _HOUR


def shares(record: Record) -> tuple[Share, ...]:
    """The Filestore shares that the last Create asked for."""
    return tuple(
        Share.model_construct(path=it["path"], tier=Tier(it["tier"]), size_gb=it["size_gb"])
        for it in record.settings.get("NFS_FILESHARE_LIST") or ()
    )


def _so_far(cost: Cost, existing: Existing) -> SoFar:
    spent = [(part, _spent(part, existing)) for part in cost.parts if part.now != 0]
    ages = [age for found in existing.ages.values() for age in found]
    return SoFar(
        usd=sum((usd for _, usd in spent if usd is not None), Decimal(0)).quantize(_EXACT),
        hours=Decimal(max([*ages, existing.age or 0.0])).quantize(_EXACT),
        unknown=tuple(part.name for part, usd in spent if usd is None),
        is_estimate=any(part.is_estimate for part, usd in spent if usd is not None),
    )


def _spent(part: Part, existing: Existing) -> Decimal | None:
    """What a part has cost since it came; None if its price or its age is not known."""
    if part.now is None:
        return None
    if part.pool is None:
        return None if existing.age is None else part.now * Decimal(existing.age)
    found = existing.ages[part.pool]
    return part.now / len(found) * Decimal(sum(found))
