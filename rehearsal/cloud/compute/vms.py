"""What a VM of a managed instance group is made of: fields, disks, interfaces, addresses.

The metadata of VMs: what they have of their template is kept once for all of them.

A start-up script may have a hundred thousand characters, and a group a thousand VMs. What somebody
has set on a VM itself stands in its `_given`, in place of the template's.
"""

import ipaddress
from collections.abc import Iterator

from rehearsal.cloud import iam
from rehearsal.cloud.compute import links, properties, resources, startup_told
from rehearsal.cloud.compute.resources import DISK, INSTANCE, POLICY, SUBNETWORK, Call, Resource
from rehearsal.cloud.facts import places

_FIRST_HOST, _LAST_HOSTS = 2, 2
# Ranges for documentation (RFC 5737): nobody's machine answers there.
_EXTERNAL = tuple(
    address
    for cidr in ("203.0.113.0/24", "198.51.100.0/24", "192.0.2.0/24")
    for address in ipaddress.IPv4Network(cidr).hosts()
)


def fields(call: Call, name: str, group: str, template: Resource) -> Resource:
    """What a VM has of its template; its interfaces are found elsewhere."""
    wanted = template["properties"]
    zone = links.ROOT + links.scope(name)
    return {
        **from_template(group, template),
        "machineType": f"{zone}/machineTypes/{wanted['machineType']}",
        "description": wanted.get("description", ""),
        "disks": _make_disks(call, name, template),
        "tags": wanted["tags"],
        "serviceAccounts": wanted.get("serviceAccounts") or [],
        "_accounts": {
            one["email"]: iam.number_of(call.store, one["email"])
            for one in wanted.get("serviceAccounts") or []
        },
        "scheduling": wanted["scheduling"],
        "guestAccelerators": [
            {"acceleratorType": f"{zone}/acceleratorTypes/{kind}", "acceleratorCount": count}
            for kind, count in properties.accelerators(wanted)
        ],
        "canIpForward": wanted.get("canIpForward", False),
        "shieldedInstanceConfig": wanted.get("shieldedInstanceConfig", {}),
        "reservationAffinity": wanted.get("reservationAffinity"),
        "cpuPlatform": "Unknown CPU Platform",
        "deletionProtection": False,
        "startRestricted": False,
        "fingerprint": resources.fingerprint([name, template["id"]]),
        "resourcePolicies": _policies(call, wanted),
    }


def from_template(group: str, template: Resource) -> Resource:
    """What a running VM can get again of its template."""
    labels = dict(template["properties"].get("labels") or {})
    return {
        "labels": labels,
        "labelFingerprint": resources.fingerprint(labels),
        "_group": group,
        "_template": template["selfLink"],
        "_built": built(template),
        "_metadata": metadata_key(template),
        "_items": [
            {"key": "instance-template", "value": links.name_of(template["selfLink"])},
            {"key": "created-by", "value": group},
        ],
    }


def built(template: Resource) -> str:
    """What stands for all that no running VM can get again of a template."""
    properties = {**template["properties"], "labels": None, "metadata": None}
    properties["disks"] = [
        {**disk, "initializeParams": {**disk.get("initializeParams", {}), "labels": None}}
        for disk in properties["disks"]
    ]
    return resources.fingerprint(properties)


def _policies(call: Call, wanted: Resource) -> list[str]:
    region = places.region_of(call.parameters["zone"])
    prefix = links.ROOT + POLICY.prefix(call.project, region)
    return [prefix + links.last(name) for name in wanted.get("resourcePolicies") or []]


def _make_disks(call: Call, name: str, template: Resource) -> list[Resource]:
    """Make the disks of a VM, and tell how they are attached to it."""
    attached = []
    for index, disk in enumerate(template["properties"]["disks"]):
        parameters = disk.get("initializeParams", {})
        entry = {key: value for key, value in disk.items() if key != "initializeParams"}
        if disk["type"] == "PERSISTENT":
            suffix = f"-{index}" if index else ""
            own = f"{DISK.prefix(call.project, links.last(links.scope(name)))}{links.last(name)}"
            entry["source"] = links.ROOT + own + suffix
            _make_disk(call, own + suffix, name, disk)
        entry["deviceName"] = disk.get("deviceName") or f"persistent-disk-{index}"
        entry["diskSizeGb"] = parameters.get("diskSizeGb") or disk.get("diskSizeGb", "10")
        attached.append(entry)
    return attached


def _make_disk(call: Call, name: str, user: str, disk: Resource) -> None:
    parameters = disk.get("initializeParams", {})
    zone = links.ROOT + links.scope(name)
    values = {
        "sizeGb": str(parameters.get("diskSizeGb") or disk.get("diskSizeGb", "10")),
        "type": f"{zone}/diskTypes/{parameters.get('diskType', 'pd-standard')}",
        "sourceImage": parameters.get("sourceImage"),
        "labels": parameters.get("labels"),
        "status": "READY",
        "users": [links.ROOT + user],
        "physicalBlockSizeBytes": "4096",
    }
    call.store.delete(DISK.stored, name)
    resources.create(call, DISK, name, values)


