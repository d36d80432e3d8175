"""The topology of a cluster as a drawing: doors → networks → machines → storage, in SVG.

Text in SVG does not flow, so there are two drawings, a wide one and a narrow one, and the style
sheet shows the one that fits.
"""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from provision.documents.topology import NetworkRole, StoreKind
from provision.screens import cluster
from provision.screens.page import html
from provision.screens.page.html import tag
from provision.words import counted

if TYPE_CHECKING:
    import xml.etree.ElementTree as ET
    from collections.abc import Iterable, Iterator, Sequence

    from provision.documents.topology import Machines, Network, Store, Topology

_HEADS: Final = ("In and out", "Networks", "Machines", "Storage")
_WIDE: Final = 1160
_WIDTHS: Final = (220, 220, 330, 220)
_NARROW: Final = 344
_GAP: Final = 18
_HEAD: Final = 30
_MOST_POOLS: Final = 6
_MOST_STORES: Final = 8
_PAD: Final = 14
_TITLE: Final = 14
_LINE: Final = 12
_TITLE_STEP: Final = 19
_LINE_STEP: Final = 17
# Of the widest of the usual fonts: text in SVG does not wrap automatically.
_TITLE_WIDTH: Final = 9.3
_LINE_WIDTH: Final = 7.1
_CELL: Final = 10
_CELL_STEP: Final = 13
_IN_A_ROW: Final = 4
_TICK_STEP: Final = 4
_TILE_GAP: Final = 14
MOST_TILES: Final = 16
"""So many machines of a pool are drawn; a number stands for the others."""


