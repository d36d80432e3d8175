"""How a control plane is reached: three blocks of the schema, one object of the API.

`private_cluster_config` and `master_authorized_networks_config` are the older words for what the
API has in `controlPlaneEndpointsConfig` today (recorded traffic).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from rehearsal.provider.resource import UNKNOWN
from rehearsal.provider.resources.container_shapes import block
from rehearsal.provider.resources.shapes import in_set_order

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rehearsal.provider.resource import State

_DNS: Final = {
    "allow_external_traffic": "allowExternalTraffic",
    "enable_k8s_certs_via_dns": "enableK8sCertsViaDns",
    "enable_k8s_tokens_via_dns": "enableK8sTokensViaDns",
}
_AUTHORIZED: Final = {
    "gcp_public_cidrs_access_enabled": "gcpPublicCidrsAccessEnabled",
    "private_endpoint_enforcement_enabled": "privateEndpointEnforcementEnabled",
}
ATTRIBUTES: Final = (
    "control_plane_endpoints_config",
    "master_authorized_networks_config",
)
PRIVATE: Final = (
    "enable_private_endpoint",
    "private_endpoint_subnetwork",
    "master_global_access_config",
)
"""What of private_cluster_config belongs here."""


def expand(plan: State, network: dict[str, Any]) -> dict[str, Any]:
    """What a new cluster is sent of its endpoints; its networkConfig gets what belongs there."""
    private = block(plan.get("private_cluster_config"))
    nodes = private.get("enable_private_nodes")
    if nodes not in (None, UNKNOWN):
        network["defaultEnablePrivateNodes"] = nodes
    body: dict[str, Any] = {"controlPlaneEndpointsConfig": endpoints(plan)}
    if cidr := _known(private.get("master_ipv4_cidr_block")):
        private_nodes = {"enablePrivateNodes": True} if nodes is True else {}
        body["privateClusterConfig"] = {"masterIpv4CidrBlock": cidr, **private_nodes}
    return body


def endpoints(plan: State) -> dict[str, Any]:
    """The endpoints as the API has them; all of what can be said is sent."""
    given = block(plan.get("control_plane_endpoints_config"))
    dns = block(given.get("dns_endpoint_config"))
    by_ip = block(given.get("ip_endpoints_config"))
    enabled = by_ip.get("enabled")
    if enabled in (None, UNKNOWN):
        enabled = not by_ip
    result: dict[str, Any] = {
        "dnsEndpointConfig": {wire: _truth(dns.get(name)) for name, wire in _DNS.items()},
        "ipEndpointsConfig": {"enabled": enabled},
    }
    if enabled:
        private = block(plan.get("private_cluster_config"))
        access = block(private.get("master_global_access_config"))
        result["ipEndpointsConfig"] |= {
            "enablePublicEndpoint": not _truth(private.get("enable_private_endpoint")),
            "globalAccess": _truth(access.get("enabled")),
            "privateEndpointSubnetwork": _known(private.get("private_endpoint_subnetwork")) or "",
            "authorizedNetworksConfig": authorized(plan.get("master_authorized_networks_config")),
        }
    return result


def authorized(value: Any) -> dict[str, Any]:
    """The networks that may reach the control plane by IP."""
    if value in (None, UNKNOWN, []):
        return {}
    given = block(value)
    result: dict[str, Any] = {"enabled": True}
    blocks = given.get("cidr_blocks")
    if blocks not in (None, UNKNOWN, []):
        ordered = in_set_order(blocks or [], lambda it: str(it.get("cidr_block")))
        result["cidrBlocks"] = [_network(it) for it in ordered]
    for name, wire in _AUTHORIZED.items():
        if given.get(name) not in (None, UNKNOWN):
            result[wire] = given[name]
    return result


def _network(given: Mapping[str, Any]) -> dict[str, Any]:
    name = _known(given.get("display_name"))
    return {"cidrBlock": given["cidr_block"], **({"displayName": name} if name else {})}


def flatten(cluster: Mapping[str, Any]) -> State:
    """The three blocks."""
    config = cluster.get("controlPlaneEndpointsConfig") or {}
    dns, by_ip = config.get("dnsEndpointConfig") or {}, config.get("ipEndpointsConfig") or {}
    network = cluster.get("networkConfig") or {}
    older = cluster.get("privateClusterConfig") or {}
    return {
        "control_plane_endpoints_config": [
            {
                "dns_endpoint_config": [
                    {
                        **{name: dns.get(wire, False) for name, wire in _DNS.items()},
                        "endpoint": dns.get("endpoint", ""),
                    }
                ],
                "ip_endpoints_config": [{"enabled": by_ip.get("enabled", False)}],
            }
        ],
        "master_authorized_networks_config": _flat_networks(by_ip),
        "private_cluster_config": [
            {
                "enable_private_endpoint": by_ip.get("enabled", False)
                and not by_ip.get("enablePublicEndpoint", False),
                "enable_private_nodes": network.get("defaultEnablePrivateNodes", False),
                "master_global_access_config": [{"enabled": by_ip.get("globalAccess", False)}],
                "master_ipv4_cidr_block": older.get("masterIpv4CidrBlock", ""),
                "peering_name": older.get("peeringName", ""),
                "private_endpoint": by_ip.get("privateEndpoint", ""),
                "private_endpoint_subnetwork": by_ip.get("privateEndpointSubnetwork", ""),
                "public_endpoint": by_ip.get("publicEndpoint", ""),
            }
        ],
    }


def _flat_networks(by_ip: Mapping[str, Any]) -> list[State]:
    given = by_ip.get("authorizedNetworksConfig") or {}
    if not given.get("enabled"):
        return []
    blocks = [
        {"cidr_block": it["cidrBlock"], "display_name": it.get("displayName", "")}
        for it in given.get("cidrBlocks") or []
    ]
    return [{"cidr_blocks": blocks, **{n: given.get(w, False) for n, w in _AUTHORIZED.items()}}]


def _truth(value: Any) -> bool:
    return value is True


def _known(value: Any) -> Any:
    return None if value is UNKNOWN else value
