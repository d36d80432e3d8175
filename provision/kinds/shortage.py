"""What to say when Google refuses machines, and what the user can do about it.

Google creates the managed instance group anyway, and the group keeps trying. So these refusals are
found in the errors of the group's VMs; `google.refusals` reads them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from provision.catalogue import offers
from provision.catalogue import zones as places
from provision.codes import Code
from provision.errors import Alternatives, CapacityError, Problem
from provision.google import refusals
from provision.google.api import GoogleApiError
from provision.google.refusals import QUOTA_PAGE, QUOTA_ROLE, Refusal
from provision.kinds import denial

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from provision.google.api import GoogleApi
    from provision.spec.pools import Group

_KEPT: Final = "Everything is kept, and running VMs cost money: Destroy removes everything"
_MOST_PLACES: Final = 6
"""The number of regions that a message lists; Google has dozens."""


@dataclass(frozen=True, kw_only=True)
class RefusalTexts:
    """Parts of the message about refused machines, which depend on how they were requested."""

    words: str  # the current state, as the end of a sentence
    # what to do after a stock-out
    after_stockout: str = (
        "run Create again to keep waiting: Google keeps trying, and machines may become available"
    )
    # what to do once the quota is increased
    after_quota: str = (
        "once it is granted, Google creates the VMs: run Create again to wait for them"
    )
    end: str = _KEPT  # the last line of the fix


def check(  # noqa: PLR0913 - each is a fact of its own
    group: Group,
    instances: Sequence[Mapping[str, Any]],
    running: int,
    api: GoogleApi,
    *,
    young: bool = False,
    may_leave: bool = False,
) -> None:
    """Raise if Google has refused machines.

    `young`: whether the machines' account is new: what is said of it may pass. `may_leave`: whether
    there is another zone or way, so that a full reservation is not waited for.

    Raises:
        CapacityError: Google refused machines; the error has all reasons.
    """
    texts = RefusalTexts(words=f"{running} of {group.size} {group.members} run")
    errors = [
        error
        for error in refusals.of_instances(instances)
        if not (young and refusals.may_be_late(refusals.words(error)))
    ]
    also = frozenset({Refusal.RESERVED_OUT} if may_leave else ())
    problems = explain(group, errors, texts, api, also)
    if problems:
        raise CapacityError.of(problems)


def explain(
    group: Group,
    found: Sequence[Mapping[str, Any]],
    texts: RefusalTexts,
    api: GoogleApi,
    also: frozenset[Refusal] = frozenset(),
) -> list[Problem]:
    """What Google's errors mean, each kind of refusal once; what may pass is left out.

    `texts`: the parts of the message that depend on how the machines were requested.
    """
    refused: dict[Refusal, list[Mapping[str, Any]]] = {}
    for error in found:
        kind = refusals.of_error(error)
        if kind is not None and kind in refusals.CAPACITY | refusals.PERMANENT | also:
            refused.setdefault(kind, []).append(error)
    return [_problem(kind, group, mine, texts, api) for kind, mine in refused.items()]


def _problem(
    kind: Refusal,
    group: Group,
    found: Sequence[Mapping[str, Any]],
    texts: RefusalTexts,
    api: GoogleApi,
) -> Problem:
    if kind is Refusal.QUOTA:
        return _quota(group, found, texts)
    if kind is Refusal.STOCKOUT:
        return _stockout(group, found, texts, api)
    return denial.problem(kind, group, found, texts.words)


# ------------------------------------------------------------------ stock-out


def _stockout(
    group: Group, found: Sequence[Mapping[str, Any]], texts: RefusalTexts, api: GoogleApi
) -> Problem:
    free, zones = refusals.zones_available(found), _zones(group, api)
    return Problem(
        code=Code.STOCK_OUT,
        setting=group.zone_setting,
        what=f"{group.zone} has no {group.machine} available now: {texts.words}",
        why="\n".join(map(refusals.words, found)),
        fix=_lines(
            texts.after_stockout,
            *_elsewhere(group, free, zones),
            texts.end,
        ),
        alternatives=Alternatives(
            zones=tuple(dict.fromkeys([*free, *offers.nearest(zones, group.region)]))
        ),
    )


def _lines(*lines: str) -> str:
    return "\n".join(filter(None, lines))


def _zones(group: Group, api: GoogleApi) -> list[str]:
    return other_zones(group.project, group.zone, group.machine_type, group.gpu, api)


def other_zones(
    project: str, zone: str, machine_type: str, gpu: str | None, api: GoogleApi
) -> list[str]:
    """The other zones that offer such machines; empty if Google does not say."""
    try:
        zones = api.zones_with(project, "machineTypes", machine_type)
        if gpu:
            zones &= api.zones_with(project, "acceleratorTypes", gpu)
    except GoogleApiError:
        return []
    return sorted(zones - {zone})


def places_in_words(region: str, zones: Sequence[str]) -> Iterator[str]:
    """List other zones that offer such machines: one line for the region, one for other regions."""
    near = [zone for zone in zones if places.region_of(zone) == region]
    if near:
        yield f"zones of {region} that have the machine type: {', '.join(near)}"
    regions = offers.nearest({places.region_of(zone) for zone in zones} - {region}, region)
    if regions:
        rest = len(regions) - _MOST_PLACES
        more = f" and {rest} more" if rest > 0 else ""
        yield f"other regions that have it: {', '.join(regions[:_MOST_PLACES])}{more}"


def _elsewhere(group: Group, free: Sequence[str], zones: Sequence[str]) -> Iterator[str]:
    """Where else to try, one line each, the nearest first."""
    moving = f"and run Create --yes, which moves the {group.called} there"
    if free:
        there = group.in_zone(free[0])
        yield f"or {there}, where Google says that some are available now, {moving}"
    elif any(places.region_of(zone) == group.region for zone in zones):
        yield f"or set {group.zone_setting} to another zone of {group.region}, {moving}"
    yield from places_in_words(group.region, zones)
    if not zones:
        yield f"or set {group.zone_setting} to another zone that has {group.machine}, {moving}"


# ------------------------------------------------------------------ quota


def _quota(group: Group, found: Sequence[Mapping[str, Any]], texts: RefusalTexts) -> Problem:
    said = "\n".join(map(refusals.words, found))
    exceeded = refusals.quota(said)
    metric = exceeded.metric if exceeded else ""
    family = refusals.quota_dimensions(found).get("gpu_family")
    quota = f"quota {metric}".strip() + (f" for {family}" if family else "")
    amount = f"has a limit of {exceeded.limit:g}" if exceeded else "is exceeded"
    everywhere = exceeded is not None and exceeded.everywhere
    region = "all regions" if everywhere else (exceeded and exceeded.region) or group.region
    wanted = f"{group.all_gpus} GPUs" if group.all_gpus else f"{group.size} {group.machine}"
    return Problem(
        code=Code.QUOTA_EXCEEDED,
        what=f"The {quota} of {group.project} in {region} {amount}, and this {group.called}"
        f" needs {wanted}: {texts.words}",
        why=said,
        fix=_lines(
            f"request an increase at {QUOTA_PAGE}?project={group.project}",
            f"filter by {metric or 'its name'} and {region}, select it, click Edit ({QUOTA_ROLE})",
            texts.after_quota,
            "or use fewer or smaller machines (INSTANCE_COUNT, VM_TYPE)"
            + ("" if everywhere else f", or a zone whose region has quota ({group.zone_setting})"),
            texts.end,
        ),
    )
