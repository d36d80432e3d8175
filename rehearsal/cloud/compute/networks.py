"""VPC networks."""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING

from rehearsal.cloud.compute import links, lists, quotas, resources
from rehearsal.cloud.compute.resources import (
    ENDPOINT_GROUP,
    FIREWALL,
    FORWARDING_RULE,
    INSTANCE,
    NETWORK,
    ROUTER,
    SUBNETWORK,
    Call,
    Kind,
    Resource,
)
from rehearsal.cloud.facts import offers, places

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

_MTU = range(1300, 8897)
_DEFAULT_MTU, _RDMA_MTU = 1460, 8896

# The range of each region's subnetwork in a network of auto mode: 10.N.0.0/20. Regions that are
# not here get what is left of 10.128.0.0/9, from its end.
_AUTO_RANGES: Mapping[str, int] = {
    "africa-south1": 218,
    "asia-east1": 140,
    "asia-east2": 170,
    "asia-northeast1": 146,
    "asia-northeast2": 174,
    "asia-northeast3": 178,
    "asia-south1": 160,
    "asia-south2": 190,
    "asia-southeast1": 148,
    "asia-southeast2": 184,
    "australia-southeast1": 152,
    "australia-southeast2": 192,
    "europe-central2": 186,
    "europe-north1": 166,
    "europe-north2": 226,
    "europe-southwest1": 204,
    "europe-west1": 132,
    "europe-west10": 214,
    "europe-west12": 210,
    "europe-west2": 154,
    "europe-west3": 156,
    "europe-west4": 164,
    "europe-west6": 172,
    "europe-west8": 198,
    "europe-west9": 200,
    "me-central1": 212,
    "me-central2": 216,
    "me-west1": 208,
    "northamerica-northeast1": 162,
    "northamerica-northeast2": 188,
    "northamerica-south1": 224,
    "southamerica-east1": 158,
    "southamerica-west1": 194,
    "us-central1": 128,
    "us-east1": 142,
    "us-east4": 150,
    "us-east5": 202,
    "us-south1": 206,
    "us-west1": 138,
    "us-west2": 168,
    "us-west3": 180,
    "us-west4": 182,
}

_DEFAULTS: Resource = {
    "autoCreateSubnetworks": True,
    "networkFirewallPolicyEnforcementOrder": "AFTER_CLASSIC_FIREWALL",
    "routingConfig": {"routingMode": "REGIONAL", "bgpBestPathSelectionMode": "LEGACY"},
}

_DEFAULT_FIREWALLS = {
    "default-allow-icmp": (["0.0.0.0/0"], [{"IPProtocol": "icmp"}]),
    "default-allow-internal": (
        ["10.128.0.0/9"],
        [
            {"IPProtocol": "tcp", "ports": ["0-65535"]},
            {"IPProtocol": "udp", "ports": ["0-65535"]},
            {"IPProtocol": "icmp"},
        ],
    ),
    "default-allow-rdp": (["0.0.0.0/0"], [{"IPProtocol": "tcp", "ports": ["3389"]}]),
    "default-allow-ssh": (["0.0.0.0/0"], [{"IPProtocol": "tcp", "ports": ["22"]}]),
}
_TOUCHED = "compute/projects"


def ensure_default(call: Call) -> None:
    """Make the network "default" of a project that is met for the first time.

    It is Google's: of auto mode, with four firewall rules. Who deletes it does not get it back.
    """
    if call.store.get(_TOUCHED, call.project) is not None:
        return
    call.store.put(_TOUCHED, call.project, {})
    name = NETWORK.prefix(call.project) + "default"
    _create(call, name, {"description": "Default network for the project"})
    for rule, (sources, allowed) in _DEFAULT_FIREWALLS.items():
        fields = {
            "network": links.ROOT + name,
            "priority": 65534,
            "sourceRanges": sources,
            "allowed": allowed,
            "direction": "INGRESS",
            "disabled": False,
            "logConfig": {"enable": False},
        }
        resources.create(call, FIREWALL, FIREWALL.prefix(call.project) + rule, fields)


def _create(call: Call, name: str, fields: Resource) -> Resource:
    fields = resources.defaults(fields, _DEFAULTS)
    fields.setdefault("mtu", _RDMA_MTU if fields.get("networkProfile") else _DEFAULT_MTU)
    network = resources.create(call, NETWORK, name, fields)
    if network["autoCreateSubnetworks"]:
        for region, second in _auto_ranges():
            _create_auto_subnetwork(call, network, region, f"10.{second}.0.0/20")
    return network


def _auto_ranges() -> Iterator[tuple[str, int]]:
    left = iter(sorted(set(range(128, 256)) - set(_AUTO_RANGES.values()), reverse=True))
    for region in places.REGIONS:
        yield region, _AUTO_RANGES.get(region) or next(left)


def _create_auto_subnetwork(call: Call, network: Resource, region: str, cidr: str) -> None:
    fields = {"network": network["selfLink"], "ipCidrRange": cidr}
    name = SUBNETWORK.prefix(call.project, region) + network["name"]
    resources.create(call, SUBNETWORK, name, subnetwork_fields(fields))


def subnetwork_fields(fields: Resource) -> Resource:
    """The fields of a new subnetwork, completed with what Google chooses."""
    return resources.defaults(
        fields,
        {
            "privateIpGoogleAccess": False,
            "purpose": "PRIVATE",
            "stackType": "IPV4_ONLY",
            "enableFlowLogs": False,
            "logConfig": {"enable": False},
            "privateIpv6GoogleAccess": "DISABLE_GOOGLE_ACCESS",
            "allowSubnetCidrRoutesOverlap": False,
            "gatewayAddress": gateway(fields["ipCidrRange"]),
            "fingerprint": resources.fingerprint(fields),
        },
    )


