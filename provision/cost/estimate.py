"""What a cluster costs: its parts times dated prices. Pure: nobody is asked here."""

from __future__ import annotations

import dataclasses
import datetime as dt
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Final

from provision.catalogue import limits
from provision.cost import rates
from provision.documents.cost import Amount, Cost, Part, PartKind

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from provision.catalogue.prices import Prices
    from provision.cost.rates import Rate
    from provision.spec.cluster import ClusterSpec
    from provision.spec.pools import Pool

_EXACT: Final = Decimal("0.000001")
"""Parts are rounded to this, in USD, so that a sum is that of the parts as they are shown."""
_DAY: Final = 24
_HOUR: Final = 3600
_ROUND_HOURS: Final = 6  # from so many on, a time that is derived is in whole hours


@dataclass(frozen=True, kw_only=True)
class _Count:
    """How many pieces of a part there are: now, and at most."""

    now: int = 1
    most: int = 1


def of(spec: ClusterSpec, prices: Prices, running: Mapping[str, int] | None = None) -> Cost:
    """What a cluster costs.

    Before a Create, `now` is what it costs from the beginning: machines that Google queues, and
    pools that start empty, cost nothing yet. For a cluster that exists, give the machines that
    exist: then `now` is what it costs at this moment, and `most` what that can become. Of a record,
    `spec` is what the kind makes of the settings, as Create did. `running`: name of a pool
    (`Pool.name`: of the group of VMs, or of the node pool) -> how many machines of it exist and are
    billed; a pool that is missing has as many as in the beginning.
    """
    known = running or {}
    counts = {pool.name: _count(pool, known.get(pool.name)) for pool in spec.pools}
    parts = tuple(_parts(spec, counts, prices))
    return Cost(
        currency="USD",
        prices=prices.origin,
        parts=parts,
        now=_sum([(part, part.now) for part in parts]),
        most=_sum([(part, part.most) for part in parts]),
        at_most_in_all=_in_all(spec.pools, prices),
    )


def of_machines(pool: Pool, number: int, prices: Prices) -> tuple[Part, ...]:
    """What so many machines of a pool cost, with all that each has."""
    return tuple(_of_pool(PartKind.MACHINES, pool, _Count(now=number, most=number), prices))


def with_running(cost: Cost, running: Sequence[tuple[Pool, int]], prices: Prices) -> Cost:
    """The cost of a change while machines run that are not what it describes: by what they are.

    They are billed now, and what they give way to is not. While one of them has no end, nobody can
    say what all of it costs at most.
    """
    none = Decimal(0)
    asked = (it if it.pool is None else dataclasses.replace(it, now=none) for it in cost.parts)
    there = (
        dataclasses.replace(part, most=none)
        for pool, number in running
        for part in of_machines(pool, number, prices)
    )
    parts = (*asked, *there)
    endless = any(_longest_run(pool) is None for pool, _ in running)
    return dataclasses.replace(
        cost,
        parts=parts,
        now=_sum([(part, part.now) for part in parts]),
        at_most_in_all=None if endless else cost.at_most_in_all,
    )


def in_all(spec: ClusterSpec, cost: Cost) -> tuple[Decimal | None, int | None]:
    """What a cluster costs in USD if each machine comes once and Destroy follows, and how long.

    None for both where a machine that runs jobs has no end, and for the sum if a price is unknown.
    """
    runs = {it.name: _longest_run(it) for it in spec.pools if it not in spec.system_pools}
    ends = [it for it in runs.values() if it is not None]
    if len(ends) < len(runs):
        return None, None
    longest, total = max(ends, default=0), Decimal(0)
    for part in cost.parts:
        if part.most is None:
            return None, longest
        total += part.most * (runs.get(part.pool or "") or longest) / _HOUR
    return total.quantize(_EXACT), longest


def longest_within(cost: Cost, usd: Decimal) -> int | None:
    """The seconds for which all of a cluster costs no more; None if that is less than VMs may run.

    It is rounded down, so that another price of a cent leaves it as it was.
    """
    if cost.most.unknown or not cost.most.per_hour:
        return None
    seconds = min(limits.LONGEST_RUN, int(usd / cost.most.per_hour * _HOUR))
    step = _HOUR if seconds >= _ROUND_HOURS * _HOUR else limits.SHORTEST_GROUP_RUN
    return seconds // step * step or None


def _count(pool: Pool, running: int | None) -> _Count:
    first = 0 if pool.mode.means.requested else pool.size.first
    now = first if running is None else running
    return _Count(now=now, most=max(now, pool.size.most))


