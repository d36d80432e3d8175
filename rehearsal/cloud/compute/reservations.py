"""Reservations: how they are made and looked at, and what of them is free.

What VMs take of them is told by the VMs themselves: each keeps in `_reservation` the name of the
reservation, of its block and of its sub-block. A reservation that expires (`deleteAtTime`)
is gone from that moment on.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from rehearsal.cloud import paging
from rehearsal.cloud.compute import links, lists, resources
from rehearsal.cloud.compute.resources import (
    FUTURE_RESERVATION,
    INSTANCE,
    RESERVATION,
    Call,
    Resource,
)
from rehearsal.cloud.facts import machines, offers
from rehearsal.cloud.wire import GoogleError, moment

_FIRST = re.compile(r"first (?P<what>block|sub-block) (?P<name>[a-z][-a-z0-9]*)")
_LARGEST = 1000
_ENDED = "TERMINATED"
_DEFAULTS: Resource = {
    "specificReservationRequired": False,
    "shareSettings": {"shareType": "LOCAL"},
    "reservationSharingPolicy": {"serviceShareType": "DISALLOW_ALL"},
}
_SCHEDULING_TYPE = "GROUPED"


@dataclass(frozen=True)
class Block:
    """A block of a dense reservation, or one of its sub-blocks."""

    name: str  # such as "r-block-0001" or "r-block-0001-subblock-0001"
    count: int  # the number of its VMs


def find(call: Call, name: str) -> Resource | None:
    """The reservation of a name whose time is not over, or None; none under `no-reservation`."""
    found = resources.find(call, RESERVATION, name)
    gone = found is None or _is_over(found, call.now)
    return None if gone or "no-reservation" in call.request.scenarios else found


def is_bound(reservation: Resource) -> bool:
    """Whether VMs live and end with it: dense capacity, or that of calendar mode."""
    machine = machine_of(reservation)
    if machines.always_bound(machine):
        return True
    lent = reservation.get("deploymentType") == "DENSE" or "_future" in reservation
    return lent and machines.may_be_bound(machine)


def machine_of(reservation: Resource) -> str:
    """The machine type that it has."""
    return str(reservation["specificReservation"]["instanceProperties"]["machineType"])


def count_of(reservation: Resource) -> int:
    """How many VMs it has, taken or not."""
    return int(reservation["specificReservation"]["count"])


def has_begun(call: Call, reservation: Resource) -> bool:
    """Whether its VMs are there: those of a future reservation come at its start."""
    future = resources.find(call, FUTURE_RESERVATION, reservation.get("_future", ""))
    return future is None or moment(future["timeWindow"]["startTime"]) <= call.now


def blocks_of(reservation: Resource) -> list[Block]:
    """Its blocks; only dense capacity has any."""
    if reservation.get("deploymentType") != "DENSE":
        return []
    count = count_of(reservation)
    size = machines.of_a_block(machine_of(reservation), count)
    cut = _cut(f"{reservation['name']}-block", count, size)
    return _with_first(cut, reservation, "block")


def sub_blocks_of(reservation: Resource, block: Block) -> list[Block]:
    """The sub-blocks of one of its blocks."""
    size = machines.of_a_sub_block(machine_of(reservation), block.count)
    cut = _cut(f"{block.name}-subblock", block.count, size)
    first = blocks_of(reservation)[0] == block
    return _with_first(cut, reservation, "sub-block") if first else cut


def _with_first(cut: list[Block], reservation: Resource, what: str) -> list[Block]:
    """Blocks, the first named as the reservation's description says: nobody chooses such names."""
    for match in _FIRST.finditer(reservation.get("description", "")):
        if match["what"] == what:
            return [replace(cut[0], name=match["name"]), *cut[1:]]
    return cut


