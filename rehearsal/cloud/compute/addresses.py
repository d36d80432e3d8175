"""Reserved addresses of a region."""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING

from rehearsal.cloud.compute import links, lists, resources, vms
from rehearsal.cloud.compute.resources import ADDRESS, NETWORK, SUBNETWORK, Call, Resource
from rehearsal.cloud.wire import GoogleError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_INTERNAL = "INTERNAL"


def _insert(call: Call) -> Resource:
    body = resources.without_nulls(call.body)
    if not body.get("name"):
        raise GoogleError(400, "Required field 'resource.name' not specified", reason="required")
    body = resources.defaults(body, {"addressType": "EXTERNAL", "ipVersion": "IPV4"})
    if body["addressType"] == _INTERNAL:
        body = _internal(call, body)
    else:
        body.setdefault("networkTier", "PREMIUM")
        body["address"] = vms.external_address(call)
    labels = body.get("labels") or {}
    body["labelFingerprint"] = resources.fingerprint(labels)
    return resources.insert(call, ADDRESS, {**body, "status": "RESERVED"})


def _internal(call: Call, body: Resource) -> Resource:
    if body.get("network"):
        network = call.resolve(body["network"], NETWORK, "network")
        resources.require_ready(call, NETWORK, network)
        return {**body, "network": links.ROOT + network}
    region = call.parameters["region"]
    reference = body.get("subnetwork") or f"regions/{region}/subnetworks/default"
    name = call.resolve(reference, SUBNETWORK, "subnetwork")
    subnetwork = resources.require_ready(call, SUBNETWORK, name)
    wanted = body.get("address")
    if wanted is None:
        wanted = vms.Pools(call).take(subnetwork)
    elif not _within(wanted, subnetwork["ipCidrRange"]):
        raise links.invalid(
            "address",
            wanted,
            "Requested internal IP address is outside the network/subnetwork range.",
        )
    return {
        "purpose": "GCE_ENDPOINT",
        **body,
        "subnetwork": links.ROOT + name,
        "address": wanted,
    }


def _within(address: str, cidr: str) -> bool:
    try:
        return ipaddress.IPv4Address(address) in ipaddress.IPv4Network(cidr)
    except ValueError:
        return False


def _set_labels(call: Call) -> Resource:
    name = f"{call.prefix(ADDRESS)}{call.parameters['resource']}"
    address = resources.require_ready(call, ADDRESS, name)
    if call.body.get("labelFingerprint") != address["labelFingerprint"]:
        raise GoogleError(412, "Labels fingerprint either invalid or resource labels have changed")
    labels = call.body.get("labels") or {}
    changed = {**address, "labels": labels, "labelFingerprint": resources.fingerprint(labels)}
    return resources.change(call, ADDRESS, name, changed)


def _delete(call: Call) -> Resource:
    return resources.remove(call, ADDRESS, call.name(ADDRESS))


METHODS: Mapping[str, Callable[[Call], Resource]] = {
    "addresses.insert": _insert,
    "addresses.get": resources.get(ADDRESS),
    "addresses.list": lists.of_place(ADDRESS),
    "addresses.aggregatedList": lists.of_project(ADDRESS),
    "addresses.setLabels": _set_labels,
    "addresses.delete": _delete,
}
