"""Where a cluster is in its project's networks, and how its control plane is reached."""

import hashlib
import ipaddress
from collections.abc import Mapping
from typing import Any, Final

from rehearsal.cloud import keys, projects
from rehearsal.cloud.compute import shared_vpc
from rehearsal.cloud.container import groups, records
from rehearsal.cloud.container.records import CLUSTERS, POOLS, Record
from rehearsal.cloud.facts import places
from rehearsal.cloud.store import Store
from rehearsal.cloud.wire import GoogleError, Request

_PUBLIC, _PRIVATE = "203.0.113.10", "10.0.0.2"
_PODS, _SERVICES = "10.64.0.0/14", "34.118.224.0/20"
_PODS_OF_NODE = (8, 256)
_LONGEST = {"Pod": 24, "Services": 27}

_IP_ALLOCATION: Final[Mapping[str, Any]] = {
    "podCidrOverprovisionConfig": {},
    "defaultPodIpv4RangeUtilization": 0.001,
    "networkTierConfig": {"networkTier": "NETWORK_TIER_DEFAULT"},
}

_AUTHORIZED_NETWORKS: Final[Mapping[str, Any]] = {"gcpPublicCidrsAccessEnabled": True}
"""Of control planes that are reached by IP."""


def attached(request: Request, store: Store, where: str, cluster: Record) -> Record:
    """The cluster with its networks, ranges and endpoints."""
    region = cluster["location"]
    region = region if region in places.ZONES else places.region_of(region)
    network = _existing(request, store, "networks", cluster.get("network", ""), where, "global")
    subnetwork = _existing(
        request, store, "subnetworks", cluster.get("subnetwork", ""), where, f"regions/{region}"
    )
    project = where.split("/")[1]
    shared_vpc.check_gke(store, project, subnetwork)
    key = (cluster.get("databaseEncryption") or {}).get("keyName")
    keys.require(store, key, project, keys.GKE, region)
    pods, services = _ranges(store, subnetwork, cluster.get("ipAllocationPolicy") or {})
    allocation = records.completed(cluster.get("ipAllocationPolicy") or {}, _IP_ALLOCATION)
    allocation |= {
        "useIpAliases": not allocation.get("useRoutes", False),
        "clusterIpv4CidrBlock": pods,
        "servicesIpv4CidrBlock": services,
        "clusterIpv4Cidr": pods,
        "servicesIpv4Cidr": services,
    }
    own = {"defaultSnatStatus": {}, "network": network, "subnetwork": subnetwork}
    return {
        **cluster,
        "network": network.rpartition("/")[2],
        "subnetwork": subnetwork.rpartition("/")[2],
        "networkConfig": {**own, **(cluster.get("networkConfig") or {})},
        "ipAllocationPolicy": allocation,
        "clusterIpv4Cidr": pods,
        "servicesIpv4Cidr": services,
        **endpoints(where, cluster),
    }


def _existing(  # noqa: PLR0913, PLR0917 - what a reference may leave out, and where it is sought
    request: Request, store: Store, kind: str, given: str, where: str, scope: str
) -> str:
    """The name that a reference to a network or subnetwork means."""
    project = "/".join(where.split("/")[:2])
    name = given[given.find("projects/") :] if "/" in given else ""
    name = name or f"{project}/{scope}/{kind}/{given or 'default'}"
    found = store.get(f"compute/{kind}", name)
    gone = found is None or found.get("_gone", request.now + 1) <= request.now
    # A new project's network is there from its first use of Compute Engine.
    if gone and (found is not None or not name.endswith("/default")):
        word = kind.removesuffix("s").capitalize()
        raise GoogleError(400, f'{word} "{name.rpartition("/")[2]}" does not exist.', status=None)
    return name


