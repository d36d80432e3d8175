"""What Google does to running VMs of its own accord, and what has become of them."""

from __future__ import annotations

import datetime as dt
import enum
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Self

from provision import words
from provision.codes import Code
from provision.errors import ClusterError, Problem
from provision.google import refusals
from provision.kinds.vms import boots

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from provision.google.api import GoogleApi
    from provision.kinds.vms.instances import Vm
    from provision.spec.pools import Group
    from provision.state.location import Place
    from provision.time.clock import Clock


class Event(enum.StrEnum):
    """What Google tells of in the zone's operations, by their type (Compute Engine, audit logs)."""

    words: str  # what happened to a VM, as the end of a sentence about it

    def __new__(cls, type_: str, text: str) -> Self:
        """Store the words with the type."""
        member = str.__new__(cls, type_)
        member._value_ = type_
        member.words = text
        return member

    PREEMPTED = "compute.instances.preempted", "was preempted"
    HOST_ERROR = "compute.instances.hostError", "lost its host, which failed"
    MAINTENANCE = (
        *("compute.instances.terminateOnHostMaintenance", "was stopped to maintain its host"),
    )


_EVENTS: Final = {event.value: event for event in Event}
_RESTART: Final = 1800.0
"""Seconds of cloud time in which Google should have started a VM again."""


@dataclass(frozen=True, kw_only=True)
class Interruption:
    """The last of the events that a VM has met."""

    event: Event
    ago: float  # how long ago, in seconds of cloud time

    @property
    def words(self) -> str:
        """The event, as the end of a sentence about the VM."""
        return f"{self.event.words} {words.duration(self.ago)} ago"


@dataclass(frozen=True, kw_only=True)
class Member:
    """What a group says of one of its VMs that does not run."""

    name: str  # the VM's name
    status: str  # its status in the API; "" if the VM does not exist now
    action: str  # what the group is doing with it, such as RECREATING
    reasons: tuple[str, ...]  # Google's words about why that does not succeed
    restarts: bool = False  # whether Google starts it again, as it was the host

    @property
    def words(self) -> str:
        """What has become of it, as the end of a sentence about it."""
        there = f"is {self.status}" if self.status else "does not exist"
        match self.action:
            case "NONE" | "" if self.restarts:
                return f"{there}: Google starts it again, usually within minutes"
            case "NONE" | "":
                return f"{there}, and its group does nothing about it"
            case "CREATING" | "RECREATING":
                return f"{there}: its group makes it as soon as there is room"
            case action:
                return f"{there}: its group is {action.lower()} it"


def down(managed: Iterable[Mapping[str, Any]], restarting: Collection[str] = ()) -> list[Member]:
    """The VMs of a group that do not run, by name.

    `managed`: the managed instances of the group, as Google's API returns them.
    """
    found = [
        Member(
            name=one["instance"].rpartition("/")[2],
            status=one.get("instanceStatus", ""),
            action=one.get("currentAction", ""),
            reasons=tuple(dict.fromkeys(map(refusals.words, refusals.of_instances([one])))),
            restarts=one["instance"].rpartition("/")[2] in restarting,
        )
        for one in managed
        if one.get("instanceStatus") != "RUNNING"
    ]
    return sorted(found, key=lambda it: it.name)


def restarting(vms: Iterable[Vm], known: Mapping[str, Interruption], clock: Clock) -> set[str]:
    """The VMs that Google stopped for their host a short while ago, and starts again."""

    def is_due(vm: Vm) -> bool:
        met = known.get(vm.name)
        if met is None or met.event is Event.PREEMPTED or met.ago > _RESTART:
            return False
        started = boots.moment(vm.started)
        return vm.restarts and (started is None or clock.since(started) > met.ago)

    return {vm.name for vm in vms if is_due(vm)}


def read(api: GoogleApi, place: Place, clock: Clock) -> dict[str, Interruption]:
    """The last interruption of each VM of a zone that has met one; Google forgets after weeks."""
    found: dict[str, Interruption] = {}
    for operation in api.operations_of(place.project_id, place.zone, list(Event)):
        began = dt.datetime.fromisoformat(operation["insertTime"]).timestamp()
        name = operation["targetLink"].rpartition("/")[2]
        one = Interruption(event=_EVENTS[operation["operationType"]], ago=clock.since(began))
        if name not in found or one.ago < found[name].ago:
            found[name] = one
    return found


def notes(members: Sequence[Member], known: Mapping[str, Interruption]) -> list[Problem]:
    """What has become of VMs that run no longer, a note for each kind of event."""
    return [
        Problem(
            code=Code.MACHINES_GONE,
            what=f"{words.listed([one.name for one in them])} {what}",
            why="\n".join(dict.fromkeys(reason for one in them for reason in one.reasons)),
            fix="keep checkpoints in a bucket: such a VM starts again, with an empty boot disk"
            " if its group made it again",
        )
        for what, them in _alike(members, known)
    ]


def lasting(group: Group, members: Sequence[Member], known: Mapping[str, Interruption]) -> None:
    """Raise for VMs that are down and stay so: a group of flex start makes no VM again.

    Raises:
        ClusterError: There are some.
    """
    if not members:
        return
    names = ",".join(one.name for one in members)
    place = f"{group.name} --zone {group.zone} --project {group.project}"
    raise ClusterError.of(
        [
            Problem(
                code=Code.MACHINES_GONE,
                what=f"{words.listed([one.name for one in them])} {what}",
                why="Google makes no VM of flex start again: a new one comes by a new request",
                fix="take what is left out of the group with: gcloud compute instance-groups"
                f" managed delete-instances {place} --instances={names}; then run Create for a new"
                " request",
            )
            for what, them in _alike(members, known)
        ]
    )


def _alike(
    members: Sequence[Member], known: Mapping[str, Interruption]
) -> Iterator[tuple[str, list[Member]]]:
    """VMs that the same happened to, with the words for that."""
    found: dict[str, list[Member]] = {}
    for one in members:
        event = f"{known[one.name].event.words}; it " if one.name in known else ""
        found.setdefault(event + one.words, []).append(one)
    yield from found.items()


LATELY: Final = 86400.0
"""How long an interruption of a VM that runs again is worth a word, in seconds of cloud time."""
