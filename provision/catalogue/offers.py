"""Where Google offered what on a certain day: zones, machine types, and GPUs to attach.

`offers.json` has three lists, each with its source and date; `make facts` renews it from Google.
A list is never newer than its date, and Google changes what it offers from month to month: what a
list does not have is a note, and the online check decides.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

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


def read(text: str) -> Offers:
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


def write(lists: Offers) -> str:
    """Write the lists as `read` reads them, one row a line."""
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


OFFERS: Final = read(FILE.read_text("utf-8"))
"""The lists that come with the program."""
