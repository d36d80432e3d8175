"""What one piece of each part costs in an hour: a machine, a disk, a share, a way out."""

from __future__ import annotations

from dataclasses import dataclass, replace
from decimal import Decimal
from typing import TYPE_CHECKING, Final, Self

from provision.catalogue import machine_sizes, machines, prices
from provision.catalogue.machines import Consumption
from provision.catalogue.prices import Source

if TYPE_CHECKING:
    from provision.catalogue.prices import Price, Prices
    from provision.settings.storage import Share
    from provision.spec.pools import Pool

_HYPERDISK: Final = "hyperdisk-balanced"
_FREE_IOPS: Final = 3000
_FREE_MIBPS: Final = 140
_MOST_MIBPS: Final = 2400
_MOST_IOPS: Final = 160_000

_NAT_BILLED: Final = 32
"""Cloud NAT's price page: VMs beyond this number cost nothing more in the same gateway."""
_BEHIND_ONE_ADDRESS: Final = 63
"""VMs that share one address: of its 64,512 ports, `terraform/modules/network` gives each 1,024."""

_UNDISCOUNTED: Final = frozenset(
    {
        *(prices.machine(name) for name in machines.MACHINE_TYPES if name.startswith("g2-")),
        *(prices.gpu(name) for name in machines.ATTACHMENTS),
        prices.core("n1"),
        prices.memory("n1"),
    }
)
"""What Google's page on flex start names no discount for: it has A2, A3, A4, G4 and H4D."""


@dataclass(frozen=True)
class Rate:
    """What one piece of something costs in an hour."""

    usd: Decimal | None  # US dollars; None if a price that it is made of is unknown
    sources: tuple[Source, ...] = ()  # where the prices are from
    missing: str = ""  # the first item without a price, in words; "" if there is none

    @classmethod
    def of(
        cls,
        listed: Prices,
        region: str,
        *terms: tuple[Decimal | int, str],
        way: Consumption = Consumption.ON_DEMAND,
    ) -> Self:
        """The sum of numbers of items, each times its price; unknown if one price is."""
        usd, sources = Decimal(0), dict[Source, None]()
        for count, item in terms:
            if not count:
                continue
            price = _find(listed, item, region, way)
            if price is None:
                how = "" if way is Consumption.ON_DEMAND else f", {way}"
                return cls(None, missing=f"{item}{how}, in {region}")
            usd += count * price.usd
            sources[price.source] = None
        return cls(usd, tuple(sources))


def _find(listed: Prices, item: str, region: str, way: Consumption) -> Price | None:
    """The price of an item; with flex start that on demand, for what it has no discount for."""
    found = listed.find(item, region, way)
    if found is not None or way is not Consumption.FLEX_START or item not in _UNDISCOUNTED:
        return found
    usual = listed.find(item, region)
    if usual is None:
        return None
    text = f"as on demand, as flex start has no discount for it: {usual.source.text}"
    return replace(usual, source=replace(usual.source, text=text, is_estimate=True))


def machine(pool: Pool, listed: Prices) -> Rate:
    """One machine of a pool, with its GPUs and the local SSDs that its type includes.

    Machines of a reservation cost what those on demand do. Those that are bound to it have no list
    price: theirs is agreed with Google, or paid beforehand.
    """
    if pool.mode.means.bound:
        return Rate(None, missing=f"{pool.machine_type} of a reservation that it is bound to")
    shape = machine_sizes.billed(pool.machine_type)
    terms: list[tuple[Decimal | int, str]]
    if shape is None:
        terms = [(1, prices.machine(pool.machine_type))]
    else:
        core, memory = prices.core(shape.series), prices.memory(shape.series)
        terms = [(shape.vcpus, core), (shape.gib, memory)]
    if pool.attached:
        terms.append((pool.gpus, prices.gpu(str(pool.gpu_type))))
    return Rate.of(listed, pool.region, *terms, way=_way(pool))


def beforehand(pool: Pool, listed: Prices) -> Rate:
    """One machine of a pool in calendar mode, which is paid for all of the time."""
    item = prices.machine(pool.machine_type)
    return Rate.of(listed, pool.region, (1, item), way=Consumption.CALENDAR)


def _way(pool: Pool) -> Consumption:
    asked = pool.mode.means.consumption
    return Consumption.ON_DEMAND if asked is Consumption.RESERVATION else asked


def disk(pool: Pool, listed: Prices) -> Rate:
    """The boot disk of one machine.

    Of a Hyperdisk, performance is billed beside size. The templates leave it to Google, which takes
    6 IOPS per GiB and 3,000 more, and 1.5 MiB/s per GiB and 140 more (price page of Hyperdisk).
    """
    kind, size = pool.disk_type, pool.disk_size_gb
    terms: list[tuple[Decimal | int, str]] = [(size, prices.disk(kind))]
    if kind == _HYPERDISK:
        operations = min(_MOST_IOPS, 6 * size + _FREE_IOPS) - _FREE_IOPS
        mibps = min(Decimal(_MOST_MIBPS), Decimal("1.5") * size + _FREE_MIBPS) - _FREE_MIBPS
        terms += [(operations, prices.iops(kind)), (mibps, prices.throughput(kind))]
    return _monthly(Rate.of(listed, pool.region, *terms))


def address(pool: Pool, listed: Prices) -> Rate:
    """The external address of one VM; flex start has no price of its own for it."""
    is_spot = _way(pool) is Consumption.SPOT
    way = Consumption.SPOT if is_spot else Consumption.ON_DEMAND
    return Rate.of(listed, pool.region, (1, prices.ADDRESS), way=way)


def share(wanted: Share, region: str, listed: Prices) -> Rate:
    """A Filestore share: billed for its size, whether it is used or not."""
    return _monthly(Rate.of(listed, region, (wanted.size_gb, prices.share(wanted.tier))))


def control_plane(region: str, listed: Prices) -> Rate:
    """A GKE cluster without nodes."""
    return Rate.of(listed, region, (1, prices.CONTROL_PLANE))


def nat(vms: int, region: str, listed: Prices) -> Rate:
    """Cloud NAT for VMs without external addresses; what it processes is not in it."""
    addresses = -(-vms // _BEHIND_ONE_ADDRESS)
    uptime = (min(vms, _NAT_BILLED), prices.NAT)
    return Rate.of(listed, region, uptime, (addresses, prices.NAT_ADDRESS))


def _monthly(rate: Rate) -> Rate:
    """The rate of an hour from that of a month."""
    return rate if rate.usd is None else replace(rate, usd=rate.usd / prices.HOURS_OF_A_MONTH)
