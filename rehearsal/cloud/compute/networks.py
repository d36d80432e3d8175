"""VPC networks: their subnetworks, firewall rules and routers."""

import ipaddress
from collections.abc import Callable, Iterator, Mapping, Sequence

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
from rehearsal.cloud.compute.rest import Rest
from rehearsal.cloud.facts import machines, offers, places
from rehearsal.cloud.wire import GoogleError

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

_RULE_DEFAULTS: Resource = {
    "direction": "INGRESS",
    "priority": 1000,
    "disabled": False,
    "logConfig": {"enable": False},
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
    """Make Google's network "default" of a new project: auto mode, four rules, never made again."""
    if call.store.get(_TOUCHED, call.project) is not None:
        return
    call.store.put(_TOUCHED, call.project, {})
    name = NETWORK.prefix(call.project) + "default"
    _create(call, name, {"description": "Default network for the project"})
    for rule, (sources, allowed) in _DEFAULT_FIREWALLS.items():
        own = {"network": links.ROOT + name, "sourceRanges": sources, "allowed": allowed}
        fields = {**_RULE_DEFAULTS, **own, "priority": 65534}
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
    resources.create(call, SUBNETWORK, name, _subnetwork_fields(fields))


def _subnetwork_fields(fields: Resource) -> Resource:
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
            "gatewayAddress": _gateway(fields["ipCidrRange"]),
            "fingerprint": resources.fingerprint(fields),
        },
    )


def _gateway(cidr: str) -> str:
    """The address of a range's gateway: its second one."""
    return str(ipaddress.ip_network(cidr)[1])


def _completed_network(call: Call, network: Resource) -> Resource:
    before = resources.find(call, NETWORK, links.name_of(network.get("selfLink", "")))
    mtu = network.get("mtu")
    if mtu is not None and mtu not in _MTU:
        raise links.invalid("mtu", mtu, f"Must be between {_MTU[0]} and {_MTU[-1]} inclusive.")
    if before is not None:
        _check_mtu_change(call, before, mtu)
        return network
    profile = network.get("networkProfile")
    if profile and network.get("autoCreateSubnetworks"):
        raise links.invalid(
            "autoCreateSubnetworks", "true", "Networks with a network profile are of custom mode."
        )
    return {**network, **({"networkProfile": _profile(call, profile)} if profile else {})}


def _check_mtu_change(call: Call, network: Resource, mtu: int | None) -> None:
    """Refuse another MTU for a network in which VMs run: they would all have to be stopped."""
    for _, instance in resources.each(call, INSTANCE, f"projects/{call.project}/"):
        if mtu != network["mtu"] and network["selfLink"] in _networks(INSTANCE, instance):
            raise links.invalid(
                "mtu", mtu, "The MTU can't be changed while VMs in the network are running."
            )


def _insert_network(call: Call) -> Resource:
    body = _completed_network(call, resources.without_nulls(call.body))
    quotas.check(call, NETWORK)
    name = NETWORK.prefix(call.project) + body["name"]
    network = _create(call, name, {**body, "_ready": call.end()})
    return call.operate(name, network["id"])


def _profile(call: Call, reference: str) -> str:
    name = links.resolve(
        reference, project=call.project, collection="networkProfiles", field="networkProfile"
    )
    if not offers.has_profile(links.last(name), call.request.scenarios):
        raise resources.not_found(name)
    return links.ROOT + name


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


def _list_networks(call: Call) -> Resource:
    prefix = call.prefix(NETWORK)
    entries = ((name, _show(call, it)) for name, it in resources.each(call, NETWORK, prefix))
    return lists.listed(call, NETWORK.singular, prefix.removesuffix("/"), entries)


def _add_peering(call: Call) -> Resource:
    """Connect the network to another one, as its owner does, or Google's Service Networking."""
    name = call.name(NETWORK)
    network = resources.require_ready(call, NETWORK, name)
    wanted = {"autoCreateRoutes": True, **call.body.get("networkPeering", {}), "state": "ACTIVE"}
    others = [it for it in network.get("peerings", []) if it["name"] != wanted.get("name")]
    return resources.change(call, NETWORK, name, {**network, "peerings": [*others, wanted]})


