"""The network interfaces of an instance template."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rehearsal.provider.failures import ProviderError
from rehearsal.provider.resource import UNKNOWN
from rehearsal.provider.resources import links
from rehearsal.provider.resources.fields import (
    Field,
    Kind,
    Scope,
    Send,
    Table,
    expand,
    flatten,
    is_zero,
)

if TYPE_CHECKING:
    from rehearsal.provider.resource import State


def _network(link: str, scope: Scope) -> str:
    return links.at("networks", link, project=scope.project)


def _v1(link: str | None, _: Scope) -> str:
    return links.v1(link or "")


_ACCESS = Table(
    "google_compute_instance_template.network_interface.access_config",
    Field("nat_ip", "natIP"),
    Field("network_tier"),
    Field("public_ptr_domain_name", send=Send.NEVER),
)
_ACCESS_V6 = Table(
    "google_compute_instance_template.network_interface.ipv6_access_config",
    Field("network_tier"),
    Field("public_ptr_domain_name"),
    Field("external_ipv6"),
    Field("external_ipv6_prefix_length", kind=Kind.INT64, flatten=lambda v, _: str(v or 0)),
    Field("name"),
)


def _access(fields: Table, kind: str) -> Any:
    """Access configurations have a type that the configuration does not name."""

    def expand_all(blocks: list[State], scope: Scope) -> list[dict[str, Any]]:
        return [{**expand(fields, block or {}, scope), "type": kind} for block in blocks]

    return expand_all


_FIELDS = Table(
    "google_compute_instance_template.network_interface",
    Field("network", expand=_network, flatten=_v1),
    Field("network_ip", "networkIP"),
    Field(
        "access_config",
        "accessConfigs",
        fields=_ACCESS.given,
        expand=_access(_ACCESS, "ONE_TO_ONE_NAT"),
    ),
    Field("alias_ip_range", "aliasIpRanges"),
    Field("nic_type"),
    Field("stack_type"),
    Field("queue_count"),
    Field(
        "ipv6_access_config",
        "ipv6AccessConfigs",
        fields=_ACCESS_V6.given,
        expand=_access(_ACCESS_V6, "DIRECT_IPV6"),
    ),
    Field("ipv6_address"),
    Field("internal_ipv6_prefix_length"),
    Field("network_attachment"),
    Field("igmp_query"),
    Field("vlan"),
    Field("ipv6_access_type", send=Send.NEVER),
    Field("parent_nic_name", send=Send.NEVER),
    Field("name", send=Send.NEVER),
)


def _expand_all(blocks: list[State], scope: Scope) -> list[dict[str, Any]]:
    return [_expand(block, scope) for block in blocks]


def _expand(block: State, scope: Scope) -> dict[str, Any]:
    if all(is_zero(block.get(each)) for each in ("network", "subnetwork", "network_attachment")):
        raise ProviderError(
            "exactly one of network, subnetwork, or network_attachment must be provided"
        )
    body = expand(_FIELDS, block, scope)
    subnetwork = block.get("subnetwork")
    if subnetwork is not UNKNOWN and subnetwork:
        project = block.get("subnetwork_project")
        home = scope.project if is_zero(project) else str(project)
        body["subnetwork"] = links.at("subnetworks", subnetwork, project=home, region=scope.region)
    return body


def _flatten_all(interfaces: list[dict[str, Any]] | None, scope: Scope) -> list[State]:
    return [_flatten(each, scope) for each in interfaces or []]


def _flatten(interface: dict[str, Any], scope: Scope) -> State:
    subnetwork = links.v1(interface.get("subnetwork") or "")
    return {
        **flatten(_FIELDS, interface, scope),
        "subnetwork": subnetwork,
        "subnetwork_project": links.part(subnetwork, "projects"),
    }


INTERFACES = Field(
    "network_interface", "networkInterfaces", expand=_expand_all, flatten=_flatten_all
)
