"""What Google has done to machines of its own accord: by its operations.

Google keeps those for weeks, and nothing of it is remembered here: a machine that was made again
has its old name and is in order, and only these operations say that it was gone.
"""

from __future__ import annotations

import datetime as dt
import enum
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Self

from provision import words
from provision.documents.status import About, Happened, Trouble
from provision.google.lists import Lists
from provision.screens.layout import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from provision.google.api import GoogleApi
    from provision.state.location import Place
    from provision.time.clock import Clock

_DAY: Final = 86400.0
_STORM: Final = 3
"""Times within a day that the same machine is gone, from which on its place is the trouble."""
_NAMED: Final = 3


class Event(enum.StrEnum):
    """What Google tells of in the zone's operations, by their type (Compute Engine, audit logs)."""

    words: str  # what happened to a VM, as the end of a sentence about it
    many: str  # the same of several

    def __new__(cls, type_: str, text: str, many: str) -> Self:
        """Store the words with the type."""
        member = str.__new__(cls, type_)
        member._value_ = type_
        member.words, member.many = text, many
        return member

    PREEMPTED = "compute.instances.preempted", "was preempted", "were preempted"
    HOST_ERROR = (
        *("compute.instances.hostError", "lost its host, which failed"),
        "lost their hosts, which failed",
    )
    MAINTENANCE = (
        *("compute.instances.terminateOnHostMaintenance", "was stopped to maintain its host"),
        "were stopped to maintain their hosts",
    )
    # Compute Engine, "View the status of repairs": operationType~compute.instances.repair
    REMADE = (
        *("compute.instances.repair.recreateInstance", "was gone, and its group made it again"),
        "were gone, and their group made them again",
    )


@dataclass(frozen=True, kw_only=True)
class Told:
    """One operation."""

    event: Event
    name: str  # the machine's
    moment: float  # when it began (Unix epoch)


RESET: Final = "reset"
"""The type of the operations by which machines are reset from outside."""


def operations(api: GoogleApi, place: Place, lists: Lists | None = None) -> list[dict[str, Any]]:
    """The operations of a zone that tell what happened to machines, and which were reset."""
    types = [*Event, RESET]
    return (lists or Lists(api)).operations(place.project_id, place.zone, types)


def look(operations: Iterable[Mapping[str, Any]], ours: Callable[[str], bool]) -> list[Told]:
    """What has happened to machines whose names are ours, by a zone's operations, in order."""
    events = {event.value: event for event in Event}
    found = [
        Told(
            event=events[it["operationType"]],
            name=it["targetLink"].rpartition("/")[2],
            moment=dt.datetime.fromisoformat(it["insertTime"]).timestamp(),
        )
        for it in operations
        if it["operationType"] in events
    ]
    return sorted((it for it in found if ours(it.name)), key=lambda it: it.moment)


def within_a_day(told: Sequence[Told], clock: Clock, noun: str) -> tuple[Happened, ...]:
    """What happened within a day, by what it was."""
    lately = [it for it in _causes(told) if clock.since(it.moment) < _DAY]
    every = ((event, [it for it in lately if it.event is event]) for event in Event)
    return tuple(_summed(event, them, clock, noun) for event, them in every if them)


def storms(told: Sequence[Told], clock: Clock) -> Iterator[Trouble]:
    """Machines that were gone again and again within a day."""
    lately = [it for it in _causes(told) if clock.since(it.moment) < _DAY]
    for name, count in Counter(it.name for it in lately).most_common():
        if count >= _STORM:
            last = [it for it in lately if it.name == name][-1]
            yield Trouble(
                about=About.MACHINES,
                what=f"{name} was gone {count} times within a day, the last time as it"
                f" {last.event.words}",
                names=(name,),
                why=("what runs on it begins again each time, and so does all that waits for it",),
                fix=_WAYS[last.event],
                by_itself=True,
            )


_WAYS: Final = {
    Event.PREEMPTED: "Google has no room for Spot VMs of this kind there: another ZONE, CAPACITY"
    " with several ways, or no ENABLE_SPOT; until then write checkpoints more often",
    Event.HOST_ERROR: "have it made on another host, or tell Google's support of the machine",
    Event.MAINTENANCE: "see when Google maintains the hosts of that zone; write checkpoints before",
    Event.REMADE: "see who deletes it, in the audit log; or what ends it, on its serial port 1",
}


def _causes(told: Iterable[Told]) -> Iterator[Told]:
    """Without the repairs that follow from something that is told of, too."""
    broken: set[str] = set()
    for it in told:
        if it.event is not Event.REMADE:
            broken.add(it.name)
            yield it
        elif it.name in broken:
            broken.discard(it.name)
        else:
            yield it


def _summed(event: Event, them: Sequence[Told], clock: Clock, noun: str) -> Happened:
    often = Counter(it.name for it in them).most_common()
    named = [f"{name} {times} times" if times > 1 else name for name, times in often[:_NAMED]]
    named += [f"{len(often) - _NAMED} more"] if len(often) > _NAMED else []
    ago = words.duration(clock.since(them[-1].moment))
    text = event.words if len(often) == 1 else event.many
    return Happened(
        event=event.name.lower().replace("_", "-"),
        count=len(them),
        names=tuple(name for name, _ in often),
        last=dt.datetime.fromtimestamp(them[-1].moment, dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        words=f"within a day {counted(len(often), noun)} {text}: {', '.join(named)};"
        f" the last {ago} ago",
    )
