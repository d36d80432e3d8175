"""The firewall rules of a network of others: told to its team, or made where that has agreed."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Final

from provision.catalogue import names
from provision.codes import Code
from provision.google import resources
from provision.preflight import permissions
from provision.preflight.check import Finding, note, refuse, seen
from provision.spec.cluster import GkeSpec, VmSpec
from provision.spec.networks import FirewallRule

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from provision.catalogue.names import DerivedName
    from provision.preflight.check import CheckContext
    from provision.spec.cluster import ClusterSpec

IAP: Final = "35.235.240.0/20"
"""Where Identity-Aware Proxy's connections come from (d:iap/docs/using-tcp-forwarding)."""

_SECURITY_ADMIN: Final = "roles/compute.securityAdmin"


def of(spec: ClusterSpec, network: str, cidr: str, pods: str = "") -> Iterator[FirewallRule]:
    """The rules that machines need; those of GKE are also made by GKE, if its account may.

    `cidr`: the range of their subnetwork; what to put there, if it is not known.
    """
    match spec:
        case GkeSpec():
            for name, source, purpose in (
                (names.FIREWALL_NODES, cidr, "kubelets, webhooks and NCCL between the nodes"),
                (names.FIREWALL_PODS, pods, "connections of pods to nodes and to each other"),
            ):
                yield _rule(spec, name, network, source, purpose)
        case VmSpec():
            its = "Ray's" if spec.ray_version else "Slurm's" if spec.slurm_partition else ""
            if spec.group.size.most > 1 or its:
                whose = f"{its}, NCCL's and other" if its else "NCCL's"
                purpose = f"{whose} connections between the VMs, on ports that differ each time"
                yield _rule(spec, names.FIREWALL_INTERNAL, network, cidr, purpose)
            yield FirewallRule(
                name=names.FIREWALL_SSH.of(spec.name_prefix),
                network=network,
                purpose="ssh through Identity-Aware Proxy, and what is tunnelled in it",
                source=IAP,
                allowed={"tcp": (22,)},
            )
        case _:
            # A kind of another type fails in its first test, and shows nothing that is half true.
            raise NotImplementedError(type(spec))


def of_gpus(spec: ClusterSpec, number: int, network: str, cidr: str) -> FirewallRule:
    """The rule of a network of the GPUs' interfaces; for the other arguments, see `of`."""
    purpose = f"NCCL's connections between the GPUs, over interface {number}"
    return _rule(spec, names.FIREWALL_GPU.numbered(number), network, cidr, purpose)


def _rule(
    spec: ClusterSpec, name: DerivedName, network: str, source: str, purpose: str
) -> FirewallRule:
    return FirewallRule(
        name=name.of(spec.name_prefix),
        network=network,
        purpose=purpose,
        source=source,
        allowed={"tcp": (), "udp": (), "icmp": ()},
    )


def made(ctx: CheckContext[ClusterSpec], needed: Sequence[FirewallRule]) -> Iterator[Finding]:
    """Check that all rules can be made: one that another team has may go at any time."""
    for one in needed:
        if not one.is_whole:
            yield refuse(
                Code.PERMISSION_MISSING,
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
            yield refuse(
                Code.PERMISSION_MISSING,
                setting="MAKE_FIREWALL",
                what=f"these credentials may not make firewall rules in {host}",
                why=f"they lack {', '.join(lacking)} on it",
                fix=f"ask an administrator of {host} to run:\ngcloud projects"
                f" add-iam-policy-binding {host} --member user:YOU --role {_SECURITY_ADMIN}\n"
                "or remove MAKE_FIREWALL: Plan then has the rules as commands, to send",
            )
    yield Finding(settled={"firewall_rules": tuple(needed)})


def told(ctx: CheckContext[ClusterSpec], needed: Iterable[FirewallRule]) -> Iterator[Finding]:
    """The firewall rules that the network's team has to have, as far as they are not seen."""
    lacking, hidden = [], False
    for one in needed:
        at = f"projects/{one.project}/global/firewalls"
        there, refused = seen(functools.partial(ctx.answers.listed, at))
        hidden = hidden or refused is not None
        if not one.is_met_by(there or ()):
            lacking.append(one)
    if lacking:
        yield note(
            Code.NOT_CHECKED if hidden else Code.NOTE,
            setting="NETWORK",
            what=f"the network has to let in what {len(lacking)} firewall"
            f" {'rules' if len(lacking) > 1 else 'rule'} would"
            + (", which could not be looked for" if hidden else ""),
            why="\n".join(f"{one.name}: {one.purpose}" for one in lacking),
            fix="unless policies let it in, ask an administrator of "
            + " and ".join(dict.fromkeys(one.project for one in lacking))
            + " to run:\n"
            + "\n".join(one.gcloud for one in lacking)
            + "\nor in Terraform:\n"
            + "\n".join(one.terraform for one in lacking),
        )
