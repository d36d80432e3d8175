"""When Google has no machines to give: what it says, what that means, and what one can do.

A managed instance group is made all the same and goes on trying, so these refusals are found in
what the group says of its VMs.
"""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from provision.catalogue import machines
from provision.catalogue import zones as places
from provision.errors import CapacityError, Problem
from provision.google.api import GoogleApiError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from provision.google.api import GoogleApi

_KEPT: Final = "Everything is kept, and VMs that run cost money: Destroy removes it all"
_MOST_PLACES: Final = 6
"""Regions that are named; Google has dozens."""
QUOTA_PAGE: Final = "https://console.cloud.google.com/iam-admin/quotas"
QUOTA_ROLE: Final = "it takes the role Quota Administrator, roles/servicemanagement.quotaAdmin"
_STOCKOUT: Final = "does not have enough resources available"
_QUOTA: Final = re.compile(
    r"Quota '(?P<metric>[\w-]+)' exceeded\.\s+Limit: (?P<limit>\d+(?:\.\d+)?)"
    r"(?: in region (?P<region>[\w-]+))?"
)


class Refusal(enum.Enum):
    """Why Google gives no machine, as far as waiting alone does not mend it."""

    STOCKOUT = enum.auto()
    QUOTA = enum.auto()


# Google's code of the error -> what it means. Errors of other codes may go by: they are only told.
_CODES: Final[Mapping[str, Refusal]] = {
    "QUOTA_EXCEEDED": Refusal.QUOTA,
    "RESOURCE_POOL_EXHAUSTED": Refusal.STOCKOUT,
    "ZONE_RESOURCE_POOL_EXHAUSTED": Refusal.STOCKOUT,
    "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS": Refusal.STOCKOUT,
}


@dataclass(frozen=True, kw_only=True)
class Group:
    """A managed instance group, and what is wanted of it.

    Attributes:
        project: Its project.
        zone: Its zone.
        name: Its name.
        size: How many VMs it is to have.
        machine_type: Of its VMs.
        gpu: The kind of GPU that is attached to each; None where the machine type brings its own.
        gpus: How many GPUs are attached to each.
        pool: The node pool whose nodes its VMs are; None for a group of VMs.
        zone_setting: Where a user says which zone it has.
    """

    project: str
    zone: str
    name: str
    size: int
    machine_type: str
    gpu: str | None = None
    gpus: int = 0
    pool: str | None = None
    zone_setting: str = "ZONE"

    @property
    def members(self) -> str:
        """What its VMs are, in words."""
        return f"nodes of {self.pool}" if self.pool else "VMs"

    @property
    def called(self) -> str:
        """What it is, in words."""
        return "node pool" if self.pool else "group"

    def in_zone(self, zone: str) -> str:
        """How a user says that it is to have another zone."""
        if self.zone_setting == "ZONE":
            return f"set ZONE={zone}"
        return f"set its zone={zone} in {self.zone_setting}"

    @property
    def region(self) -> str:
        """The zone's region."""
        return places.region_of(self.zone)

    @property
    def path(self) -> str:
        """Where Google has it."""
        return f"projects/{self.project}/zones/{self.zone}/instanceGroupManagers/{self.name}"

    @property
    def machine(self) -> str:
        """What one VM is, in words."""
        attached = f" with {self.gpus} {self.gpu}" if self.gpu else ""
        return self.machine_type + attached

    @property
    def all_gpus(self) -> int:
        """The GPUs of all its VMs together; 0 if that is not known."""
        known = machines.lookup(self.machine_type)
        own = known.gpus if known is not None else None
        return self.size * (own or self.gpus)


@dataclass(frozen=True, kw_only=True)
class Standing:
    """How things stand when Google refuses machines, for what is told then.

    Attributes:
        words: The end of a sentence.
        after_stockout: How to go on when there are no machines.
        after_quota: How to go on once there is more quota.
        end: What else is to be said.
    """

    words: str
    after_stockout: str = (
        "run Create again to go on waiting: Google keeps trying, and this may pass"
    )
    after_quota: str = (
        "once it is granted the VMs come by themselves: run Create again to wait for them"
    )
    end: str = _KEPT


