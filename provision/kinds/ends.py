"""When machines end automatically, as Status tells it."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

from provision import words
from provision.documents.status import End, EndedBy

if TYPE_CHECKING:
    from collections.abc import Sequence

    from provision.time.clock import Clock


def moment(seconds: float, clock: Clock) -> str:
    """The time so many seconds of cloud time from now, in RFC 3339 format."""
    then = dt.datetime.fromtimestamp(clock.now() + seconds, dt.UTC)
    return then.isoformat(timespec="seconds").replace("+00:00", "Z")


def of(remaining: Sequence[int], noun: str, clock: Clock) -> list[End]:
    """The end of machines that have one; empty if there are none.

    `remaining`: the seconds of cloud time that each of them has left.
    """
    if not remaining:
        return []
    first, last = min(remaining), max(remaining)
    return [
        End(
            what=counted(len(remaining), noun),
            how=EndedBy.RUN,
            first=moment(first, clock),
            last=moment(last, clock),
            first_seconds=first,
            last_seconds=last,
        )
    ]


def never(count: int, noun: str, more: str = "") -> End:
    """That machines have no end of their own."""
    return End(what=counted(count, noun), how=EndedBy.NEVER, words=more)


def to_come(count: int, noun: str, seconds: int) -> End:
    """The end of machines that have been requested.

    `seconds`: how long each may run, in seconds of cloud time.
    """
    return End(
        what=f"{counted(count, noun)} to come",
        how=EndedBy.RUN,
        words=f"each {words.duration(seconds)} after it came",
    )


def reservation(name: str, end: str, clock: Clock) -> End:
    """The end of a reservation, with which Google deletes the machines that are bound to it.

    `end`: its end, in RFC 3339 format.
    """
    left = int(clock.until(dt.datetime.fromisoformat(end).timestamp()))
    return End(
        what=f"the reservation {name}",
        how=EndedBy.RESERVATION,
        first=end,
        last=end,
        first_seconds=left,
        last_seconds=left,
        words="machines that are bound to it are deleted with it",
    )


def counted(count: int, noun: str) -> str:
    """A number of machines, such as "1 VM" or "1,000 VMs"."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"