def _ranges(store: Store, subnetwork: str, policy: Record) -> tuple[str, str]:
    known = store.get("compute/subnetworks", subnetwork) or {}
    offered = {it["rangeName"]: it["ipCidrRange"] for it in known.get("secondaryIpRanges") or []}
    result = []
    for word, field, usual in (
        ("Pod", "clusterSecondaryRangeName", policy.get("clusterIpv4CidrBlock") or _PODS),
        (
            "Services",
            "servicesSecondaryRangeName",
            policy.get("servicesIpv4CidrBlock") or _SERVICES,
        ),
    ):
        name = policy.get(field)
        if name and name not in offered:
            raise GoogleError(
                400,
                f'{word} secondary range "{name}" does not exist in subnetwork'
                f' "{subnetwork.rpartition("/")[2]}".',
                status=None,
            )
        result.append(offered[name] if name else usual)
        _check_size(word, name or "", result[-1])
    return result[0], result[1]


def _check_size(word: str, name: str, cidr: str) -> None:
    """Refuse a range that is smaller than GKE takes: see its table of ranges, and its own words."""
    longest = _LONGEST[word]
    if ipaddress.IPv4Network(cidr).prefixlen > longest:
        words = f"must have a CIDR block larger or equal to /{longest}."
        raise GoogleError(400, f"Getting {word} secondary range '{name}' {words}", status=None)


def refusal(request: Request, store: Store, cluster_name: str) -> Record | None:
    """Why nodes get no addresses for their pods, as a `google.rpc.Status`; None if they do."""
    cluster = records.require(request, store, CLUSTERS, cluster_name)
    pools = records.each(request, store, POOLS, f"{cluster_name}/nodePools/")
    taken = sum(
        2 ** (32 - int(pool["podIpv4CidrSize"])) * groups.size(store, url)
        for _, pool in pools
        for url in pool["instanceGroupUrls"]
    )
    cidr = cluster["clusterIpv4Cidr"]
    if taken <= ipaddress.IPv4Network(cidr).num_addresses:
        return None
    words = (
        f"[IP_SPACE_EXHAUSTED]: IP space of '{cluster['networkConfig']['subnetwork']}' is"
        f" exhausted. Insufficient free IP addresses in the IP range '{cidr}'."
    )
    return {"code": 8, "message": words}


def prefix_of(most: int) -> int:
    """The range of a node for so many pods at most: a /28 for 8, a /24 for 65 to 128."""
    if not _PODS_OF_NODE[0] <= most <= _PODS_OF_NODE[1]:
        raise GoogleError(400, f"Invalid max pods per node: {most}.", status=None)
    return next(prefix for prefix in range(28, 0, -1) if 2 ** (32 - prefix) >= 2 * most)


def endpoints(where: str, cluster: Record) -> Record:
    """How the control plane is reached; what a maker leaves out counts as off, but for IP."""
    given: Record = dict(cluster.get("controlPlaneEndpointsConfig") or {})
    dns = {**(given.get("dnsEndpointConfig") or {}), "endpoint": _dns_name(where, cluster)}
    by_ip: dict[str, Any] = dict(given.get("ipEndpointsConfig") or {"enabled": True})
    result: Record = {}
    if by_ip.get("enabled"):
        networks = by_ip.get("authorizedNetworksConfig") or {}
        by_ip |= {
            "authorizedNetworksConfig": {**_AUTHORIZED_NETWORKS, **networks},
            "privateEndpoint": _PRIVATE,
            "publicEndpoint": _PUBLIC,
        }
        result["endpoint"] = _PUBLIC
    given |= {"dnsEndpointConfig": dns, "ipEndpointsConfig": by_ip}
    return {**result, "controlPlaneEndpointsConfig": given}


def _dns_name(where: str, cluster: Record) -> str:
    """A name as Google makes them, the same for the same cluster."""
    _, project, _, location = where.split("/")
    short = hashlib.sha256(f"{where}/{cluster['name']}".encode()).hexdigest()[:28]
    return f"gke-{short}-{projects.number(project)}.{location}.gke.goog"
