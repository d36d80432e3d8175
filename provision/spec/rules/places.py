"""Rules about where: regions and zones, and where Google offers what, and until when.

What comes of dated lists is a note, as today's list is Google's.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from provision import words
from provision.catalogue import machines, zones
from provision.codes import Code
from provision.settings import candidates
from provision.spec import pools
from provision.spec.rules.findings import Case, Finding, Rules
from provision.spec.rules.pools import MAKES_POOLS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from provision.catalogue.zones import Listing
    from provision.spec.pools import Pool

RULES: Final = Rules()

_MOST_PLACES: Final = 12  # the number of places that a note names
_DECIDES: Final = "the online check decides"


@RULES.on("region", "zone")
def _region(case: Case) -> Iterator[Finding]:
    region, named = case.settings.region, case.settings.places
    outside = [zone for zone in named.zones if zones.region_of(zone) != region]
    if outside and case.asked("region"):
        there = zones.region_of(outside[0])
        yield Finding(
            field="region",
            what=f"does not contain the zone {outside[0]}",
            why=f"the zone is in {there}",
            fix="remove REGION" if named.is_several else f"REGION={there}, or remove REGION",
        )


@RULES.on("zone")
def _several_zones(case: Case) -> Iterator[Finding]:
    settings, named = case.settings, case.settings.places
    if not named.is_several or not case.is_gke:
        return
    region = zones.region_of(settings.zone)
    beyond = sorted({zones.region_of(it) for it in named.zones} - {region})
    if beyond:
        inside = [it for it in named.zones if zones.region_of(it) == region]
        other = f"ZONE={','.join(inside)}"
        if named.text in candidates.ANYWHERE:
            other = f"REGION={region}, or ZONE={region}-*"
        yield Finding(
            field="zone",
            what=f"names zones of {region} and of {words.listed(beyond)}",
            why="a GKE cluster is in one region, and only its GPU pools go from zone to zone",
            fix=other,
        )
    fixed = [pool for pool in settings.gke_node_pools or () if pool.zone]
    if fixed and len(fixed) == len(settings.gke_node_pools or ()):
        yield Finding(
            code=Code.WITHOUT_EFFECT,
            field="zone",
            what="names several zones, and each pool of GKE_NODE_POOLS has its own",
            why="Create goes from zone to zone with the pools that name none",
            fix=f"ZONE={settings.zone}, or leave zone out of the pools that may be in any of them",
        )


def _pools(case: Case) -> tuple[Pool, ...]:
    if case.is_gke:
        return pools.of(case.settings)
    return (pools.group(case.settings),)


@RULES.on("zone")
def _unknown_zones(case: Case) -> Iterator[Finding]:
    named = case.settings.places
    for zone in named.zones:
        for finding in _unknown_zone(zone):
            what = f"has {zone}, which {finding.what}" if named.is_several else finding.what
            yield replace(finding, what=what)


def _unknown_zone(zone: str) -> Iterator[Finding]:
    region = zones.region_of(zone)
    if zone in zones.ZONES.get(region, ()):
        return
    date = zones.OFFERS.zones.date
    if region in zones.ZONES:
        why = (
            f"it has {', '.join(zones.ZONES[region])} in {region}; Google adds zones, so {_DECIDES}"
        )
        what, fix = "is not in this tool's list of zones", ""
    else:
        meant = zones.did_you_mean_zone(zone)
        what = "is in a region that is not in this tool's list"
        why = f"Google adds regions, and has some that are not public for all, so {_DECIDES}"
        fix = f"did you mean {meant}?" if meant else ""
    yield Finding(
        code=Code.NOT_OFFERED,
        field="zone",
        what=what,
        why=f"the list is of {date}: {why}",
        fix=fix,
        note=True,
        guess=True,
    )


@RULES.on("zone", "project_id")
def _ai_zone(case: Case) -> Iterator[Finding]:
    if any(map(zones.is_ai_zone, case.settings.places.zones)):
        yield Finding(
            code=Code.NOT_CHECKED,
            field="zone",
            what="is an AI zone, which Google shows to a project only once they are turned on",
            why=_DECIDES,
            fix=zones.turning_ai_zones_on(case.settings.project_id),
            note=True,
            guess=True,
        )


@RULES.on(*MAKES_POOLS)
def _not_offered(case: Case) -> Iterator[Finding]:
    found = (finding for pool in _pools(case) for finding in _of_pool(pool))
    yield from dict.fromkeys(found)


def _of_pool(pool: Pool) -> Iterator[Finding]:
    lists = zones.OFFERS
    if pool.region not in zones.ZONES:  # another note says so
        return
    yield from _lacking(lists.machine_types, pool.machine_type, pool)
    if pool.attached and pool.gpu_type is not None:
        yield from _lacking(lists.accelerators, pool.gpu_type, pool)


def _lacking(listing: Listing, name: str, pool: Pool) -> Iterator[Finding]:
    if not listing.lacks(name, pool.zone):
        return
    near = zones.nearest(listing.places[name], pool.region)
    more = f" and {len(near) - _MOST_PLACES} more" if len(near) > _MOST_PLACES else ""
    where = f"in {', '.join(near[:_MOST_PLACES])}{more}, the nearest first" if near else "nowhere"
    place = f"has a pool in {pool.zone}," if pool.zone_setting != "ZONE" else "is a zone"
    yield Finding(
        code=Code.NOT_OFFERED,
        field=pool.zone_setting.lower(),
        what=f"{place} where {name} was not offered on {listing.date}",
        why=f"the list of that day has it {where}; {_DECIDES}",
        note=True,
        zones=tuple(filter(zones.has_zone_form, near))[:_MOST_PLACES],
        guess=True,
    )


@RULES.on(*MAKES_POOLS)
def _ending(case: Case) -> Iterator[Finding]:
    names = dict.fromkeys(pool.gpu_type for pool in _pools(case))
    for gpu in (machines.GPUS.get(name or "") for name in names):
        if gpu is not None and gpu.supported_until:
            in_pools = case.asked("gke_node_pools")
            words = f"has a pool with {gpu.name}, a GPU" if in_pools else "is a GPU"
            is_over = gpu.is_over(case.today)
            yield Finding(
                code=Code.NOT_OFFERED if is_over else Code.ENDS_SOON,
                field="gke_node_pools" if in_pools else "accelerator_type",
                what=f"{words} whose support Google has ended on {gpu.supported_until}"
                if is_over
                else f"{words} that Google supports until {gpu.supported_until}",
                why="from then on machines with it can be neither created nor started",
                fix="a machine type with newer GPUs, such as VM_TYPE=g2-standard-8",
                note=not is_over,
            )


@RULES.on("vm_type", gke=False)
def _part(case: Case) -> Iterator[Finding]:
    pool = pools.group(case.settings)
    if pool.gpu_part:
        yield Finding(
            code=Code.IMAGE_UNSUITABLE,
            field="vm_type",
            what=f"has {pool.gpu_part} of a GPU, which counts as one GPU",
            why="a part of a GPU needs NVIDIA's vGPU driver, and the images of this tool's choice"
            " have another one",
            fix="IMAGE_NAME=<an image with the vGPU driver>, or VM_TYPE=g4-standard-48",
            note=True,
        )
