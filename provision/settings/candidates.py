"""Where and how a cluster may be made: the zones of ZONE, and the ways of CAPACITY.

ZONE names one zone; several, in the order in which they are tried; or any.
"""

from __future__ import annotations

import fnmatch
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from provision.catalogue import machines, zones
from provision.settings import parsing
from provision.settings.choices import Way
from provision.settings.parsing import InvalidValueError, shorten

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

ANYWHERE: Final = frozenset({"any", "cheapest"})
"""The words for all zones that have the machine type."""

ASKED_BY: Final[Mapping[Way, str]] = {
    Way.RESERVATION: "reservation_name",
    Way.FLEX_START: "enable_flex_start",
    Way.SPOT: "enable_spot",
}
"""A way -> the field that asks for it where CAPACITY does not; none for on demand."""

_OTHER_WAYS: Final = {
    **dict.fromkeys(("dws", "flex", "queued"), Way.FLEX_START),
    **dict.fromkeys(("preemptible", "preemptable"), Way.SPOT),
    **dict.fromkeys(("standard", "demand", "regular"), Way.ON_DEMAND),
    **dict.fromkeys(("reserved", "future_reservation", "calendar"), Way.RESERVATION),
}
_check_words: Final = parsing.choices(Way, "a way to get machines", "ways", _OTHER_WAYS)
_PATTERN: Final = re.compile(r"[a-z0-9*-]+")


class Site(NamedTuple):
    """A zone, and a way to get machines there."""

    zone: str
    way: Way | None = None  # the way; None where CAPACITY names none

    def __str__(self) -> str:
        return f"{self.zone} ({self.way.words})" if self.way else self.zone


@dataclass(frozen=True)
class Choice:
    """The zones that a ZONE names."""

    text: str
    zones: tuple[str, ...]  # the zones, as far as the dated list knows them; at least one
    by_price: bool = False  # whether the cheapest is tried first, in place of the order of the text

    @property
    def is_several(self) -> bool:
        """Whether it leaves a choice."""
        return self.text != self.zones[0]

    def names(self, zone: str) -> bool:
        """Whether a zone is one of them, be it in the dated list or not."""
        return zone in self.zones or _fits(self.text, zone)


def check_one(text: str) -> str:
    """Check the name of one zone, known or not."""
    if text in zones.REGIONS:
        example = zones.ZONES[text][0]
        raise InvalidValueError(
            "is a region", f"a zone is a region with a letter, such as {example}", fix=example
        )
    if not zones.has_zone_form(text):
        raise InvalidValueError(
            "is not a zone",
            "a region with a letter, such as us-central1-a or us-central1-ai1a",
            fix=zones.did_you_mean_zone(text),
        )
    return text


def check(text: str) -> str:
    """Check a ZONE, which may name several zones; returns it without blanks."""
    parts = parsing.comma_list(text)
    if len(parts) == 1 and text.lower() in ANYWHERE:
        return text.lower()
    apart = re.split(r"[\s,;]+", text.lower())
    if len(apart) > len(parts) and all(map(zones.has_zone_form, apart)):
        raise InvalidValueError(
            "has zones without a comma between them",
            "several zones are separated by commas, in the order in which they are tried",
            fix=",".join(dict.fromkeys(apart)),
        )
    if len(set(parts)) < len(parts):
        raise InvalidValueError("names a zone twice", "each zone is tried in its turn anyway")
    for part in parts:
        if part.lower() in ANYWHERE:
            raise InvalidValueError(
                f"has {part} beside other zones", f"{part} is all zones", fix=part.lower()
            )
        if "*" not in part:
            check_one(part)
        elif not _PATTERN.fullmatch(part) or not any(_matching(part)):
            raise InvalidValueError(
                f"has {shorten(part)}, which fits no zone",
                "a pattern is the beginning of zones' names and a *, such as us-central1-*",
            )
    return ",".join(parts)


def check_ways(text: str) -> tuple[Way, ...]:
    """Read a CAPACITY: ways to get machines, in the order in which they are tried."""
    found = _check_words(text.replace("-", "_"))
    if len(set(found)) < len(found):
        raise InvalidValueError("names a way twice", "each way is tried in its turn anyway")
    return found


def in_way(texts: Mapping[str, str], way: Way | None) -> tuple[Mapping[str, str], Way | None]:
    """The texts that ask for one way of CAPACITY, and which that is.

    `texts`: field -> the text of its value. Returns the texts as they are, and None, where CAPACITY
    is invalid or not set.
    """
    if "capacity" not in texts:
        return texts, None
    try:
        way = way or check_ways(texts["capacity"])[0]
    except InvalidValueError:
        return texts, None  # as the field says itself
    others = {field for one, field in ASKED_BY.items() if one is not way}
    asking = {name: text for name, text in texts.items() if name not in others}
    if way in {Way.FLEX_START, Way.SPOT}:
        asking[ASKED_BY[way]] = "yes"
    return asking, way


def of(texts: Mapping[str, str], usual_type: str) -> Choice | None:
    """The zones that a ZONE names; None if it is invalid.

    `texts`: field -> the text of its value; of what is found by price, the machine type, the GPU
    and REGION leave some out.
    """
    try:
        text = check(texts.get("zone", ""))
    except InvalidValueError:
        return None  # as the field says itself
    parts = text.split(",")
    by_price = len(parts) == 1
    if by_price and text not in ANYWHERE and "*" not in text:
        return Choice(text, (text,))
    found = tuple(dict.fromkeys(zone for part in parts for zone in _matching(part)))
    if by_price:
        there = _having(texts.get("vm_type", usual_type), texts.get("accelerator_type", ""))
        region = texts.get("region")
        inside = [it for it in found if region in {None, zones.region_of(it)}] or found
        found = tuple(it for it in inside if it in there) or tuple(inside)
    return Choice(text, found, by_price)


def _matching(part: str) -> Iterator[str]:
    """The zones that one part of a ZONE names; a pattern takes none that a project must turn on."""
    if "*" not in part and part not in ANYWHERE:
        yield part
        return
    for zone in (zone for names in zones.ZONES.values() for zone in names):
        if _fits(part, zone) and not zones.is_ai_zone(zone):
            yield zone


def _fits(text: str, zone: str) -> bool:
    return text in ANYWHERE or any(fnmatch.fnmatchcase(zone, part) for part in text.split(","))


def _having(machine_type: str, accelerator: str) -> frozenset[str]:
    """The zones that the dated list has such machines in; all zones for what it does not know."""
    listed = zones.OFFERS.machine_types.places.get(machine_type)
    if listed is None and machines.takes_gpus(machine_type):
        listed = zones.OFFERS.accelerators.places.get(accelerator)
    # Of a region that is listed without its zones, all.
    places = zones.ZONES if listed is None else listed
    return frozenset(zone for place in places for zone in zones.ZONES.get(place, (place,)))