def discard_disks(call: Call, instance: Resource, gone: float) -> None:
    """Release a VM's disks: those that go with it are gone at the moment given."""
    for attached in instance["disks"]:
        name = links.name_of(attached.get("source", ""))
        disk = resources.find(call, DISK, name)
        if disk is None:
            continue
        if attached.get("autoDelete"):
            resources.keep(call, DISK, name, {**disk, "_gone": gone})
        else:
            resources.keep(call, DISK, name, {**disk, "users": []})


class Pools:
    """Free addresses of subnetworks; what one request takes is not given again by it."""

    def __init__(self, call: Call) -> None:
        self._call = call
        self._free: dict[str, Iterator[str]] = {}
        self._taken = {
            (interface["subnetwork"], interface["networkIP"])
            # A subnetwork of a host project has VMs of several.
            for _, instance in resources.each(call, INSTANCE, "projects/")
            for interface in instance["networkInterfaces"]
        }

    def take(self, subnetwork: Resource) -> str | None:
        """The lowest free address, or None when there is none left."""
        link = subnetwork["selfLink"]
        if link not in self._free:
            self._free[link] = self._addresses(subnetwork)
        return next(self._free[link], None)

    def _addresses(self, subnetwork: Resource) -> Iterator[str]:
        cidr = ipaddress.IPv4Network(subnetwork["ipCidrRange"])
        # Google keeps the first two addresses and the last two of each range.
        for offset in range(_FIRST_HOST, cidr.num_addresses - _LAST_HOSTS):
            if (subnetwork["selfLink"], str(cidr[offset])) not in self._taken:
                yield str(cidr[offset])


def interfaces_of(call: Call, template: Resource, pools: Pools) -> list[Resource] | None:
    """The interfaces of a new VM with their addresses; None when a subnetwork is full."""
    result = []
    for interface in template["properties"]["networkInterfaces"]:
        subnetwork = _subnetwork(call, interface)
        address = pools.take(subnetwork)
        if address is None:
            return None
        access = [
            {**config, "natIP": config.get("natIP") or external_address(call)}
            for config in interface.get("accessConfigs") or []
        ]
        result.append(
            {
                **interface,
                "network": subnetwork["network"],
                "subnetwork": subnetwork["selfLink"],
                "networkIP": address,
                "stackType": "IPV4_ONLY",
                "fingerprint": resources.fingerprint([address, interface["name"]]),
                **({"accessConfigs": access} if access else {}),
            }
        )
    return result


def _subnetwork(call: Call, interface: Resource) -> Resource:
    if interface.get("subnetwork"):
        return resources.require(call, SUBNETWORK, links.name_of(interface["subnetwork"]))
    network = properties.network_of(call, interface)
    name = "default" if network is None else network["name"]
    region = places.region_of(call.parameters["zone"])
    return resources.require(call, SUBNETWORK, SUBNETWORK.prefix(call.project, region) + name)


def external_address(call: Call) -> str:
    """The next external address."""
    return str(_EXTERNAL[(call.store.count("compute/external") - 1) % len(_EXTERNAL)])


_COLLECTION = "compute/metadata"
_PROXY = "proxy-url"


def keep_metadata(call: Call, template: Resource) -> None:
    """Keep the metadata of a template for VMs that are made from it now."""
    call.store.put(_COLLECTION, metadata_key(template), template["properties"]["metadata"])


def metadata_key(template: Resource) -> str:
    """What names the kept metadata of a template: their fingerprint."""
    return str(template["properties"]["metadata"]["fingerprint"])


def metadata_of(call: Call, instance: Resource) -> Resource:
    """A VM's whole metadata at the call's moment."""
    return MetadataReader(call).of(instance)


class MetadataReader:
    """Reads the metadata of many VMs within one call."""

    def __init__(self, call: Call) -> None:
        self._call = call
        self._known: dict[str, Resource] = {}

    def of(self, instance: Resource) -> Resource:
        """A VM's whole metadata at the call's moment."""
        name = instance["_metadata"]
        if name not in self._known:
            self._known[name] = self._call.store.get(_COLLECTION, name) or {}
        shared = self._known[name]
        given = instance.get("_given")
        items = [*(shared.get("items") or []), *instance["_items"]] if given is None else [*given]
        url = startup_told.proxy_url(instance, self._call.now)
        if url is not None and all(item["key"] != _PROXY for item in items):
            items.append({"key": _PROXY, "value": url})
        # The shared part is long, and stands for itself by its own fingerprint.
        told = [name, instance["_items"], given, url]
        return {**shared, "items": items, "fingerprint": resources.fingerprint(told)}
