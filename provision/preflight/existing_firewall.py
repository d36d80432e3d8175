"""The firewall rules of a network of others: told to its team, or made where that has agreed."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Final

from provision.catalogue import names
from provision.codes import Code
from provision.errors import Problem
from provision.google import resources
from provision.preflight import permissions
from provision.preflight.check import CheckNote, Settled
from provision.preflight.existing import seen
from provision.spec.cluster import GkeSpec, VmSpec
from provision.spec.firewall_rules import FirewallRule

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from provision.preflight.check import CheckContext, Finding
    from provision.spec.cluster import ClusterSpec

IAP: Final = "35.235.240.0/20"
"""Where Identity-Aware Proxy's connections come from (d:iap/docs/using-tcp-forwarding)."""

_ALL: Final = {"tcp": (), "udp": (), "icmp": ()}
_SECURITY_ADMIN: Final = "roles/compute.securityAdmin"


def of(spec: ClusterSpec, network: str, cidr: str, pods: str = "") -> Iterator[FirewallRule]:
    """The rules that machines need; those of GKE are also made by GKE, if its account may.

    `cidr`: the range of their subnetwork; what to put there, if it is not known.
    """
    match spec:
        case GkeSpec():
            yield from _of_gke(spec, network, cidr, pods)
        case VmSpec():
            yield from _of_vms(spec, network, cidr)
        case _:
            # A kind of another type fails in its first test, and shows nothing that is half true.
            raise NotImplementedError(type(spec))


def _of_gke(spec: GkeSpec, network: str, cidr: str, pods: str) -> Iterator[FirewallRule]:
    for name, purpose, source in (
        (names.FIREWALL_NODES, "kubelets, webhooks and NCCL between the nodes", cidr),
        (names.FIREWALL_PODS, "connections of pods to nodes and to each other", pods),
    ):
        yield FirewallRule(
            name=name.of(spec.name_prefix),
            network=network,
            purpose=purpose,
            source=source,
            allowed=_ALL,
        )


def _of_vms(spec: VmSpec, network: str, cidr: str) -> Iterator[FirewallRule]:
    if spec.group.size.most > 1 or spec.ray_version is not None:
        what = "Ray's, NCCL's and other connections" if spec.ray_version else "NCCL's connections"
        yield FirewallRule(
            name=names.FIREWALL_INTERNAL.of(spec.name_prefix),
            network=network,
            purpose=f"{what} between the VMs, on ports that differ each time",
            source=cidr,
            allowed=_ALL,
        )
    yield FirewallRule(
        name=names.FIREWALL_SSH.of(spec.name_prefix),
        network=network,
        purpose="ssh through Identity-Aware Proxy, and what is tunnelled in it",
        source=IAP,
        allowed={"tcp": (22,)},
    )


def of_gpus(spec: ClusterSpec, number: int, network: str, cidr: str) -> FirewallRule:
    """The rule of a network of the GPUs' interfaces; for the other arguments, see `of`."""
    return FirewallRule(
        name=names.FIREWALL_GPU.numbered(number).of(spec.name_prefix),
        network=network,
        purpose=f"NCCL's connections between the GPUs, over interface {number}",
        source=cidr,
        allowed=_ALL,
    )


def made(ctx: CheckContext[ClusterSpec], needed: Sequence[FirewallRule]) -> Iterator[Finding]:
    """Check that all rules can be made: one that another team has may go at any time."""
    for one in needed:
        if not one.is_whole:
            yield Problem(
                code=Code.PERMISSION_MISSING,
                setting="MAKE_FIREWALL",
                what=f"the firewall rule {one.name} can't be made",
                why="it lets in what comes from the subnetwork, whose range these credentials may"
                " not see",
                fix=f"ask an administrator of {one.project} for the role Compute Network Viewer"
                " (roles/compute.networkViewer) there, or remove MAKE_FIREWALL",
            )
    for host in ctx.spec.hosts:
        wanted = permissions.listed([resources.FIREWALL.permissions])
        lacking = sorted(set(wanted) - set(ctx.answers.held_permissions(host, wanted)))
        if lacking:
            yield Problem(
                code=Code.PERMISSION_MISSING,
                setting="MAKE_FIREWALL",
                what=f"these credentials may not make firewall rules in {host}",
                why=f"they lack {', '.join(lacking)} on it",
                fix=f"ask an administrator of {host} to run:\ngcloud projects"
                f" add-iam-policy-binding {host} --member <YOU> --role {_SECURITY_ADMIN}\n"
                "or remove MAKE_FIREWALL: Plan then has the rules as commands, to send",
            )
    yield Settled({"firewall_rules": tuple(needed)})


def told(ctx: CheckContext[ClusterSpec], needed: Iterable[FirewallRule]) -> Iterator[Finding]:
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
    ctx: CheckContext[ClusterSpec], needed: Iterable[FirewallRule]
) -> tuple[list[FirewallRule], bool]:
    """The firewall rules that are not there; and whether some could not be looked for."""
    lacking, hidden = [], False
    for one in needed:
        at = f"projects/{one.project}/global/firewalls"
        there, refused = seen(functools.partial(ctx.answers.listed, at))
        hidden = hidden or refused is not None
        if not one.is_met_by(there or ()):
            lacking.append(one)
    return lacking, hidden
