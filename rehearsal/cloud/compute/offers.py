"""Regions, zones, and what they offer, as the API tells it."""

import functools
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from rehearsal.cloud import projects
from rehearsal.cloud.compute import links, lists, operations, quotas, resources, shared_vpc
from rehearsal.cloud.compute.resources import Call, Resource
from rehearsal.cloud.facts import machines, offers, places

_CREATED = "1969-12-31T16:00:00.000-08:00"
"""When what has always been there was made, according to Google."""


def _common(kind: str, name: str) -> Resource:
    return {
        "kind": f"compute#{kind}",
        "id": str(zlib.crc32(name.encode())),
        "creationTimestamp": _CREATED,
        "name": links.last(name),
        "selfLink": links.ROOT + name,
    }


def _zone(project: str, zone: str) -> Resource:
    return {
        **_common("zone", f"projects/{project}/zones/{zone}"),
        "description": zone,
        "status": "UP",
        "region": f"{links.ROOT}projects/{project}/regions/{places.region_of(zone)}",
        "supportsPzs": False,
    }


def _region(call: Call, region: str) -> Resource:
    project = call.project
    return {
        **_common("region", f"projects/{project}/regions/{region}"),
        "description": region,
        "status": "UP",
        "zones": [
            f"{links.ROOT}projects/{project}/zones/{zone}"
            for zone in places.zones_of(region, call.request.scenarios)
        ],
        "quotas": quotas.of_region(call, region),
        "supportsPzs": False,
    }


@functools.cache  # each page of the list over all zones asks for all of them
def _machine_type(project: str, zone: str, machine: machines.Machine) -> Resource:
    shown: dict[str, Any] = {
        **_common("machineType", f"projects/{project}/zones/{zone}/machineTypes/{machine.name}"),
        "description": f"{machine.vcpus} vCPUs, {machine.memory_mb / 1024:g} GB RAM",
        "guestCpus": machine.vcpus,
        "memoryMb": machine.memory_mb,
        "imageSpaceGb": 0,
        "maximumPersistentDisks": 128,
        "maximumPersistentDisksSizeGb": "263168",
        "zone": zone,
        "isSharedCpu": machine.is_shared,
        "architecture": "ARM64" if machine.is_arm else "X86_64",
    }
    if machine.gpu:
        gpu = {"guestAcceleratorType": machine.gpu, "guestAcceleratorCount": machine.gpus}
        shown["accelerators"] = [gpu]
    if machine.local_ssds:
        ssds = {"defaultInterface": "NVME", "partitionCount": machine.local_ssds}
        shown["bundledLocalSsds"] = ssds
    return shown


def _accelerator_type(project: str, zone: str, name: str) -> Resource:
    full = f"projects/{project}/zones/{zone}/acceleratorTypes/{name}"
    return {
        **_common("acceleratorType", full),
        "description": name.replace("-", " ").upper(),
        "maximumCardsPerInstance": machines.most_cards(name),
        "zone": links.ROOT + links.scope(full),
    }


def _disk_type(project: str, zone: str, name: str) -> Resource:
    least, most = offers.DISK_TYPES[name]
    full = f"projects/{project}/zones/{zone}/diskTypes/{name}"
    return {
        **_common("diskType", full),
        "description": name,
        "validDiskSize": f"{least}GB-{most}GB",
        "defaultDiskSizeGb": str(max(least, 100)) if name != "local-ssd" else "375",
        "zone": links.ROOT + links.scope(full),
    }


@dataclass(frozen=True)
class _Offer:
    collection: str
    singular: str  # as in `kind` and as the path's parameter
    # the names that a zone has under scenarios
    names: Callable[[str, frozenset[str]], Iterable[str]]
    # the document of one of them: project, zone, name
    document: Callable[[str, str, str], Resource]

    def methods(self) -> Mapping[str, Callable[[Call], Resource]]:
        """The API's methods."""
        return {
            f"{self.collection}.get": self._get,
            f"{self.collection}.list": self._list,
            f"{self.collection}.aggregatedList": self._aggregated,
        }

    def _each(self, call: Call, zone: str) -> Iterator[tuple[str, Resource]]:
        names = sorted(self.names(zone, call.request.scenarios))
        return ((name, self.document(call.project, zone, name)) for name in names)

    def _get(self, call: Call) -> Resource:
        zone, name = call.parameters["zone"], call.parameters[self.singular]
        if name not in self.names(zone, call.request.scenarios):
            full = f"projects/{call.project}/zones/{zone}/{self.collection}/{name}"
            raise resources.not_found(full)
        return self.document(call.project, zone, name)

    def _list(self, call: Call) -> Resource:
        zone = call.parameters["zone"]
        name = f"projects/{call.project}/zones/{zone}/{self.collection}"
        return lists.listed(call, self.singular, name, self._each(call, zone))

    def _aggregated(self, call: Call) -> Resource:
        everything = (
            (f"{zone}/{name}", document)
            for zone in places.every_zone(call.request.scenarios)
            for name, document in self._each(call, zone)
        )
        return lists.aggregated(call, self.collection, self.singular, everything)


