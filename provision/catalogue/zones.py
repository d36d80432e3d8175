"""The regions and zones of Google Cloud, and where it offered what on a certain day.

`offers.json` has three lists: zones, machine types, and GPUs to attach, each with its source and
date; `make facts` renews it from Google. A list is never newer than its date, and Google changes
what it offers from month to month; some zones are not public for all. What a list does not have is
a note, and the online check decides.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from provision.words import closest

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

FILE: Final = Path(__file__).with_name("offers.json")
"""The file that has the lists."""


@dataclass(frozen=True, kw_only=True)
class Listing:
    """One list: where there was what, on one day."""

    source: str
    date: str  # its day, as YYYY-MM-DD
    # Name -> the places that had it, sorted. A place is a zone, or a region of which the list does
    # not tell the zones.
    places: Mapping[str, tuple[str, ...]]

    def lacks(self, name: str, zone: str) -> bool:
        """Whether a zone did not have it; never for a name that is in no row of the list.

        `name`: such as "a2-highgpu-1g". `zone`: such as "us-central1-a". A region that is listed
        without its zones has it in each.
        """
        there = self.places.get(name)
        return there is not None and not {zone, zone.rpartition("-")[0]}.intersection(there)


@dataclass(frozen=True, kw_only=True)
class Offers:
    """The three lists."""

    zones: Listing  # region -> the last parts of the names of its zones
    machine_types: Listing  # machine type with GPUs -> where it was
    accelerators: Listing  # GPU to attach -> where it was


def read_offers(text: str) -> Offers:
    """Read the lists."""
    lists = {
        name: Listing(
            source=it["source"],
            date=it["date"],
            places=MappingProxyType(
                {row: tuple(where.split()) for row, where in it["places"].items()}
            ),
        )
        for name, it in json.loads(text).items()
    }
    return Offers(**lists)


def write_offers(lists: Offers) -> str:
    """Write the lists as `read_offers` reads them, one row a line."""
    return (
        json.dumps(
            {
                name: {
                    "source": it.source,
                    "date": it.date,
                    "places": {row: " ".join(where) for row, where in sorted(it.places.items())},
                }
                for name, it in vars(lists).items()
            },
            indent=2,
        )
        + "\n"
    )


def nearest(places: Iterable[str], region: str) -> list[str]:
    """Sort places: first those in the region, then those on its continent, then the others.

    A continent is the first part of a name, such as "europe": Google has no list of distances.
    """
    continent = region.partition("-")[0]

    def distance(name: str) -> tuple[bool, bool, str]:
        inside = region in {name, name.rpartition("-")[0]}
        return (not inside, name.partition("-")[0] != continent, name)

    return sorted(places, key=distance)


OFFERS: Final = read_offers(FILE.read_text("utf-8"))
"""The lists that come with the program."""

ZONES: Final[Mapping[str, tuple[str, ...]]] = {
    region: tuple(f"{region}-{suffix}" for suffix in suffixes)
    for region, suffixes in OFFERS.zones.places.items()
}
"""Region name -> the names of its zones."""

REGIONS: Final = tuple(ZONES)
"""The names of all regions."""

_REGION_FORM: Final = re.compile(r"[a-z]+-[a-z]+\d+")
_ZONE_FORM: Final = re.compile(rf"{_REGION_FORM.pattern}-(?:[a-z]|ai\d+[a-z])")
_AI_ZONE: Final = re.compile(r".*-ai\d+[a-z]")

_DIGITS: Final = "0123456789"


def region_of(zone: str) -> str:
    """The name of the zone's region: the zone without its last part."""
    return zone.rpartition("-")[0]


def has_zone_form(name: str) -> bool:
    """Whether the name has the format of a zone's name, known or not."""
    return _ZONE_FORM.fullmatch(name) is not None


def has_region_form(name: str) -> bool:
    """Whether the name has the format of a region's name, known or not."""
    return _REGION_FORM.fullmatch(name) is not None


def why_key_is_elsewhere(path: str, region: str, *, strict: bool) -> str:
    """Why a key of Cloud KMS does not serve a region, from its location; "" if it does.

    Source: disks take a key of their region, of a multi-region around it, or a global one (gcloud
    compute disks update-kms-key, undated); buckets, shares and GKE's secrets one of their region.
    """
    location = path.split("/")[3]
    if location == region:
        return ""
    if strict:
        return (
            f"shares, GKE's secrets and the state bucket take a key of their own region, {region}"
        )
    if location == "global" or region.startswith(f"{location}-"):
        return ""
    return f"disks in {region} take a key of that region, of a multi-region around it, or global"


def is_ai_zone(name: str) -> bool:
    """Whether it is an AI zone, which Google shows to a project only once they are turned on.

    Sources: Compute Engine, "AI zones": the name ends with "ai", a digit, and the parent's letter;
    "Manage AI zone visibility" (2026-11).
    """
    return _AI_ZONE.fullmatch(name) is not None


def turning_ai_zones_on(project: str) -> str:
    """The command that turns AI zones on in a project; source: as `is_ai_zone`, of 2026-04."""
    return (
        "gcloud compute preview-features update ai-zones-visibility --activation-status=enabled"
        f" --rollout-plan=fast-rollout --project={project}"
    )


def did_you_mean_zone(name: str) -> str:
    """The known zone with the most similar name; "" if none is, or if its region may be new."""
    every = (zone for zones in ZONES.values() for zone in zones)
    return "" if _may_be_new(region_of(name)) else closest(name.lower(), every)


def did_you_mean_region(name: str) -> str:
    """The known region with the most similar name; "" if none is, or if it may be new."""
    return "" if _may_be_new(name) else closest(name.lower(), REGIONS)


def _may_be_new(region: str) -> bool:
    """Whether an unknown region differs from known ones in its number alone, as us-west8 does."""
    return region not in ZONES and region.rstrip(_DIGITS) in {it.rstrip(_DIGITS) for it in ZONES}
