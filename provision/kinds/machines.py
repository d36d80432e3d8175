"""Whether the machines of a managed instance group come, and what to do when Google refuses them.

They are VMs, or the nodes of a node pool. Google creates the group anyway, and the group keeps
trying. So refusals are found in the errors of the group's VMs; `google.refusals` reads them.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from provision import words
from provision.catalogue import constraints
from provision.catalogue import zones as places
from provision.codes import Code
from provision.deployment.kind import Stranded
from provision.documents.timeline import StageName
from provision.errors import Alternatives, CapacityError, ClusterError, Problem, StillWaiting
from provision.google import refusals
from provision.google.api import GoogleApi, GoogleApiError
from provision.google.refusals import QUOTA_PAGE, QUOTA_ROLE, Refusal
from provision.screens import amounts

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from provision.spec.pools import Group
    from provision.time.stages import Progress

_POLL: Final = 10.0
"""Poll interval in seconds of cloud time."""
_STARTING: Final = frozenset({"PROVISIONING", "STAGING"})
"""What Google has found a host for, and runs not yet."""
_MOST_PLACES: Final = 6
"""The number of regions that a message lists; Google has dozens."""


def wait(  # noqa: PLR0913 - each is a fact of its own
    api: GoogleApi,
    group: Group,
    *,
    timeout: float,
    progress: Progress,
    young: bool = False,
    may_leave: bool = False,
) -> list[dict[str, Any]]:
    """Wait until all VMs of a managed instance group run; what the group says of them then.

    `young`, `may_leave`: see `check`.
    """
    with progress.stage(StageName.MACHINES) as stage:
        deadline = stage.deadline(timeout, _POLL)
        while True:
            instances = look(api, group)
            running = sum(map(_runs, instances))
            news = group.that_run(running)
            if running >= group.size and len(instances) == group.size:
                stage.counts(news)
                return instances
            is_young = young and deadline.passed < refusals.YOUNG
            check(group, instances, running, api, young=is_young, may_leave=may_leave)
            errors = refusals.of_instances(instances)
            news += "".join(f"; {refusals.words(error)}" for error in errors)
            starting = sum(it.get("instanceStatus") in _STARTING for it in instances)
            news += f"; {starting} there, and starting" if starting else ""
            stage.news(news)
            if deadline.is_over:
                raise StillWaiting(
                    f"After {amounts.span(timeout)}, {news}",
                    why="Google has not provided all machines yet; those that run cost money",
                    fix="everything is kept: run Create again to keep waiting, or Destroy to give"
                    " up; a higher CAPACITY_TIMEOUT waits longer",
                    setting="CAPACITY_TIMEOUT",
                )
            deadline.pause()


def run(instances: Sequence[Mapping[str, Any]], group: Group) -> bool:
    """Whether all VMs of a managed instance group run, by what it said of them."""
    return len(instances) == group.size and all(map(_runs, instances))


@contextlib.contextmanager
def checking(what: str) -> Iterator[None]:
    """Make a ClusterError of Google's after the apply: it could not be checked whether `what`."""
    try:
        yield
    except GoogleApiError as error:
        (problem,) = error.problems
        raise ClusterError(
            f"The cluster was created, but it could not be checked whether {what}",
            code=error.code_or(Code.NOT_CONFIRMED),
            why=problem.why,
            fix=_lines(problem.fix, "run Create again to continue, or Destroy to remove it"),
        ) from error


def look(api: GoogleApi, group: Group) -> list[dict[str, Any]]:
    """What a managed instance group says of its VMs."""
    with checking(f"the VMs of the group {group.name} run"):
        return api.managed_instances(group.project, group.zone, group.name)


def _runs(instance: Mapping[str, Any]) -> bool:
    return instance.get("instanceStatus") == "RUNNING" and instance.get("currentAction") == "NONE"


# ------------------------------------------------------------------ refusals


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
    # the last line of the fix
    end: str = "Everything is kept, and running VMs cost money: Destroy removes everything"


def check(  # noqa: PLR0913 - each is a fact of its own
    group: Group,
    instances: Sequence[Mapping[str, Any]],
    running: int,
    api: GoogleApi,
    *,
    young: bool = False,
    may_leave: bool = False,
) -> None:
    """Raise if Google has refused machines; the error has all reasons.

    `young`: whether the machines' account is new: what is said of it may pass. `may_leave`: whether
    there is another zone or way, so that a full reservation is not waited for.
    """
    texts = RefusalTexts(words=group.that_run(running))
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
    """What Google's errors mean, each kind of refusal once; what may pass is left out."""
    refused: dict[Refusal, list[Mapping[str, Any]]] = {}
    for error in found:
        kind = refusals.of_error(error)
        if kind is not None and kind in refusals.CAPACITY | refusals.PERMANENT | also:
            refused.setdefault(kind, []).append(error)
    problems = []
    for kind, mine in refused.items():
        match kind:
            case Refusal.QUOTA:
                problems.append(_quota(group, mine, texts))
            case Refusal.STOCKOUT:
                problems.append(_stockout(group, mine, texts, api))
            case _:
                problems.append(_lasting(kind, group, mine, texts.words))
    return problems