_OFFERS = (
    _Offer(
        "machineTypes",
        "machineType",
        offers.machines_in,
        lambda project, zone, name: _machine_type(project, zone, machines.MACHINES[name]),
    ),
    _Offer(
        "acceleratorTypes",
        "acceleratorType",
        offers.gpus_in,
        _accelerator_type,
    ),
    _Offer("diskTypes", "diskType", lambda _zone, _scenarios: offers.DISK_TYPES, _disk_type),
)


def _list_zones(call: Call) -> Resource:
    zones = places.every_zone(call.request.scenarios)
    entries = ((zone, _zone(call.project, zone)) for zone in zones)
    return lists.listed(call, "zone", f"projects/{call.project}/zones", entries)


def _list_regions(call: Call) -> Resource:
    entries = ((region, _region(call, region)) for region in sorted(places.REGIONS))
    return lists.listed(call, "region", f"projects/{call.project}/regions", entries)


def _get_profile(call: Call) -> Resource:
    profile = call.parameters["networkProfile"]
    name = f"projects/{call.project}/global/networkProfiles/{profile}"
    if not offers.has_profile(profile, call.request.scenarios):
        raise resources.not_found(name)
    zone = profile.removesuffix(machines.RDMA_PROFILE)
    return {
        **_common("networkProfile", name),
        "description": f"RDMA over converged Ethernet in {zone}",
        "location": {"name": zone, "scope": "ZONE"},
        "profileType": {"networkType": "RDMA", "rdmaSubtype": "ROCE", "vpcSubtype": "REGIONAL"},
        "features": {"interfaceTypes": ["MRDMA"]},
    }


_PROJECT_CREATED = "2024-01-01T00:00:00.000-08:00"


def _get_project(call: Call) -> Resource:
    project = projects.require(call.project, call.store)
    return {
        "kind": "compute#project",
        "id": project.number,
        "creationTimestamp": _PROJECT_CREATED,
        "name": project.id,
        "commonInstanceMetadata": {
            "kind": "compute#metadata",
            "fingerprint": resources.fingerprint([]),
        },
        "quotas": quotas.of_project(call),
        "selfLink": f"{links.ROOT}projects/{project.id}",
        "defaultServiceAccount": project.compute_account,
        "xpnProjectStatus": shared_vpc.status(call),
        "defaultNetworkTier": "PREMIUM",
        "vmDnsSetting": "ZONAL_ONLY",
        "cloudArmorTier": "CA_STANDARD",
    }


def _scope(call: Call) -> str:
    for place in ("zone", "region"):
        if place in call.parameters:
            return f"projects/{call.project}/{place}s/{call.parameters[place]}/operations"
    return f"projects/{call.project}/global/operations"


def _get_operation(call: Call) -> Resource:
    name = f"{_scope(call)}/{call.parameters['operation']}"
    return operations.get(call.request, call.store, name)


def _list_operations(call: Call) -> Resource:
    scope = _scope(call)
    found = call.store.list(operations.COLLECTION, f"{scope}/")
    entries = ((name, operations.view(body, call.now)) for name, body in found)
    return lists.listed(call, "operation", scope, entries)


# `wait` answers at once: it may, by its contract, when it has waited long enough, and a request
# that slept would keep all others from the database.
METHODS: Mapping[str, Callable[[Call], Resource]] = {
    "zones.get": lambda call: _zone(call.project, call.parameters["zone"]),
    "zones.list": _list_zones,
    "regions.get": lambda call: _region(call, call.parameters["region"]),
    "regions.list": _list_regions,
    "networkProfiles.get": _get_profile,
    **{name: method for offer in _OFFERS for name, method in offer.methods().items()},
    "projects.get": _get_project,
    **{
        f"{collection}.{verb}": handler
        for collection in ("globalOperations", "regionOperations", "zoneOperations")
        for verb, handler in (
            ("get", _get_operation),
            ("wait", _get_operation),
            ("list", _list_operations),
        )
    },
}
