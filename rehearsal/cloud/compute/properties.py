"""The properties of VMs in an instance template: what Google refuses, and what it fills in."""

import ipaddress
import itertools
import re
from collections.abc import Iterator

from rehearsal.cloud.compute import images, links, resources, shared_vpc
from rehearsal.cloud.compute.resources import NETWORK, SUBNETWORK, Call, Resource
from rehearsal.cloud.facts import machines
from rehearsal.cloud.wire import GoogleError

_METADATA_KEY = re.compile(r"[a-zA-Z0-9-_]{1,128}")
_METADATA_VALUE = 256 * 1024
_METADATA_TOTAL = 512 * 1024
_SCHEDULING: Resource = {
    "onHostMaintenance": "MIGRATE",
    "automaticRestart": True,
    "preemptible": False,
    "provisioningModel": "STANDARD",
}
_LOCAL_SSD = "local-ssd"
_RESERVATION_KEY = "compute.googleapis.com/reservation-name"


def invalid(field: str, value: object, reason: str) -> GoogleError:
    """The refusal of one of the properties."""
    return links.invalid(f"properties.{field}", value, reason)


def completed(call: Call, given: Resource) -> Resource:
    """Check the properties and complete them as Google does."""
    result = dict(given)
    result["scheduling"] = _scheduling(result)
    result["disks"] = _disks(call, result)
    result["networkInterfaces"] = _completed_interfaces(call, result)
    _check_accelerators(result)
    links.check_labels("properties.labels", result.get("labels") or {})
    metadata = result.get("metadata") or {}
    check_metadata(metadata.get("items") or [])
    result["metadata"] = {
        **metadata,
        "kind": "compute#metadata",
        "fingerprint": resources.fingerprint(metadata.get("items")),
    }
    tags = result.get("tags") or {}
    result["tags"] = {**tags, "fingerprint": resources.fingerprint(tags.get("items"))}
    return result


def accelerators(properties: Resource) -> list[tuple[str, int]]:
    """The GPUs that a VM of these properties has: names and counts."""
    asked = properties.get("guestAccelerators") or []
    if asked:
        return [(links.last(it["acceleratorType"]), it["acceleratorCount"]) for it in asked]
    machine = machines.find(properties["machineType"])
    return [(machine.gpu, machine.gpus)] if machine and machine.gpu else []


def _scheduling(properties: Resource) -> Resource:
    given = properties.get("scheduling") or {}
    # The provider sends what is not set as "" or [].
    result = resources.defaults({k: v for k, v in given.items() if v not in ("", [])}, _SCHEDULING)
    against = {
        "AutomaticRestart is true": result["automaticRestart"],
        "OnHostMaintenance isn't TERMINATE": result["onHostMaintenance"] != "TERMINATE",
    }
    for words in (it for it, is_so in against.items() if result["preemptible"] and is_so):
        needed = f"Scheduling must have preemptible be false when {words}."
        raise invalid("scheduling.preemptible", "true", needed)
    if result["provisioningModel"] == "FLEX_START":
        _check_flex_start(properties, result)
    _check_reserved(properties, result)
    return result


def _check_reserved(properties: Resource, scheduling: Resource) -> None:
    """Refuse what does not go with a reservation that is named, or with being bound to one."""
    given = properties.get("reservationAffinity") or {}
    affinity = given.get("consumeReservationType", "")
    model = scheduling["provisioningModel"]
    field = "reservationAffinity.consumeReservationType"
    if affinity == "SPECIFIC_RESERVATION":
        if given.get("key") != _RESERVATION_KEY or len(given.get("values") or []) != 1:
            needed = f"A specific reservation has the key {_RESERVATION_KEY} and one value."
            raise invalid("reservationAffinity.key", given.get("key", ""), needed)
        if model == "SPOT":
            raise invalid(field, affinity, "Spot instances consume no reservation.")
    if model != "RESERVATION_BOUND":
        return
    for name, value, is_right, needs in (
        (field, affinity, affinity == "SPECIFIC_RESERVATION", "SPECIFIC_RESERVATION"),
        *(
            (f"scheduling.{name}", scheduling.get(name, ""), scheduling.get(name) in allowed, needs)
            for name, allowed, needs in _BOUND
        ),
    ):
        if not is_right:
            raise invalid(name, value, f"Provisioning model RESERVATION_BOUND requires {needs}.")


