"""The purchase of calendar mode: asked for, kept, waited for (ADR 76).

What is bought can't be given back, so it is written down before Google is asked for it: a Create
that is killed on the way asks for the same again, in the same zone and by the same name, of which
there is one.
"""

from __future__ import annotations

import dataclasses
import time
from typing import TYPE_CHECKING, Any, Final, NoReturn

from provision.catalogue import limits, names, zones
from provision.codes import Code
from provision.documents import json_object
from provision.errors import (
    CapacityError,
    Declined,
    Problem,
    SettingsError,
    StateError,
    StillWaiting,
)
from provision.google.api import GoogleApiError, Service
from provision.google.http import NoAnswerError
from provision.google.owner import Owner
from provision.lifecycle import calendar_offer, consent, pricing
from provision.lifecycle.calendar_offer import Offer
from provision.lifecycle.consent import Stake, Way

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from provision.context import Cloud, Context
    from provision.spec.cluster import ClusterSpec

_RECORD: Final = "calendar.json"
_TAKEN: Final = 409
_ANSWER: Final = 300.0
"""Seconds of cloud time for Google to say yes or no; its page says two minutes."""
_POLL: Final = 5.0
_UNDECIDED: Final = frozenset({"", "DRAFTING", "PENDING_APPROVAL"})
_REFUSED: Final = frozenset({"DECLINED", "CANCELLED", "FAILED"})
"""Values of procurementStatus (compute v1, FutureReservationStatus); with all others it comes."""


def is_delivered(context: Context, cloud: Cloud) -> bool:
    """Whether what was bought is there; False if nothing was bought.

    Raises:
        StillWaiting: Its time has not begun.
        CapacityError: Google has refused it, or its time is over.
        StateError: It is another deployment's.
    """
    found = _bought(context, cloud)
    if found is None:
        return False
    what = _what(found)
    status, end = _status(found), _window(found, "endTime")
    if status in _REFUSED:
        raise _refused(found)
    if calendar_offer.until(end) <= time.time():
        raise CapacityError(
            f"What was bought in calendar mode has ended: {what}",
            fix=f"another NAME_PREFIX, or gcloud compute future-reservations delete {found['name']}"
            f" --zone {_zone(found)}, then Create buys again",
            setting="CALENDAR_DURATION",
        )
    path = f"projects/{context.settings.project_id}/zones/{_zone(found)}/reservations/"
    there = cloud.api.find(Service.COMPUTE, path + str(found["name"])) or {}
    assured = json_object.inner(there.get("specificReservation")).get("assuredCount")
    count = json_object.text(assured)
    if not count.isdigit() or int(count) == 0:
        raise _waits(found)
    return True


def tell(context: Context, cloud: Cloud, spec: ClusterSpec) -> None:
    """Note what Google offers, and what that would cost, or what was bought."""
    found = _bought(context, cloud)
    if found is not None:
        context.note([Problem(code=Code.NOTE, what=f"Bought in calendar mode: {_what(found)}")])
        return
    offer = _advised(context, cloud, spec)
    context.note(
        [
            Problem(
                code=Code.NOTE,
                setting="CALENDAR_DURATION",
                what=f"would buy {offer.what}, {offer.cost}",
                why="it is paid for all of that time, used or not, and can't be given back",
                fix="Create asks, and buys it; without a terminal Create --yes --buy",
            )
        ]
    )


