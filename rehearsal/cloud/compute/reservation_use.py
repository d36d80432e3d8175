"""What VMs take of reservations, and why one that names a reservation may not have its place.

The sentences are Google's, as the autoscaler of Kubernetes knows them (client and tests of
kubernetes/autoscaler, cluster-autoscaler/cloudprovider/gce), which meets them with the code
CONDITION_NOT_MET; what is only believed of them stands in docs/development/gotchas.md.
"""

import re
from collections.abc import Iterator

from rehearsal.cloud import projects
from rehearsal.cloud.compute import links, reservations, resources
from rehearsal.cloud.compute.resources import RESERVATION, Call, Resource
from rehearsal.cloud.facts import machines

_CODE = "CONDITION_NOT_MET"
_PATH = re.compile(
    r"(?:projects/(?P<project>[^/]+)/)?(?:zones/[^/]+/)?(?:reservations/)?(?P<name>[^/]+)"
    r"(?:/reservationBlocks/(?P<block>[^/]+)(?:/reservationSubBlocks/(?P<sub_block>[^/]+))?)?"
)
_NOT_FROM_ONE = frozenset({"SPOT", "FLEX_START"})
BOUND = "RESERVATION_BOUND"


def named(template: Resource) -> str | None:
    """The reservation that VMs of a template must come from, as it is named; None for none."""
    affinity = template["properties"].get("reservationAffinity") or {}
    if affinity.get("consumeReservationType") != "SPECIFIC_RESERVATION":
        return None
    return str((affinity.get("values") or [""])[0])


def of(call: Call, name: str) -> Resource | None:
    """The reservation of that name or path in the call's zone, or None; so are its blocks."""
    found = _find(call, name)
    return None if found is None else found[0]


def problem(call: Call, template: Resource) -> str | None:
    """Why VMs of a template can have no place in the reservation that it names, full or not."""
    name = named(template)
    if name is None:
        return None
    reservation = of(call, name)
    if reservation is None:
        return f"Specified reservations [{name}] do not exist."
    return next(_problems(call, name, reservation, template), None)


def refusal(call: Call, template: Resource) -> Resource | None:
    """The error that keeps one more VM of a template from its reservation, or None."""
    name = named(template)
    said = problem(call, template)
    if name is not None and said is None and not _places(call, template):
        said = f"Specified reservation '{name}' does not have available resources for the request."
    return None if said is None else {"code": _CODE, "message": said}


def room(call: Call, template: Resource, count: int) -> int:
    """For how many VMs, of so many, there is a place in the reservation that a template names."""
    return count if named(template) is None else min(count, len(_places(call, template)))


def take(call: Call, template: Resource, count: int) -> Iterator[Resource]:
    """What each of so many new VMs keeps of the place that it takes; {} without one."""
    found = _places(call, template) if named(template) else _open(call, template)
    for index in range(count):
        yield {"_reservation": found[index]} if index < len(found) else {}


def consumed(call: Call, place: Resource) -> Resource:
    """What a VM tells of the place that it has."""
    base = links.ROOT + place["name"]
    told = {"consumedReservation": base}
    if "block" in place and resources.find(call, RESERVATION, place["name"]) is not None:
        block = f"{base}/reservationBlocks/{place['block']}"
        told["consumedReservationBlock"] = block
        told["consumedReservationSubBlock"] = f"{block}/reservationSubBlocks/{place['sub_block']}"
    return told


def _find(call: Call, name: str) -> tuple[Resource, re.Match[str]] | None:
    """The reservation of a path in the call's zone, with the parts of the path."""
    parts = _PATH.fullmatch(name)
    if parts is None:
        return None
    prefix = RESERVATION.prefix(owner(call, name), call.parameters["zone"])
    found = reservations.find(call, prefix + parts["name"])
    if found is None or not _has_blocks(found, parts):
        return None
    return found, parts


def owner(call: Call, name: str) -> str:
    """The project of a reservation, as it is named."""
    parts = _PATH.fullmatch(name)
    found = (parts["project"] if parts else None) or call.project
    return call.project if found == projects.number(call.project) else found


def _has_blocks(reservation: Resource, parts: re.Match[str]) -> bool:
    if parts["block"] is None:
        return True
    for block in reservations.blocks_of(reservation):
        if block.name == parts["block"]:
            names = [it.name for it in reservations.sub_blocks_of(reservation, block)]
            return parts["sub_block"] is None or parts["sub_block"] in names
    return False


