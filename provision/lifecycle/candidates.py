"""In which zone and way a cluster is made, where ZONE or CAPACITY leaves a choice (ADR 67, 72).

Each zone is asked for what it can be asked before anything is made, in each way; the first in which
nothing speaks against it is that of the cluster, as far as that goes. Machines that are there stay
where and how they are.
"""

from __future__ import annotations

import concurrent.futures
import dataclasses
from typing import TYPE_CHECKING, Final

from provision import preflight
from provision.catalogue import zones
from provision.cost import estimate
from provision.documents.plan import Candidate
from provision.errors import CheckError, Problem, StillWaiting
from provision.google.api import GoogleApiError, Service
from provision.lifecycle import advice, marked, pricing
from provision.settings.candidates import Site
from provision.settings.choices import Way
from provision.spec.rules import every

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from provision.catalogue.prices import Prices
    from provision.context import Cloud, Context
    from provision.deployment.deployment import SpecT
    from provision.deployment.kind import Kind
    from provision.errors import ProvisionError
    from provision.preflight import CheckResults
    from provision.preflight.check import Answers
    from provision.state.record import Record

_AT_ONCE: Final = 4  # zones that are looked at at the same time, each with all its checks


def choose(  # noqa: PLR0913, PLR0917 - each is a fact of its own
    context: Context,
    cloud: Cloud,
    kind: Kind[SpecT],
    asked: SpecT,
    at: Callable[[Site], SpecT],
    record: Record | None,
    answers: Answers,
    look: Callable[[SpecT], CheckResults[SpecT]],
    listed: Prices | None,
) -> tuple[SpecT, tuple[Candidate, ...]]:
    """The cluster in the zone and way that are tried first, and what is known of all of them.

    `listed`: the prices; None if none are wanted.

    Raises:
        StillWaiting: The time of a reservation in one of them has not begun.
    """
    settings, there = context.settings, None
    ways = settings.capacity or (None,)
    if record is not None and cloud.folder.has_state():
        zone = marked.where(cloud, record).zone
        there = Site(zone, marked.way(cloud, record) if settings.capacity else None)
        if settings.places.names(zone) and there.way in ways:
            staying = at(there)
            if not _may_leave(context, cloud, kind, record, staying):
                return staying, ()
    known = _known(context, asked, answers)
    against = {way: every.against(settings, way) if way else "" for way in ways}
    sites = [Site(zone, way) for way in ways if not against[way] for zone in known]
    with concurrent.futures.ThreadPoolExecutor(_AT_ONCE) as pool:
        results = list(pool.map(lambda site: look(at(site)), sites))
    found = [
        _candidate(context, at(site), result, answers, listed)
        for site, result in zip(sites, results, strict=True)
    ]
    found = list(advice.added(cloud.api, list(zip(map(at, sites), found, strict=True))))
    if settings.places.by_price:
        # Where there are likely any at all; the word `cheapest` is about the price alone.
        by_chance = settings.places.text != "cheapest"
        found.sort(
            key=lambda it: (
                ways.index(_site(it).way),
                advice.rank(it) if by_chance else 0,
                _price(it),
            )
        )
    # Where a search has come to is where an orphan of a killed run may be.
    order = sorted(found, key=lambda it: (bool(it.against), _site(it) != there))
    usable = tuple(_site(it) for it in order if not it.against)
    refused = {it.spec.site for it in results if it.problems or it.foreign}
    if not usable and len(refused) < len(found):
        # It is its price alone, which whoever looks at prices refuses.
        usable = tuple(it for it in map(_site, order) if it not in refused)
    if not usable:
        raise _none(found, results)
    first = dataclasses.replace(at(usable[0]), places=usable)
    skipped = (
        Candidate(zone=zone, way=way, against=against[way])
        for way in ways
        if against[way]
        for zone in known
    )
    return first, (*order, *skipped)


