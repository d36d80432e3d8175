"""Resize requests for flex start VMs: their state, and which new one a Create makes.

A group of flex start VMs grows only by resize requests. Google answers a request once, and
Terraform would create a request again that is in its configuration but that Google has forgotten.
So each request has a number that is never reused, requests that have ended are removed from the
state before a plan, and a Create only requests the VMs that are missing.
"""

from __future__ import annotations

import datetime as dt
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Self

from provision.deployment.deployment import ResizeRequestSpec
from provision.errors import SettingsError
from provision.google import refusals

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from provision.spec.pools import Group

_LEAVING: Final = frozenset({"DELETING", "ABANDONING"})
_OPEN: Final = frozenset({"CREATING", "ACCEPTED"})
_STATES: Final[Mapping[str, str]] = {
    "CREATING": "is being created",
    "ACCEPTED": "is waiting in Google's queue",
    "SUCCEEDED": "was granted",
    "FAILED": "has failed",
    "CANCELLED": "was cancelled",
}


@dataclass(frozen=True, kw_only=True)
class ResizeRequest:
    """A resize request, as Google's API returns it."""

    name: str
    count: int  # the number of VMs that it asks for
    run_seconds: int  # the run duration of the VMs, in seconds
    state: str  # CREATING, ACCEPTED, SUCCEEDED, FAILED or CANCELLED
    created: float  # its creation time as a Unix timestamp; 0 if Google does not say
    # Google's errors: why it failed, or why the last attempt to grant it failed
    errors: tuple[Mapping[str, Any], ...]

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> Self:
        """Make it from the API's document."""
        status = document.get("status", {})
        attempt = status.get("error") or status.get("lastAttempt", {}).get("error") or {}
        created = document.get("creationTimestamp")
        return cls(
            name=document["name"],
            count=int(document["resizeBy"]),
            run_seconds=int(document.get("requestedRunDuration", {}).get("seconds", 0)),
            state=document.get("state", "CREATING"),
            created=dt.datetime.fromisoformat(created).timestamp() if created else 0.0,
            errors=tuple(attempt.get("errors", [])),
        )

    @property
    def is_open(self) -> bool:
        """Whether Google may still grant it."""
        return self.state in _OPEN

    @property
    def words(self) -> str:
        """What it asks for and its state, as the beginning of a sentence."""
        what = "1 VM" if self.count == 1 else f"{self.count} VMs"
        how = _STATES.get(self.state, "is in an unknown state")
        return f"the request {self.name} for {what} {how} ({self.state})"

    @property
    def reasons(self) -> tuple[str, ...]:
        """Google's words about why it failed or waits, each once."""
        return tuple(dict.fromkeys(map(refusals.words, self.errors)))

    @property
    def as_made(self) -> ResizeRequestSpec:
        """The request as Terraform's variable has it."""
        return ResizeRequestSpec(count=self.count, run_seconds=self.run_seconds)


@dataclass(frozen=True, kw_only=True)
class ResizePlan:
    """The resize requests of a Create."""

    # Terraform's variable: the open requests, and at most one new one
    requests: dict[str, ResizeRequestSpec]
    last: int  # the highest number of a request so far, including the new one
    postponed: int = 0  # the number of VMs to request once the open requests have ended (rule M7)


def present(instances: Sequence[Mapping[str, Any]], requests: Sequence[ResizeRequest]) -> int:
    """The number of VMs in a group that are not part of an open request.

    `requests`: the requests of the group. While one is open, VMs that do not run yet may belong to
    it.
    """
    staying = [one for one in instances if one.get("currentAction") not in _LEAVING]
    if any(request.is_open for request in requests):
        staying = [one for one in staying if one.get("instanceStatus") == "RUNNING"]
    return len(staying)


def decide(  # noqa: PLR0913 - each is a fact of its own
    group: Group,
    *,
    vms: int,
    requests: Sequence[ResizeRequest],
    prefix: str,
    last: int,
    run_seconds: int,
) -> ResizePlan:
    """Decide which requests to keep and whether to make a new one."""
    open_ones = [request for request in requests if request.is_open]
    asked = sum(request.count for request in open_ones)
    missing = group.size - vms - asked
    if missing < 0:
        raise _shrinking(group, vms, open_ones)
    kept = {request.name: request.as_made for request in open_ones}
    last = max([last, *(_number(request.name, prefix) for request in requests)])
    if not missing or open_ones:
        return ResizePlan(requests=kept, last=last, postponed=missing)
    new = ResizeRequestSpec(count=missing, run_seconds=run_seconds)
    return ResizePlan(requests={f"{prefix}-{last + 1}": new}, last=last + 1)


def _number(name: str, prefix: str) -> int:
    found = re.fullmatch(rf"{re.escape(prefix)}-(\d+)", name)
    return int(found[1]) if found else 0


def _shrinking(group: Group, vms: int, open_ones: Sequence[ResizeRequest]) -> SettingsError:
    """The error if the group would have to shrink."""
    asked = "".join(f", and {request.words}" for request in open_ones)
    command = "gcloud compute instance-groups managed"
    place = f"{group.name} --zone {group.zone} --project {group.project}"
    if open_ones:
        names = ",".join(request.name for request in open_ones)
        fix = f"cancel requests with: {command} resize-requests cancel {place}"
        fix += f" --resize-requests={names}"
    else:
        fix = f"delete VMs of your choice with: {command} delete-instances {place}"
        fix += " --instances=NAMES, or wait until their run duration is over"
    least = vms + sum(request.count for request in open_ones)
    return SettingsError(
        f"INSTANCE_COUNT is {group.size}, but the group already has {vms} VMs{asked}",
        why="if this tool reduced the size of the group, Google would choose which VMs to delete",
        fix=f"{fix}; then run Create again, or set INSTANCE_COUNT to {least} or more",
        setting="INSTANCE_COUNT",
    )