def _delete_network(call: Call) -> Resource:
    automatic = list(_automatic(call, links.ROOT + call.name(NETWORK)))
    operation = _NETWORKS.delete(call)
    for name, subnetwork in automatic:
        resources.keep(call, SUBNETWORK, name, {**subnetwork, "_gone": call.end()})
    return operation


def _automatic(call: Call, link: str) -> Iterator[tuple[str, Resource]]:
    """The subnetworks that go with their network of auto mode."""
    network = resources.require(call, NETWORK, links.name_of(link))
    for name, it in resources.each(call, SUBNETWORK, f"projects/{call.project}/"):
        is_own = it["network"] == link and it["name"] == network["name"]
        if network["autoCreateSubnetworks"] and is_own:
            yield name, it


def _users_of_network(call: Call, link: str) -> Iterator[str]:
    automatic = {name for name, _ in _automatic(call, link)}
    for kind in (INSTANCE, SUBNETWORK, FIREWALL, ROUTER, FORWARDING_RULE, ENDPOINT_GROUP):
        # VMs join networks of a host project from others, too.
        where = "projects/" if kind is INSTANCE else f"projects/{call.project}/"
        for user, resource in resources.each(call, kind, where):
            if link in _networks(kind, resource) and user not in automatic:
                yield user


def _networks(kind: Kind, resource: Resource) -> list[str]:
    if kind is INSTANCE:
        return [interface["network"] for interface in resource["networkInterfaces"]]
    return [resource.get("network", "")]


# ------------------------------------------------------------------ subnetworks

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


def _completed_subnetwork(call: Call, body: Resource) -> Resource:
    _check_region(call, resources.require(call, NETWORK, links.name_of(body["network"])))
    name = call.prefix(SUBNETWORK) + body["name"]
    if resources.find(call, SUBNETWORK, name) is None:
        _check_ranges(call, name, body)
    return _subnetwork_fields(body)


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


def _patch_subnetwork(call: Call) -> Resource:
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
    changed["gatewayAddress"] = _gateway(str(wanted))
    return _change(call, name, changed)


def _set_private_access(call: Call) -> Resource:
    name = call.name(SUBNETWORK)
    subnetwork = resources.require_ready(call, SUBNETWORK, name)
    access = bool(call.body.get("privateIpGoogleAccess"))
    changed = {**subnetwork, "privateIpGoogleAccess": access}
    return _change(call, name, changed)


def reaches_google(call: Call, interfaces: Sequence[Resource]) -> bool:
    """Whether a VM gets out: by an address, by Cloud NAT, or to Google's APIs alone.

    Source: VPC, "Configuring Private Google Access", read in 2026-11: per subnetwork. That those of
    a default network have it off is believed (docs/development/gotchas.md).
    """
    first = interfaces[0]
    name = links.name_of(first["subnetwork"])
    subnetwork = resources.find(call, SUBNETWORK, name) or {}
    if first.get("accessConfigs") or subnetwork.get("privateIpGoogleAccess"):
        return True
    region = name.partition("/subnetworks/")[0]
    routers = (it for _, it in resources.each(call, ROUTER, f"{region}/routers/"))
    return any(it.get("nats") and it["network"] == first["network"] for it in routers)


def _users_of_subnetwork(call: Call, link: str) -> Iterator[str]:
    # VMs of the projects too that a host project shares it with.
    for user, instance in resources.each(call, INSTANCE, "projects/"):
        if any(interface["subnetwork"] == link for interface in instance["networkInterfaces"]):
            yield user
    for user, rule in resources.each(call, FORWARDING_RULE, f"projects/{call.project}/"):
        if rule.get("subnetwork") == link:
            yield user


