"""Google's list prices: of what, got how, where, on which day, and who says so.

`prices.json` has the list that comes with the program; `make facts` renews it. Prices are in USD,
without tax, contracts, commitments and traffic. Those of Spot change up to once a day: a list is as
good as its date. Where Google has announced a change, the source says for which month.

An item is named by one of the forms below. What is not in a list is unknown, never free.
"""

from __future__ import annotations

import functools
import json
import re
from collections import defaultdict
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Self

from provision.catalogue.machines import Consumption
from provision.documents import json_object
from provision.documents.cost import Origin

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Iterator, Mapping

FILE: Final = Path(__file__).with_name("prices.json")
"""The list that comes with the program."""

_USD: Final = re.compile(r"[0-9]{1,9}(\.[0-9]{1,12})?([eE]-[0-9]{1,2})?")

EVERYWHERE: Final = "*"
"""The region of a price that is the same in all regions."""

HOURS_OF_A_MONTH: Final = 730
"""What Google's price pages divide monthly prices by; the SKUs' own factor of 720 is not used."""

CONTROL_PLANE: Final = "control plane"
"""A GKE cluster, per hour."""
NAT: Final = "nat"
"""A VM behind Cloud NAT, per hour."""
NAT_ADDRESS: Final = "nat address"
"""An address that Cloud NAT uses, per hour."""
ADDRESS: Final = "external address"
"""An external address of a VM, per hour."""

machine: Final = "machine {}".format
"""A machine type with all that it includes, per hour."""
core: Final = "core {}".format
"""A vCPU of a series whose machines have no price of their own, such as "n1", per hour."""
memory: Final = "memory {}".format
"""A GiB of memory of such a series, per hour."""
gpu: Final = "gpu {}".format
"""A GPU that is attached to a machine, per hour."""
disk: Final = "disk {}".format
"""A GiB of a disk of a type such as "pd-ssd", per month."""
iops: Final = "iops {}".format
"""An I/O operation per second that a disk of this type has beyond its free ones, per month."""
throughput: Final = "throughput {}".format
"""A MiB per second that a disk of this type has beyond its free ones, per month."""
share: Final = "Filestore {}".format
"""A GiB of a Filestore share of a tier, per month."""


@dataclass(frozen=True, kw_only=True)
class Source:
    """Where prices are from."""

    text: str  # who says so
    date: str | None  # the day, such as "2026-07-30", or the month; None if it is not known
    # whether they are derived from other prices rather than published, or outdated
    is_estimate: bool = False
    # the month for which Google has announced others, such as "2026-11"; None for none
    changes: str | None = None
    is_outdated: bool = False  # whether that month has begun

    def by(self, today: dt.date) -> Self:
        """The source on a day: from the month on for which others were announced, an estimate."""
        if self.changes is None or self.changes > today.isoformat():
            return self
        return replace(self, is_estimate=True, is_outdated=True)


@dataclass(frozen=True, kw_only=True)
class Price:
    """One price."""

    usd: Decimal  # US dollars for the item's unit
    source: Source


Rows = dict[tuple[str, Consumption], dict[str, tuple[str, str]]]
"""Item and way to get it -> region -> the price as text, and the key of its source."""


@dataclass(frozen=True, kw_only=True)
class Prices:
    """A list of prices."""

    origin: Origin
    sources: Mapping[str, Source]  # key -> source
    rows: Rows

    def by(self, today: dt.date) -> Self:
        """The list as it counts on a day."""
        return replace(self, sources={key: it.by(today) for key, it in self.sources.items()})

    def find(
        self, item: str, region: str, way: Consumption = Consumption.ON_DEMAND
    ) -> Price | None:
        """The price of an item in a region; None if the list has none.

        `region`: such as "us-central1". `way`: how machines are got; for what is no machine, as for
        the machine that it is of.
        """
        there = self.rows.get((item, way), {})
        found = there.get(region) or there.get(EVERYWHERE)
        if found is None:
            return None
        usd, source = found
        return Price(usd=Decimal(usd), source=self.sources[source])


def read(text: str | bytes, origin: Origin) -> Prices:
    """Read a list.

    Raises:
        ValueError: It is no such list.
    """
    document = json_object.read(text)
    try:
        return _read(document, origin)
    except (LookupError, TypeError, AttributeError, ArithmeticError) as error:
        raise ValueError(f"it is no list of prices: {error!r}") from error


def _read(document: Mapping[str, Any], origin: Origin) -> Prices:
    sources = {
        key: Source(
            text=str(it["text"]),
            date=None if it["date"] is None else str(it["date"]),
            is_estimate=it.get("estimate") is True,
            changes=json_object.text(it.get("changes")) or None,
        )
        for key, it in document["sources"].items()
    }
    rows: Rows = defaultdict(dict)
    for item, way, source, places in document["prices"]:
        words = places.split()
        there = rows[item, Consumption(way)]
        for region, usd in zip(words[::2], words[1::2], strict=True):
            if source not in sources or not _USD.fullmatch(usd):
                raise ValueError(f"{usd} by {source!r} is no price")
            there[region] = (usd, source)
    return Prices(origin=origin, sources=MappingProxyType(sources), rows=dict(rows))


def write(prices: Prices) -> str:
    """Write a list as `read` reads it, one item, way and source a line."""
    sources = {
        key: {"date": it.date, "text": it.text}
        | ({"estimate": True} if it.is_estimate else {})
        | ({"changes": it.changes} if it.changes else {})
        for key, it in prices.sources.items()
    }
    lines: defaultdict[tuple[str, str, str], list[str]] = defaultdict(list)
    for (item, way), there in prices.rows.items():
        for region, (usd, source) in sorted(there.items()):
            lines[item, way.value, source].append(f"{region} {usd}")
    kept = ",\n".join(
        f"    {json.dumps(key)}: {json.dumps(it)}" for key, it in sorted(sources.items())
    )
    rows = ",\n".join(
        f"    {json.dumps([*key, ' '.join(places)])}" for key, places in sorted(lines.items())
    )
    return f'{{\n  "sources": {{\n{kept}\n  }},\n  "prices": [\n{rows}\n  ]\n}}\n'


def renewed(before: Prices, after: Prices) -> Prices:
    """A list with newer prices in it; what the newer list lacks keeps its price and its day.

    `after`: newer prices; one that holds everywhere takes the place of all.
    """
    rows: Rows = {}
    for key in {**before.rows, **after.rows}:
        new = after.rows.get(key, {})
        rows[key] = new if EVERYWHERE in new else {**before.rows.get(key, {}), **new}
    used = {source for there in rows.values() for _, source in there.values()}
    every = {**before.sources, **after.sources}
    sources = {key: source for key, source in every.items() if key in used}
    return Prices(origin=before.origin, sources=sources, rows=rows)


def changes(before: Prices, after: Prices) -> Iterator[str]:
    """Say in which regions prices differ between two lists, one line for each item and way."""
    for key in sorted({*before.rows, *after.rows}):
        was, now = before.rows.get(key, {}), after.rows.get(key, {})
        words = []
        for name, regions in (
            ("gone", was.keys() - now.keys()),
            ("new", now.keys() - was.keys()),
            ("other", {it for it in was.keys() & now.keys() if was[it][0] != now[it][0]}),
        ):
            if regions:
                words.append(f"{name} {', '.join(sorted(regions))}")
        if words:
            yield f"{key[0]}, {key[1]}: {'; '.join(words)}"


@functools.cache
def listed() -> Prices:
    """The list that comes with the program."""
    return read(FILE.read_text("utf-8"), Origin.LIST)
