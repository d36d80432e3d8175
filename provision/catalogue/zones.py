"""The regions and zones of Google Cloud.

They are a dated list (`offers`). Google adds regions and zones, and some are not public for all: a
well-formed name that is missing here is a note, not an error.
"""

from __future__ import annotations

import difflib
import re
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from provision.catalogue.offers import OFFERS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

ZONES: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        region: tuple(f"{region}-{suffix}" for suffix in suffixes)
        for region, suffixes in OFFERS.zones.places.items()
    },
)
"""Region name -> the names of its zones."""

REGIONS: Final = tuple(ZONES)
"""The names of all regions."""

_REGION_FORM: Final = re.compile(r"[a-z]+-[a-z]+\d+")
_ZONE_FORM: Final = re.compile(rf"{_REGION_FORM.pattern}-(?:[a-z]|ai\d+[a-z])")
_AI_ZONE: Final = re.compile(r".*-ai\d+[a-z]")

_DIGITS: Final = "0123456789"

# Below this similarity (difflib's ratio) a suggestion would be misleading.
_ALIKE: Final = 0.75


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
    """Whether it is an AI zone, which a project only has once it has turned AI zones on.

    Source: Compute Engine, "AI zones": the name ends with "ai", a digit, and the parent's letter.
    """
    return _AI_ZONE.fullmatch(name) is not None


def turning_ai_zones_on(project: str) -> str:
    """The command that turns AI zones on in a project; source: as `is_ai_zone`, of 2026-04."""
    return (
        "gcloud compute preview-features update ai-zones-visibility --activation-status=enabled"
        f" --rollout-plan=fast-rollout --project={project}"
    )


def did_you_mean_zone(name: str) -> str | None:
    """The known zone with the most similar name; None if none is, or if its region may be new."""
    if _may_be_new(region_of(name)):
        return None
    return _closest(name, (zone for zones in ZONES.values() for zone in zones))


def did_you_mean_region(name: str) -> str | None:
    """The known region with the most similar name; None if none is, or if it may be new."""
    return None if _may_be_new(name) else _closest(name, REGIONS)


def _may_be_new(region: str) -> bool:
    """Whether an unknown region differs from known ones in its number alone, as us-west8 does."""
    return region not in ZONES and region.rstrip(_DIGITS) in {it.rstrip(_DIGITS) for it in ZONES}


def _closest(name: str, known: Iterable[str]) -> str | None:
    # No valid name is that long; difflib's time grows with the product of the lengths.
    found = difflib.get_close_matches(name.lower()[:64], known, n=1, cutoff=_ALIKE)
    return found[0] if found else None