def _utilized(call: Call, subnetwork: Resource) -> tuple[int, int]:
    """The addresses of the first range that are taken and free; four of each range are Google's."""
    link = subnetwork["selfLink"]
    instances = (it for _, it in resources.each(call, INSTANCE, "projects/"))
    interfaces = (nic for it in instances for nic in it["networkInterfaces"])
    taken = _GOOGLES + sum(it.get("subnetwork") == link for it in interfaces)
    return taken, ipaddress.IPv4Network(subnetwork["ipCidrRange"]).num_addresses - taken


def _get_subnetwork(call: Call) -> Resource:
    subnetwork = resources.require(call, SUBNETWORK, call.name(SUBNETWORK))
    shown = resources.show(subnetwork)
    if call.parameters.get("views") != "WITH_UTILIZATION":
        return shown
    taken, free = _utilized(call, subnetwork)
    first = {"totalAllocatedIp": str(taken), "totalFreeIp": str(free)}
    return {**shown, "utilizationDetails": {"ipv4Utilizations": [first]}}


# ------------------------------------------------------------------ firewall rules and routers

_NAT_DEFAULTS: Resource = {
    "type": "PUBLIC",
    "endpointTypes": ["ENDPOINT_TYPE_VM"],
    "autoNetworkTier": "PREMIUM",
}


def _completed_rule(call: Call, rule: Resource) -> Resource:
    rule = resources.defaults(rule, _RULE_DEFAULTS)
    network = resources.require(call, NETWORK, links.name_of(rule["network"]))
    if "networkProfile" in network:
        raise links.invalid(
            "network",
            rule["network"],
            "Firewall rules are not supported in networks with an RDMA network profile.",
        )
    sources = ("sourceRanges", "sourceTags", "sourceServiceAccounts")
    if rule["direction"] == "INGRESS" and not any(rule.get(field) for field in sources):
        rule["sourceRanges"] = ["0.0.0.0/0"]
    if rule["direction"] == "EGRESS" and not rule.get("destinationRanges"):
        rule["destinationRanges"] = ["0.0.0.0/0"]
    return rule


def _completed_router(_call: Call, router: Resource) -> Resource:
    nats = router.get("nats") or []
    if any(nat.get("subnetworks") for nat in nats):
        raise GoogleError(501, "A NAT for some subnetworks is not part of the simulated cloud.")
    completed = {"nats": [resources.defaults(nat, _NAT_DEFAULTS) for nat in nats]}
    return {
        "encryptedInterconnectRouter": False,
        **router,
        **(completed if "nats" in router else {}),
    }


_IN_NETWORK = {"network": NETWORK}
_NETWORKS = Rest(kind=NETWORK, completed=_completed_network, users=_users_of_network)
_SUBNETWORKS = Rest(
    kind=SUBNETWORK,
    references=_IN_NETWORK,
    completed=_completed_subnetwork,
    users=_users_of_subnetwork,
)
_FIREWALLS = Rest(
    kind=FIREWALL,
    references=_IN_NETWORK,
    usual={"network": "global/networks/default"},
    completed=_completed_rule,
)
_ROUTERS = Rest(kind=ROUTER, references=_IN_NETWORK, completed=_completed_router)
METHODS: Mapping[str, Callable[[Call], Resource]] = {
    **_NETWORKS.methods("patch"),
    "networks.delete": _delete_network,
    "networks.insert": _insert_network,
    "networks.get": lambda call: _show(call, resources.require(call, NETWORK, call.name(NETWORK))),
    "networks.list": _list_networks,
    "networks.addPeering": _add_peering,
    **_SUBNETWORKS.methods("insert", "list", "aggregatedList", "delete"),
    "subnetworks.get": _get_subnetwork,
    "subnetworks.patch": _patch_subnetwork,
    "subnetworks.expandIpCidrRange": _expand,
    "subnetworks.setPrivateIpGoogleAccess": _set_private_access,
    **_FIREWALLS.methods("insert", "get", "list", "patch", "update", "delete"),
    **_ROUTERS.methods("insert", "get", "list", "aggregatedList", "patch", "update", "delete"),
}
