"""The blocks and sub-blocks of reservations, as they are looked at."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rehearsal.cloud import paging
from rehearsal.cloud.compute import links, reservations, resources
from rehearsal.cloud.compute.resources import RESERVATION, Call, Resource

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_PAGE = 500


def _block_view(call: Call, reservation: Resource, block: reservations.Block) -> Resource:
    taken = sum(it.get("block") == block.name for it in reservations.used(call, reservation))
    parts = len(reservations.sub_blocks_of(reservation, block))
    path = f"{links.name_of(reservation['selfLink'])}/reservationBlocks/{block.name}"
    health = {"healthStatus": "HEALTHY", "healthySubBlockCount": parts, "degradedSubBlockCount": 0}
    return {
        **_part(reservation, path, block, taken),
        "kind": "compute#reservationBlock",
        "reservationSubBlockCount": parts,
        "healthInfo": health,
    }


def _sub_block_view(
    call: Call, reservation: Resource, block: reservations.Block, part: reservations.Block
) -> Resource:
    taken = sum(it.get("sub_block") == part.name for it in reservations.used(call, reservation))
    base = f"{links.name_of(reservation['selfLink'])}/reservationBlocks/{block.name}"
    path = f"{base}/reservationSubBlocks/{part.name}"
    health = {"healthStatus": "HEALTHY", "healthyHostCount": part.count, "degradedHostCount": 0}
    return {
        **_part(reservation, path, part, taken),
        "kind": "compute#reservationSubBlock",
        "healthInfo": health,
    }


def _part(reservation: Resource, path: str, part: reservations.Block, taken: int) -> Resource:
    return {
        "name": part.name,
        "zone": reservation["zone"],
        "selfLink": links.ROOT + path,
        "creationTimestamp": reservation["creationTimestamp"],
        "status": "READY",
        "count": part.count,
        "inUseCount": taken,
    }


def _chosen(parts: list[reservations.Block], name: str, base: str) -> reservations.Block:
    for part in parts:
        if part.name == name:
            return part
    raise resources.not_found(f"{base}/{name}")


def _get_block(call: Call) -> Resource:
    reservation = reservations.require(call)
    base = f"{call.name(RESERVATION)}/reservationBlocks"
    block = _chosen(reservations.blocks_of(reservation), call.parameters["reservationBlock"], base)
    return {"resource": _block_view(call, reservation, block)}


def _list_blocks(call: Call) -> Resource:
    reservation = reservations.require(call)
    found = [
        (it.name, _block_view(call, reservation, it)) for it in reservations.blocks_of(reservation)
    ]
    base = f"{call.name(RESERVATION)}/reservationBlocks"
    return _listed(call, "reservationBlock", base, found)


def _parent(call: Call) -> tuple[Resource, reservations.Block, str]:
    """The reservation and the block that a path to sub-blocks names, and that path."""
    name = call.prefix(RESERVATION) + call.parameters["reservationsId"]
    reservation = reservations.find(call, name)
    if reservation is None:
        raise resources.not_found(name)
    base = f"{name}/reservationBlocks"
    block = _chosen(
        reservations.blocks_of(reservation), call.parameters["reservationBlocksId"], base
    )
    return reservation, block, f"{base}/{block.name}/reservationSubBlocks"


def _get_sub_block(call: Call) -> Resource:
    reservation, block, base = _parent(call)
    parts = reservations.sub_blocks_of(reservation, block)
    part = _chosen(parts, call.parameters["reservationSubBlock"], base)
    return {"resource": _sub_block_view(call, reservation, block, part)}


def _list_sub_blocks(call: Call) -> Resource:
    reservation, block, base = _parent(call)
    parts = reservations.sub_blocks_of(reservation, block)
    found = [(it.name, _sub_block_view(call, reservation, block, it)) for it in parts]
    return _listed(call, "reservationSubBlock", base, found)


def _listed(call: Call, kind: str, base: str, found: list[tuple[str, Resource]]) -> Resource:
    items, token = paging.page(found, call.parameters, size="maxResults", limit=_PAGE)
    shown = {"items": items} if items else {}
    return {"kind": f"compute#{kind}sList", "id": base, **shown, **token}


METHODS: Mapping[str, Callable[[Call], Resource]] = {
    "reservationBlocks.get": _get_block,
    "reservationBlocks.list": _list_blocks,
    "reservationSubBlocks.get": _get_sub_block,
    "reservationSubBlocks.list": _list_sub_blocks,
}
