"""The checks of the zone: it exists, and has the machine types, their GPUs and the boot disks."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from provision.catalogue import suggestions
from provision.catalogue import zones as places
from provision.codes import Code
from provision.errors import Alternatives
from provision.google.api import GoogleApiError, Service
from provision.google.resources import last
from provision.preflight.check import refuse

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from provision.preflight.check import CheckContext, Finding
    from provision.spec.cluster import ClusterSpec
    from provision.spec.pools import Pool

_BAD_REQUEST: Final = 400
_SIZES: Final = re.compile(r"(\d+)GB-(\d+)GB")
"""Google's format of the sizes that a disk type allows, `validDiskSize`."""
_MOST_ZONES: Final = 12  # the number of zones that a message lists; Google has well over a hundred
_MOST_NEAR: Final = 6  # the number of zones that it lists for one that there is not


def zone(ctx: CheckContext[ClusterSpec]) -> Iterator[Finding]:
    """Check that the zones exist, are in the region, and are up."""
    for name, setting in {it.zone: it.zone_setting for it in reversed(ctx.spec.pools)}.items():
        found = find(ctx, name)
        if found is None:
            yield _no_zone(ctx, setting, name)
        elif last(found["region"]) != ctx.spec.region:
            yield refuse(
                Code.CONFLICTING_SETTINGS,
                setting=setting,
                what=f"{name} is not in {ctx.spec.region}",
                why=f"Google has it in {last(found['region'])}",
                fix="set ZONE to another zone: its region is read from its name",
            )
        elif found.get("status", "UP") != "UP":
            yield refuse(
                Code.ZONE_DOWN,
                setting=setting,
                what=f"the zone {name} is down",
                why=f"Google reports its status as {found['status']}",
                fix="use another zone, or wait: see https://status.cloud.google.com",
            )


def _no_zone(ctx: CheckContext[ClusterSpec], setting: str, name: str) -> Finding:
    why = f"Google does not have it, or does not offer it to {ctx.project}"
    fix = f"list the zones with: gcloud compute zones list --project {ctx.project}"
    place = next(it for it in ctx.spec.pools if it.zone == name)
    collection, needed = "machineTypes", place.machine_type
    if place.attached:
        collection, needed = "acceleratorTypes", str(place.gpu_type)
    alike = places.did_you_mean_zone(name)
    if alike and places.region_of(alike) == places.region_of(name):
        alike = ""  # another letter is another zone, not a slip
    near = _zones_with(ctx, place, collection, needed, places.region_of(alike or name))
    if places.is_ai_zone(name):
        why += "; it shows AI zones to a project only once they are turned on"
        fix = f"turn them on with: {places.turning_ai_zones_on(ctx.project)}"
    elif near:
        why += f"; {needed} is in {', '.join(near[:_MOST_NEAR])}, the nearest first"
        why += f"; did you mean {alike}?" if alike else ""
        fix = _move(place, alike if alike in near else near[0])
    return refuse(
        Code.RESOURCE_NOT_FOUND,
        setting=setting,
        what=f"there is no zone {name}",
        why=why,
        fix=fix,
        alternatives=Alternatives(zones=tuple(near)),
    )


def find(ctx: CheckContext[ClusterSpec], name: str) -> dict[str, Any] | None:
    """A zone as Google's API returns it; None if there is no zone of that name."""
    try:
        return ctx.answers.find(Service.COMPUTE, f"projects/{ctx.project}/zones/{name}")
    except GoogleApiError as error:
        # Google answers both 404 and 400 if there is no such zone.
        if error.code == _BAD_REQUEST:
            return None
        raise


def machine_type(ctx: CheckContext[ClusterSpec]) -> Iterator[Finding]:
    """Check that the zone has the machine type."""
    for place in {(it.zone, it.machine_type): it for it in ctx.spec.pools}.values():
        if find(ctx, place.zone) is not None and look(ctx, place) is None:
            yield _absent(ctx, place, "machineTypes", place.machine_type)


def look(ctx: CheckContext[ClusterSpec], machines: Pool) -> dict[str, Any] | None:
    """A pool's machine type as Google's API returns it; None if the zone does not have it."""
    path = f"projects/{ctx.project}/zones/{machines.zone}/machineTypes/{machines.machine_type}"
    return ctx.answers.find(Service.COMPUTE, path)


def accelerator(ctx: CheckContext[ClusterSpec]) -> Iterator[Finding]:
    """Check that the zone has the GPUs to attach, and that a machine type has the expected GPUs."""
    for place in ctx.spec.pools:
        if place.gpu_type is None or find(ctx, place.zone) is None:
            continue
        yield from _attached(ctx, place) if place.attached else _built_in(ctx, place)


