"""The network and the subnetwork that an env.list names, with what a network's team gives."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from rehearsal.cloud import projects
from rehearsal.cloud.facts import places
from rehearsal.presumption.things import MARK, Ask, Thing

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_NETWORK = re.compile(
    r"(?:.*projects/(?P<project>[^/]+)/global/networks/)?(?P<name>[a-z][-a-z0-9]*)"
)
_SUBNETWORK = re.compile(
    r"(?:.*projects/(?P<project>[^/]+)/regions/(?P<region>[^/]+)/subnetworks/)?"
    r"(?P<name>[a-z][-a-z0-9]*)"
)
_RANGE = "10.200.0.0/22"


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
    yield _subnetwork(user, owner, network["name"], region, subnetwork["name"])


def _subnetwork(user: str, owner: str, network: str, region: str, name: str) -> Thing:
    at = f"/compute/v1/projects/{owner}"
    link = f"projects/{owner}/global/networks/{network}"
    path = f"{at}/regions/{region}/subnetworks"
    nat = {
        "name": f"{network}-nat",
        "natIpAllocateOption": "AUTO_ONLY",
        "sourceSubnetworkIpRangesToNat": "ALL_SUBNETWORKS_ALL_IP_RANGES",
    }
    made = {
        "name": name,
        "description": MARK,
        "network": link,
        "ipCidrRange": _RANGE,
        "privateIpGoogleAccess": True,
    }
    asks = [
        Ask(
            "POST",
            f"{at}/global/networks",
            body={"name": network, "description": MARK, "autoCreateSubnetworks": False},
        ),
        Ask("POST", path, body=made),
        Ask(
            "POST",
            f"{at}/regions/{region}/routers",
            body={"name": f"{network}-router", "network": link, "nats": [nat]},
        ),
    ]
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