def _parts(spec: ClusterSpec, counts: Mapping[str, _Count], prices: Prices) -> Iterator[Part]:
    if spec.has_control_plane:
        rate = rates.control_plane(spec.region, prices)
        yield _part(PartKind.CONTROL_PLANE, "GKE control plane", _Count(), rate)
    for pool in spec.pools:
        kind = PartKind.SYSTEM_NODES if pool in spec.system_pools else PartKind.MACHINES
        yield from _of_pool(kind, pool, counts[pool.name], prices)
    for share in spec.shares:
        name = f"Filestore {share.tier}, {share.size_gb:,} GiB, {share.path}"
        yield _part(PartKind.SHARES, name, _Count(), rates.share(share, spec.region, prices))
    # Machines that have addresses of their own do not use the NAT.
    behind = [counts[pool.name] for pool in spec.pools if not pool.external_ip]
    if spec.makes_network and behind:
        now, most = sum(it.now for it in behind), sum(it.most for it in behind)
        rate = rates.nat(most, spec.region, prices)
        part = _part(PartKind.NAT, "Cloud NAT, without traffic", _Count(), rate)
        yield dataclasses.replace(part, now=_rounded(rates.nat(now, spec.region, prices).usd))


def _of_pool(kind: PartKind, pool: Pool, count: _Count, prices: Prices) -> Iterator[Part]:
    number, means = _number(pool), pool.mode.means
    gpus = f" with {pool.gpus} x {pool.gpu_type}" if pool.attached else ""
    name = f"{number} x {pool.machine_type}{gpus}, {means.words}"
    rate = rates.machine(pool, prices)
    yield _part(kind, name, count, rate, pool=pool, remark=_remark(pool))
    disk = f"{number} x boot disk, {pool.disk_size_gb:,} GiB {pool.disk_type}"
    yield _part(PartKind.DISKS, disk, count, rates.disk(pool, prices), pool=pool)
    if pool.external_ip:
        address = f"{number} x external address"
        yield _part(PartKind.ADDRESSES, address, count, rates.address(pool, prices), pool=pool)


def _number(pool: Pool) -> str:
    first, most = pool.size.first, pool.size.most
    return f"{most:,}" if first == most else f"{first:,} to {most:,}"


def _remark(pool: Pool) -> str:
    """What the price of a pool's machines does not tell; "" for nothing."""
    means = pool.mode.means
    if means.reserved and not means.bound:
        return "a reservation is billed like machines on demand, whether it is used or not"
    if means.requested:
        return "nothing is billed as long as Google queues the request"
    return ""


def _part(  # noqa: PLR0913 - each is a fact of its own
    kind: PartKind,
    name: str,
    count: _Count,
    rate: Rate,
    *,
    pool: Pool | None = None,
    remark: str = "",
) -> Part:
    unknown = f"no price is known for {rate.missing}" if rate.missing else ""
    dates = [source.date for source in rate.sources]
    changed = {str(it.changes) for it in rate.sources if it.is_outdated}
    return Part(
        kind=kind,
        name=name,
        pool=pool.name if pool else None,
        now=_times(count.now, rate),
        most=_times(count.most, rate),
        # One date that is not known leaves the oldest unknown.
        dated=min(filter(None, dates)) if dates and all(dates) else None,
        source="; ".join(dict.fromkeys(source.text for source in rate.sources)) or None,
        is_estimate=any(source.is_estimate for source in rate.sources),
        outdated=_outdated(min(changed)) if changed else None,
        remark="; ".join(filter(None, [remark, unknown])) or None,
    )


def _outdated(month: str) -> str:
    announced = dt.date.fromisoformat(f"{month}-01").strftime("%b %Y")
    return f"new price since {announced}; PRICES=live asks"


def _times(count: int, rate: Rate) -> Decimal | None:
    """So many pieces in an hour; none of them cost nothing, whatever the price is."""
    if not count:
        return Decimal(0)
    return None if rate.usd is None else _rounded(count * rate.usd)


def _rounded(usd: Decimal | None) -> Decimal | None:
    return None if usd is None else usd.quantize(_EXACT)


def _sum(amounts: Sequence[tuple[Part, Decimal | None]]) -> Amount:
    per_hour = sum((usd for _, usd in amounts if usd is not None), Decimal(0))
    return Amount(
        per_hour=per_hour,
        per_day=per_hour * _DAY,
        unknown=tuple(part.name for part, usd in amounts if usd is None),
        is_estimate=any(part.is_estimate for part, usd in amounts if usd),
    )


def _in_all(pools: Sequence[Pool], prices: Prices) -> Decimal | None:
    """What the machines that expire cost until the last of them has ended."""
    total, ends = Decimal(0), False
    for pool in pools:
        seconds = _longest_run(pool)
        if seconds is None:
            continue
        each = [rates.machine(pool, prices), rates.disk(pool, prices)]
        each += [rates.address(pool, prices)] if pool.external_ip else []
        for rate in each:
            if rate.usd is None:
                return None
            total += rate.usd * pool.size.most * seconds / _HOUR
        ends = True
    return total.quantize(_EXACT) if ends else None


def _longest_run(pool: Pool) -> int | None:
    """After how many seconds a machine ends automatically; None for never.

    The request of a job in a queue says how long its nodes run, whatever the pool says.
    """
    return limits.LONGEST_RUN if pool.mode.means.queued else pool.max_run_seconds
