"""What a network of others has for machines: addresses, a way out, and a way to shares."""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING, Any, Final

from provision.codes import Code
from provision.errors import Problem
from provision.google.api import Service
from provision.google.owner import MARKER
from provision.preflight.check import CheckNote
from provision.preflight.existing import seen, unseen
from provision.spec.ranges import OF_GOOGLE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from provision.preflight.check import Finding
    from provision.preflight.existing import Case
    from provision.spec.networks import ExistingNetwork

_SERVICES: Final = "servicenetworking-googleapis-com"


def room(case: Case, found: Mapping[str, Any]) -> Iterator[Finding]:
    """Check that the subnetwork has an address for each machine, and for a control plane."""
    spec = case.ctx.spec
    is_first = case.setting == "SUBNETWORK"
    pools = [pool for pool in spec.pools if is_first or pool.networks]
    wanted = sum(pool.size.most for pool in pools) + (spec.has_control_plane and is_first)
    free, own = _free(found, found["ipCidrRange"]), _own(case)
    if wanted > free + own:
        mine = f", and {own} of this deployment's machines have one" if own else ""
        fewer = "fewer nodes" if spec.has_control_plane else f"INSTANCE_COUNT={max(free + own, 1)}"
        yield Problem(
            code=Code.NO_FREE_ADDRESSES,
            setting=case.setting if spec.has_control_plane else "INSTANCE_COUNT",
            what=f"the subnetwork {case.it.name} has too few addresses for {wanted} "
            + ("nodes and control plane" if spec.has_control_plane else "VMs"),
            why=f"of its range {found['ipCidrRange']}, {max(free, 0)} are free{mine}",
            fix=f"{fewer}, or another {case.setting}, or ask an"
            f" administrator of {case.it.project} to run:\ngcloud compute networks subnets"
            f" expand-ip-range {case.where} --prefix-length <SHORTER>",
        )


def ranges(case: Case, existing: ExistingNetwork, found: Mapping[str, Any]) -> Iterator[Finding]:
    """Check that the subnetwork has the ranges for pods and Services, with room for the nodes."""
    offered = {it["rangeName"]: it["ipCidrRange"] for it in found.get("secondaryIpRanges", [])}
    for setting, name in (
        ("GKE_PODS_RANGE", existing.pods),
        ("GKE_SERVICES_RANGE", existing.services),
    ):
        if name not in offered:
            has = f"it has {', '.join(sorted(offered))}" if offered else "it has none"
            yield Problem(
                code=Code.RESOURCE_NOT_FOUND,
                setting=setting,
                what=f"the subnetwork {case.it.name} has no secondary range {name}",
                why=has,
                fix=f"ask an administrator of {case.it.project} to run:\ngcloud compute networks"
                f" subnets update {case.where} --add-secondary-ranges {name}=<RANGE>",
            )
    if existing.pods is None or existing.pods not in offered:
        return
    nodes = sum(pool.size.most for pool in case.ctx.spec.pools)
    each = case.ctx.spec.ranges.pods_of_node
    room = (_free(found, offered[existing.pods], existing.pods)) // each + _own(case)
    if nodes > room:
        yield Problem(
            code=Code.NO_FREE_ADDRESSES,
            setting="GKE_PODS_RANGE",
            what=f"the range {existing.pods} has room for {room} nodes, {nodes} may be wanted",
            why=f"of {offered[existing.pods]}, each node takes {each} addresses for pods",
            fix=f"fewer nodes (GKE_MAX_NODE_COUNT, max of SYSTEM_NODE_POOL), fewer pods on each"
            f" (GKE_MAX_PODS_PER_NODE), or ask an administrator"
            f" of {case.it.project} for a larger range",
        )