_BOUND: tuple[tuple[str, tuple[object, ...], str], ...] = (
    ("instanceTerminationAction", ("STOP", "DELETE"), "STOP or DELETE"),
    ("onHostMaintenance", ("TERMINATE",), "TERMINATE"),
    ("maxRunDuration", (None, {}), "no run duration"),
)
"""What the scheduling of a VM has that is bound to its reservation."""

# What the scheduling of a VM by flex start must have; its run duration is checked alone.
_FLEX_START: Resource = {
    "automaticRestart": False,
    "instanceTerminationAction": "DELETE",
    "onHostMaintenance": "TERMINATE",
}
_SHORTEST_RUN, _LONGEST_RUN = 600, 604_800


def _check_flex_start(properties: Resource, scheduling: Resource) -> None:
    """Refuse what does not go with flex start: rules M1, M2, M3, M11 of its public description."""
    for field, value in _FLEX_START.items():
        if scheduling.get(field) != value:
            needed = f"Provisioning model FLEX_START requires {field} to be {value}."
            raise invalid(f"scheduling.{field}", scheduling.get(field, ""), needed)
    seconds = int((scheduling.get("maxRunDuration") or {}).get("seconds", 0))
    if not _SHORTEST_RUN <= seconds <= _LONGEST_RUN:
        between = f"Must be between {_SHORTEST_RUN} and {_LONGEST_RUN} with FLEX_START."
        raise invalid("scheduling.maxRunDuration.seconds", seconds, between)
    affinity = (properties.get("reservationAffinity") or {}).get("consumeReservationType", "")
    if affinity != "NO_RESERVATION":
        needed = "Provisioning model FLEX_START requires NO_RESERVATION."
        raise invalid("reservationAffinity.consumeReservationType", affinity, needed)
    machine = properties["machineType"]
    # A GPU may be attached to a machine that has none of its own.
    if not machines.may_flex_start(machine) and not properties.get("guestAccelerators"):
        unsupported = "The machine type does not support provisioning model FLEX_START."
        raise invalid("machineType", machine, unsupported)


def _disks(call: Call, properties: Resource) -> list[Resource]:
    disks = properties.get("disks") or []
    return [_disk(call, properties, index, disk) for index, disk in enumerate(disks)]


def _disk(call: Call, properties: Resource, index: int, disk: Resource) -> Resource:
    parameters = dict(disk.get("initializeParams") or {})
    where = f"disks[{index}].initializeParams"
    kind = parameters.get("diskType")
    if kind is not None:
        _check_disk_type(properties["machineType"], disk, kind)
    if parameters.get("sourceImage"):
        parameters["sourceImage"] = _image(call, properties, where, disk, parameters)
    links.check_labels(f"properties.{where}.labels", parameters.get("labels") or {})
    if parameters.get("diskSizeGb"):
        parameters["diskSizeGb"] = str(parameters["diskSizeGb"])
    result = {**disk, "kind": "compute#attachedDisk", "index": index}
    if parameters:
        result["initializeParams"] = parameters
    usual = {"mode": "READ_WRITE", "type": "PERSISTENT", "boot": False, "autoDelete": False}
    return resources.defaults(result, usual)


def _check_disk_type(machine: str, disk: Resource, kind: str) -> None:
    known = machines.boot_disks(machine)
    if disk.get("boot") and known and kind not in known:
        raise GoogleError(
            400,
            f"{kind} disk type cannot be used by {machine} machine type.",
            reason="badRequest",
        )