def _site(candidate: Candidate) -> Site:
    return Site(candidate.zone, Way(candidate.way) if candidate.way else None)


def _may_leave(
    context: Context, cloud: Cloud, kind: Kind[SpecT], record: Record, there: SpecT
) -> bool:
    """Whether a cluster may move to another zone of ZONE without losing what is in use.

    That is so as long as its machines have never come all together; and later, if none of them
    exists, or jobs wait for those that it lost, and nothing holds data.
    """
    states = [it.get("instanceStatus") for it in kind.instances(cloud, there)]
    lacks = states.count("RUNNING") < sum(pool.size.count or 0 for pool in there.pools)
    if record.searching:
        return lacks
    holds_data = there.shares or record.settings.get("NFS_FILESHARE_LIST")
    return not holds_data and (lacks if context.move else not any(states))


def _known(context: Context, asked: SpecT, answers: Answers) -> Sequence[str]:
    """The zones to look at: of a pattern, those that have the machine type, or the GPU, today."""
    places, pool = context.settings.places, asked.pools[0]
    if not places.by_price:
        return places.zones
    sought = ("machineTypes", pool.machine_type)
    if pool.attached:
        sought = ("acceleratorTypes", str(pool.gpu_type))
    try:
        found = answers.zones_with(asked.project_id, *sought)
    except GoogleApiError:
        return places.zones  # each one's check says why
    only = context.settings.region if "region" in context.settings.model_fields_set else None
    fitting = (it for it in found if places.names(it) and not zones.is_ai_zone(it))
    return sorted(it for it in fitting if only in {None, zones.region_of(it)}) or places.zones


def _candidate(
    context: Context,
    spec: SpecT,
    result: CheckResults[SpecT],
    answers: Answers,
    listed: Prices | None,
) -> Candidate:
    cost = estimate.of(result.spec, listed) if listed is not None else None
    problems = [*result.problems, *result.foreign]
    if cost is not None:
        problems += pricing.beyond(cost, result.spec, context.settings)
    return Candidate(
        zone=spec.zone,
        way=spec.way,
        per_hour=None if cost is None or cost.most.unknown else cost.most.per_hour,
        quotas=tuple(it for it in result.checks.quotas if "GPU" in it.metric),
        reservation=spec.pools[0].reservation,
        against="; ".join(dict.fromkeys(it.what for it in problems)),
        remarks=tuple(_remarks(spec, answers)),
    )


def _remarks(spec: SpecT, answers: Answers) -> Iterator[str]:
    """What makes a zone worse, though not impossible."""
    for bucket in dict.fromkeys(mount.bucket for mount in spec.buckets):
        try:
            found = answers.find(Service.STORAGE, f"b/{bucket}") or {}
        except GoogleApiError:
            continue  # another check says so
        location = str(found.get("location", "")).lower()
        if zones.has_region_form(location) and location != spec.region:
            yield f"gs://{bucket} is in {location}"


def _price(candidate: Candidate) -> tuple[bool, object, str]:
    return candidate.per_hour is None, candidate.per_hour or 0, candidate.zone


def _none(found: Sequence[Candidate], results: Sequence[CheckResults[SpecT]]) -> ProvisionError:
    """The error if something speaks against all of them: one's in full, and what of the others."""
    for one in results:
        if preflight.waits([*one.problems, *one.foreign]):
            return StillWaiting.of(one.problems)
    problems = [*results[0].problems, *results[0].foreign]
    first = results[0].spec.site
    others = "\n".join(f"{_site(it)}: {it.against}" for it in found if _site(it) != first)
    either = "way of CAPACITY in a zone of ZONE" if first.way else "zone of ZONE"
    rest = Problem(
        setting="ZONE",
        what=f"No other {either} can be used either: {len(found)} were looked at",
        why=others,
        fix="name other zones, or fix what speaks against one of these",
        code=problems[0].code,
    )
    return CheckError.of([*problems, rest])
