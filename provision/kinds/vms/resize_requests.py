"""Requests for flex start VMs: what Google says of them, and what a Create is to ask.

A group of flex start VMs grows by resize requests alone. A request is answered once: what has ended
does not come back, and a request in Terraform's configuration that Google has forgotten would be
made again. So each request has a number of its own that is never used twice, ended ones leave the
state before a plan, and a Create asks for the difference only.
"""

from __future__ import annotations

import datetime as dt
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Self

from provision.deployment.deployment import ResizeRequestSpec
from provision.errors import SettingsError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from provision.spec.group import Group

_LEAVING: Final = frozenset({"DELETING", "ABANDONING"})
_OPEN: Final = frozenset({"CREATING", "ACCEPTED"})
_STATES: Final[Mapping[str, str]] = {
    "CREATING": "is being taken in by Google",
    "ACCEPTED": "waits in Google's queue",
    "SUCCEEDED": "was granted",
    "FAILED": "has failed",
    "CANCELLED": "was cancelled",
}


@dataclass(frozen=True, kw_only=True)
class ResizeRequest:
    """One request as Google has it.

    Attributes:
        name: Its name.
        count: VMs that it asks for.
        run_seconds: How long they are to run.
        state: CREATING, ACCEPTED, SUCCEEDED, FAILED or CANCELLED.
        created: Seconds of the Unix epoch; 0 where Google does not say.
        errors: Why it failed, or why the last attempt to grant it did.
    """

    name: str
    count: int
    run_seconds: int
    state: str
    created: float
    errors: tuple[Mapping[str, Any], ...]

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> Self:
        """From Google's words."""
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
        """What it is and how it stands, as the beginning of a sentence."""
        what = "1 VM" if self.count == 1 else f"{self.count} VMs"
        how = _STATES.get(self.state, "is in a state that is new")
        return f"the request {self.name} for {what} {how} ({self.state})"

    @property
    def as_made(self) -> ResizeRequestSpec:
        """As Terraform gets it."""
        return ResizeRequestSpec(count=self.count, run_seconds=self.run_seconds)


@dataclass(frozen=True, kw_only=True)
class ResizePlan:
    """What a Create is to ask of Google.

    Attributes:
        requests: Terraform's variable: the open requests, and at most one new one.
        last: The greatest number given so far, the new request's included.
        postponed: VMs to ask for once the open requests have ended (rule M7).
    """

    requests: dict[str, ResizeRequestSpec]
    last: int
    postponed: int = 0


def present(instances: Sequence[Mapping[str, Any]], requests: Sequence[ResizeRequest]) -> int:
    """How many VMs a group has that no open request counts.

    Args:
        instances: What the group says of its VMs.
        requests: Those of the group. While one is open, VMs that do not run yet may be its own.
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
    """Find out what to ask for.

    Args:
        group: The group; its size is INSTANCE_COUNT.
        vms: VMs that there are.
        requests: The group's.
        prefix: How names begin (NAME_PREFIX).
        last: The greatest number that was given before.
        run_seconds: How long new VMs are to run.

    Raises:
        SettingsError: There would have to be fewer VMs or requests than there are.
    """
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
    """The error of a group that would have to get smaller."""
    asked = "".join(f", and {request.words}" for request in open_ones)
    command = "gcloud compute instance-groups managed"
    place = f"{group.name} --zone {group.zone} --project {group.project}"
    if open_ones:
        names = ",".join(request.name for request in open_ones)
        fix = f"cancel what is too much with: {command} resize-requests cancel {place}"
        fix += f" --resize-requests={names}"
    else:
        fix = f"delete VMs of your choice with: {command} delete-instances {place}"
        fix += " --instances=NAMES, or wait until their run duration is over"
    least = vms + sum(request.count for request in open_ones)
    return SettingsError(
        f"INSTANCE_COUNT is {group.size}, but the group has {vms} VMs already{asked}",
        why="a group of flex start VMs grows by requests; made smaller by its size, Google would"
        " choose which VMs go",
        fix=f"{fix}; then run Create again, or set INSTANCE_COUNT to {least} or more",
        setting="INSTANCE_COUNT",
    )