def _image(
    call: Call, properties: Resource, where: str, disk: Resource, parameters: Resource
) -> str:
    given = parameters["sourceImage"]
    name = links.resolve(
        given, project=call.project, collection="images", field=f"properties.{where}.sourceImage"
    )
    image = images.require_usable(call, name)
    size = parameters.get("diskSizeGb") or disk.get("diskSizeGb")
    if size is not None and int(size) < image.size_gb:
        raise invalid(
            f"{where}.diskSizeGb",
            size,
            f"Requested disk size cannot be smaller than the image size ({image.size_gb} GB)",
        )
    machine = properties["machineType"]
    if machines.is_arm(machine) != image.arm:
        asked = "ARM64" if image.arm else "X86_64"
        raise GoogleError(
            400,
            f"Requested boot disk architecture ({asked}) is not compatible with machine type "
            f"architecture ({'X86_64' if image.arm else 'ARM64'}).",
            reason="badRequest",
        )
    return links.ROOT + name


def _check_accelerators(properties: Resource) -> None:
    machine = properties["machineType"]
    if not accelerators(properties):
        return
    if properties["scheduling"]["onHostMaintenance"] != "TERMINATE":
        raise GoogleError(
            400,
            "Instances with guest accelerators do not support live migration.",
            reason="badRequest",
        )
    for name, count in accelerators(properties):
        if not _fits(machine, name, count):
            raise GoogleError(
                400,
                f"[{machine}, {name}] features are not compatible for creating instance.",
                reason="badRequest",
            )


def _fits(machine: str, accelerator: str, count: int) -> bool:
    """Whether a machine has, or can get, so many GPUs of a kind; unknown machines may."""
    known = machines.find(machine)
    if known is None:
        return True
    if known.gpu:
        return (accelerator, count) == (known.gpu, known.gpus)
    limits = machines.MOST_VCPUS.get(accelerator, {})
    return known.attachable and known.vcpus <= limits.get(count, 0)


def item(metadata: Resource, key: str) -> str | None:
    """A value of metadata, or None."""
    found = (it for it in metadata.get("items") or [] if it["key"] == key)
    return next((it.get("value", "") for it in found), None)


def check_metadata(items: list[Resource]) -> None:
    """Refuse metadata that Google takes on no VM."""
    keys = [item["key"] for item in items]
    for index, item in enumerate(items):
        field = f"metadata.items[{index}]"
        if not _METADATA_KEY.fullmatch(item["key"]):
            pattern = f"Must be a match of regex '{_METADATA_KEY.pattern}'"
            raise invalid(f"{field}.key", item["key"], pattern)
        if keys.index(item["key"]) != index:
            raise invalid("metadata", "", f"Metadata has duplicate keys: {item['key']}")
        if len(item.get("value", "").encode()) > _METADATA_VALUE:
            raise invalid(f"{field}.value", "", f"Value exceeds {_METADATA_VALUE} bytes.")
    if sum(len(item["key"]) + len(item.get("value", "").encode()) for item in items) > (
        _METADATA_TOTAL
    ):
        raise invalid("metadata", "", f"Metadata exceeds {_METADATA_TOTAL} bytes in all.")


_RDMA = ("MRDMA", "IRDMA")


def _completed_interfaces(call: Call, properties: Resource) -> list[Resource]:
    given = properties.get("networkInterfaces") or []
    if not given:
        raise links.invalid(
            "properties.networkInterfaces", "", "At least one network interface is required."
        )
    machine = machines.find(properties["machineType"])
    most = machine.most_nics if machine else machines.USUAL_NICS
    if len(given) > most:
        raise links.invalid(
            "properties.networkInterfaces",
            "",
            f"Too many network interfaces. The maximum number of network interfaces allowed for "
            f"this machine type is {most}.",
        )
    result = [_interface(call, index, interface) for index, interface in enumerate(given)]
    _check_distinct(call, result)
    _check_ranges(call, result)
    return result


