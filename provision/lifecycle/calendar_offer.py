"""Calendar mode: what Google is asked for, what it offers, and what that costs in all.

Sources: compute v1 (discovery of 2026-11-06), advice.calendarMode and futureReservations; Google's
pages on calendar mode (2025-12 to 2026-01, with no date of their own).
"""

from __future__ import annotations

import datetime as dt
import json
from dataclasses import asdict, dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final, Self

from provision.cost import rates
from provision.documents import json_object

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from provision.catalogue.prices import Prices
    from provision.spec.pools import Pool

_SPEC: Final = "vms"
"""The key of the one specification in a request for advice; any text would do."""


@dataclass(frozen=True, kw_only=True)
class Offer:
    """VMs that Google has for a time.

    Attributes:
        zone: Where.
        machine_type: Which.
        count: How many.
        start: When the time begins, in RFC 3339.
        end: When it ends, likewise.
        seconds: How long it is.
        price: What all of it costs, in USD, as far as the list of prices knows.
    """

    zone: str
    machine_type: str
    count: int
    start: str
    end: str
    seconds: int
    price: Decimal | None

    @property
    def what(self) -> str:
        """It in words, such as "2 x a4-highgpu-8g in us-central1-b from ... to ..."."""
        when = f"from {self.start} to {self.end}"
        return f"{self.count} x {self.machine_type} in {self.zone} {when}"

    @property
    def cost(self) -> str:
        """The price in words."""
        if self.price is None:
            return "for a price that no list has: Google's console shows it before it sells"
        days = f"{self.seconds / 86400:.3g} days"
        return f"for ${self.price:,.0f} in all ({days}), by list price"

    @property
    def document(self) -> str:
        """It as it is written down."""
        price = "" if self.price is None else str(self.price)
        return json.dumps({**asdict(self), "price": price})

    @classmethod
    def read(cls, document: Mapping[str, Any]) -> Self | None:
        """One that was written down; None if somebody has spoiled it."""
        texts = {it: json_object.text(document.get(it)) for it in cls._TEXTS}
        count, seconds = (json_object.whole(document.get(it)) for it in ("count", "seconds"))
        if not (all(texts.values()) and count and seconds):
            return None
        price = json_object.text(document.get("price"))
        known = Decimal(price) if price.replace(".", "", 1).isdigit() else None
        return cls(count=count, seconds=seconds, price=known, **texts)

    _TEXTS = ("zone", "machine_type", "start", "end")


def question(
    pool: Pool, zones: Sequence[str], *, earliest: str, latest: str, seconds: int
) -> dict[str, Any]:
    """The body of a request for advice on one region.

    Args:
        pool: The VMs.
        zones: The zones of the region that they may be in.
        earliest: Before which moment they do not begin, in RFC 3339.
        latest: After which moment they do not begin.
        seconds: For how long.
    """
    run = f"{seconds}s"
    allowed = {f"zones/{zone}": {"preference": "ALLOW"} for zone in zones}
    return {
        "futureResourcesSpecs": {
            _SPEC: {
                "deploymentType": "DENSE",
                "locationPolicy": {"locations": allowed},
                "targetResources": {
                    "specificSkuResources": {
                        "machineType": pool.machine_type,
                        "instanceCount": str(pool.size.first),
                    }
                },
                "timeRangeSpec": {
                    "startTimeNotEarlierThan": earliest,
                    "startTimeNotLaterThan": latest,
                    "minDuration": run,
                    "maxDuration": run,
                },
            }
        }
    }


def answered(answer: Mapping[str, Any]) -> tuple[tuple[str, str, str] | None, dict[str, str]]:
    """What Google advises: zone, start and end; and zone -> why it does not advise that one."""
    advised: tuple[str, str, str] | None = None
    others: dict[str, str] = {}
    for one in json_object.objects(answer.get("recommendations")):
        found = json_object.inner(json_object.inner(one.get("recommendationsPerSpec")).get(_SPEC))
        texts = [json_object.text(found.get(it)) for it in ("location", "startTime", "endTime")]
        if all(texts) and advised is None:
            advised = (texts[0].rpartition("/")[2], texts[1], texts[2])
        for zone, status in json_object.inner(found.get("otherLocations")).items():
            said = json_object.inner(status)
            why = [json_object.text(said.get(it)) for it in ("status", "details")]
            others[zone.rpartition("/")[2]] = ": ".join(filter(None, why))
    return advised, others


def price(pool: Pool, seconds: int, listed: Prices | None) -> Decimal | None:
    """What the VMs cost for all of the time, used or not, in USD; None if no list has that."""
    rate = rates.machine(pool, listed).usd if listed is not None else None
    return None if rate is None else rate * pool.size.first * seconds / 3600


def purchase(offer: Offer, name: str, marker: str) -> dict[str, Any]:
    """The body of the request that buys an offer: a future reservation, and one that it becomes."""
    return {
        "name": name,
        "description": marker,
        "reservationName": name,
        "reservationMode": "CALENDAR",
        "deploymentType": "DENSE",
        "planningStatus": "SUBMITTED",
        "specificReservationRequired": True,
        "autoDeleteAutoCreatedReservations": True,
        "timeWindow": {"startTime": offer.start, "endTime": offer.end},
        "specificSkuProperties": {
            "totalCount": str(offer.count),
            "instanceProperties": {"machineType": offer.machine_type},
        },
    }


def window(start: str | None, now: float, lead: float, ahead: float) -> tuple[str, str]:
    """Between which moments the time is to begin, in RFC 3339.

    Args:
        start: Before which it does not; None for as early as Google can.
        now: Now, in seconds since 1970.
        lead: `limits.CALENDAR_LEAD`, by the clock of that moment.
        ahead: `limits.CALENDAR_AHEAD`, likewise.
    """
    soonest = dt.datetime.fromtimestamp(now + lead, dt.UTC)
    wanted = dt.datetime.fromisoformat(start) if start else soonest
    earliest = max(wanted, soonest)
    latest = max(earliest, dt.datetime.fromtimestamp(now + ahead, dt.UTC))
    return _written(earliest), _written(latest)


def _written(moment: dt.datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def until(text: str) -> float:
    """A moment in seconds since 1970; 0 for what is none."""
    try:
        return dt.datetime.fromisoformat(text).timestamp()
    except ValueError:
        return 0.0
