"""How many GPU machines a zone has left, by the way in which they are asked for and the time.

A row of stock says how many machines there are in the zones that its pattern fits ("us-east4-*"),
for one way ("SPOT") or all ("*"), from and until so many seconds of cloud time after VMs were first
wanted; or how many GPUs the project may have in their regions. Of several rows the last one counts,
and where none fits there is enough. The scenario `scarce` has rows of its own.
"""

import fnmatch
from collections.abc import Iterable
from typing import Any

from rehearsal.cloud import facts
from rehearsal.cloud.compute import links, reservation_use, resources
from rehearsal.cloud.compute.resources import INSTANCE, Call, Resource
from rehearsal.cloud.facts import machines, places
from rehearsal.cloud.store import Store
from rehearsal.cloud.wire import Request

ROWS = "scenarios/stock"  # the collection of the rows, by their order
_ALWAYS = facts.read("stock")


def put(store: Store, rows: Iterable[dict[str, Any]]) -> None:
    """Let these be all rows but those of scenarios."""
    for name, _ in list(store.list(ROWS)):
        store.delete(ROWS, name)
    for number, row in enumerate(rows):
        store.put(ROWS, f"{number:04}", row)


def room(call: Call, template: Resource, count: int) -> int:
    """How many VMs of a template, of so many, the call's zone has left; reserved ones are there."""
    wanted, zone = template["properties"], call.parameters["zone"]
    machine = machines.find(wanted["machineType"])
    has_gpus = (machine is not None and machine.gpus) or wanted.get("guestAccelerators")
    if reservation_use.named(template) or not has_gpus:
        return count
    model = wanted["scheduling"]["provisioningModel"]
    left = _last(call.request, call.store, zone, "machines", model)
    if left is None:
        return count
    present = sum(
        links.last(vm["machineType"]) == wanted["machineType"] and "_gone" not in vm
        for _, vm in resources.each(call, INSTANCE, INSTANCE.prefix(call.project, zone))
    )
    return min(count, max(0, int(left) - int(present)))


def for_sale(call: Call, zone: str, way: str = "CALENDAR") -> float | None:
    """How many VMs a zone has for calendar mode, or another way; None for enough."""
    return _last(call.request, call.store, zone, "machines", way)


def gpu_quota(request: Request, store: Store, region: str) -> float | None:
    """How many GPUs of each kind the project may have in a region; None for the usual number."""
    return _last(request, store, places.zones_of(region)[0], "quota", "*")


def _last(request: Request, store: Store, zone: str, what: str, model: str) -> float | None:
    rows = [*(_ALWAYS["scarce"] if "scarce" in request.scenarios else ())]
    rows += [row for _, row in store.list(ROWS)]
    now = _wanted_for(request, store) if rows else 0.0
    fitting = [
        row[what]
        for row in rows
        if what in row
        and fnmatch.fnmatchcase(zone, row["zones"])
        and row.get("way", "*") in {"*", model}
        and row.get("from", 0) <= now < row.get("until", float("inf"))
    ]
    return fitting[-1] if fitting else None


def _wanted_for(request: Request, store: Store) -> float:
    """Seconds of cloud time since VMs were first wanted, or quotas asked for."""
    now = request.now
    begun = store.get(ROWS + "/begun", "at")
    if begun is None:
        begun = {"at": now}
        store.put(ROWS + "/begun", "at", begun)
    return (now - float(begun["at"])) / request.rate if request.rate else 0.0
