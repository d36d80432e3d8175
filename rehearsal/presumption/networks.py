"""The network and the subnetwork that an env.list names, with what a network's team gives."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace

from rehearsal.cloud import filestore, projects
from rehearsal.cloud.facts import machines, places
from rehearsal.cloud.facts.machines import GpuNetwork
from rehearsal.presumption import texts
from rehearsal.presumption.things import MARK, Ask, Grant, Thing

_NETWORK = re.compile(
    r"(?:.*projects/(?P<project>[^/]+)/global/networks/)?(?P<name>[a-z][-a-z0-9]*)"
)
_SUBNETWORK = re.compile(
    r"(?:.*projects/(?P<project>[^/]+)/regions/(?P<region>[^/]+)/subnetworks/)?"
    r"(?P<name>[a-z][-a-z0-9]*)"
)
_SEVERAL = re.compile(r"(.*)\{(\d+)\.\.(\d+)\}(.*)")
_RANGE = "10.{}.0.0/22"
_FIRST = 200
_SECONDARY = {"GKE_PODS_RANGE": "10.220.0.0/16", "GKE_SERVICES_RANGE": "10.221.0.0/20"}


def of(settings: Mapping[str, str]) -> Iterator[Thing]:
    """The subnetwork in its network, in the project or in a host project that is attached.

    A network's team gives more: the way out, Google's APIs without it, and the right to use the
    subnetwork for Google's account that makes the VMs of groups. Firewall rules it does not give
    before it knows which.
    """
    network = _NETWORK.fullmatch(settings.get("NETWORK", ""))
    subnetwork = _SUBNETWORK.fullmatch(settings.get("SUBNETWORK", ""))
    if network is None or subnetwork is None:
        return
    user = settings["PROJECT_ID"]
    owner = network["project"] or subnetwork["project"] or user
    region = subnetwork["region"] or settings.get("REGION") or places.region_of(settings["ZONE"])
    secondary = [
        {"rangeName": settings[name], "ipCidrRange": cidr}
        for name, cidr in _SECONDARY.items()
        if settings.get(name) and "/" not in settings[name]
    ]
    first = _subnetwork(user, owner, network["name"], region, subnetwork["name"])
    if owner != user and settings.get("NFS_FILESHARE_LIST"):
        first = _with_service_access(first, owner, network["name"])
    yield first if not secondary else _with_ranges(first, user, owner, secondary)
    yield from _of_gpus(settings, owner, region)


def _with_service_access(first: Thing, owner: str, network: str) -> Thing:
    """The subnetwork in a network with private services access, by which shares are reached."""
    name = filestore.SERVICE_NETWORKING
    tenant = f"projects/google-tenant/global/networks/{name}"
    ask = Ask(
        "POST",
        f"/compute/v1/projects/{owner}/global/networks/{network}/addPeering",
        body={"networkPeering": {"name": name, "network": tenant, "exchangeSubnetRoutes": True}},
    )
    return replace(first, make=[*first.make, ask])


def _with_ranges(first: Thing, user: str, owner: str, secondary: list[dict[str, str]]) -> Thing:
    """The subnetwork with ranges for a GKE cluster, and what GKE's account needs for one."""
    robot = f"service-{projects.number(user)}@container-engine-robot.iam.gserviceaccount.com"
    make = [
        replace(it, body={**it.body, "secondaryIpRanges": secondary})
        if it.path.endswith("/subnetworks")
        else it
        for it in first.make
    ]
    roles = ("roles/compute.networkUser", "roles/container.hostServiceAgentUser")
    grants = [Grant(owner, role, robot) for role in roles if owner != user]
    return replace(first, make=make, grants=grants)


def _of_gpus(settings: Mapping[str, str], owner: str, region: str) -> Iterator[Thing]:
    """The subnetworks of the GPUs' interfaces: one network each, or one for all that do RDMA."""
    machine = machines.find(settings.get("VM_TYPE", ""))
    is_rdma = machine is not None and machine.gpu_network is GpuNetwork.RDMA
    user, zone = settings["PROJECT_ID"], settings["ZONE"]
    for number, text in enumerate(_names(settings.get("GPU_SUBNETWORKS", "")), start=1):
        match = _SUBNETWORK.fullmatch(text)
        if match is None:
            return
        project, where = match["project"] or owner, match["region"] or region
        # The first one beside the machine's own is no RDMA.
        profile = f"{zone}{machines.RDMA_PROFILE}" if is_rdma and number > 1 else ""
        network = "presumed-rdma" if profile else f"presumed-gpus-{number}"
        yield _subnetwork(user, project, network, where, match["name"], number, profile)


def _names(text: str) -> Iterator[str]:
    for item in texts.items(text):
        match = _SEVERAL.fullmatch(item)
        if match is None:
            yield item
            continue
        before, first, last, after = match.groups()
        yield from (f"{before}{number}{after}" for number in range(int(first), int(last) + 1))


def _subnetwork(  # noqa: PLR0913, PLR0917 - whose, where, and what
    user: str,
    owner: str,
    network: str,
    region: str,
    name: str,
    number: int = 0,
    profile: str = "",
) -> Thing:
    at = f"/compute/v1/projects/{owner}"
    link = f"projects/{owner}/global/networks/{network}"
    path = f"{at}/regions/{region}/subnetworks"
    nat = {
        "name": f"{network}-nat",
        "natIpAllocateOption": "AUTO_ONLY",
        "sourceSubnetworkIpRangesToNat": "ALL_SUBNETWORKS_ALL_IP_RANGES",
    }
    body = {"name": network, "description": MARK, "autoCreateSubnetworks": False, "mtu": 8896}
    if profile:
        body["networkProfile"] = f"projects/{owner}/global/networkProfiles/{profile}"
    made = {
        "name": name,
        "description": MARK,
        "network": link,
        "ipCidrRange": _RANGE.format(_FIRST + number),
        "privateIpGoogleAccess": True,
    }
    asks = [
        Ask("POST", f"{at}/global/networks", body=body),
        Ask("POST", path, body=made),
    ]
    if not number:
        router = {"name": f"{network}-router", "network": link, "nats": [nat]}
        asks.append(Ask("POST", f"{at}/regions/{region}/routers", body=router))
    abroad = ""
    if owner != user:
        abroad = f" of the host project {owner}"
        agent = f"serviceAccount:{projects.number(user)}@cloudservices.gserviceaccount.com"
        binding = {"role": "roles/compute.networkUser", "members": [agent]}
        attached = {"xpnResource": {"id": user, "type": "PROJECT"}}
        asks += [
            Ask("POST", f"{at}/enableXpnHost"),
            Ask("POST", f"{at}/enableXpnResource", body=attached),
            Ask("POST", f"{path}/{name}/setIamPolicy", body={"policy": {"bindings": [binding]}}),
        ]
    return Thing(f"the subnetwork {name}{abroad}", f"{path}/{name}", asks, f"{path}/{name}")
