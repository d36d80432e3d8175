"""Future reservations: which made a reservation, how far Google is with it, and how one is bought.

Sources: compute v1 (discovery of 2026-11-06), FutureReservation; gcloud's reference of `compute
future-reservations create` (2026-04); Google's pages on calendar mode, and on reserving capacity
for AI Hypercomputer (2026-04-06): with its approval an empty reservation is made.
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING

from provision.catalogue import limits
from provision.catalogue.machines import Consumption
from provision.documents import json_object
from provision.preflight.check import last

if TYPE_CHECKING:
    from collections.abc import Iterable

    from provision.preflight.answers import Document
    from provision.spec.pools import Pool


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
        key=lambda it: (meaning(it)[0] is Then.WAIT, window(it).get("startTime") or ""),
        default=None,
    )


def _made_by(found: Document) -> set[str]:
    """The names of its reservations; it gives them its own where it has no other for them."""
    status_ = json_object.inner(found.get("status"))
    names = {last(it) for it in json_object.texts(status_.get("autoCreatedReservations"))}
    return (names | {str(found.get("reservationName") or "")}) - {""} or {found["name"]}


def meaning(found: Document) -> tuple[Then, str]:
    """What its state means for a reservation that lacks machines."""
    state = status(found)
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


def status(found: Document) -> str:
    """How far Google is, in its own word; "" if it says nothing."""
    return json_object.text(json_object.inner(found.get("status")).get("procurementStatus"))


def count(found: Document) -> int:
    """How many machines it is of."""
    return int(json_object.inner(found.get("specificSkuProperties")).get("totalCount", 0))


def window(found: Document) -> Document:
    """Its time, from `startTime` to `endTime`."""
    return json_object.inner(found.get("timeWindow"))


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
