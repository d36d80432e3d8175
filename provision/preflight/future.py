"""The future reservation of a reservation: whether its machines have come, and how one is bought.

Sources: compute v1 (discovery of 2026-11-06), FutureReservation; gcloud's reference of `compute
future-reservations create` (2026-04); Google's pages on calendar mode, and on reserving capacity
for AI Hypercomputer (2026-04-06): with its approval an empty reservation is made.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import enum
from typing import TYPE_CHECKING, Final

from provision.catalogue import limits
from provision.catalogue.machines import Consumption
from provision.codes import Code
from provision.documents import json_object
from provision.errors import Problem
from provision.google.api import GoogleApiError
from provision.preflight import reserved_fit, reserved_room
from provision.preflight.check import CheckNote
from provision.preflight.reserved import SKIP, last
from provision.preflight.reserved_room import Part

if TYPE_CHECKING:
    from collections.abc import Iterator

    from provision.preflight.check import CheckContext, Finding
    from provision.preflight.reserved import Asked, Document
    from provision.spec.cluster import ClusterSpec
    from provision.spec.pools import Pool

_FORBIDDEN: Final = 403


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


class _Then(enum.Enum):
    """What becomes of a reservation that lacks machines."""

    WAIT = enum.auto()
    NEVER = enum.auto()
    AS_IT_IS = enum.auto()


def find(ctx: CheckContext[ClusterSpec], asked: Asked) -> tuple[Document | None, list[Finding]]:
    """The future reservation that made a reservation, or is to make it; or why nobody knows.

    Of several, as a reservation may be extended, one whose machines are still to come.
    """
    path = f"projects/{asked.owner}/zones/{asked.zone}/futureReservations"
    try:
        there = ctx.answers.listed(path)
    except GoogleApiError as error:
        if error.code != _FORBIDDEN:
            raise
        return None, [_unseen(asked, error)]
    its = (it for it in there if asked.path.name in _made_by(it))
    return max(its, key=lambda it: (_meaning(it)[0] is _Then.WAIT, _start(it)), default=None), []


def explained(
    ctx: CheckContext[ClusterSpec], asked: Asked, short: Problem, *, empty: bool
) -> Iterator[Finding]:
    """Why a reservation is missing, empty or too small, and whether that passes."""
    found, unseen = find(ctx, asked)
    yield from unseen
    is_missing = short.code is Code.RESERVATION_UNUSABLE
    if found is not None:
        told = _told(asked, found, short, empty=empty)
        if is_missing:
            # It has the fields of the reservation that it makes.
            to_be = {**found, "specificReservation": _sku(found), "status": "READY"}
            yield from reserved_fit.check(ctx, asked, to_be)
        if empty and told.code is Code.WAITING:
            part = Part(f"the future reservation {found['name']}", _count(found), 0)
            yield from reserved_room.left(ctx, asked, part)
        yield told
    elif is_missing and not unseen:
        yield dataclasses.replace(short, fix=short.fix + _buying(ctx, asked))
    else:
        yield short


def _unseen(asked: Asked, error: GoogleApiError) -> CheckNote:
    """What it means that these credentials may not see future reservations."""
    return CheckNote(
        Problem(
            code=Code.NOT_CHECKED,
            setting=asked.setting,
            what=f"could not look for a future reservation of {asked.path.name} in {asked.owner}:"
            " whether it is still to come, or was bought in calendar mode",
            why=error.message,
            fix="ask for compute.futureReservations.list in that project, which Compute Viewer"
            " (roles/compute.viewer) has",
        )
    )


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


def _told(asked: Asked, found: Document, short: Problem, *, empty: bool) -> Problem:
    """The lack, by how far Google is."""
    start, end = _start(found), _end(found)
    then, means = _meaning(found)
    if empty and _is_over(end):
        then, means = _Then.NEVER, f"it has ended at {end}"
    elif then is _Then.NEVER and not empty:
        then = _Then.AS_IT_IS
    name, status = found["name"], _status(found) or "in no state"
    why = f"its future reservation {name} of {_count(found)} machines is {status}: {means}"
    match then:
        case _Then.WAIT:
            what = f"machines of the reservation {asked.path.name} are still to come"
            return dataclasses.replace(
                short,
                code=Code.WAITING,
                what=f"{what}: from {start} to {end or 'an end that Google does not tell'}",
                why=why,
                fix=f"run it again once that time has begun; {SKIP}",
            )
        case _Then.NEVER:
            submit = (
                "submit it, which can't be taken back: gcloud compute future-reservations update"
                f" {name} --zone={asked.zone} --project={asked.owner} --planning-status=SUBMITTED"
            )
            return dataclasses.replace(
                short,
                code=Code.RESERVATION_UNUSABLE,
                what=f"the reservation {asked.path.name} has no machines, and gets none",
                why=why,
                fix=submit if status == Procurement.DRAFTING else "use another reservation",
            )
        case _Then.AS_IT_IS:
            return dataclasses.replace(short, why=f"{why}; {short.why}")


def _meaning(found: Document) -> tuple[_Then, str]:
    """What its state means for a reservation that lacks machines."""
    status = _status(found)
    match Procurement(status) if status in set(Procurement) else Procurement.UNKNOWN:
        case Procurement.PENDING_APPROVAL:
            told = _Then.WAIT, "Google has not approved it yet, which takes minutes"
        case Procurement.PENDING_AMENDMENT_APPROVAL:
            told = _Then.WAIT, "Google has not decided yet about a change of it"
        case Procurement.APPROVED | Procurement.COMMITTED | Procurement.PROCURING:
            told = _Then.WAIT, "Google gives the machines when its time begins"
        case Procurement.PROVISIONING:
            told = _Then.WAIT, "Google gives the machines now, a day after its begin at the latest"
        case Procurement.DRAFTING:
            told = _Then.NEVER, "nobody has submitted it, so Google does nothing for it"
        case Procurement.DECLINED | Procurement.CANCELLED | Procurement.FAILED:
            told = _Then.NEVER, "nothing comes of it any more"
        case Procurement.FAILED_PARTIALLY_FULFILLED:
            given = json_object.inner(found.get("status")).get("fulfilledCount")
            told = _Then.AS_IT_IS, f"Google has given {given} of them, and gives no more"
        case Procurement.FULFILLED:
            told = _Then.AS_IT_IS, "Google has given all of them"
        case Procurement.UNKNOWN:
            told = _Then.AS_IT_IS, "this program does not know what that means"
    return told


def _buying(ctx: CheckContext[ClusterSpec], asked: Asked) -> str:
    """How a person buys machines of calendar mode under this name; "" where it has none."""
    pool, days = asked.pools[0], 86400
    if asked.owner != ctx.project or not is_sold(pool):
        return ""
    return (
        "\nor buy it in calendar mode, which can't be given back. This tells where and when Google"
        f" has it (<DAY>: such as 2026-12-24, {limits.CALENDAR_LEAD // 3600} hours to"
        f" {limits.CALENDAR_AHEAD // days} days ahead; <LENGTH>:"
        f" {limits.SHORTEST_CALENDAR // days}d to {limits.LONGEST_CALENDAR // days}d):\n"
        f"gcloud compute advice calendar-mode --project={ctx.project} --region={pool.region}"
        f" --machine-type={pool.machine_type} --vm-count={pool.size.most}"
        " --start-time-range=from=<DAY>,to=<DAY> --duration-range=min=<LENGTH>,max=<LENGTH>\n"
        "and this buys it, with the zone, <START> and <END> that it tells:\n"
        f"{purchase(ctx.project, asked.path.name, pool)}"
    )


def _made_by(found: Document) -> set[str]:
    """The names of its reservations; it gives them its own where it has no other for them."""
    status = json_object.inner(found.get("status"))
    made = {last(it) for it in json_object.texts(status.get("autoCreatedReservations"))}
    return (made | {str(found.get("reservationName") or "")}) - {""} or {found["name"]}


def _sku(found: Document) -> Document:
    return json_object.inner(found.get("specificSkuProperties"))


def _count(found: Document) -> int:
    return int(_sku(found).get("totalCount", 0))


def _status(found: Document) -> str:
    return json_object.text(json_object.inner(found.get("status")).get("procurementStatus"))


def _start(found: Document) -> str:
    return json_object.text(json_object.inner(found.get("timeWindow")).get("startTime"))


def _end(found: Document) -> str:
    return json_object.text(json_object.inner(found.get("timeWindow")).get("endTime"))


def _is_over(end: str) -> bool:
    return bool(end) and dt.datetime.fromisoformat(end) <= dt.datetime.now(dt.UTC)