def _free(found: Mapping[str, Any], cidr: str, name: str = "") -> int:
    """The free addresses of a range; all of it where Google does not tell how many are used."""
    utilizations = found.get("utilizationDetails", {}).get("ipv4Utilizations", [])
    told = [it for it in utilizations if it.get("rangeName", "") == name]
    size = ipaddress.IPv4Network(cidr).num_addresses - (0 if name else OF_GOOGLE)
    return int(told[0].get("totalFreeIp", 0)) if told else size


def _own(case: Case) -> int:
    """The addresses that this deployment's VMs have in it already."""
    if case.ctx.record is None:
        return 0
    vms = case.ctx.answers.machines_with(case.ctx.project, MARKER, case.ctx.record.cluster_id)
    interfaces = (nic for vm in vms for nic in vm.get("networkInterfaces", []))
    end = f"/{case.it.path}"
    return sum(str(nic.get("subnetwork", "")).endswith(end) for nic in interfaces)


def way_out(case: Case, found: Mapping[str, Any], network: str) -> Iterator[Finding]:
    """Check that VMs without addresses reach Google's APIs, and the internet."""
    spec = case.ctx.spec
    if any(pool.external_ip for pool in spec.pools) or spec.outbound.proxy:
        return
    it, name = case.it, network.rpartition("/")[2]
    routers, refused = seen(
        lambda: case.ctx.answers.listed(f"projects/{it.project}/regions/{it.region}/routers")
    )
    has_nat = any(
        one.get("nats") and str(one["network"]).endswith(f"/{network}") for one in routers or ()
    )
    if has_nat:
        return
    if refused is not None:
        yield unseen(case, f"the Cloud NAT of {name}, the way out of VMs", refused)
    elif not found.get("privateIpGoogleAccess"):
        yield Problem(
            code=Code.CONFLICTING_SETTINGS,
            setting="SUBNETWORK",
            what=f"VMs in {it.name} have no way out: their start-up would fail",
            why="they have no addresses, it has no Private Google Access, and"
            f" {name} has no Cloud NAT in {it.region}",
            fix=f"ask an administrator of {it.project} to make a Cloud NAT for {name} in"
            f" {it.region}, and to run:\ngcloud compute networks subnets update {case.where}"
            " --enable-private-ip-google-access\nor ENABLE_EXTERNAL_IP=yes; SKIP_CHECKS=subnetwork"
            " if there is another way out",
        )
    else:
        yield CheckNote(
            Problem(
                code=Code.NOTE,
                setting="SUBNETWORK",
                what=f"{name} has no Cloud NAT in {it.region}",
                why="VMs reach Google's APIs by Private Google Access, but not the internet, where"
                " packages, containers and models come from",
                fix=f"if there is no other way out, ask an administrator of {it.project} for one",
            )
        )


def shares(case: Case, network: str) -> Iterator[Finding]:
    """Check that Filestore reaches a network of another project, where there are shares to make.

    Google peers no network of another project itself: its owner has to connect it to Google's
    services (VPC, "Configure private services access"), which is seen as a peering of this name.
    """
    if not case.ctx.spec.shares or case.it.project == case.ctx.spec.project_id:
        return
    found, refused = seen(lambda: case.ctx.answers.find(Service.COMPUTE, network))
    name, owner = network.rpartition("/")[2], case.it.project
    if refused is not None:
        yield unseen(case, f"private services access of {name}, by which shares are made", refused)
    elif found and not any(it.get("name") == _SERVICES for it in found.get("peerings", [])):
        yield Problem(
            code=Code.CONFLICTING_SETTINGS,
            setting="NFS_FILESHARE_LIST",
            what=f"{name} has no private services access, which shares on a Shared VPC need",
            why=f"Filestore joins a network of {owner} only by that",
            fix=f"ask an administrator of {owner} to run:\ngcloud compute addresses create"
            f" google-services --project {owner} --network {name} --global --purpose VPC_PEERING"
            f" --prefix-length 20\ngcloud services vpc-peerings connect --project {owner}"
            f" --network {name} --service servicenetworking.googleapis.com --ranges google-services"
            "\nor use a bucket (GCS_MOUNT_LIST)",
        )
