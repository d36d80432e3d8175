"""Reservations that node pools name: what Kubernetes Engine looks at before it makes any node."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rehearsal.cloud import projects
from rehearsal.cloud.compute import reservation_use, reservations
from rehearsal.cloud.compute.resources import Call
from rehearsal.cloud.wire import GoogleError

if TYPE_CHECKING:
    from rehearsal.cloud.compute.resources import Resource
    from rehearsal.cloud.container.records import Record
    from rehearsal.cloud.store import Store
    from rehearsal.cloud.wire import Request

_SPECIFIC: Final = "SPECIFIC_RESERVATION"
_TOO_MANY: Final = 429


def of_pool(request: Request, store: Store, project: str, pool: Record) -> Resource | None:
    """The reservation that a pool's nodes are to come from, which fits them; None for none.

    That one which is too small is answered with 429 is known from a report (GoogleCloudPlatform/
    gsutil 1000). The conditions are those that Cluster Toolkit v1.95.0 checks beforehand.
    """
    affinity = pool["config"].get("reservationAffinity") or {}
    if affinity.get("consumeReservationType") != _SPECIFIC:
        return None
    found = None
    for zone in pool["locations"]:
        call = Call(
            request=request,
            store=store,
            method="",
            project=projects.require(project, store).id,
            parameters={"zone": zone},
            body={},
        )
        found = _in_zone(call, pool)
    return found


def scheduling(reservation: Resource, usual: Resource) -> Resource:
    """How nodes from a reservation are scheduled: where they must be, they are bound to it."""
    if not reservations.is_bound(reservation):
        return usual
    bound = {"provisioningModel": reservation_use.BOUND, "instanceTerminationAction": "DELETE"}
    return {**usual, **bound, "onHostMaintenance": "TERMINATE"}


def _in_zone(call: Call, pool: Record) -> Resource:
    config, zone = pool["config"], call.parameters["zone"]
    (name,) = config["reservationAffinity"].get("values") or [""]
    reservation = reservation_use.of(call, name)
    template = {"properties": _wanted(reservation, pool)}
    said = reservation_use.problem(call, template)
    if reservation is None or said is not None:
        raise GoogleError(400, said or "", status=None)
    count = pool["initialNodeCount"]
    short = count - reservation_use.room(call, template, count)
    if short > 0:
        raise GoogleError(
            _TOO_MANY,
            "Reservation does not have enough resources for the request: specific reservation"
            f' "{name}" is insufficient for node pool "{pool["name"]}" at zone "{zone}": required'
            f" {count} and short of {short} VM count of machine type {config['machineType']}",
            status="RESOURCE_EXHAUSTED",
        )
    return reservation


def _wanted(reservation: Resource | None, pool: Record) -> Resource:
    """The nodes of a pool as VMs, as far as a reservation is concerned."""
    config = pool["config"]
    usual = {"provisioningModel": "SPOT" if config.get("spot") else "STANDARD"}
    kept = ("machineType", "minCpuPlatform", "reservationAffinity")
    wanted = {
        **{key: config[key] for key in kept if config.get(key)},
        "guestAccelerators": [
            {**it, "acceleratorCount": int(it["acceleratorCount"])}
            for it in config.get("accelerators") or []
        ],
        "scheduling": scheduling(reservation, usual) if reservation else usual,
    }
    placement = pool.get("placementPolicy") or {}
    if placement.get("type") == "COMPACT":
        wanted["resourcePolicies"] = [placement.get("policyName", "")]
    return wanted
