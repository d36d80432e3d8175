"""The regions and zones of Google Cloud."""

from collections.abc import Mapping
from typing import Final

from rehearsal.cloud import facts

_FACTS: Final = facts.read("places")


def _zones(suffixes: Mapping[str, str]) -> Mapping[str, tuple[str, ...]]:
    return {
        region: tuple(f"{region}-{suffix}" for suffix in own.split())
        for region, own in suffixes.items()
    }


ZONES: Final = _zones(_FACTS["zones"])
"""Region -> its zones, without those that a project must turn on."""

AI_ZONES: Final = _zones(_FACTS["ai_zones"])  # region -> its AI zones, which a project must turn on

REGIONS: Final = tuple(ZONES)

_TURNED_ON: Final = "ai-zones"


def region_of(zone: str) -> str:
    """The name of a zone's region; what is no zone has none that is in `ZONES`."""
    return zone.rpartition("-")[0]


def zones_of(region: str, scenarios: frozenset[str] = frozenset()) -> tuple[str, ...]:
    """The zones of a region that a project has; AI zones only where `ai-zones` turned them on."""
    turned_on = AI_ZONES.get(region, ()) if _TURNED_ON in scenarios else ()
    return (*ZONES.get(region, ()), *turned_on)


def every_zone(scenarios: frozenset[str]) -> list[str]:
    """The names of all zones that a project has, sorted."""
    return sorted(zone for region in REGIONS for zone in zones_of(region, scenarios))


def is_zone(name: str, scenarios: frozenset[str] = frozenset()) -> bool:
    """Whether a project has a zone of that name."""
    return name in zones_of(region_of(name), scenarios)
