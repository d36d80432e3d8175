"""Subnetworks of VPC networks."""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING

from rehearsal.cloud.compute import links, lists, networks, quotas, resources
from rehearsal.cloud.compute.resources import (
    FORWARDING_RULE,
    INSTANCE,
    NETWORK,
    SUBNETWORK,
    Call,
    Resource,
)
from rehearsal.cloud.facts import machines, places
from rehearsal.cloud.wire import GoogleError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

_LONGEST_PREFIX = 29
_GOOGLES = 4
# What Google does not let a subnetwork have: it is nobody's, everybody's, or Google's own.
_RESERVED = tuple(
    ipaddress.IPv4Network(cidr)
    for cidr in (
        "0.0.0.0/8",
        "127.0.0.0/8",
        "169.254.0.0/16",
        "199.36.153.4/30",
        "199.36.153.8/30",
        "224.0.0.0/4",
        "255.255.255.255/32",
    )
)


def _range(value: str, field: str) -> ipaddress.IPv4Network:
    """The range that a CIDR text stands for."""
    try:
        found = ipaddress.IPv4Network(value)
    except ValueError as error:
        raise links.invalid(field, value, "Must be a CIDR address range.") from error
    if found.prefixlen > _LONGEST_PREFIX:
        raise links.invalid(field, value, f"The prefix length must be at most {_LONGEST_PREFIX}.")
    if any(found.overlaps(reserved) for reserved in _RESERVED):
        raise links.invalid(field, value, "The range overlaps with a reserved address range.")
    return found


def _ranges(subnetwork: Resource) -> Iterator[tuple[str, str]]:
    """All ranges of a subnetwork, with the fields that hold them."""
    yield "ipCidrRange", subnetwork["ipCidrRange"]
    for index, secondary in enumerate(subnetwork.get("secondaryIpRanges") or []):
        yield f"secondaryIpRanges[{index}].ipCidrRange", secondary["ipCidrRange"]


def _check_ranges(call: Call, name: str, subnetwork: Resource) -> None:
    own = [(field, _range(value, field)) for field, value in _ranges(subnetwork)]
    for index, (field, found) in enumerate(own):
        if any(found.overlaps(other) for _, other in own[:index]):
            raise links.invalid(
                field, found, f"Invalid IPCidrRange: {found} conflicts with another range of it."
            )
    for other_name, other in resources.each(call, SUBNETWORK, f"projects/{call.project}/"):
        if other_name == name or other["network"] != subnetwork["network"]:
            continue
        for _, value in _ranges(other):
            taken = ipaddress.IPv4Network(value)
            for field, found in own:
                if found.overlaps(taken):
                    raise _conflict(field, found, other)


def _conflict(field: str, found: ipaddress.IPv4Network, other: Resource) -> GoogleError:
    region = links.last(other["region"])
    return links.invalid(
        field,
        found,
        f"Invalid IPCidrRange: {found} conflicts with existing subnetwork '{other['name']}' "
        f"in region '{region}'.",
    )


def _insert(call: Call) -> Resource:
    body = resources.without_nulls(call.body)
    for field in ("name", "network", "ipCidrRange"):
        if not body.get(field):
            raise GoogleError(
                400, f"Required field 'resource.{field}' not specified", reason="required"
            )
    network = call.resolve(body["network"], NETWORK, "network")
    _check_region(call, resources.require_ready(call, NETWORK, network))
    body["network"] = links.ROOT + network
    name = call.prefix(SUBNETWORK) + body["name"]
    if resources.find(call, SUBNETWORK, name) is None:
        _check_ranges(call, name, body)
    quotas.check(call, SUBNETWORK)
    return resources.insert(call, SUBNETWORK, networks.subnetwork_fields(body))


def _check_region(call: Call, network: Resource) -> None:
    """Refuse a subnetwork in another region than that of the zone of its network's profile."""
    profile = links.last(network.get("networkProfile", ""))
    region = call.parameters["region"]
    if profile and places.region_of(profile.removesuffix(machines.RDMA_PROFILE)) != region:
        raise links.invalid(
            "network",
            network["selfLink"],
            f"The network profile {profile} is not that of a zone in {region}.",
        )