def errors(instances: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Google's errors in making the VMs of a group that do not run yet, each once."""
    found: dict[str, dict[str, Any]] = {}
    for instance in instances:
        if instance.get("instanceStatus") != "RUNNING":
            for error in instance.get("lastAttempt", {}).get("errors", {}).get("errors", []):
                found.setdefault(words(error), error)
    return list(found.values())


def words(error: Mapping[str, Any]) -> str:
    """What Google says in an error, in one line."""
    return " ".join(str(error.get("message") or error.get("code", "")).split())


def check(
    group: Group, instances: Sequence[Mapping[str, Any]], running: int, api: GoogleApi
) -> None:
    """Raise if Google has refused machines.

    Args:
        group: Whose VMs they are.
        instances: What the group says of them.
        running: How many of them run.
        api: Google, to ask who else has such machines.

    Raises:
        CapacityError: It has; all reasons at once.
    """
    standing = Standing(words=f"{running} of {group.size} {group.members} run")
    problems = explain(group, errors(instances), standing, api)
    if problems:
        raise CapacityError.of(problems)


def explain(
    group: Group, found: Sequence[Mapping[str, Any]], standing: Standing, api: GoogleApi
) -> list[Problem]:
    """What Google's errors mean, each kind of refusal once; other errors are left out.

    Args:
        group: What the machines are for.
        found: Google's errors.
        standing: How things stand.
        api: Google, to ask who else has such machines.
    """
    refused: dict[Refusal, list[Mapping[str, Any]]] = {}
    for error in found:
        kind = _kind(error)
        if kind is not None:
            refused.setdefault(kind, []).append(error)
    return [
        _quota(group, mine, standing)
        if kind is Refusal.QUOTA
        else _stockout(group, mine, standing, api)
        for kind, mine in refused.items()
    ]


def _kind(error: Mapping[str, Any]) -> Refusal | None:
    """What an error means, by its code, else by its words."""
    message = words(error)
    if _QUOTA.search(message):
        return Refusal.QUOTA
    return _CODES.get(error.get("code", "")) or (Refusal.STOCKOUT if _STOCKOUT in message else None)


# ------------------------------------------------------------------ in Terraform's words


def is_refusal(message: str) -> bool:
    """Whether an error that Terraform tells is a quota or a stock-out."""
    return _STOCKOUT in message or _QUOTA.search(message) is not None


def refused(command: str, messages: Sequence[str]) -> CapacityError:
    """The error of a Terraform command that failed for nothing but such refusals."""
    return CapacityError(
        f"Google refused what `terraform {command}` asked for",
        why="\n".join(messages),
        fix=f"for a quota, ask for more at {QUOTA_PAGE} ({QUOTA_ROLE});"
        " for a zone without resources, set ZONE to another\n"
        "then run the same action again: it goes on where this one stopped",
    )


# ------------------------------------------------------------------ stock-out


def _stockout(
    group: Group, found: Sequence[Mapping[str, Any]], standing: Standing, api: GoogleApi
) -> Problem:
    return Problem(
        setting=group.zone_setting,
        what=f"{group.zone} has no {group.machine} to give now: {standing.words}",
        why="\n".join(map(words, found)),
        fix=_lines(
            standing.after_stockout,
            *_elsewhere(group, _free_zones(found), _zones(group, api)),
            standing.end,
        ),
    )


def _lines(*lines: str) -> str:
    return "\n".join(filter(None, lines))


def _zones(group: Group, api: GoogleApi) -> list[str]:
    """The other zones that have such machines at all; none if Google does not tell."""
    try:
        zones = api.zones_with(group.project, "machineTypes", group.machine_type)
        if group.gpu:
            zones &= api.zones_with(group.project, "acceleratorTypes", group.gpu)
    except GoogleApiError:
        return []
    return sorted(zones - {group.zone})


def _free_zones(found: Sequence[Mapping[str, Any]]) -> list[str]:
    """The zones of which Google itself says that they have machines now."""
    zones = {
        zone
        for error in found
        for detail in error.get("errorDetails", [])
        for zone in detail.get("errorInfo", {})
        .get("metadatas", {})
        .get("zonesAvailable", "")
        .split(",")
        if zone
    }
    return sorted(zones)


def _elsewhere(group: Group, free: Sequence[str], zones: Sequence[str]) -> Iterator[str]:
    """Where else to try, the nearest first, a line each."""
    moving = f"and run Create --yes, which moves the {group.called} there"
    near = [zone for zone in zones if places.region_of(zone) == group.region]
    if free:
        there = group.in_zone(free[0])
        yield f"or {there}, which has some now according to Google, {moving}"
    elif near:
        yield f"or set {group.zone_setting} to another zone of {group.region}, {moving}"
    if near:
        yield f"zones of {group.region} that have the machine type: {', '.join(near)}"
    regions = sorted(
        {places.region_of(zone) for zone in zones} - {group.region},
        key=lambda region: (region.split("-")[0] != group.region.split("-")[0], region),
    )
    if regions:
        rest = len(regions) - _MOST_PLACES
        more = f" and {rest} more" if rest > 0 else ""
        yield f"other regions that have it: {', '.join(regions[:_MOST_PLACES])}{more}"
    if not zones:
        yield f"or set {group.zone_setting} to another zone that has {group.machine}, {moving}"


# ------------------------------------------------------------------ quota


def _quota(group: Group, found: Sequence[Mapping[str, Any]], standing: Standing) -> Problem:
    said = "\n".join(map(words, found))
    match = _QUOTA.search(said)
    metric, limit, place = match.group("metric", "limit", "region") if match else ("", "", "")
    family = _dimensions(found).get("gpu_family")
    quota = f"quota {metric}".strip() + (f" for {family}" if family else "")
    amount = f"{float(limit):g}" if limit else "used up"
    region = place or group.region
    wanted = f"{group.all_gpus} GPUs" if group.all_gpus else f"{group.size} {group.machine}"
    return Problem(
        what=f"The {quota} of {group.project} in {region} is {amount}, and this {group.called}"
        f" wants {wanted}: {standing.words}",
        why=said,
        fix=_lines(
            f"ask for more, in a browser: {QUOTA_PAGE}?project={group.project}",
            f"filter by {metric or 'its name'} and {region}, tick it, Edit ({QUOTA_ROLE})",
            standing.after_quota,
            "or ask for less (INSTANCE_COUNT, VM_TYPE)"
            f" or go where there is quota ({group.zone_setting})",
            standing.end,
        ),
    )


def _dimensions(found: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """What tells the quota from others of its name."""
    dimensions: dict[str, str] = {}
    for error in found:
        for detail in error.get("errorDetails", []):
            dimensions |= detail.get("quotaInfo", {}).get("dimensions", {})
    return dimensions
