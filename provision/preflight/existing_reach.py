"""What a network of others has for machines: addresses, a way out, and rules that let in."""

from __future__ import annotations

import functools
import ipaddress
from typing import TYPE_CHECKING, Any, Final

from provision.codes import Code
from provision.errors import Problem
from provision.google.owner import MARKER
from provision.preflight.check import CheckNote
from provision.preflight.existing import seen, unseen

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from provision.preflight.check import CheckContext, Finding
    from provision.preflight.existing import Case
    from provision.spec.cluster import VmSpec
    from provision.spec.firewall_rules import FirewallRule

_OF_GOOGLE: Final = 4
"""The addresses of each range that Google keeps (docs: VPC, "Subnets", reserved addresses)."""


def room(case: Case, found: Mapping[str, Any]) -> Iterator[Finding]:
    """Check that the subnetwork has an address for each VM."""
    wanted = case.ctx.spec.group.size.most
    utilizations = found.get("utilizationDetails", {}).get("ipv4Utilizations", [])
    told = [it for it in utilizations if not it.get("rangeName")]
    size = ipaddress.IPv4Network(found["ipCidrRange"]).num_addresses - _OF_GOOGLE
    free = int(told[0].get("totalFreeIp", 0)) if told else size
    own = _own(case)
    if wanted > free + own:
        mine = f", and {own} of this deployment's VMs have one" if own else ""
        yield Problem(
            code=Code.NO_FREE_ADDRESSES,
            setting="INSTANCE_COUNT",
            what=f"the subnetwork {case.it.name} has too few addresses for {wanted} VMs",
            why=f"of its range {found['ipCidrRange']}, {max(free, 0)} are free{mine}",
            fix=f"INSTANCE_COUNT={max(free + own, 1)}, or another {case.setting}, or ask an"
            f" administrator of {case.it.project} to run:\ngcloud compute networks subnets"
            f" expand-ip-range {case.where} --prefix-length <SHORTER>",
        )


def _own(case: Case) -> int:
    """The addresses that this deployment's VMs have in it already."""
    if case.ctx.record is None:
        return 0
    vms = case.ctx.answers.machines_with(case.ctx.project, MARKER, case.ctx.record.cluster_id)
    interfaces = (nic for vm in vms for nic in vm.get("networkInterfaces", []))
    end = f"/{case.it.path}"
    return sum(str(nic.get("subnetwork", "")).endswith(end) for nic in interfaces)


def way_out(case: Case, found: Mapping[str, Any], network: str) -> Iterator[Finding]:
    """Check that VMs without addresses reach Google's APIs, and the internet.

    Args:
        case: The subnetwork of their first interface.
        found: What Google says of it.
        network: The path of its network.
    """
    if case.ctx.spec.group.external_ip:
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


def rules(ctx: CheckContext[VmSpec], needed: Iterable[FirewallRule]) -> Iterator[Finding]:
    """The firewall rules that the network's team has to have, as far as they are not seen."""
    lacking, hidden = _unmet(ctx, needed)
    if lacking:
        count, several = len(lacking), len(lacking) > 1
        owner = " and ".join(dict.fromkeys(one.project for one in lacking))
        yield CheckNote(
            Problem(
                code=Code.NOT_CHECKED if hidden else Code.NOTE,
                setting="NETWORK",
                what=f"the network has to let in what {count} firewall"
                f" {'rules' if several else 'rule'} would"
                + (", which could not be looked for" if hidden else ""),
                why="\n".join(f"{one.name}: {one.purpose}" for one in lacking),
                fix=f"unless policies let it in, ask an administrator of {owner} to run:\n"
                + "\n".join(one.gcloud for one in lacking)
                + "\nor in Terraform:\n"
                + "\n".join(one.terraform for one in lacking),
            )
        )


def _unmet(
    ctx: CheckContext[VmSpec], needed: Iterable[FirewallRule]
) -> tuple[list[FirewallRule], bool]:
    """The firewall rules that are not there; and whether some could not be looked for.

    Args:
        ctx: What every check gets.
        needed: The rules that machines need.
    """
    lacking, hidden = [], False
    for one in needed:
        at = f"projects/{one.project}/global/firewalls"
        there, refused = seen(functools.partial(ctx.answers.listed, at))
        hidden = hidden or refused is not None
        if not one.is_met_by(there or ()):
            lacking.append(one)
    return lacking, hidden
