"""Firewall rules of VPC networks."""

from __future__ import annotations

import ipaddress
import re
from typing import TYPE_CHECKING

from rehearsal.cloud.compute import links, lists, quotas, resources
from rehearsal.cloud.compute.resources import FIREWALL, NETWORK, Call, Resource
from rehearsal.cloud.wire import GoogleError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_PRIORITY = range(65536)
_PROTOCOLS = ("all", "tcp", "udp", "icmp", "esp", "ah", "sctp", "ipip")
_WITH_PORTS = ("tcp", "udp", "sctp", "6", "17", "132")
_PORT = re.compile(r"\d{1,5}(?:-\d{1,5})?")
_TAG = re.compile(r"[a-z](?:[-a-z0-9]{0,61}[a-z0-9])?")
_MOST_ACCOUNTS = 10
_DEFAULTS: Resource = {
    "direction": "INGRESS",
    "priority": 1000,
    "disabled": False,
    "logConfig": {"enable": False},
}


def _check(rule: Resource) -> None:
    """Refuse what Google does."""
    if rule["priority"] not in _PRIORITY:
        raise links.invalid("priority", rule["priority"], "Must be between 0 and 65535.")
    if bool(rule.get("allowed")) == bool(rule.get("denied")):
        raise GoogleError(400, "Exactly one of 'allowed' and 'denied' must be specified.")
    for field in ("allowed", "denied"):
        for index, entry in enumerate(rule.get(field) or []):
            _check_entry(f"{field}[{index}]", entry)
    for field in ("sourceRanges", "destinationRanges"):
        for index, cidr in enumerate(rule.get(field) or []):
            _check_cidr(f"{field}[{index}]", cidr)
    _check_accounts(rule)
    for field in ("sourceTags", "targetTags"):
        for index, tag in enumerate(rule.get(field) or []):
            if not _TAG.fullmatch(tag):
                pattern = f"Must be a match of regex '(?:{_TAG.pattern})'"
                raise links.invalid(f"{field}[{index}]", tag, pattern)


def _check_accounts(rule: Resource) -> None:
    """A rule names VMs by accounts or by tags, not by both.

    Source: the fields' descriptions in the discovery document of compute v1.
    """
    accounts = [
        field for field in ("sourceServiceAccounts", "targetServiceAccounts") if rule.get(field)
    ]
    tags = [field for field in ("sourceTags", "targetTags") if rule.get(field)]
    if accounts and tags:
        raise links.invalid(
            accounts[0], rule[accounts[0]], f"Can't be specified at the same time as {tags[0]}."
        )
    if rule["direction"] == "EGRESS" and rule.get("sourceServiceAccounts"):
        raise links.invalid(
            "sourceServiceAccounts",
            rule["sourceServiceAccounts"],
            "Only for the direction INGRESS.",
        )
    for field in accounts:
        if len(rule[field]) > _MOST_ACCOUNTS:
            raise links.invalid(field, rule[field], f"At most {_MOST_ACCOUNTS} service accounts.")


def _check_entry(field: str, entry: Resource) -> None:
    protocol = entry.get("IPProtocol", "")
    if protocol.lower() not in _PROTOCOLS and not protocol.isdecimal():
        raise links.invalid(
            f"{field}.IPProtocol", protocol, "Must be a known protocol or a number."
        )
    ports = entry.get("ports") or []
    if ports and protocol.lower() not in _WITH_PORTS:
        raise links.invalid(
            f"{field}.ports[0]",
            ports[0],
            "Ports may only be specified on rules whose protocol is one of [TCP, UDP, SCTP].",
        )
    for index, port in enumerate(ports):
        if not _PORT.fullmatch(port):
            raise links.invalid(f"{field}.ports[{index}]", port, "Must be a port or a port range.")


def _check_cidr(field: str, value: str) -> None:
    try:
        ipaddress.ip_network(value)
    except ValueError as error:
        raise links.invalid(field, value, "Must be a CIDR address range.") from error


def _completed(rule: Resource) -> Resource:
    rule = resources.defaults(rule, _DEFAULTS)
    sources = ("sourceRanges", "sourceTags", "sourceServiceAccounts")
    if rule["direction"] == "INGRESS" and not any(rule.get(field) for field in sources):
        rule["sourceRanges"] = ["0.0.0.0/0"]
    if rule["direction"] == "EGRESS" and not rule.get("destinationRanges"):
        rule["destinationRanges"] = ["0.0.0.0/0"]
    _check(rule)
    return rule


def _insert(call: Call) -> Resource:
    body = resources.without_nulls(call.body)
    reference = body.get("network") or "global/networks/default"
    network = call.resolve(reference, NETWORK, "network")
    if "networkProfile" in resources.require_ready(call, NETWORK, network):
        raise links.invalid(
            "network",
            reference,
            "Firewall rules are not supported in networks with an RDMA network profile.",
        )
    quotas.check(call, FIREWALL)
    return resources.insert(call, FIREWALL, _completed({**body, "network": links.ROOT + network}))


def _patch(call: Call) -> Resource:
    name = call.name(FIREWALL)
    rule = resources.require_ready(call, FIREWALL, name)
    changes = dict(call.body)
    if changes.get("network"):
        network = call.resolve(changes["network"], NETWORK, "network")
        if links.ROOT + network != rule["network"]:
            raise links.invalid("network", changes["network"], "Network can't be changed.")
        changes["network"] = rule["network"]
    return resources.change(call, FIREWALL, name, _completed(resources.merge(rule, changes)))


def _delete(call: Call) -> Resource:
    return resources.remove(call, FIREWALL, call.name(FIREWALL))


METHODS: Mapping[str, Callable[[Call], Resource]] = {
    "firewalls.insert": _insert,
    "firewalls.get": resources.get(FIREWALL),
    "firewalls.list": lists.of_place(FIREWALL),
    "firewalls.patch": _patch,
    "firewalls.update": _patch,
    "firewalls.delete": _delete,
}
