"""Future reservations of calendar mode, which people buy, and what Google advises about them.

What is bought is answered within two minutes. With that an empty reservation is made, which has its
machines from its start on, and goes at its end. Sources: compute v1, discovery of 2026-11-06;
Google's pages on calendar mode (undated) and on reserving capacity (AI Hypercomputer, 2026-04-06).
"""

from collections.abc import Callable, Mapping

from rehearsal.cloud.compute import links, lists, reservations, resources, stock
from rehearsal.cloud.compute.resources import FUTURE_RESERVATION, RESERVATION, Call, Resource
from rehearsal.cloud.facts import machines, offers, places
from rehearsal.cloud.wire import GoogleError, moment, rfc3339

_DAY = 86400
_LONGEST = 90 * _DAY
_LEAD = 87 * 3600
_AHEAD = 60 * _DAY
_MOST = 80
_ANSWER = 90.0  # seconds until Google says yes or no
_CALENDAR = "CALENDAR"


def _scaled(call: Call, seconds: float) -> float:
    return seconds * (call.request.rate or 0.0)


def _invalid(field: str, value: object, why: str) -> GoogleError:
    return links.invalid(f"resource.{field}", value, why)


# ------------------------------------------------------------------ advice


def _advise(call: Call) -> Resource:
    """The first zone that has the machines, and why not the others."""
    specs = call.body.get("futureResourcesSpecs") or {}
    if len(specs) != 1:
        raise _invalid("futureResourcesSpecs", len(specs), "Exactly one specification is needed.")
    ((key, spec),) = specs.items()
    return {"recommendations": [{"recommendationsPerSpec": {key: _recommended(call, spec)}}]}


def _recommended(call: Call, spec: Resource) -> Resource:
    wanted = spec["targetResources"]["specificSkuResources"]
    times = spec["timeRangeSpec"]
    seconds = float(times["minDuration"].removesuffix("s"))
    soonest = call.now + _scaled(call, _LEAD)
    start = max(moment(times["startTimeNotEarlierThan"]), soonest)
    latest = min(moment(times["startTimeNotLaterThan"]) + 1, call.now + _scaled(call, _AHEAD))
    located = (spec.get("locationPolicy") or {}).get("locations") or {}
    others: dict[str, Resource] = {}
    found: Resource = {}
    for zone in places.zones_of(call.parameters["region"]):
        if located and located.get(f"zones/{zone}", {}).get("preference") != "ALLOW":
            continue
        against = _against(call, zone, str(wanted["machineType"]), int(wanted["instanceCount"]))
        if start > latest:
            against = {"status": "CONDITIONS_NOT_MET", "details": "No such time is for sale."}
        if against:
            others[f"zones/{zone}"] = against
        elif not found:
            found = {
                "location": f"zones/{zone}",
                "startTime": rfc3339(start),
                "endTime": rfc3339(start + _scaled(call, seconds)),
                "recommendationType": "FUTURE_RESERVATION",
            }
        else:
            others[f"zones/{zone}"] = {"status": "RECOMMENDED"}
    return {**found, "otherLocations": others}


def _against(call: Call, zone: str, machine: str, count: int) -> Resource:
    if not machines.sold_by_calendar(machine):
        return {"status": "NOT_SUPPORTED"}
    if not offers.has_machine(zone, machine, call.request.scenarios):
        return {"status": "NOT_SUPPORTED"}
    left = stock.for_sale(call, zone)
    if count > (_MOST if left is None else left):
        return {"status": "NO_CAPACITY"}
    return {}


# ------------------------------------------------------------------ what is bought


def _insert(call: Call) -> Resource:
    body = resources.without_nulls(call.body)
    if body.get("reservationMode") != _CALENDAR:
        raise GoogleError(501, "Only calendar mode is part of the simulated cloud.")
    return resources.insert(call, FUTURE_RESERVATION, {**body, "_asked": call.now})


def _status(call: Call, found: Resource) -> str:
    """Where its procurement is: asked for, sold, there."""
    if found.get("planningStatus") != "SUBMITTED":
        return "DRAFTING"
    if call.now < found["_asked"] + _scaled(call, _ANSWER):
        return "PENDING_APPROVAL"
    return "FULFILLED" if moment(found["timeWindow"]["startTime"]) <= call.now else "APPROVED"


def deliver(call: Call) -> None:
    """Make the reservations of all that is sold."""
    for name, found in list(resources.each(call, FUTURE_RESERVATION, "projects/")):
        if found.get("_delivered") or _status(call, found) not in {"APPROVED", "FULFILLED"}:
            continue
        parts = name.split("/")
        there = Call(
            request=call.request,
            store=call.store,
            method="reservations.insert",
            project=parts[1],
            parameters={"project": parts[1], "zone": parts[3]},
            body=_reservation(found),
        )
        if resources.find(there, RESERVATION, f"{'/'.join(parts[:4])}/reservations/{parts[5]}"):
            continue
        if moment(found["timeWindow"]["endTime"]) > call.now:
            reservations.METHODS["reservations.insert"](there)
        resources.keep(call, FUTURE_RESERVATION, name, {**found, "_delivered": True})


def _reservation(found: Resource) -> Resource:
    sku = found["specificSkuProperties"]
    return {
        "name": found["reservationName"],
        "description": "made by a future reservation",
        "specificReservation": {
            "count": str(sku["totalCount"]),
            "instanceProperties": sku["instanceProperties"],
        },
        "specificReservationRequired": True,
        "deploymentType": "DENSE",
        "deleteAtTime": found["timeWindow"]["endTime"],
        "_future": links.name_of(found["selfLink"]),
    }


def _view(call: Call, found: Resource) -> Resource:
    status: Resource = {"procurementStatus": _status(call, found)}
    if found.get("_delivered"):
        place = found["selfLink"].partition("/futureReservations/")[0]
        status["autoCreatedReservations"] = [f"{place}/reservations/{found['reservationName']}"]
    if status["procurementStatus"] == "FULFILLED":
        status["fulfilledCount"] = found["specificSkuProperties"]["totalCount"]
    return {**resources.show(found), "status": status}


def _get(call: Call) -> Resource:
    return _view(call, resources.require(call, FUTURE_RESERVATION, call.name(FUTURE_RESERVATION)))


def _list(call: Call) -> Resource:
    kind, prefix = FUTURE_RESERVATION, call.prefix(FUTURE_RESERVATION)
    entries = ((name, _view(call, it)) for name, it in resources.each(call, kind, prefix))
    return lists.listed(call, kind.singular, prefix.removesuffix("/"), entries)


METHODS: Mapping[str, Callable[[Call], Resource]] = {
    "advice.calendarMode": _advise,
    "futureReservations.insert": _insert,
    "futureReservations.get": _get,
    "futureReservations.list": _list,
}