@dataclass(frozen=True)
class Tiles:
    """A picture of machines: a tile each, a cell for each GPU, a tick for each interface."""

    first: int  # the machines that are there when Create is done
    most: int  # the machines that there can be; the others are dashed
    gpus: int
    interfaces: int  # the network interfaces of each

    @property
    def _shown(self) -> int:
        return min(self.most, MOST_TILES)

    @property
    def _columns(self) -> int:
        # Two rows from four on, so that eight GPUs are a tile of four by two.
        return max(1, min(self.gpus, _IN_A_ROW) if self.gpus != _IN_A_ROW else 2)

    @property
    def _tile(self) -> tuple[int, int]:
        rows = max(1, -(-self.gpus // self._columns))
        high = max(rows * _CELL_STEP + 9, self.interfaces * _TICK_STEP + 6)
        return self._columns * _CELL_STEP + 9, high

    def _per_row(self, width: int) -> int:
        return max(1, (width + _TILE_GAP - 6) // (self._tile[0] + _TILE_GAP))

    def height(self, width: int) -> int:
        """The height of all tiles within a width."""
        rows = -(-self._shown // self._per_row(width))
        more = _LINE_STEP if self.most > self._shown else 0
        return rows * (self._tile[1] + 10) + more

    def drawn(self, x: int, y: int, width: int) -> Iterator[ET.Element]:
        """The tiles, from their upper left corner."""
        wide, high = self._tile
        per_row = self._per_row(width)
        for number in range(self._shown):
            row, column = divmod(number, per_row)
            left, top = x + 6 + column * (wide + _TILE_GAP), y + row * (high + 10)
            yield self._machine(left, top, is_there=number < self.first)
        if self.most > self._shown:
            bottom = y + self.height(width) - 4
            yield tag("text", f"and {self.most - self._shown:,} more", x=x, y=bottom, class_="line")

    def _machine(self, x: int, y: int, *, is_there: bool) -> ET.Element:
        wide, high = self._tile
        drawn = tag("g", class_="machine" if is_there else "machine later")
        drawn.append(tag("rect", x=x, y=y, width=wide, height=high, rx=4, class_="tile"))
        top = y + (high - self.interfaces * _TICK_STEP) / 2 + 1
        for number in range(self.interfaces):
            kind = "nic" if number == 0 else "nic gpu"
            at = top + number * _TICK_STEP
            drawn.append(tag("rect", x=x - 5, y=at, width=5, height=2, class_=kind))
        rows = max(1, -(-self.gpus // self._columns))
        top = y + (high - rows * _CELL_STEP + 3) / 2
        for number in range(self.gpus):
            row, column = divmod(number, self._columns)
            at, down = x + 6 + column * _CELL_STEP, top + row * _CELL_STEP
            drawn.append(tag("rect", x=at, y=down, width=_CELL, height=_CELL, rx=2, class_="cell"))
        return drawn


@dataclass(frozen=True)
class Block:
    """A box with a title, lines, and perhaps a picture of machines."""

    kind: str  # its class in the style sheet
    title: str
    lines: tuple[str, ...] = ()  # what stands below the title
    tiles: Tiles | None = None  # the machines in it; None for none

    def _texts(self, width: int) -> Iterator[tuple[str, int, str]]:
        """Every line of text: its class, the step to it, and itself."""
        room = width - 2 * _PAD
        for text in textwrap.wrap(self.title, int(room / _TITLE_WIDTH)):
            yield "title", _TITLE_STEP, text
        for line in self.lines:
            for text in textwrap.wrap(line, int(room / _LINE_WIDTH)):
                yield "line", _LINE_STEP, text

    def height(self, width: int) -> int:
        """How high it is at a width."""
        tiles = self.tiles.height(width - 2 * _PAD) + 8 if self.tiles else 0
        return 2 * _PAD - 4 + sum(step for _, step, _ in self._texts(width)) + tiles

    def drawn(self, x: int, y: int, width: int) -> ET.Element:
        """It, from its upper left corner."""
        high = self.height(width)
        group = tag("g", class_=f"block {self.kind}")
        group.append(tag("rect", x=x, y=y, width=width, height=high, rx=10, class_="box"))
        group.append(tag("rect", x=x, y=y + 10, width=4, height=high - 20, rx=2, class_="edge"))
        down = y + _PAD - 6
        for kind, step, text in self._texts(width):
            down += step
            group.append(tag("text", text, x=x + _PAD, y=down, class_=kind))
        if self.tiles:
            group.extend(self.tiles.drawn(x + _PAD, down + 14, width - 2 * _PAD))
        return group


@dataclass(frozen=True)
class _Column:
    head: str  # what stands above it
    blocks: tuple[Block, ...]

    def height(self, width: int) -> int:
        return sum(it.height(width) + _GAP for it in self.blocks) - _GAP


@dataclass(frozen=True)
class _Place:
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
        f"{cluster.how_many(it)} {it.machine_type} in {it.zone}"
        + (f" with {it.gpus} {it.gpu} each" if it.gpus else "")
        for it in topology.machines
    )
    stores = len(topology.stores)
    shared = counted(stores, "shared store") if stores else "no shared storage"
    return (
        f"{topology.what} {topology.name}: {counted(networks, 'network')} to {pools};"
        f" {shared}. The tables below say the same."
    )


# ------------------------------------------------------------------ what stands where


def _blocks(topology: Topology) -> tuple[tuple[Block, ...], ...]:
    return (
        tuple(Block(str(it.reach), html.titled(it.name), (it.words,)) for it in topology.doors),
        tuple(map(_network, topology.networks)),
        tuple(_pools(topology.machines)),
        tuple(_stores(topology)),
    )


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
        lines.append(f"{network.nic_type}, " + counted(network.interfaces, "interface"))
    return Block(f"network {network.role}", title, tuple(lines))


def _pools(pools: Sequence[Machines]) -> Iterator[Block]:
    shown = pools if len(pools) <= _MOST_POOLS else pools[: _MOST_POOLS - 1]
    yield from map(_pool, shown)
    if len(shown) < len(pools):
        rest = pools[len(shown) :]
        most = sum(pool.most for pool in rest)
        yield Block("pool", counted(len(rest), "more pool"), (f"up to {counted(most, 'machine')}",))


def _pool(pool: Machines) -> Block:
    gpus = f"{pool.gpus} {html.TIMES} {pool.gpu}" if pool.gpus else "no GPUs"
    ending = "" if pool.max_run_seconds is None else f", each ends {html.ends(pool)}"
    lines = [
        f"each: {gpus}, {counted(pool.interfaces, 'interface')}",
        cluster.mode(pool) + ending,
    ]
    if pool.has_public_address:
        lines.append("a public address each")
    tiles = Tiles(pool.first, pool.most, pool.gpus, pool.interfaces)
    title = f"{cluster.how_many(pool)} {html.TIMES} {pool.machine_type}"
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