def _problems(call: Call, name: str, reservation: Resource, template: Resource) -> Iterator[str]:
    """Why VMs of a template don't fit a reservation that is there, in Google's words."""
    if reservation["_ready"] > call.now or "_gone" in reservation:
        state = "DELETING" if "_gone" in reservation else "CREATING"
        yield (
            f"Cannot insert instance to a reservation with status: {state}, as it requires"
            " reservation to be in READY state."
        )
    if not reservations.is_shared_with(reservation, call.project, projects.number(call.project)):
        yield "The reservation must exist in the same project as the instance."
    if not reservation["specificReservationRequired"]:
        yield (
            f"Specified reservations [{name}] can not be targeted as specificReservationRequired"
            " is not set"
        )
    for why in _misfits(reservation, template["properties"]):
        yield f"Reservation {name} is incorrect for the requested resources{why}."


def _misfits(reservation: Resource, wanted: Resource) -> Iterator[str]:
    """What of the VMs is otherwise than the reservation has it; Google does not say what."""
    if not matches(reservation, wanted):
        yield ""
    bound = reservations.is_bound(reservation)
    model = wanted["scheduling"]["provisioningModel"]
    if bound and model != BOUND:
        yield f": it takes instances of the provisioning model {BOUND} only"
    if not bound and model == BOUND:
        yield f": it takes no instances of the provisioning model {BOUND}"
    if wanted.get("resourcePolicies") and not bound and not _same_policies(reservation, wanted):
        yield ": it takes no instances with another placement policy"


def _same_policies(reservation: Resource, wanted: Resource) -> bool:
    own = {links.last(it) for it in (reservation.get("resourcePolicies") or {}).values()}
    return own == {links.last(it) for it in wanted["resourcePolicies"]}


def matches(reservation: Resource, wanted: Resource) -> bool:
    """Whether a reservation has such machines: type, CPU platform, GPUs and local SSDs."""
    own = reservation["specificReservation"]["instanceProperties"]
    gpus = {
        it["acceleratorType"]: it["acceleratorCount"] for it in own.get("guestAccelerators") or []
    }
    machine = machines.find(wanted["machineType"])
    asked = {
        links.last(it["acceleratorType"]): it["acceleratorCount"]
        for it in wanted.get("guestAccelerators") or []
    }
    if machine is not None and machine.gpu:
        asked = {machine.gpu: machine.gpus}
    scratch = [it for it in wanted.get("disks") or [] if it.get("type") == "SCRATCH"]
    return (
        own["machineType"] == wanted["machineType"]
        and own.get("minCpuPlatform", "") == wanted.get("minCpuPlatform", "")
        and gpus == asked
        and len(own.get("localSsds") or []) == len(scratch)
    )


def _places(call: Call, template: Resource) -> list[Resource]:
    """The free places in the reservation that a template names, one entry for each VM."""
    found = _find(call, named(template) or "")
    if found is None:
        return []
    reservation, parts = found
    free = _free(call, reservation)
    return [
        place
        for place in free
        if parts["block"] in {None, place.get("block")}
        and parts["sub_block"] in {None, place.get("sub_block")}
    ]


def _free(call: Call, reservation: Resource) -> list[Resource]:
    """The free places of a reservation, block by block."""
    if not reservations.has_begun(call, reservation):
        return []
    name = links.name_of(reservation["selfLink"])
    taken = [dict(it) for it in reservations.used(call, reservation)]
    every: list[Resource] = [
        {"name": name, "block": block.name, "sub_block": part.name}
        for block in reservations.blocks_of(reservation)
        for part in reservations.sub_blocks_of(reservation, block)
        for _ in range(part.count)
    ] or [{"name": name}] * reservations.count_of(reservation)
    for place in taken:
        if place in every:
            every.remove(place)
    return every


def _open(call: Call, template: Resource) -> list[Resource]:
    """The free places that VMs get which name no reservation: those of open ones that fit."""
    wanted = template["properties"]
    affinity = (wanted.get("reservationAffinity") or {}).get("consumeReservationType")
    model = wanted["scheduling"]["provisioningModel"]
    if affinity == "NO_RESERVATION" or model in _NOT_FROM_ONE:
        return []
    prefix = RESERVATION.prefix(call.project, call.parameters["zone"])
    return [
        place
        for name, _ in resources.each(call, RESERVATION, prefix)
        if (reservation := reservations.find(call, name)) is not None
        and not reservation["specificReservationRequired"]
        and not reservations.is_bound(reservation)
        and reservation["_ready"] <= call.now
        and matches(reservation, wanted)
        for place in _free(call, reservation)
    ]


def end_of(call: Call, template: Resource) -> float | None:
    """When the reservation ends to which VMs of a template are bound (Unix epoch), or None."""
    if template["properties"]["scheduling"]["provisioningModel"] != BOUND:
        return None
    found = _find(call, named(template) or "")
    return None if found is None else reservations.ends(found[0])