def _attached(ctx: CheckContext[ClusterSpec], place: Pool) -> Iterator[Finding]:
    path = f"projects/{ctx.project}/zones/{place.zone}/acceleratorTypes/{place.gpu_type}"
    found = ctx.answers.find(Service.COMPUTE, path)
    if found is None:
        yield _absent(ctx, place, "acceleratorTypes", str(place.gpu_type))
    elif place.gpus > int(found.get("maximumCardsPerInstance", place.gpus)):
        most = found["maximumCardsPerInstance"]
        yield refuse(
            Code.NOT_OFFERED,
            setting="GPU_COUNT",
            what=f"{place.gpus} {place.gpu_type} are too many for one machine",
            why=f"Google allows at most {most} for each machine in {place.zone}",
            fix=f"GPU_COUNT={most}, and more machines",
        )


def _built_in(ctx: CheckContext[ClusterSpec], place: Pool) -> Iterator[Finding]:
    """Compare this tool's table of machine types with Google's, which has the last word."""
    for own in (look(ctx, place) or {}).get("accelerators", []):
        kind, count = own.get("guestAcceleratorType"), own.get("guestAcceleratorCount")
        if (kind, count) != (place.gpu_type, place.gpus):
            yield refuse(
                Code.CONFLICTING_SETTINGS,
                setting="ACCELERATOR_TYPE" if kind != place.gpu_type else "GPU_COUNT",
                what=f"{place.machine_type} does not have {place.gpus} x {place.gpu_type}",
                why=f"according to Google it has {count} x {kind}",
                fix="remove GPU_COUNT and ACCELERATOR_TYPE, or choose another machine type",
            )


def disk(ctx: CheckContext[ClusterSpec]) -> Iterator[Finding]:
    """Check that the zone offers the type of the boot disks, in their size."""
    wanted = {(it.zone, it.disk_type, it.disk_size_gb) for it in ctx.spec.pools}
    for zone, kind, size in sorted(wanted):
        if find(ctx, zone) is None:
            continue
        path = f"projects/{ctx.project}/zones/{zone}/diskTypes/{kind}"
        found = ctx.answers.find(Service.COMPUTE, path)
        if found is None:
            yield refuse(
                Code.NOT_OFFERED,
                setting="DISK_TYPE",
                what=f"{zone} has no disks of the type {kind}",
                why="Google does not offer that type there",
                fix="list the available types with: gcloud compute disk-types list"
                f" --zones {zone} --project {ctx.project}",
            )
            continue
        sizes = _SIZES.fullmatch(found.get("validDiskSize", ""))
        if sizes and not int(sizes[1]) <= size <= int(sizes[2]):
            yield refuse(
                Code.INVALID_VALUE,
                setting="DISK_SIZE_GB",
                what=f"a {kind} disk can't have {size} GB",
                why=f"Google allows {sizes[1]} to {sizes[2]} GB",
                fix=f"DISK_SIZE_GB={min(max(size, int(sizes[1])), int(sizes[2]))}",
            )


def _absent(ctx: CheckContext[ClusterSpec], place: Pool, collection: str, name: str) -> Finding:
    near = _zones_with(ctx, place, collection, name)
    like = () if near else suggestions.like(name)
    return refuse(
        Code.NOT_OFFERED,
        setting=place.zone_setting if near else place.setting,
        what=f"{place.zone} has no {name}",
        why=_where(near, place.region) + (f"; did you mean {' or '.join(like)}?" if like else ""),
        fix=_move(place, near[0])
        if near
        else f"VM_TYPE={like[0]}"
        if like and place.setting == "VM_TYPE"
        else "choose another machine type, or ask Google for access to this one",
        alternatives=Alternatives(zones=tuple(near)),
    )


def _zones_with(
    ctx: CheckContext[ClusterSpec], place: Pool, collection: str, name: str, region: str = ""
) -> list[str]:
    """The zones that have something, and the machine type if it is GPUs; the nearest first."""
    there = ctx.answers.zones_with(ctx.project, collection, name)
    if place.attached:
        there = there & ctx.answers.zones_with(ctx.project, "machineTypes", place.machine_type)
    return places.nearest(there, region or place.region)


def _move(place: Pool, zone: str) -> str:
    return f"ZONE={zone}" if place.zone_setting == "ZONE" else f"zone={zone} for that pool"


def _where(near: Sequence[str], region: str) -> str:
    """Where else there is something: the region's own zones, and those of others, nearest first."""
    if not near:
        return "no zone that this project may use has it"
    own = [zone for zone in near if places.region_of(zone) == region]
    rest = near[len(own) :]
    more = f" and {len(rest) - _MOST_ZONES} more" if len(rest) > _MOST_ZONES else ""
    inside = f"in {region}, {', '.join(own)} {'has' if len(own) == 1 else 'have'} it"
    outside = "zones of other regions that have it, the same continent first:"
    told = [inside if own else f"no zone of {region} has it"]
    if rest:
        told.append(f"{outside} {', '.join(rest[:_MOST_ZONES])}{more}")
    return "; ".join(told)
