"""Future reservations: which made a reservation, how far Google is with it, and how one is bought.

Sources: compute v1 (discovery of 2026-11-06), FutureReservation; gcloud's reference of `compute
future-reservations create` (2026-04); Google's pages on calendar mode, and on reserving capacity
for AI Hypercomputer (2026-04-06): with its approval an empty reservation is made.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import enum
from typing import TYPE_CHECKING, Final

from provision import words
from provision.catalogue import limits
from provision.catalogue.machines import Consumption
from provision.codes import Code
from provision.documents import json_object
from provision.google.resources import last

if TYPE_CHECKING:
    from collections.abc import Iterable

    from provision.errors import Problem
    from provision.preflight.check import Document
    from provision.spec.pools import Pool

SKIP: Final = "SKIP_CHECKS=reservation goes on without this check"


class Procurement(enum.StrEnum):
    """How far Google is with it: all that v1 has."""

    DRAFTING = "DRAFTING"
    PENDING_APPROVAL = "PENDING_APPROVAL"
    PENDING_AMENDMENT_APPROVAL = "PENDING_AMENDMENT_APPROVAL"
    APPROVED = "APPROVED"
    COMMITTED = "COMMITTED"
    PROCURING = "PROCURING"
    PROVISIONING = "PROVISIONING"
    FULFILLED = "FULFILLED"
    FAILED_PARTIALLY_FULFILLED = "FAILED_PARTIALLY_FULFILLED"
    FAILED = "FAILED"
    DECLINED = "DECLINED"
    CANCELLED = "CANCELLED"
    UNKNOWN = "PROCUREMENT_STATUS_UNSPECIFIED"


class Then(enum.Enum):
    """What becomes of a reservation that lacks machines."""

    WAIT = enum.auto()
    NEVER = enum.auto()
    AS_IT_IS = enum.auto()


def made(there: Iterable[Document], name: str) -> Document | None:
    """The one that made the reservation of a name, or is to make it.

    Of several, as a reservation may be extended, one whose machines are still to come.
    """
    return max(
        (it for it in there if name in _made_by(it)),
        key=lambda it: (
            _meaning(it)[0] is Then.WAIT,
            json_object.text(json_object.inner(it.get("timeWindow")).get("startTime")),
        ),
        default=None,
    )


def _made_by(found: Document) -> set[str]:
    """The names of its reservations; it gives them its own where it has no other for them."""
    status = json_object.inner(found.get("status"))
    names = {last(it) for it in json_object.texts(status.get("autoCreatedReservations"))}
    return (names | {str(found.get("reservationName") or "")}) - {""} or {found["name"]}


def told(found: Document, short: Problem, whose: str, where: str, *, empty: bool) -> Problem:
    """That a reservation lacks machines, by how far Google is with the one that makes it.

    `where`: the arguments with which gcloud finds it. `empty`: whether it has no machines at all.
    """
    window = json_object.inner(found.get("timeWindow"))
    end = json_object.text(window.get("endTime"))
    then, means = _meaning(found)
    if empty and is_over(end):
        then, means = Then.NEVER, f"it has ended at {end}"
    elif then is Then.NEVER and not empty:
        then = Then.AS_IT_IS
    name, status = found["name"], _status(found) or "in no state"
    of = words.counted(count(found), "machine")
    why = f"its future reservation {name} of {of} is {status}: {means}"
    match then:
        case Then.WAIT:
            start = json_object.text(window.get("startTime"))
            return dataclasses.replace(
                short,
                code=Code.WAITING,
                what=f"machines of {whose} are still to come: from {start} to"
                f" {end or 'an end that Google does not tell'}",
                why=why,
                fix=f"run it again once that time has begun; {SKIP}",
            )
        case Then.NEVER:
            submit = (
                "submit it, which can't be taken back: gcloud compute future-reservations update"
                f" {name} {where} --planning-status=SUBMITTED"
            )
            is_draft = status == Procurement.DRAFTING
            return dataclasses.replace(
                short,
                code=Code.RESERVATION_UNUSABLE,
                what=f"{whose} has no machines, and gets none",
                why=why,
                fix=submit if is_draft else "use another reservation",
            )
        case Then.AS_IT_IS:
            return dataclasses.replace(short, why=f"{why}; {short.why}")


def _meaning(found: Document) -> tuple[Then, str]:
    state = _status(found)
    match Procurement(state) if state in set(Procurement) else Procurement.UNKNOWN:
        case Procurement.PENDING_APPROVAL:
            told = Then.WAIT, "Google has not approved it yet, which takes minutes"
        case Procurement.PENDING_AMENDMENT_APPROVAL:
            told = Then.WAIT, "Google has not decided yet about a change of it"
        case Procurement.APPROVED | Procurement.COMMITTED | Procurement.PROCURING:
            told = Then.WAIT, "Google gives the machines when its time begins"
        case Procurement.PROVISIONING:
            told = Then.WAIT, "Google gives the machines now, a day after its begin at the latest"
        case Procurement.DRAFTING:
            told = Then.NEVER, "nobody has submitted it, so Google does nothing for it"
        case Procurement.DECLINED | Procurement.CANCELLED | Procurement.FAILED:
            told = Then.NEVER, "nothing comes of it any more"
        case Procurement.FAILED_PARTIALLY_FULFILLED:
            given = json_object.inner(found.get("status")).get("fulfilledCount")
            told = Then.AS_IT_IS, f"Google has given {given} of them, and gives no more"
        case Procurement.FULFILLED:
            told = Then.AS_IT_IS, "Google has given all of them"
        case Procurement.UNKNOWN:
            told = Then.AS_IT_IS, "this program does not know what that means"
    return told


def _status(found: Document) -> str:
    """How far Google is, in its own word; "" if it says nothing."""
    return json_object.text(json_object.inner(found.get("status")).get("procurementStatus"))


def count(found: Document) -> int:
    """How many machines it is of."""
    return int(json_object.inner(found.get("specificSkuProperties")).get("totalCount", 0))


def is_over(end: str) -> bool:
    """Whether a time has passed."""
    return bool(end) and dt.datetime.fromisoformat(end) <= dt.datetime.now(dt.UTC)


def is_sold(pool: Pool) -> bool:
    """Whether calendar mode has such machines."""
    return pool.machine is not None and Consumption.CALENDAR in pool.machine.consumption


def purchase(
    project: str, name: str, pool: Pool, *, start: str = "<START>", end: str = "<END>"
) -> str:
    """The command with which a person buys machines of a pool, as a reservation of that name."""
    return (
        f"gcloud compute future-reservations create {name} --project={project} --zone={pool.zone}"
        f" --machine-type={pool.machine_type} --total-count={pool.size.most}"
        " --reservation-mode=CALENDAR --deployment-type=DENSE --require-specific-reservation"
        f" --reservation-name={name} --auto-delete-auto-created-reservations"
        f" --start-time={start} --end-time={end} --planning-status=SUBMITTED"
    )


def buying(project: str, name: str, pool: Pool) -> str:
    """How a person buys machines of calendar mode under a name, as the end of a fix."""
    days = 86400
    return (
        "\nor buy it in calendar mode, which can't be given back. This tells where and when Google"
        f" has it (<DAY>: such as 2026-12-24, {limits.CALENDAR_LEAD // 3600} hours to"
        f" {limits.CALENDAR_AHEAD // days} days ahead; <LENGTH>:"
        f" {limits.SHORTEST_CALENDAR // days}d to {limits.LONGEST_CALENDAR // days}d):\n"
        f"gcloud compute advice calendar-mode --project={project} --region={pool.region}"
        f" --machine-type={pool.machine_type} --vm-count={pool.size.most}"
        " --start-time-range=from=<DAY>,to=<DAY> --duration-range=min=<LENGTH>,max=<LENGTH>\n"
        "and this buys it, with the zone, <START> and <END> that it tells:\n"
        f"{purchase(project, name, pool)}"
    )