def buy(context: Context, cloud: Cloud, spec: ClusterSpec) -> NoReturn:
    """Buy the VMs, once somebody has agreed to that price and those dates.

    Args:
        context: The run.
        cloud: Google and the state folder.
        spec: What the settings ask for.

    Raises:
        StillWaiting: They are bought, and their time has not begun.
        CapacityError: Google does not have them, or refuses.
        SettingsError: Nobody has agreed.
    """
    folder = cloud.folder
    written = Offer.read(_read(cloud)) if cloud.has_bucket() else None
    # Only what has not been asked for, or never arrived, may be another offer.
    still = written is not None and calendar_offer.until(written.start) > time.time()
    offer = written if written is not None and still else _advised(context, cloud, spec)
    _agree(context, offer)
    folder.require_bucket(cloud.project_number, spec.region, spec.kms_key)
    folder.write(_RECORD, offer.document, "application/json")
    name, owner = names.for_calendar(spec.name_prefix), _owner(context, cloud)
    path = f"projects/{spec.project_id}/zones/{offer.zone}/futureReservations"
    body = calendar_offer.purchase(offer, name, owner.text)
    try:
        cloud.api.insert(path, body)
    except NoAnswerError:
        raise  # it may arrive yet: the next Create asks for the same
    except GoogleApiError as error:
        if error.code != _TAKEN:  # else a request of a run that was killed has arrived
            folder.remove(_RECORD)
            raise
    found = _answer(context, cloud, f"{path}/{name}")
    if _status(found) in _REFUSED:
        folder.remove(_RECORD)
        raise _refused(found)
    raise _waits(found or {"name": name, **body, "zone": offer.zone})


def _answer(context: Context, cloud: Cloud, path: str) -> Mapping[str, Any]:
    """What was asked for, once Google has said yes or no, or says neither in time."""
    deadline = context.progress.deadline(_ANSWER, _POLL)
    with context.progress.waits("Google's answer to the purchase"):
        while True:
            found = cloud.api.find(Service.COMPUTE, path) or {}
            if _status(found) not in _UNDECIDED or deadline.is_over:
                return found
            deadline.pause()


def remind(context: Context, cloud: Cloud) -> None:
    """Say what a Destroy does not end: it is paid for until its time is over."""
    offer = Offer.read(_read(cloud))
    if offer is not None and calendar_offer.until(offer.end) > time.time():
        name = names.for_calendar(context.settings.name_prefix)
        context.note(
            [
                Problem(
                    code=Code.NOTE,
                    what=f"{name} goes on costing: {offer.what}, {offer.cost}",
                    why="what is bought in calendar mode can't be given back; Google deletes the"
                    " reservation at its end",
                    fix="a Create with the same settings uses it again until then",
                )
            ]
        )


def _agree(context: Context, offer: Offer) -> None:
    """Have a person agree, or `--yes --buy`, which is no word for a price that nobody knows.

    Raises:
        SettingsError: There is no terminal to ask on.
        Declined: They said no.
    """
    says = f"Buy {offer.what}, {offer.cost}; it can't be given back"
    if context.agreed and context.buys and offer.price is not None:
        context.console.progress(says)
        return
    match consent.way([Stake.PURCHASE], terminal=context.console.is_terminal):
        case Way.PASSES:
            return
        case Way.GOES_ON | Way.ASKS:
            with consent.unanswered("nothing was bought"):
                agrees = context.console.ask(f"{says}?")
            if not agrees:
                raise Declined("Nothing was bought, as you said")
        case Way.REFUSES:
            unknown = offer.price is None
            raise SettingsError(
                f"Nothing was bought: {offer.what}, {offer.cost}",
                why="it can't be given back"
                + (", and without a price only a person on a terminal may buy" if unknown else ""),
                fix="run Create on a terminal, which asks"
                + ("" if unknown else ", or Create --yes --buy, which buys it"),
                code=Code.APPROVAL_NEEDED,
            )


