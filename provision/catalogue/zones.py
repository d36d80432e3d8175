"""The regions and zones of Google Cloud.

This is a snapshot of the public list (Compute Engine, "Regions and zones"). Google adds zones, so a
well-formed zone in a known region that is missing here is a note, not an error.
"""

from __future__ import annotations

import difflib
import re
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

# Region -> the last parts of the names of its zones. Most regions have zones a, b and c; AI zones
# have "ai", a number, and the letter of the zone that they belong to.
_ZONE_SUFFIXES: Final[Mapping[str, str]] = {
    "africa-south1": "a b c",
    "asia-east1": "a b c",
    "asia-east2": "a b c",
    "asia-northeast1": "a b c",
    "asia-northeast2": "a b c",
    "asia-northeast3": "a b c",
    "asia-south1": "a b c",
    "asia-south2": "a b c",
    "asia-southeast1": "a b c",
    "asia-southeast2": "a b c",
    "asia-southeast3": "a b c",
    "australia-southeast1": "a b c",
    "australia-southeast2": "a b c",
    "europe-central2": "a b c",
    "europe-north1": "a b c",
    "europe-north2": "a b c",
    "europe-southwest1": "a b c",
    "europe-west1": "b c d",
    "europe-west10": "a b c",
    "europe-west12": "a b c",
    "europe-west2": "a b c",
    "europe-west3": "a b c",
    "europe-west4": "a b c",
    "europe-west6": "a b c",
    "europe-west8": "a b c",
    "europe-west9": "a b c",
    "me-central1": "a b c",
    "me-central2": "a b c",
    "me-west1": "a b c",
    "northamerica-northeast1": "a b c",
    "northamerica-northeast2": "a b c",
    "northamerica-south1": "a b c",
    "southamerica-east1": "a b c",
    "southamerica-west1": "a b c",
    "us-central1": "a b c f ai1a",
    "us-east1": "b c d",
    "us-east4": "a b c",
    "us-east5": "a b c",
    "us-south1": "a b c ai1b",
    "us-west1": "a b c",
    "us-west2": "a b c",
    "us-west3": "a b c",
    "us-west4": "a b c",
}

ZONES: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        region: tuple(f"{region}-{suffix}" for suffix in suffixes.split())
        for region, suffixes in _ZONE_SUFFIXES.items()
    },
)
"""Region name -> the names of its zones."""

REGIONS: Final = tuple(ZONES)
"""The names of all regions."""

_ZONE_FORM: Final = re.compile(r"(?P<region>[a-z]+-[a-z]+\d+)-(?:[a-z]|ai\d+[a-z])")

# Below this similarity (difflib's ratio) a suggestion would be misleading.
_ALIKE: Final = 0.75


def region_of(zone: str) -> str:
    """The name of the zone's region: the zone without its last part."""
    return zone.rpartition("-")[0]


def has_zone_form(name: str) -> bool:
    """Whether the name has the format of a zone's name, known or not."""
    return _ZONE_FORM.fullmatch(name) is not None


def did_you_mean_zone(name: str) -> str | None:
    """The known zone with the most similar name; None if there is none."""
    return _closest(name, (zone for zones in ZONES.values() for zone in zones))


def did_you_mean_region(name: str) -> str | None:
    """The known region with the most similar name; None if there is none."""
    return _closest(name, REGIONS)


def _closest(name: str, known: Iterable[str]) -> str | None:
    # No valid name is that long; difflib's time grows with the product of the lengths.
    found = difflib.get_close_matches(name.lower()[:64], known, n=1, cutoff=_ALIKE)
    return found[0] if found else None
