"""Who has which rank: one document, which one VM writes and all others read.

A rank is a VM's as long as it lives, and waits for it while it is away: a VM that its group makes
again has the same name, and takes it up. Somebody new gets a rank that nobody has had, else that of
a VM that is gone.
"""

from __future__ import annotations

import re
from typing import Any, Iterable, NamedTuple

from aiinfra_vm import storage
from aiinfra_vm.members import Member, matched

OBJECT = "roster.json"
GROUP = "group.json"
"""How many VMs the group is to have, which Create writes: `{"instance_count": 4}`."""

_MOST = 10_000
_LAST = float("inf")
_MOMENT = re.compile(r"(?:[-0-9]{10}T[:0-9]{8}Z)?")


class Seat(NamedTuple):
    """A rank and the VM that has it; `present` says whether that is there at present."""

    rank: int
    member: Member
    present: bool
    since: str = ""  # of one that is not, when it was last heard of (RFC 3339); "" if nobody knows


class Roster(NamedTuple):
    """All ranks that somebody has, in order."""

    nnodes: int  # how many VMs the group is to have
    generation: int  # 1 for the first roster of a cluster, and one more for each other
    seats: tuple[Seat, ...]  # at most one a rank, all below `nnodes`

    @property
    def complete(self) -> bool:
        """Whether every rank has a VM that is there."""
        return self.nnodes == sum(seat.present for seat in self.seats)

    def seat(self, name: str) -> Seat | None:
        """A VM's seat."""
        return next((seat for seat in self.seats if seat.member.name == name), None)

    def document(self) -> dict[str, Any]:
        """It as JSON has it."""
        members = [
            {
                "rank": seat.rank,
                "present": seat.present,
                **({"since": seat.since} if seat.since else {}),
                **seat.member.document(),
            }
            for seat in self.seats
        ]
        return {"nnodes": self.nnodes, "generation": self.generation, "members": members}


def parse(text: bytes) -> Roster:
    """The roster that an object holds.

    Raises:
        ValueError: It is none.
    """
    document = storage.decoded(text)
    if not isinstance(document, dict) or not isinstance(document.get("members"), list):
        raise ValueError("a roster has members")  # noqa: TRY004 - one error for all that is wrong
    nnodes = whole(document.get("nnodes"), 1, _MOST)
    seats = []
    for entry in document["members"]:
        member = Member.of(entry)
        rank = whole(entry.get("rank"), 0, nnodes - 1)
        since = matched(_MOMENT, entry.get("since", ""))
        seats.append(Seat(rank, member, entry.get("present") is True, since))
    if len({seat.rank for seat in seats}) < len(seats):
        raise ValueError("two members have one rank")
    if len({seat.member.name for seat in seats}) < len(seats):
        raise ValueError("one member has two ranks")
    generation = whole(document.get("generation"), 1, 2**53)
    return Roster(nnodes, generation, tuple(sorted(seats, key=lambda seat: seat.rank)))


def size(text: bytes) -> int:
    """The number of VMs that the group is to have, by the object that says it.

    Raises:
        ValueError: It says none.
    """
    document = storage.decoded(text)
    return whole(document.get("instance_count") if isinstance(document, dict) else None, 1, _MOST)


def whole(value: object, least: int, most: int) -> int:
    """A whole number between two, both included.

    Raises:
        ValueError: It is none.
    """
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise ValueError(f"not a number from {least} to {most}: {str(value)[:40]!r}")
    return value


def seated(
    before: Roster | None, living: Iterable[Member], nnodes: int, silent: str = ""
) -> Roster:
    """The roster that follows.

    `before`: the roster so far; None for the first. `silent`: when those were last heard of that
    are found to be away now. `before` itself if nothing is to change. VMs that are more than
    `nnodes` have no rank.
    """
    here = {member.name: member for member in living}
    old = {seat.member.name: seat.rank for seat in before.seats} if before else {}
    seats = {
        seat.rank: _now(seat, here.get(seat.member.name), silent)
        for seat in (before.seats if before else ())
        if seat.rank < nnodes
    }
    kept = {seat.member.name for seat in seats.values()}
    # Those whose rank a smaller group does not have come before those that are new.
    waiting = sorted(set(here) - kept, key=lambda name: (old.get(name, _LAST), name))
    empty = [rank for rank in range(nnodes) if rank not in seats]
    away = [rank for rank in sorted(seats) if not seats[rank].present]
    for rank, name in zip(empty + away, waiting):
        seats[rank] = Seat(rank, here[name], present=True)
    found = tuple(seats[rank] for rank in sorted(seats))
    if before is not None and (before.nnodes, before.seats) == (nnodes, found):
        return before
    return Roster(nnodes, before.generation + 1 if before else 1, found)


def _now(seat: Seat, member: Member | None, silent: str) -> Seat:
    if member is not None:
        return Seat(seat.rank, member, present=True)
    return seat._replace(present=False, since=silent) if seat.present else seat
