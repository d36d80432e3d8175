"""The network interfaces of VMs: what Google refuses, and the networks that they are in."""

from __future__ import annotations

import ipaddress
import itertools
from typing import TYPE_CHECKING

from rehearsal.cloud.compute import links, resources, shared_vpc
from rehearsal.cloud.compute.resources import NETWORK, SUBNETWORK, Call, Resource
from rehearsal.cloud.facts import machines
from rehearsal.cloud.wire import GoogleError

if TYPE_CHECKING:
    from collections.abc import Iterator

_RDMA = ("MRDMA", "IRDMA")


def completed(call: Call, properties: Resource) -> list[Resource]:
    """Check the interfaces of a template's properties, and complete them."""
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