def _patch(call: Call) -> Resource:
    name = call.name(SUBNETWORK)
    subnetwork = resources.require_ready(call, SUBNETWORK, name)
    # Google changes a subnetwork for those alone who have seen it as it is.
    if call.body.get("fingerprint") != subnetwork["fingerprint"]:
        raise GoogleError(412, "Invalid fingerprint.")
    changed = resources.merge(subnetwork, call.body)
    _check_ranges(call, name, changed)
    return _change(call, name, changed)


def _change(call: Call, name: str, changed: Resource) -> Resource:
    mark = resources.fingerprint([changed, call.now])
    return resources.change(call, SUBNETWORK, name, {**changed, "fingerprint": mark})


def _expand(call: Call) -> Resource:
    name = call.name(SUBNETWORK)
    subnetwork = resources.require_ready(call, SUBNETWORK, name)
    wanted = _range(call.body.get("ipCidrRange") or "", "ipCidrRange")
    present = ipaddress.IPv4Network(subnetwork["ipCidrRange"])
    if wanted == present or not present.subnet_of(wanted):
        raise links.invalid(
            "ipCidrRange", wanted, f"The new range must contain the present one, {present}."
        )
    changed = {**subnetwork, "ipCidrRange": str(wanted)}
    _check_ranges(call, name, changed)
    changed["gatewayAddress"] = networks.gateway(str(wanted))
    return _change(call, name, changed)


def _set_private_access(call: Call) -> Resource:
    name = call.name(SUBNETWORK)
    subnetwork = resources.require_ready(call, SUBNETWORK, name)
    access = bool(call.body.get("privateIpGoogleAccess"))
    changed = {**subnetwork, "privateIpGoogleAccess": access}
    return _change(call, name, changed)


def _delete(call: Call) -> Resource:
    name = call.name(SUBNETWORK)
    subnetwork = resources.require_ready(call, SUBNETWORK, name)
    link = subnetwork["selfLink"]
    # Those of the projects too that a host project shares it with.
    for user, instance in resources.each(call, INSTANCE, "projects/"):
        if any(interface["subnetwork"] == link for interface in instance["networkInterfaces"]):
            raise resources.in_use(SUBNETWORK, name, user)
    for user, rule in resources.each(call, FORWARDING_RULE, f"projects/{call.project}/"):
        if rule.get("subnetwork") == link:
            raise resources.in_use(SUBNETWORK, name, user)
    network = resources.find(call, NETWORK, links.name_of(subnetwork["network"]))
    automatic = network is not None and network["autoCreateSubnetworks"]
    if automatic and network is not None and network["name"] == subnetwork["name"]:
        raise GoogleError(
            400,
            f"Invalid resource usage: 'Cannot delete auto subnetwork {subnetwork['name']} of a "
            "network of auto mode.'.",
            reason="invalidResourceUsage",
        )
    return resources.remove(call, SUBNETWORK, name)


def utilized(call: Call, subnetwork: Resource) -> tuple[int, int]:
    """The addresses of the first range that are taken, and those that are free.

    Four of each range are Google's: network, gateway, the last but one, and broadcast.
    """
    link = subnetwork["selfLink"]
    instances = (it for _, it in resources.each(call, INSTANCE, "projects/"))
    interfaces = (nic for it in instances for nic in it["networkInterfaces"])
    taken = _GOOGLES + sum(it.get("subnetwork") == link for it in interfaces)
    return taken, ipaddress.IPv4Network(subnetwork["ipCidrRange"]).num_addresses - taken


def _get(call: Call) -> Resource:
    subnetwork = resources.require(call, SUBNETWORK, call.name(SUBNETWORK))
    shown = resources.show(subnetwork)
    if call.parameters.get("views") != "WITH_UTILIZATION":
        return shown
    taken, free = utilized(call, subnetwork)
    first = {"totalAllocatedIp": str(taken), "totalFreeIp": str(free)}
    return {**shown, "utilizationDetails": {"ipv4Utilizations": [first]}}


METHODS: Mapping[str, Callable[[Call], Resource]] = {
    "subnetworks.insert": _insert,
    "subnetworks.get": _get,
    "subnetworks.list": lists.of_place(SUBNETWORK),
    "subnetworks.aggregatedList": lists.of_project(SUBNETWORK),
    "subnetworks.patch": _patch,
    "subnetworks.expandIpCidrRange": _expand,
    "subnetworks.setPrivateIpGoogleAccess": _set_private_access,
    "subnetworks.delete": _delete,
}
