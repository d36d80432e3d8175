"""The sections of the page, each made from the documents that it tells of."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from provision.documents.cost import Origin
from provision.documents.topology import Reach, StoreKind
from provision.screens import amounts, cluster, plan
from provision.screens.page import drawing, html
from provision.screens.page.html import share, table, tag
from provision.screens.progress import TITLES
from provision.words import counted

if TYPE_CHECKING:
    import xml.etree.ElementTree as ET
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from provision.documents.cost import Cost, Part
    from provision.documents.plan import Checks, Kept, Plan
    from provision.documents.timeline import Stage
    from provision.documents.topology import Machines, Store, Topology
    from provision.errors import Problem

UNTOLD: Final = "not told"
REACH_WORDS: Final = {
    Reach.INTERNET: "the internet, as far as firewall rules let in",
    Reach.RANGES: "the address ranges that are named",
    Reach.IDENTITY: "who has the role in Google's IAM",
    Reach.OUTGOING: "nobody: it only leads out",
}


def _section(title: str, *children: ET.Element | None, name: str) -> ET.Element:
    heading = tag("h2", title, id=name)
    return tag("section", heading, *children, aria_labelledby=name)


# ------------------------------------------------------------------ what there is


def topology(it: Topology) -> ET.Element:
    """The drawing, what its signs mean, and the same as tables."""
    wide, narrow = drawing.drawings(it)
    tables_of_it = tag(
        "details",
        tag("summary", "The same as tables"),
        table("In and out", ["what", "who can use it", "details"], _doors(it)),
        table("Networks", ["network", "how many", "interfaces of a machine", "MTU"], _networks(it)),
        table(
            "Machines",
            ["pool", "machines", "GPUs of each", "interfaces", "zone", "how they come", "end"],
            map(_machines, it.machines),
        ),
        table("Storage", ["what", "mounted at", "size", "when the cluster ends"], _stores(it)),
    )
    return _section("What it consists of", wide, narrow, _legend(it), tables_of_it, name="topology")


def _legend(it: Topology) -> ET.Element:
    items = []
    if any(pool.gpus for pool in it.machines):
        items.append(("gpu", "a GPU"))
    items.append(("nic", "a network interface"))
    if any(pool.most > pool.first for pool in it.machines):
        items.append(("later", "a machine that can come later"))
    if any(door.reach is Reach.INTERNET for door in it.doors):
        items.append(("public", "public"))
    return tag(
        "ul", *(tag("li", tag("i"), words, class_=name) for name, words in items), class_="legend"
    )


def _doors(it: Topology) -> Iterator[Sequence[str]]:
    for door in it.doors:
        yield html.titled(door.name), REACH_WORDS[door.reach], door.words


def _networks(it: Topology) -> Iterator[Sequence[str]]:
    names = {"first": "first interface", "gpus": "between GPUs", "more": "one more interface"}
    for network in it.networks:
        mtu = f"{network.mtu:,}" if network.mtu else "the project's"
        there = f"network {network.name}" if network.name else "the project's default network"
        made = "made for it" if network.is_made else there
        kind = f" ({network.nic_type})" if network.nic_type else ""
        yield (
            f"{names[network.role]}, {made}",
            str(network.count),
            f"{network.interfaces}{kind}",
            mtu,
        )


def _machines(pool: Machines) -> Sequence[str]:
    return (
        pool.name,
        f"{cluster.how_many(pool)} {html.TIMES} {pool.machine_type}",
        f"{pool.gpus} {html.TIMES} {pool.gpu}" if pool.gpus else "none",
        str(pool.interfaces),
        pool.zone,
        cluster.mode(pool),
        html.ends(pool),
    )


def _stores(it: Topology) -> Iterator[Sequence[str]]:
    for pool in it.machines:
        size = f"{pool.boot_disk_gb:,} GB {pool.boot_disk_type}"
        yield f"boot disk of each machine of {pool.name}", "/", size, "deleted"
        if pool.local_ssd_gb:
            yield (
                f"local SSD of each machine of {pool.name}",
                pool.local_ssd_path or "on the machine",
                f"{pool.local_ssd_gb:,} GB",
                "deleted",
            )
    for store in it.stores:
        yield _store(store)


def _store(store: Store) -> Sequence[str]:
    match store.kind:
        case StoreKind.FILESTORE:
            what, size = f"Filestore {store.tier}", f"{store.size_gb:,} GB"
        case StoreKind.BUCKET:
            what, size = f"bucket gs://{store.name}", "as much as is in it"
    return what, store.path, size, "deleted" if store.ends_with_cluster else "stays"


# ------------------------------------------------------------------ what it costs


def cost(it: Cost) -> ET.Element:
    """Every billed part, and the sums."""
    largest = max((part.most or Decimal() for part in it.parts), default=Decimal())
    rows = [
        (
            tag("th", part.name, _small(part)),
            share(float(part.most or 0), float(largest)),
            _price(part.now),
            _price(part.most),
        )
        for part in it.parts
    ]
    sums = (
        "together",
        tag("td"),
        _price(it.now.per_hour, lead=bool(it.now.unknown)),
        _price(it.most.per_hour, lead=bool(it.most.unknown)),
    )
    prices = ("at once, $/h", "with all machines, $/h")
    heads = ["part", "", *prices]
    found = table("In US dollars an hour", heads, rows, sums, numbers=prices)
    return _section("What it costs", tag("p", _caveat(it), class_="hint"), found, name="cost")


def _price(usd: Decimal | None, *, lead: bool = False) -> ET.Element:
    kind = "unknown" if usd is None else None
    return tag("td", ("≥ " if lead else "") + html.money(usd), class_=kind)


def _small(part: Part) -> ET.Element | None:
    told = [
        f"price of {part.dated}" if part.dated else "",
        "estimated" if part.is_estimate else "",
    ]
    text = "; ".join(filter(None, [", ".join(filter(None, told)), part.outdated, part.remark]))
    return tag("small", text) if text else None


def _caveat(it: Cost) -> str:
    dates = sorted({part.dated for part in it.parts if part.dated})
    when = f" of {dates[0]}" if len(dates) == 1 else f" of {dates[0]} to {dates[-1]}"
    match it.prices:
        case Origin.LIVE:
            listed = "Google's price catalogue"
        case Origin.LIST:
            listed = "list prices" + (when if dates else "")
    unknown = ""
    if it.most.unknown:
        unknown = f" Not in the sums, as the price is not known: {', '.join(it.most.unknown)}."
    in_all = ""
    if it.at_most_in_all is not None:
        in_all = (
            f" The machines that expire cost {html.money(it.at_most_in_all)} at most"
            " in all, if each comes once and runs as long as it may."
        )
    return f"By {listed}, without tax, traffic, discounts and contracts.{unknown}{in_all}"


# ------------------------------------------------------------------ what happened


def timeline(stages: Sequence[Stage]) -> ET.Element:
    """The stages of the run with their bars."""
    begins = [dt.datetime.fromisoformat(it.began) for it in stages]
    ends = [dt.datetime.fromisoformat(it.ended or it.began) for it in stages]
    origin, last = min(begins), max(ends)
    whole = max((last - origin).total_seconds(), 0.001)
    rows = [
        (
            tag("th", TITLES[it.name], tag("small", it.words) if it.words else None),
            share(
                (end - begin).total_seconds(),
                whole,
                after=(begin - origin).total_seconds(),
                kind=str(it.state),
            ),
            str(it.state),
            amounts.clock(it.seconds),
        )
        for it, begin, end in zip(stages, begins, ends, strict=True)
    ]
    heads = ["stage", "", "state", "took"]
    when = f"From {origin:%Y-%m-%d %H:%M:%S} UTC"
    found = table(when, heads, rows, numbers=["took"])
    return _section("How it went", found, name="timeline")


def changes(it: Plan) -> ET.Element:
    """What the plan does: what is lost first, then what else changes."""
    heads = ["to add", "to change", "to destroy"]
    rows = [
        (one.noun, *(f"{number:,}" if number else "" for number in numbers_))
        for one in it.counts
        if any(numbers_ := (one.add, one.change, one.destroy))
    ]
    made = table("Resources", ["resource", *heads], rows, numbers=heads)
    found = tag("details", tag("summary", "All resources, by what they are called"), made)
    return _section(
        "What changes",
        tag("p", plan.summary(it)),
        _lost(it),
        _told((one.setting, one.words) for one in it.settings),
        tag("p", f"{_kept(it.kept)}.", class_="hint") if it.kept else None,
        found if rows else None,
        name="changes",
    )


def _lost(it: Plan) -> ET.Element | None:
    if not it.losses:
        return None
    items = (
        tag("li", tag("div", f"{one.noun} {one.name}: ", tag("strong", one.words), class_="lost"))
        for one in it.losses
    )
    return tag("ul", *items, class_="plain")


def _told(rows: Iterable[tuple[str, str]]) -> ET.Element | None:
    items = [tag("li", tag("code", name), f" {words}") for name, words in rows]
    return tag("ul", *items, class_="plain") if items else None


def _kept(it: Kept) -> str:
    told = f"{counted(it.machines, 'machine')} that run: {it.words}"
    replaced = f"to replace them now: {it.command}" if it.command else ""
    return "; ".join(filter(None, [told, it.new, replaced]))


def checks(it: Checks) -> ET.Element:
    """The online checks that passed, and how much of each quota is used."""
    parts = [
        f"{counted(it.made, 'check')} in {it.seconds:.1f} s",
        f"{it.permissions} permissions are held" if it.permissions else "",
        f"{it.apis} APIs are enabled" if it.apis else "",
        f"left out: {', '.join(it.skipped)}" if it.skipped else "",
    ]
    rows = [
        (
            quota.metric,
            share((quota.used or 0) + quota.needed, quota.limit or 0, kind="quota"),
            f"{quota.needed:,}",
            UNTOLD if quota.used is None else f"{quota.used:,}",
            "unlimited" if quota.limit is None else f"{quota.limit:,}",
        )
        for quota in it.quotas
    ]
    heads = ["needed at most", "used now", "limit"]
    found = table("Quotas", ["quota", "", *heads], rows, numbers=heads) if rows else None
    told = tag("p", "; ".join(filter(None, parts)) + ".")
    return _section("What was checked", told, found, name="checks")


def problems(title: str, found: Sequence[Problem], name: str) -> ET.Element:
    """Problems or notes: what, why, and what fixes it."""
    return _section(title, tag("ul", *map(_problem, found), class_="plain"), name=name)


def _problem(it: Problem) -> ET.Element:
    return tag(
        "li",
        tag("strong", f"{it.setting}: " if it.setting else "", it.what),
        tag("p", it.why, class_="hint") if it.why else None,
        tag("p", f"Fix: {it.fix}", class_="hint") if it.fix else None,
    )


def connection(it: Mapping[str, str]) -> ET.Element:
    """How to connect."""
    items = (tag("li", what, tag("code", how)) for what, how in it.items())
    return _section("How to connect", tag("ul", *items, class_="plain connect"), name="connect")


def settings(it: Mapping[str, Any]) -> ET.Element:
    """The effective settings, for whoever wants to know."""
    rows = [
        (name, tag("td", tag("code", _value(value))))
        for name, value in it.items()
        if value is not None
    ]
    found = table("Secrets are masked", ["setting", "value"], rows)
    folded = tag("details", tag("summary", f"All {len(rows)} settings"), found)
    return _section("What was asked for", folded, name="settings")


def _value(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)
