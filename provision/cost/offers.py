"""What a machine with a GPU costs in each way to get it, where that is the cheapest."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Final

from provision.catalogue import machines, suggestions, zones
from provision.catalogue.machines import Binding, Consumption, Offered
from provision.cost import rates
from provision.documents.cost import Offer
from provision.spec.capacity import Mode
from provision.spec.pools import Pool, Size
from provision.spec.rules import software

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from provision.catalogue.machines import Gpu, MachineType
    from provision.catalogue.prices import Prices
    from provision.cost.rates import Rate

_EXACT: Final = Decimal("0.000001")
_HOUR: Final = 3600
_USUAL: Final = "us-central1"
_YOURS: Final = "<your reservation>"
_WAYS: Final[Mapping[Consumption, Mode]] = {
    Consumption.ON_DEMAND: Mode.STANDARD,
    Consumption.SPOT: Mode.SPOT,
    Consumption.FLEX_START: Mode.FLEX_START,
    Consumption.RESERVATION: Mode.RESERVATION,
    Consumption.CALENDAR: Mode.RESERVATION_BOUND,
}
_ASKING: Final[Mapping[Consumption, Mapping[str, str]]] = {
    Consumption.ON_DEMAND: {},
    Consumption.SPOT: {"ENABLE_SPOT": "yes"},
    Consumption.FLEX_START: {"ENABLE_FLEX_START": "yes"},
    Consumption.RESERVATION: {"RESERVATION_NAME": _YOURS},
    Consumption.CALENDAR: {"RESERVATION_NAME": _YOURS},
}


@dataclass(frozen=True)
class _Wanted:
    """A machine type with GPUs, in it or attached to it, and where there are such."""

    gpu: Gpu
    machine: MachineType
    attached: int  # the number of GPUs that are attached; 0 where they are in it
    places: tuple[str, ...]

    @property
    def gpus(self) -> Fraction:
        return Fraction(self.machine.part or self.attached or self.machine.gpus or 1)

    def pool(self, way: Consumption, region: str) -> Pool:
        mode = _WAYS[way]
        if mode is Mode.RESERVATION and self.machine.family.binding is Binding.ALWAYS:
            mode = Mode.RESERVATION_BOUND
        return Pool(
            name="",
            machine_type=self.machine.name,
            zone=f"{region}-",
            gpu_type=self.gpu.name,
            gpu_count=self.attached or self.machine.gpus,
            mode=mode,
            size=Size(count=1),
            disk_size_gb=0,
            disk_type=self.machine.family.boot_disks[0],
        )


def of(
    gpus: Collection[str], listed: Prices, today: dt.date, *, seconds: int | None, at: str = ""
) -> tuple[Offer, ...]:
    """All machines with these GPUs, the cheapest for a GPU first, and those without a price last.

    `seconds`: how long one is to run; None if nobody has said. `at`: the zone whose prices count
    where it has such machines; "" for none.
    """
    found = [
        _offer(it, way, listed, seconds, at)
        for it in _wanted(gpus, today)
        for way in _WAYS
        if _is_offered(it.machine, way)
    ]
    return tuple(sorted(found, key=lambda it: (_cents(it.per_gpu_hour), it.gpus)))


def _cents(usd: Decimal | None) -> Decimal:
    """By which amounts are sorted: lists differ in their last digits; unknown is the last."""
    return Decimal("Infinity") if usd is None else usd.quantize(Decimal("0.01"))


def _wanted(gpus: Collection[str], today: dt.date) -> Iterator[_Wanted]:
    for name in gpus:
        gpu = machines.GPUS[name]
        if gpu.is_over(today):
            continue
        for one in machines.carrying(name):
            places = zones.OFFERS.machine_types.places.get(one, ())
            yield _Wanted(gpu, machines.MACHINE_TYPES[one], 0, places)
        usual = machines.MACHINE_TYPES[suggestions.USUAL_WITHOUT_GPUS]
        places = zones.OFFERS.accelerators.places.get(name, ())
        for count, most in gpu.max_vcpus.items():
            if usual.vcpus <= most:
                yield _Wanted(gpu, usual, count, places)


def _is_offered(machine: MachineType, way: Consumption) -> bool:
    if way is Consumption.CALENDAR:
        return way in machine.consumption
    return machine.offered(way) is not Offered.NO


def _offer(
    wanted: _Wanted, way: Consumption, listed: Prices, seconds: int | None, at: str
) -> Offer:
    regions = sorted({it if it in zones.ZONES else zones.region_of(it) for it in wanted.places})
    if at in wanted.places or zones.region_of(at) in wanted.places:
        regions = [zones.region_of(at)]
    priced = [(_rate(wanted, way, region, listed), region) for region in regions]
    rate, region = min(priced, key=_rank, default=(rates.Rate(None), None))
    usd, gpus = rate.usd, Decimal(wanted.gpus.numerator) / wanted.gpus.denominator
    dates = [source.date for source in rate.sources]
    asked = _asked(wanted, way, region, at)
    return Offer(
        gpu=wanted.gpu.name,
        machine_type=wanted.machine.name,
        gpus=gpus,
        way=str(way),
        per_hour=usd and usd.quantize(_EXACT),
        per_gpu_hour=usd and (usd / gpus).quantize(_EXACT),
        at_most=(usd and seconds and (usd * seconds / _HOUR).quantize(_EXACT)) or None,
        region=region,
        zones=wanted.places,
        dated=min(filter(None, dates)) if dates and all(dates) else None,
        source="; ".join(dict.fromkeys(it.text for it in rate.sources)) or None,
        is_estimate=any(it.is_estimate for it in rate.sources),
        remark="; ".join(_remarks(wanted, way, rate)) or None,
        settings=asked,
    )


def _rank(priced: tuple[Rate, str]) -> tuple[Decimal, bool, bool]:
    """The cheapest first; of equal ones what most people use, and a price that is published."""
    rate, region = priced
    is_estimate = any(it.is_estimate for it in rate.sources)
    return _cents(rate.usd), region != _USUAL, is_estimate


def _rate(wanted: _Wanted, way: Consumption, region: str, listed: Prices) -> Rate:
    pool = wanted.pool(way, region)
    of_way = rates.beforehand if way is Consumption.CALENDAR else rates.machine
    return of_way(pool, listed)


def _remarks(wanted: _Wanted, way: Consumption, rate: Rate) -> Iterator[str]:
    if wanted.machine.offered(way) is Offered.DOUBTFUL:
        yield "Google's pages disagree whether there are such, or do not tell"
    if way is Consumption.RESERVATION and rate.usd is not None:
        yield "a reservation is billed like machines on demand, whether it is used or not"
    elif rate.usd is None and way in machines.RESERVED:
        yield "its price is agreed with Google"
    if not wanted.places:
        yield "no list says where there are such"


def _asked(wanted: _Wanted, way: Consumption, region: str | None, at: str) -> Mapping[str, str]:
    """What an env.list has for such a machine."""
    asked = {"VM_TYPE": wanted.machine.name, **_ASKING[way]}
    if wanted.attached:
        asked |= {"ACCELERATOR_TYPE": wanted.gpu.name, "GPU_COUNT": str(wanted.attached)}
    if not wanted.gpu.open_module:
        project, family = software.PROPRIETARY
        asked |= {"IMAGE_PROJECT": project, "IMAGE_FAMILY_NAME": family}
    inside = [it for it in wanted.places if zones.region_of(it) == region]
    if region is not None:
        is_there = zones.region_of(at) == region
        asked["ZONE"] = at if is_there else inside[0] if inside else f"{region}-*"
    return asked


def gpus_of(text: str) -> tuple[str, ...]:
    """The names of the GPUs that a text means: their own, a short one, or a machine type's."""
    if text in machines.GPUS:
        return (text,)
    machine = machines.lookup(text.lower())
    if machine is not None and machine.accelerator is not None:
        return (machine.accelerator,)
    return tuple(it.name for it in suggestions.gpus(text))


def cheapest(offers: Sequence[Offer]) -> tuple[Offer, ...]:
    """Of each GPU its cheapest offer, the cheapest GPU first; `offers`: as `of` has sorted them."""
    first: dict[str, Offer] = {}
    for it in offers:
        first.setdefault(it.gpu, it)
    return tuple(first.values())
