"""What Google advises about calendar mode, and the command with which a person buys it (ADR 80).

Sources: compute v1 (discovery of 2026-11-06), advice.calendarMode; gcloud's reference of `compute
advice calendar-mode` and `compute future-reservations create` (2026-04).
"""

from __future__ import annotations

import dataclasses
import datetime as dt
from typing import TYPE_CHECKING, Any, Final

from provision.catalogue import limits, zones
from provision.codes import Code
from provision.cost import rates
from provision.documents import json_object
from provision.errors import Problem
from provision.google.api import GoogleApiError, Service
from provision.lifecycle import pricing
from provision.preflight import future

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from provision.context import Cloud, Context
    from provision.spec.cluster import ClusterSpec
    from provision.spec.pools import Pool

_SPEC: Final = "vms"  # the key of the one specification in a request for advice; any text would do


def tell(context: Context, cloud: Cloud, spec: ClusterSpec) -> None:
    """Note when and where Google sells beforehand what is to run for MAX_RUN_DURATION.

    Nobody has asked for it: what Google does not have, or does not tell, is left out.
    """
    pool, *others = (it for it in spec.pools if it not in spec.system_pools)
    run = context.settings.max_run_duration or 0
    asked = "max_run_duration" in context.settings.given and run >= limits.SHORTEST_CALENDAR
    if others or not asked or pool.mode.means.reserved or not future.is_sold(pool):
        return
    places = tuple(dict.fromkeys(it.zone for it in spec.places)) or (spec.zone,)
    for region in dict.fromkeys(map(zones.region_of, places)):
        inside = [it for it in places if zones.region_of(it) == region]
        path = f"projects/{spec.project_id}/regions/{region}/advice/calendarMode"
        body = _question(pool, inside, run, context)
        try:
            found = advised(cloud.api.call("POST", Service.COMPUTE, path, {}, body))
        except GoogleApiError:
            return
        if found is not None and found[0] in inside:
            context.note([_note(context, cloud, pool, run, found)])
            return


def advised(answer: Mapping[str, Any]) -> tuple[str, str, str] | None:
    """The zone, start and end that Google advises; None if it has none."""
    for one in json_object.objects(answer.get("recommendations")):
        found = json_object.inner(json_object.inner(one.get("recommendationsPerSpec")).get(_SPEC))
        zone, start, end = (
            json_object.text(found.get(it)) for it in ("location", "startTime", "endTime")
        )
        if zone and start and end:
            return zone.rpartition("/")[2], start, end
    return None


def _question(pool: Pool, inside: Sequence[str], seconds: int, context: Context) -> dict[str, Any]:
    clock = context.clock
    earliest, latest = (
        clock.now() + clock.wall(it) for it in (limits.CALENDAR_LEAD, limits.CALENDAR_AHEAD)
    )
    return {
        "futureResourcesSpecs": {
            _SPEC: {
                "deploymentType": "DENSE",
                "locationPolicy": {
                    "locations": {f"zones/{zone}": {"preference": "ALLOW"} for zone in inside}
                },
                "targetResources": {
                    "specificSkuResources": {
                        "machineType": pool.machine_type,
                        "instanceCount": str(pool.size.most),
                    }
                },
                "timeRangeSpec": {
                    "startTimeNotEarlierThan": _moment(earliest),
                    "startTimeNotLaterThan": _moment(latest),
                    "minDuration": f"{seconds}s",
                    "maxDuration": f"{seconds}s",
                },
            }
        }
    }


def _note(
    context: Context, cloud: Cloud, pool: Pool, seconds: int, found: tuple[str, str, str]
) -> Problem:
    zone, start, end = found
    there = dataclasses.replace(pool, zone=zone)
    name = f"{context.settings.name_prefix}-calendar"
    buy = future.purchase(context.settings.project_id, name, there, start=start, end=end)
    listed = pricing.known(context, cloud)
    cost = "for a price that Google's console shows before it sells"
    if listed is not None and (rate := rates.beforehand(there, listed)).usd is not None:
        about = "≈ " if any(it.is_estimate for it in rate.sources) else ""
        usd = rate.usd * pool.size.most * seconds / 3600
        cost = f"for {about}${usd:,.0f} in all, by list price"
    return Problem(
        code=Code.NOTE,
        setting="MAX_RUN_DURATION",
        what=f"Google sells {pool.size.most} x {pool.machine_type} for that time beforehand"
        f" (calendar mode): in {zone} from {start} to {end}, {cost}",
        why="they are paid for all of the time, used or not, and can't be given back",
        fix=f"{buy}\nand then RESERVATION_NAME={name}, ZONE={zone}, without MAX_RUN_DURATION and"
        " what asks for another way",
    )


def _moment(timestamp: float) -> str:
    return dt.datetime.fromtimestamp(timestamp, dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