def explain_standing(
    group: Group, found: Sequence[Mapping[str, Any]], running: int, api: GoogleApi
) -> list[Problem]:
    """The same where nobody waits for the machines, as in Status."""
    texts = RefusalTexts(
        words=group.that_run(running),
        after_stockout="wait: Google goes on trying, and machines may become available",
        after_quota=f"once it is granted, Google makes the {'nodes' if group.pool else 'VMs'}",
        end="",
    )
    return explain(group, found, texts, api)


def running(instances: Iterable[Mapping[str, Any]]) -> int:
    """How many of a group's VMs run, whatever it is about to do with them."""
    return sum(it.get("instanceStatus") == "RUNNING" for it in instances)


def elsewhere(
    group: Group, instances: Sequence[Mapping[str, Any]], api: GoogleApi
) -> Stranded | None:
    """What a group lacks that Google refuses here, and may have elsewhere; None for nothing."""
    there = running(instances)
    if there >= group.size:
        return None
    found = explain_standing(group, refusals.of_instances(instances), there, api)
    reaches = ((it, refusals.reach(it.code, f"{it.what}\n{it.why}")) for it in found)
    told = "; ".join(it.what for it, reach in reaches if reach is not refusals.Reach.EVERYWHERE)
    return Stranded(what=told, left=there) if told else None


def _stockout(
    group: Group, found: Sequence[Mapping[str, Any]], texts: RefusalTexts, api: GoogleApi
) -> Problem:
    free = refusals.zones_available(found)
    zones = other_zones(group.project, group.zone, group.machine_type, group.gpu, api)
    return Problem(
        code=Code.STOCK_OUT,
        setting=group.zone_setting,
        what=f"{group.zone} has no {group.machine} available now: {texts.words}",
        why="\n".join(map(refusals.words, found)),
        fix=_lines(texts.after_stockout, *_elsewhere(group, free, zones), texts.end),
        alternatives=Alternatives(
            zones=tuple(dict.fromkeys([*free, *places.nearest(zones, group.region)]))
        ),
    )


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
    regions = places.nearest({places.region_of(zone) for zone in zones} - {region}, region)
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


def _quota(group: Group, found: Sequence[Mapping[str, Any]], texts: RefusalTexts) -> Problem:
    said = "\n".join(map(refusals.words, found))
    exceeded = refusals.quota(said)
    metric = exceeded.metric if exceeded else ""
    dimensions = refusals.quota_dimensions(found)
    family = dimensions.get("gpu_family") or dimensions.get("vm_family")
    quota = f"quota {metric}".strip() + (f" for {family}" if family else "")
    amount = f"has a limit of {exceeded.limit:.15g}" if exceeded else "is exceeded"
    everywhere = exceeded is not None and exceeded.everywhere
    region = "all regions" if everywhere else (exceeded and exceeded.region) or group.region
    wanted = (
        words.counted(group.all_gpus, "GPU") if group.all_gpus else f"{group.size} {group.machine}"
    )
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


_REASONS: Final[Mapping[Refusal, tuple[str, str]]] = {
    Refusal.PERMISSION: ("an account lacks a permission", ""),
    Refusal.API_OFF: ("the project has not enabled the API", ""),
    Refusal.POLICY: ("a policy of the organization forbids it", ""),
    Refusal.MISSING: ("something that they need does not exist", ""),
    Refusal.RESERVATION: ("the reservation does not exist, or does not fit", "RESERVATION_NAME"),
    Refusal.RESERVED_OUT: ("the reservation has no machines left", "RESERVATION_NAME"),
    Refusal.CONFIGURATION: ("what is asked for does not go together", "VM_TYPE"),
    Refusal.ADDRESSES: ("the subnetwork has no free IP addresses", ""),
}
"""A refusal that lasts -> why, and the setting that it is about; "" for none."""


def _lasting(
    kind: Refusal, group: Group, found: Sequence[Mapping[str, Any]], standing: str
) -> Problem:
    """A refusal that no waiting fixes: in Google's words, and who has to change what."""
    said = "\n".join(dict.fromkeys(map(refusals.words, found)))
    reason, setting = _REASONS[kind]
    return Problem(
        code=kind.code,
        setting=setting,
        what=f"Google refuses the {group.members}: {reason}; {standing}",
        why=f"{said}\nwaiting does not fix that",
        fix=_lines(
            *_remedies(kind, group, said),
            f"then run Create again; Destroy removes all that the {group.called} has",
        ),
    )


def _remedies(kind: Refusal, group: Group, said: str) -> list[str]:
    match kind:
        case Refusal.PERMISSION | Refusal.API_OFF:
            granted = "grant the account that Google names what it lacks, in this project"
            return [refusals.remedy(said) or granted]
        case Refusal.POLICY:
            name = refusals.constraint(said)
            known = constraints.named(name)
            asking = constraints.exception_for(name, group.project)
            return [asking, known.instead if known else ""]
        case Refusal.MISSING:
            return ["check the setting that names it, or create it again"]
        case Refusal.RESERVATION | Refusal.RESERVED_OUT:
            listing = f"gcloud compute reservations list --project {group.project}"
            fitting = f"one in {group.zone} whose machine type is {group.machine_type}"
            return [f"list what there is with: {listing}", f"set RESERVATION_NAME to {fitting}"]
        case Refusal.ADDRESSES:
            return ["ask for fewer machines (INSTANCE_COUNT), or free addresses in the subnetwork"]
        case _:
            return ["change what Google names (VM_TYPE, the disk's type or the image)"]


def _lines(*lines: str) -> str:
    return "\n".join(filter(None, lines))