def _cut(beginning: str, count: int, size: int) -> list[Block]:
    parts = -(-count // size)
    return [
        Block(f"{beginning}-{number:04}", min(size, count - size * (number - 1)))
        for number in range(1, parts + 1)
    ]


def used(call: Call, reservation: Resource) -> list[Mapping[str, str]]:
    """What each VM that has a place in it keeps of that: names of reservation and blocks."""
    name = links.name_of(reservation["selfLink"])
    return [
        vm["_reservation"]
        for _, vm in resources.each(call, INSTANCE, "projects/")
        if vm.get("_reservation", {}).get("name") == name and _holds(vm, call.now)
    ]


def _holds(vm: Resource, now: float) -> bool:
    """Whether a VM keeps its place: one that has stopped gives it back."""
    reached, state = vm["_timeline"][-1]
    return not (state == _ENDED and reached <= now)


def is_shared_with(reservation: Resource, project: str, number: str) -> bool:
    """Whether VMs of a project may use it."""
    if links.name_of(reservation["selfLink"]).split("/")[1] == project:
        return True
    share = reservation["shareSettings"]
    if share["shareType"] == "ORGANIZATION":
        return True  # all projects of a rehearsal are of one organization
    return bool({project, number} & set(share.get("projectMap") or {}))


def ends(reservation: Resource) -> float | None:
    """When it goes automatically (Unix epoch); None if it stays."""
    return moment(reservation["deleteAtTime"]) if "deleteAtTime" in reservation else None


def _is_over(reservation: Resource, now: float) -> bool:
    end = ends(reservation)
    return end is not None and end <= now


# ------------------------------------------------------------------ reservations


def _insert(call: Call) -> Resource:
    body = resources.without_nulls(call.body)
    if "aggregateReservation" in body:
        raise GoogleError(501, "Reservations of TPUs are not part of the simulated cloud.")
    body["specificReservation"] = _specific(call, body.get("specificReservation") or {})
    machine = machine_of(body)
    body = resources.defaults(body, _DEFAULTS)
    if machines.always_bound(machine):
        # Their capacity is always a dense one: there is no other reservation of them.
        body = resources.defaults(body, {"deploymentType": "DENSE"})
        body = resources.defaults(body, {"schedulingType": _SCHEDULING_TYPE})
    _check(body, machine)
    ready = {"status": "READY", "zone": None}
    return resources.insert(call, RESERVATION, {**body, **ready})


def _specific(call: Call, given: Resource) -> Resource:
    count = int(given.get("count", 0))
    if not 1 <= count <= _LARGEST:
        at_most = f"Must be between 1 and {_LARGEST}."
        raise links.invalid("specificReservation.count", count, at_most)
    properties = given.get("instanceProperties") or {}
    return {**given, "count": str(count), "instanceProperties": _reserved(call, properties)}


def _reserved(call: Call, properties: Resource) -> Resource:
    """The machines that are reserved, with the GPUs that are part of them."""
    zone, name = call.parameters["zone"], links.last(properties["machineType"])
    machine = offers.machine_in(zone, name, call.request.scenarios)
    if machine is None:
        where = f"projects/{call.project}/zones/{zone}/machineTypes/{name}"
        raise resources.not_found(where)
    gpus = [
        {**it, "acceleratorType": links.last(it["acceleratorType"])}
        for it in properties.get("guestAccelerators") or []
    ]
    if machine.gpu and not gpus:
        gpus = [{"acceleratorType": machine.gpu, "acceleratorCount": machine.gpus}]
    return {**properties, "machineType": name, **({"guestAccelerators": gpus} if gpus else {})}


def _check(body: Resource, machine: str) -> None:
    known = machines.find(machine)
    if machines.never_reserved(machine) or (known is not None and known.is_shared):
        field = "specificReservation.instanceProperties.machineType"
        raise links.invalid(field, machine, "The machine type does not support reservations.")
    if machines.specific_only(machine) and not body["specificReservationRequired"]:
        needed = f"Reservations of {machine} must be specifically targeted."
        raise links.invalid("specificReservationRequired", "false", needed)


def _view(call: Call, reservation: Resource) -> Resource:
    """A reservation as it is answered, with what is used of it."""
    shown = resources.show(reservation)
    specific, count = shown["specificReservation"], shown["specificReservation"]["count"]
    taken = len(used(call, reservation))
    shown["specificReservation"] = {
        **specific,
        "inUseCount": str(taken),
        "assuredCount": count if has_begun(call, reservation) else "0",
    }
    if reservation["_ready"] > call.now:
        shown["status"] = "CREATING"
    elif "_gone" in reservation:
        shown["status"] = "DELETING"
    cut = blocks_of(reservation)
    if cut:
        health = {"healthStatus": "HEALTHY", "healthyBlockCount": len(cut), "degradedBlockCount": 0}
        shown["resourceStatus"] = {"reservationBlockCount": len(cut), "healthInfo": health}
    return shown


def require(call: Call) -> Resource:
    """The reservation that the path names."""
    name = call.name(RESERVATION)
    found = find(call, name)
    if found is None:
        raise resources.not_found(name)
    return found


def _get(call: Call) -> Resource:
    return _view(call, require(call))


def _each(call: Call, prefix: str) -> Iterator[tuple[str, Resource]]:
    for name, _ in resources.each(call, RESERVATION, prefix):
        found = find(call, name)
        if found is not None:
            yield name, _view(call, found)


def _list(call: Call) -> Resource:
    prefix = call.prefix(RESERVATION)
    entries = _each(call, prefix)
    return lists.listed(call, RESERVATION.singular, prefix.removesuffix("/"), entries)


def _aggregated(call: Call) -> Resource:
    entries = _each(call, f"projects/{call.project}/")
    return lists.aggregated(call, RESERVATION.collection, RESERVATION.singular, entries)


def _resize(call: Call) -> Resource:
    name, reservation = call.name(RESERVATION), require(call)
    specific = reservation["specificReservation"]
    count = int(call.body.get("specificSkuCount", 0))
    if not max(1, len(used(call, reservation))) <= count <= _LARGEST:
        raise links.invalid("specificSkuCount", count, "Fewer than are in use, or too many.")
    changed = {**reservation, "specificReservation": {**specific, "count": str(count)}}
    return resources.change(call, RESERVATION, name, changed)


def _delete(call: Call) -> Resource:
    require(call)
    return resources.remove(call, RESERVATION, call.name(RESERVATION))


_PAGE = 500


def _block_view(call: Call, reservation: Resource, block: Block) -> Resource:
    taken = sum(it.get("block") == block.name for it in used(call, reservation))
    parts = len(sub_blocks_of(reservation, block))
    path = f"{links.name_of(reservation['selfLink'])}/reservationBlocks/{block.name}"
    health = {"healthStatus": "HEALTHY", "healthySubBlockCount": parts, "degradedSubBlockCount": 0}
    return {
        **_part(reservation, path, block, taken),
        "kind": "compute#reservationBlock",
        "reservationSubBlockCount": parts,
        "healthInfo": health,
    }


def _sub_block_view(call: Call, reservation: Resource, block: Block, part: Block) -> Resource:
    taken = sum(it.get("sub_block") == part.name for it in used(call, reservation))
    base = f"{links.name_of(reservation['selfLink'])}/reservationBlocks/{block.name}"
    path = f"{base}/reservationSubBlocks/{part.name}"
    health = {"healthStatus": "HEALTHY", "healthyHostCount": part.count, "degradedHostCount": 0}
    return {
        **_part(reservation, path, part, taken),
        "kind": "compute#reservationSubBlock",
        "healthInfo": health,
    }


def _part(reservation: Resource, path: str, part: Block, taken: int) -> Resource:
    return {
        "name": part.name,
        "zone": reservation["zone"],
        "selfLink": links.ROOT + path,
        "creationTimestamp": reservation["creationTimestamp"],
        "status": "READY",
        "count": part.count,
        "inUseCount": taken,
    }


def _chosen(parts: list[Block], name: str, base: str) -> Block:
    for part in parts:
        if part.name == name:
            return part
    raise resources.not_found(f"{base}/{name}")


def _get_block(call: Call) -> Resource:
    reservation = require(call)
    base = f"{call.name(RESERVATION)}/reservationBlocks"
    block = _chosen(blocks_of(reservation), call.parameters["reservationBlock"], base)
    return {"resource": _block_view(call, reservation, block)}


def _list_blocks(call: Call) -> Resource:
    reservation = require(call)
    found = [(it.name, _block_view(call, reservation, it)) for it in blocks_of(reservation)]
    base = f"{call.name(RESERVATION)}/reservationBlocks"
    return _listed(call, "reservationBlock", base, found)


def _parent(call: Call) -> tuple[Resource, Block, str]:
    """The reservation and the block that a path to sub-blocks names, and that path."""
    name = call.prefix(RESERVATION) + call.parameters["reservationsId"]
    reservation = find(call, name)
    if reservation is None:
        raise resources.not_found(name)
    base = f"{name}/reservationBlocks"
    block = _chosen(blocks_of(reservation), call.parameters["reservationBlocksId"], base)
    return reservation, block, f"{base}/{block.name}/reservationSubBlocks"


def _get_sub_block(call: Call) -> Resource:
    reservation, block, base = _parent(call)
    parts = sub_blocks_of(reservation, block)
    part = _chosen(parts, call.parameters["reservationSubBlock"], base)
    return {"resource": _sub_block_view(call, reservation, block, part)}


def _list_sub_blocks(call: Call) -> Resource:
    reservation, block, base = _parent(call)
    parts = sub_blocks_of(reservation, block)
    found = [(it.name, _sub_block_view(call, reservation, block, it)) for it in parts]
    return _listed(call, "reservationSubBlock", base, found)


def _listed(call: Call, kind: str, base: str, found: list[tuple[str, Resource]]) -> Resource:
    items, token = paging.page(found, call.parameters, size="maxResults", limit=_PAGE)
    shown = {"items": items} if items else {}
    return {"kind": f"compute#{kind}sList", "id": base, **shown, **token}


METHODS: Mapping[str, Callable[[Call], Resource]] = {
    "reservations.insert": _insert,
    "reservations.get": _get,
    "reservations.list": _list,
    "reservations.aggregatedList": _aggregated,
    "reservations.resize": _resize,
    "reservations.delete": _delete,
    "reservationBlocks.get": _get_block,
    "reservationBlocks.list": _list_blocks,
    "reservationSubBlocks.get": _get_sub_block,
    "reservationSubBlocks.list": _list_sub_blocks,
}