def gateway(cidr: str) -> str:
    """The address of a range's gateway: its second one."""
    return str(ipaddress.ip_network(cidr)[1])


def _insert(call: Call) -> Resource:
    body = call.body
    if "IPv4Range" not in body and "autoCreateSubnetworks" not in body:
        raise links.invalid("IPv4Range", "", "Legacy networks can no longer be created.")
    if body.get("mtu") is not None and body["mtu"] not in _MTU:
        raise links.invalid(
            "mtu", body["mtu"], f"Must be between {_MTU[0]} and {_MTU[-1]} inclusive."
        )
    body = resources.without_nulls(body)
    if body.get("networkProfile"):
        _check_rdma(body)
        body["networkProfile"] = links.ROOT + _profile(call, body["networkProfile"])
    quotas.check(call, NETWORK)
    name = NETWORK.prefix(call.project) + body["name"]
    network = _create(call, name, {**body, "_ready": call.end()})
    return call.operate(name, network["id"])


def _check_rdma(body: Resource) -> None:
    if body.get("autoCreateSubnetworks"):
        raise links.invalid(
            "autoCreateSubnetworks", "true", "Networks with a network profile are of custom mode."
        )


def _profile(call: Call, reference: str) -> str:
    name = links.resolve(
        reference, project=call.project, collection="networkProfiles", field="networkProfile"
    )
    if not offers.has_profile(links.last(name), call.request.scenarios):
        raise resources.not_found(name)
    return name


def _show(call: Call, network: Resource) -> Resource:
    """The network with the links of its subnetworks, which are kept on their own."""
    found = [
        subnetwork["selfLink"]
        for _, subnetwork in resources.each(call, SUBNETWORK, f"projects/{call.project}/")
        if subnetwork["network"] == network["selfLink"]
    ]
    shown = {**resources.show(network), **({"subnetworks": found} if found else {})}
    # What tells the API what to do is no part of what it tells.
    routing = {
        key: value
        for key, value in network["routingConfig"].items()
        if key != "deleteBgpAlwaysCompareMed"
    }
    return {**shown, "routingConfig": routing}


def _get(call: Call) -> Resource:
    return _show(call, resources.require(call, NETWORK, call.name(NETWORK)))


def _list(call: Call) -> Resource:
    prefix = call.prefix(NETWORK)
    entries = ((name, _show(call, it)) for name, it in resources.each(call, NETWORK, prefix))
    return lists.listed(call, NETWORK.singular, prefix.removesuffix("/"), entries)


def _patch(call: Call) -> Resource:
    name = call.name(NETWORK)
    network = resources.require_ready(call, NETWORK, name)
    _check_mtu_change(call, network)
    return resources.change(call, NETWORK, name, resources.merge(network, call.body))


def _add_peering(call: Call) -> Resource:
    """Connect the network to another one, as its owner does, or Google's Service Networking."""
    name = call.name(NETWORK)
    network = resources.require_ready(call, NETWORK, name)
    wanted = {"autoCreateRoutes": True, **call.body.get("networkPeering", {}), "state": "ACTIVE"}
    others = [it for it in network.get("peerings", []) if it["name"] != wanted.get("name")]
    return resources.change(call, NETWORK, name, {**network, "peerings": [*others, wanted]})


def _check_mtu_change(call: Call, network: Resource) -> None:
    """Refuse another MTU for a network in which VMs run: they would all have to be stopped."""
    mtu = call.body.get("mtu")
    if mtu in {None, network["mtu"]}:
        return
    if mtu not in _MTU:
        raise links.invalid("mtu", mtu, f"Must be between {_MTU[0]} and {_MTU[-1]} inclusive.")
    for _, instance in resources.each(call, INSTANCE, f"projects/{call.project}/"):
        if network["selfLink"] in _networks(INSTANCE, instance):
            raise links.invalid(
                "mtu", mtu, "The MTU can't be changed while VMs in the network are running."
            )


def _delete(call: Call) -> Resource:
    name = call.name(NETWORK)
    network = resources.require_ready(call, NETWORK, name)
    for kind in (INSTANCE, SUBNETWORK, FIREWALL, ROUTER, FORWARDING_RULE, ENDPOINT_GROUP):
        # VMs join networks of a host project from others, too.
        where = "projects/" if kind is INSTANCE else f"projects/{call.project}/"
        for user, resource in resources.each(call, kind, where):
            if network["selfLink"] in _networks(kind, resource) and not _is_automatic(
                network, kind, resource
            ):
                raise resources.in_use(NETWORK, name, user)
    for user, subnetwork in list(resources.each(call, SUBNETWORK, f"projects/{call.project}/")):
        if subnetwork["network"] == network["selfLink"]:
            resources.keep(call, SUBNETWORK, user, {**subnetwork, "_gone": call.end()})
    return resources.remove(call, NETWORK, name)


def _networks(kind: Kind, resource: Resource) -> list[str]:
    if kind is INSTANCE:
        return [interface["network"] for interface in resource["networkInterfaces"]]
    return [resource.get("network", "")]


def _is_automatic(network: Resource, kind: Kind, resource: Resource) -> bool:
    """Whether it is one of the subnetworks that go with their network of auto mode."""
    automatic = network["autoCreateSubnetworks"] and resource["name"] == network["name"]
    return bool(kind is SUBNETWORK and automatic)


METHODS: Mapping[str, Callable[[Call], Resource]] = {
    "networks.insert": _insert,
    "networks.get": _get,
    "networks.list": _list,
    "networks.patch": _patch,
    "networks.addPeering": _add_peering,
    "networks.delete": _delete,
}