def _interface(call: Call, index: int, given: Resource) -> Resource:
    where = f"properties.networkInterfaces[{index}]"
    result = {**given, "kind": "compute#networkInterface", "name": f"nic{index}"}
    if given.get("subnetwork"):
        field = f"{where}.subnetwork"
        name = call.resolve(given["subnetwork"], SUBNETWORK, field)
        if resources.find(call, SUBNETWORK, name) is None:
            raise links.invalid(
                field, given["subnetwork"], "The referenced subnetwork resource cannot be found."
            )
        shared_vpc.check_use(call, name, field, given)
        result["subnetwork"] = links.ROOT + name
    if given.get("network") or not given.get("subnetwork"):
        reference = given.get("network") or "global/networks/default"
        result["network"] = links.ROOT + _network(call, where, reference, given)
    for access in result.get("accessConfigs") or []:
        access.setdefault("kind", "compute#accessConfig")
        access.setdefault("type", "ONE_TO_ONE_NAT")
        access.setdefault("name", "external-nat")
        access.setdefault("networkTier", "PREMIUM")
    return result


def _network(call: Call, where: str, reference: str, given: Resource) -> str:
    name = call.resolve(reference, NETWORK, f"{where}.network")
    network = resources.find(call, NETWORK, name)
    if network is None:
        raise links.invalid(
            f"{where}.network", reference, "The referenced network resource cannot be found."
        )
    if not given.get("subnetwork") and not network["autoCreateSubnetworks"]:
        raise links.invalid(
            where, "", "Subnetwork should be specified for custom subnetmode network"
        )
    return name


def network_of(call: Call, interface: Resource) -> Resource | None:
    """The network of an interface, if it is still there."""
    link = interface.get("network")
    if interface.get("subnetwork"):
        subnetwork = resources.find(call, SUBNETWORK, links.name_of(interface["subnetwork"]))
        link = None if subnetwork is None else subnetwork["network"]
    return None if link is None else resources.find(call, NETWORK, links.name_of(link))


def _check_distinct(call: Call, interfaces: list[Resource]) -> None:
    """Each interface has a network of its own, but those for RDMA share theirs."""
    seen: dict[str, bool] = {}
    for interface, link, rdma in _networks(call, interfaces):
        if link in seen and not (rdma and seen[link]):
            raise GoogleError(
                400, "Networks must be distinct for NICs attached to a VM.", reason="badRequest"
            )
        if rdma != (interface.get("nicType") in _RDMA):
            raise links.invalid(
                f"properties.networkInterfaces[{interface['name'].removeprefix('nic')}].nicType",
                interface.get("nicType", ""),
                "Interfaces of type MRDMA or IRDMA, and they alone, are in networks with an RDMA "
                "network profile.",
            )
        seen[link] = rdma


def _check_ranges(call: Call, interfaces: list[Resource]) -> None:
    """An address is behind one interface, so that the ranges of all must not overlap."""
    names = (links.name_of(it["subnetwork"]) for it in interfaces if it.get("subnetwork"))
    found = (resources.find(call, SUBNETWORK, name) for name in names)
    ranges = [ipaddress.IPv4Network(it["ipCidrRange"]) for it in found if it is not None]
    if any(one.overlaps(other) for one, other in itertools.combinations(ranges, 2)):
        raise GoogleError(
            400, "Subnetwork CIDR ranges must be non-overlapping for instance.", reason="badRequest"
        )


def check_zone(call: Call, zone: str, interfaces: list[Resource]) -> None:
    """Refuse interfaces in networks whose profile is that of another zone."""
    for index, interface in enumerate(interfaces):
        network = network_of(call, interface) or {}
        profile = network.get("networkProfile")
        if profile is not None and links.last(profile) != zone + machines.RDMA_PROFILE:
            raise links.invalid(
                f"networkInterfaces[{index}].network",
                network["selfLink"],
                f"The network profile {links.last(profile)} is not that of the zone {zone}.",
            )


def _networks(call: Call, interfaces: list[Resource]) -> Iterator[tuple[Resource, str, bool]]:
    for interface in interfaces:
        network = network_of(call, interface)
        if network is not None:
            yield interface, network["selfLink"], "networkProfile" in network