def _advised(context: Context, cloud: Cloud, spec: ClusterSpec) -> Offer:
    """What Google has first, of the zones of ZONE, region by region in their order.

    Raises:
        CapacityError: It has nothing.
    """
    settings, (pool, *_) = context.settings, spec.pools
    seconds = int(settings.calendar_duration or 0)
    clock = context.clock
    lead, ahead = clock.wall(limits.CALENDAR_LEAD), clock.wall(limits.CALENDAR_AHEAD)
    earliest, latest = calendar_offer.window(settings.calendar_start, time.time(), lead, ahead)
    places = tuple(dict.fromkeys(it.zone for it in spec.places)) or (spec.zone,)
    others: dict[str, str] = {}
    for region in dict.fromkeys(map(zones.region_of, places)):
        inside = [it for it in places if zones.region_of(it) == region]
        asked = calendar_offer.question(
            pool, inside, earliest=earliest, latest=latest, seconds=seconds
        )
        path = f"projects/{spec.project_id}/regions/{region}/advice/calendarMode"
        answer = cloud.api.call("POST", Service.COMPUTE, path, {}, asked)
        advised, rest = calendar_offer.answered(answer)
        if advised is not None and advised[0] in inside:
            zone, start, end = advised
            there = dataclasses.replace(pool, zone=zone)
            price = calendar_offer.price(there, seconds, pricing.known(context, cloud))
            return Offer(
                zone=zone,
                machine_type=pool.machine_type,
                count=pool.size.first,
                start=start,
                end=end,
                seconds=seconds,
                price=price,
            )
        others |= {zone: why for zone, why in rest.items() if zone in inside}
    raise CapacityError(
        f"Google has no {pool.size.first} x {pool.machine_type} in calendar mode between {earliest}"
        f" and {latest}",
        why="\n".join(f"{zone}: {why}" for zone, why in others.items()) or "it advises no zone",
        fix="another CALENDAR_START, a shorter CALENDAR_DURATION, or more zones in ZONE",
        setting="CALENDAR_DURATION",
    )


def _bought(context: Context, cloud: Cloud) -> Mapping[str, Any] | None:
    """The future reservation of our name; None if there is none.

    Raises:
        StateError: It is not ours.
    """
    name = names.for_calendar(context.settings.name_prefix)
    path = f"projects/{context.settings.project_id}/aggregated/futureReservations"
    scopes = cloud.api.pages("GET", path, "items", {"filter": f"name={name}"})
    there = [it for scope in scopes for it in json_object.objects(scope.get("futureReservations"))]
    if not there:
        return None
    owner = _owner(context, cloud)
    ours: Sequence[Mapping[str, Any]] = [it for it in there if it.get("description") == owner.text]
    if ours:
        return ours[0]
    raise StateError(
        f"The future reservation {name} in {_zone(there[0])} is not this deployment's",
        code=Code.STATE_FOREIGN,
        why=f"its description is not {owner.text}",
        fix="another NAME_PREFIX",
    )


def _read(cloud: Cloud) -> dict[str, Any]:
    try:
        return json_object.read(cloud.folder.text(_RECORD) or "{}")
    except ValueError:
        return {}


def _owner(context: Context, cloud: Cloud) -> Owner:
    settings = context.settings
    return Owner.of(settings.project_id, settings.name_prefix, cloud.folder.location.url)


def _waits(found: Mapping[str, Any]) -> StillWaiting:
    return StillWaiting(
        f"Bought in calendar mode: {_what(found)}",
        why="its time has not begun, or Google has not delivered yet"
        + (f" ({_status(found)})" if _status(found) else ""),
        fix=f"run Create again from {_window(found, 'startTime')} on: it uses what is bought",
    )


def _refused(found: Mapping[str, Any]) -> CapacityError:
    return CapacityError(
        f"Google has not sold it: {_what(found)} is {_status(found)}",
        fix=f"gcloud compute future-reservations delete {found.get('name')} --zone {_zone(found)},"
        " then Create asks for other dates",
        setting="CALENDAR_DURATION",
    )


def _what(found: Mapping[str, Any]) -> str:
    asked = json_object.inner(found.get("specificSkuProperties"))
    machine = json_object.inner(asked.get("instanceProperties")).get("machineType")
    when = f"from {_window(found, 'startTime')} to {_window(found, 'endTime')}"
    return f"{asked.get('totalCount')} x {machine} in {_zone(found)} {when}"


def _window(found: Mapping[str, Any], edge: str) -> str:
    return json_object.text(json_object.inner(found.get("timeWindow")).get(edge))


def _status(found: Mapping[str, Any]) -> str:
    return json_object.text(json_object.inner(found.get("status")).get("procurementStatus"))


def _zone(found: Mapping[str, Any]) -> str:
    return str(found.get("zone")).rpartition("/")[2]
