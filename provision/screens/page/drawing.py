"""The topology of a cluster as a drawing: doors → networks → machines → storage, in SVG.

Text in SVG does not flow, so there are two drawings, a wide one and a narrow one, and the style
sheet shows the one that fits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from provision.documents.topology import NetworkRole, Reach, StoreKind
from provision.screens import layout
from provision.screens.page import numbers
from provision.screens.page.blocks import Block, Tiles
from provision.screens.page.html import tag

if TYPE_CHECKING:
    import xml.etree.ElementTree as ET
    from collections.abc import Iterable, Iterator, Sequence

    from provision.documents.topology import Door, Machines, Network, Store, Topology

_HEADS: Final = ("In and out", "Networks", "Machines", "Storage")
_WIDE: Final = 1160
_WIDTHS: Final = (220, 220, 330, 220)
_NARROW: Final = 344
_GAP: Final = 18
_HEAD: Final = 30
_MOST_POOLS: Final = 6
_MOST_STORES: Final = 8


@dataclass(frozen=True)
class _Column:
    """The blocks of one column."""

    head: str  # what stands above it
    blocks: tuple[Block, ...]

    def height(self, width: int) -> int:
        return sum(it.height(width) + _GAP for it in self.blocks) - _GAP


@dataclass(frozen=True)
class _Place:
    """Where a block is."""

    x: int
    y: int
    width: int
    height: int

    @property
    def left(self) -> tuple[int, int]:
        return self.x, self.y + self.height // 2

    @property
    def right(self) -> tuple[int, int]:
        return self.x + self.width, self.y + self.height // 2

    def entry(self, number: int, of: int) -> tuple[int, int]:
        """Where one of several lines meets its left side."""
        return self.x, self.y + self.height * (number + 1) // (of + 1)

    def exit(self, number: int, of: int) -> tuple[int, int]:
        """Where one of several lines leaves its right side."""
        return self.x + self.width, self.entry(number, of)[1]


def drawings(topology: Topology) -> tuple[ET.Element, ET.Element]:
    """The wide drawing and the narrow one."""
    columns = tuple(map(_Column, _HEADS, _blocks(topology)))
    return _wide(topology, columns), _narrow(topology, columns)


def described(topology: Topology) -> str:
    """The drawing in a sentence, for those who do not see it."""
    networks = sum(network.count for network in topology.networks)
    pools = "; ".join(
        f"{numbers.how_many(it)} {it.machine_type} in {it.zone}"
        + (f" with {it.gpus} {it.gpu} each" if it.gpus else "")
        for it in topology.machines
    )
    stores = len(topology.stores)
    shared = layout.counted(stores, "shared store") if stores else "no shared storage"
    return (
        f"{topology.what} {topology.name}: {layout.counted(networks, 'network')} to {pools};"
        f" {shared}. The tables below say the same."
    )


# ------------------------------------------------------------------ what stands where


def _blocks(topology: Topology) -> tuple[tuple[Block, ...], ...]:
    return (
        tuple(map(_door, topology.doors)),
        tuple(map(_network, topology.networks)),
        tuple(_pools(topology.machines)),
        tuple(_stores(topology)),
    )


def _door(door: Door) -> Block:
    match door.reach:
        case Reach.INTERNET:
            return Block("internet", numbers.titled(door.name), (door.words,))
        case Reach.RANGES | Reach.IDENTITY | Reach.OUTGOING:
            return Block(str(door.reach), numbers.titled(door.name), (door.words,))


def _network(network: Network) -> Block:
    lines = [f"MTU {network.mtu:,}"] if network.mtu else []
    match network.role:
        case NetworkRole.FIRST:
            there = f"Network {network.name}" if network.name else "The default network"
            title = "Its own network" if network.is_made else there
            of = "was there before" if network.name else "of the project"
            lines.append("Cloud NAT, private addresses" if network.has_nat else of)
        case NetworkRole.GPUS:
            title = "GPU network" if network.count == 1 else f"{network.count} GPU networks"
        case NetworkRole.MORE:
            title = "One more network" if network.count == 1 else f"{network.count} more networks"
    if network.subnets > 1:
        lines.append(
            f"{network.subnets} subnetworks in each"
            if network.count > 1
            else f"{network.subnets} subnetworks"
        )
    if network.nic_type:
        lines.append(f"{network.nic_type}, " + layout.counted(network.interfaces, "interface"))
    return Block(f"network {network.role}", title, tuple(lines))


def _pools(pools: Sequence[Machines]) -> Iterator[Block]:
    shown = pools if len(pools) <= _MOST_POOLS else pools[: _MOST_POOLS - 1]
    yield from map(_pool, shown)
    if len(shown) < len(pools):
        rest = pools[len(shown) :]
        most = sum(pool.most for pool in rest)
        yield Block("pool", f"{len(rest)} more pools", (f"up to {most:,} machines",))


def _pool(pool: Machines) -> Block:
    gpus = f"{pool.gpus} {numbers.TIMES} {pool.gpu}" if pool.gpus else "no GPUs"
    ending = "" if pool.max_run_seconds is None else f", each ends {numbers.ends(pool)}"
    lines = [
        f"each: {gpus}, {layout.counted(pool.interfaces, 'interface')}",
        numbers.mode(pool) + ending,
    ]
    if pool.has_public_address:
        lines.append("a public address each")
    tiles = Tiles(pool.first, pool.most, pool.gpus, pool.interfaces)
    title = f"{numbers.how_many(pool)} {numbers.TIMES} {pool.machine_type}"
    return Block(
        "pool system" if pool.is_system else "pool",
        title,
        (f"{pool.name} in {pool.zone}", *lines),
        tiles,
    )


def _stores(topology: Topology) -> Iterator[Block]:
    disks = dict.fromkeys((it.boot_disk_gb, it.boot_disk_type) for it in topology.machines)
    yield Block(
        "disk", "Boot disks", (*(f"{gb:,} GB {kind} each" for gb, kind in disks), "end with them")
    )
    local = {it.local_ssd_gb for it in topology.machines} - {0}
    if local:
        sizes = " or ".join(f"{gb:,} GB" for gb in sorted(local))
        yield Block("disk", "Local SSD", (f"{sizes} each", "ends with its machine"))
    shown = topology.stores[:_MOST_STORES]
    yield from map(_store, shown)
    if len(shown) < len(topology.stores):
        yield Block("store", f"{len(topology.stores) - len(shown)} more", ())


def _store(store: Store) -> Block:
    ending = "ends with the cluster" if store.ends_with_cluster else "stays"
    match store.kind:
        case StoreKind.FILESTORE:
            size = f"{store.tier}, {store.size_gb:,} GB"
            return Block("store", "Filestore share", (store.path, size, ending))
        case StoreKind.BUCKET:
            return Block("store", f"gs://{store.name}", (store.path, ending))


# ------------------------------------------------------------------ the two drawings


def _svg(topology: Topology, kind: str, size: tuple[int, int]) -> ET.Element:
    width, height = size
    svg = tag(
        "svg",
        tag("title", f"The topology of {topology.name}", id=f"{kind}-title"),
        tag("desc", described(topology), id=f"{kind}-desc"),
        class_=f"drawing {kind}",
        viewBox=f"0 0 {width} {height}",
        role="img",
        aria_labelledby=f"{kind}-title {kind}-desc",
    )
    # Their size on the page follows their view box, which is why there is no width here.
    svg.set("preserveAspectRatio", "xMidYMin meet")
    return svg


def _wide(topology: Topology, columns: Sequence[_Column]) -> ET.Element:
    tallest = max(column.height(width) for column, width in zip(columns, _WIDTHS, strict=True))
    svg = _svg(topology, "wide", (_WIDE, tallest + _HEAD + 8))
    gap = (_WIDE - sum(_WIDTHS)) // (len(_WIDTHS) - 1)
    x, placed, drawn = 0, [], []
    for column, width in zip(columns, _WIDTHS, strict=True):
        drawn.append(tag("text", column.head, x=x, y=14, class_="head"))
        y = _HEAD + (tallest - column.height(width)) // 2
        places = []
        for block in column.blocks:
            places.append(_Place(x, y, width, block.height(width)))
            drawn.append(block.drawn(x, y, width))
            y += places[-1].height + _GAP
        placed.append(places)
        x += width + gap
    svg.extend(_lines(topology, placed))
    svg.extend(drawn)
    return svg


def _lines(topology: Topology, placed: Sequence[Sequence[_Place]]) -> Iterator[ET.Element]:
    """The lines between blocks: below them, so that they end at their edges."""
    doors, networks, pools, stores = placed
    for door, place in zip(topology.doors, doors, strict=True):
        yield _line(place.right, networks[0].left, f"door {door.reach}")
    for number, network in enumerate(topology.networks):
        for pool, place in zip(topology.machines, pools, strict=False):
            if pool.name not in network.pools:
                continue
            entry = place.entry(number, len(topology.networks))
            weight = min(2 + network.interfaces * 0.6, 7) if number else 2
            yield _line(networks[number].right, entry, f"net {network.role}", weight)
    own = 1 + any(pool.local_ssd_gb for pool in topology.machines)
    for pool, place in zip(topology.machines, pools, strict=False):
        for number, store in enumerate(stores):
            kind = "storage" if number < own else "storage shared"
            if not number or (pool.local_ssd_gb if number < own else not pool.is_system):
                yield _line(place.exit(number, len(stores)), store.left, kind)


def _line(begin: tuple[int, int], end: tuple[int, int], kind: str, weight: float = 2) -> ET.Element:
    (x1, y1), (x2, y2) = begin, end
    half = (x1 + x2) // 2
    return tag(
        "path",
        d=f"M{x1} {y1}C{half} {y1} {half} {y2} {x2} {y2}",
        class_=f"link {kind}",
        stroke_width=f"{weight:g}",
    )


def _narrow(topology: Topology, columns: Iterable[_Column]) -> ET.Element:
    y, drawn, spine = 0, [], []
    for number, column in enumerate(columns):
        if number:
            spine.append(tag("path", d=f"M20 {y - 8}V{y + 12}", class_="link", stroke_width=2))
            y += 14
        drawn.append(tag("text", column.head, x=0, y=y + 14, class_="head"))
        y += _HEAD - 6
        for block in column.blocks:
            drawn.append(block.drawn(0, y, _NARROW))
            y += block.height(_NARROW) + 10
    svg = _svg(topology, "narrow", (_NARROW, y))
    svg.extend([*spine, *drawn])
    return svg
