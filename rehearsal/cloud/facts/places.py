"""The regions and zones of Google Cloud, and which of them have GPUs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rehearsal.cloud import facts

if TYPE_CHECKING:
    from collections.abc import Mapping

_FACTS: Final = facts.read("places")

ZONES: Final[Mapping[str, tuple[str, ...]]] = {
    region: tuple(f"{region}-{suffix}" for suffix in suffixes.split())
    for region, suffixes in _FACTS["zones"].items()
}
"""Region -> its zones."""

REGIONS: Final = tuple(ZONES)


def region_of(zone: str) -> str:
    """The name of a zone's region; what is no zone has none that is in `ZONES`."""
    return zone.rpartition("-")[0]


def is_zone(name: str) -> bool:
    """Whether there is a zone of that name."""
    return name in ZONES.get(region_of(name), ())


def has_gpus(zone: str) -> bool:
    """Whether a zone has GPUs at all."""
    return region_of(zone) not in _FACTS["without_gpus"]
