"""The check of subnetworks that exist: that they are there, usable, large enough, with a way out.

They belong to others, often in a host project: what these credentials may not see there is said to
be unseen, not missing. Each finding says who has to do what.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from provision.codes import Code
from provision.errors import Problem
from provision.google.api import GoogleApiError, Service
from provision.google.resources import NETWORK
from provision.preflight import existing_firewall, existing_reach, existing_rights
from provision.preflight.check import Check
from provision.preflight.existing import Case, seen, unseen
from provision.settings.choices import OnlineCheck

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from provision.catalogue.gpu_networks import Network
    from provision.preflight.check import CheckContext, Finding
    from provision.spec.cluster import ClusterSpec
    from provision.spec.firewall_rules import FirewallRule
    from provision.spec.networks import ExistingNetwork


def _find(ctx: CheckContext[ClusterSpec]) -> Iterator[Finding]:
    """Check the subnetworks that the settings name."""
    existing = ctx.spec.existing
    if existing is None:
        return
    first = Case(ctx, existing.subnetwork)
    if first.is_abroad:
        apart = list(_attached(first))
        yield from apart
        if any(isinstance(one, Problem) for one in apart):
            return
    needed: list[FirewallRule] = []
    yield from _first(first, existing, needed)
    kinds = [one for one in ctx.spec.gpu_networks for _ in range(one.subnets)]
    for number, (one, kind) in enumerate(zip(existing.gpus, kinds, strict=True), start=1):
        yield from _of_gpus(Case(ctx, one, "GPU_SUBNETWORKS"), number, kind, needed)
    rules = existing_firewall.made if ctx.spec.makes_firewall else existing_firewall.told
    yield from rules(ctx, needed)


def _first(case: Case, existing: ExistingNetwork, needed: list[FirewallRule]) -> Iterator[Finding]:
    """Check the subnetwork of the first interface; adds the firewall rules that it needs."""
    found, refused = seen(lambda: case.ctx.answers.subnetwork(case.it.path))
    cidr = found["ipCidrRange"] if found else case.unknown_range
    pods = f"<RANGE {existing.pods}>"
    for one in (found or {}).get("secondaryIpRanges", []):
        pods = one["ipCidrRange"] if one["rangeName"] == existing.pods else pods
    if found is not None or refused is not None:
        needed += existing_firewall.of(case.ctx.spec, existing.path, cidr, pods)
    if found is not None:
        yield from _of_network(case, existing, found)
        if existing.pods:
            yield from existing_reach.ranges(case, existing, found)
        yield from existing_reach.way_out(case, found, existing.path)
    yield from existing_reach.shares(case, existing.path)
    yield from _each(case, found, refused)


def _of_gpus(
    case: Case, number: int, kind: Network, needed: list[FirewallRule]
) -> Iterator[Finding]:
    """Check the subnetwork of an interface of the GPUs; adds the firewall rule that it needs.

    Networks with a profile are open inside and take no rules.
    """
    found, refused = seen(lambda: case.ctx.answers.subnetwork(case.it.path))
    network = NETWORK.path(project=case.it.project, name=f"<NETWORK OF {case.it.name}>")
    if found is not None:
        network = str(found["network"]).partition("/v1/")[2]
        yield from _profile(case, kind, network)
        if kind.profile is None and any(one.network == network for one in needed):
            yield _taken(case, network)
    if kind.profile is None and (found is not None or refused is not None):
        cidr = found["ipCidrRange"] if found else case.unknown_range
        needed.append(existing_firewall.of_gpus(case.ctx.spec, number, network, cidr))
    yield from _each(case, found, refused)


def _taken(case: Case, network: str) -> Problem:
    return Problem(
        code=Code.CONFLICTING_SETTINGS,
        setting=case.setting,
        what=f"{case.it.name} is in {network.rpartition('/')[2]}, where another interface is, too",
        why="each interface of a VM needs a VPC network of its own, but those for RDMA",
        fix="name a subnetwork of another network in its place",
    )


def _each(
    case: Case, found: Mapping[str, Any] | None, refused: GoogleApiError | None
) -> Iterator[Finding]:
    """Check what any subnetwork has to have."""
    if refused is not None:
        words = f"the subnetwork {case.it.name}: its network, free addresses and way out"
        yield unseen(case, words, refused)
    elif found is None:
        yield _missing(case)
        return
    yield from existing_rights.of_caller(case)
    if case.is_abroad:
        yield from existing_rights.of_google(case)
    if found is not None:
        yield from existing_reach.room(case, found)


def _profile(case: Case, kind: Network, network: str) -> Iterator[Finding]:
    """Check that the network of an interface is made for its type, and for the zone."""
    found, refused = seen(lambda: case.ctx.answers.find(Service.COMPUTE, network))
    if refused is not None:
        yield unseen(case, f"the network of {case.it.name}, whether it is one for RDMA", refused)
        return
    actual = str((found or {}).get("networkProfile", "")).rpartition("/")[2]
    pools = (it for it in case.ctx.spec.pools if it.networks)
    zone = next((it.zone for it in pools), case.ctx.spec.zone)
    wanted = f"{zone}-{kind.profile}" if kind.profile else ""
    if actual != wanted:
        name = network.rpartition("/")[2]
        yield Problem(
            code=Code.CONFLICTING_SETTINGS,
            setting=case.setting,
            what=f"the network of {case.it.name} is not one for interfaces of type {kind.nic_type}"
            f" in {zone}",
            why=f"{name} has {f'the profile {actual}' if actual else 'no network profile'}, and"
            f" these need {f'{wanted}: a network for RDMA is of one zone' if wanted else 'none'}",
            fix=f"ask an administrator of {case.it.project} for a network"
            + (
                f" with --network-profile {wanted}, and name its subnetworks"
                if wanted
                else " without a profile, or name the subnetworks in the order of the interfaces"
            ),
        )


def _attached(case: Case) -> Iterator[Finding]:
    project, host = case.ctx.project, case.it.project
    found, refused = seen(
        lambda: case.ctx.answers.find(Service.COMPUTE, f"projects/{project}/getXpnHost")
    )
    known = (found or {}).get("name")
    if refused is not None:
        yield unseen(case, f"the host project of {project}, whether it is {host}", refused, project)
    elif known != host:
        other = f"attached to {known}" if known else "not attached to any host project"
        yield Problem(
            code=Code.RESOURCE_NOT_FOUND,
            setting="NETWORK",
            what=f"{project} is {other}, but NETWORK is in {host}",
            why="a project uses the subnetworks of the host project that it is attached to",
            fix="ask an administrator of the organization (Compute Shared VPC Admin) to run:\n"
            f"gcloud compute shared-vpc associated-projects add {project} --host-project {host}",
        )


def _missing(case: Case) -> Problem:
    it = case.it
    return Problem(
        code=Code.RESOURCE_NOT_FOUND,
        setting=case.setting,
        what=f"{it.project} has no subnetwork {it.name} in {it.region}",
        why="with NETWORK_CONFIG=existing, nothing is made there",
        fix=f"list what there is with: gcloud compute networks subnets list --project {it.project}"
        f" --regions {it.region}",
    )


def _of_network(
    case: Case, existing: ExistingNetwork, found: Mapping[str, Any]
) -> Iterator[Finding]:
    actual = str(found["network"]).rpartition("/")[2]
    if actual != existing.network:
        yield Problem(
            code=Code.CONFLICTING_SETTINGS,
            setting="NETWORK",
            what=f"{existing.network} is not the network of the subnetwork {case.it.name}",
            why=f"that is in {actual}",
            fix=f"NETWORK=projects/{case.it.project}/global/networks/{actual}, or another"
            " SUBNETWORK",
        )


def in_the_network(spec: ClusterSpec) -> tuple[str, ...]:
    """What is needed on a subnetwork of a host project, where no role of this project counts."""
    it = spec.existing
    if it is None or it.project == spec.project_id:
        return ()
    return (
        *(f"On the project {one}, roles/compute.securityAdmin;" for one in spec.hosts),
        *(f"On {one.path}, roles/compute.networkUser;" for one in (it.subnetwork, *it.gpus)),
        f"on the project {it.project}, roles/compute.networkViewer, to have it checked.",
    )


SUBNETWORK: Final = Check(
    name=OnlineCheck.SUBNETWORK,
    calls=(
        "compute.projects.getXpnHost",
        "compute.networks.get",
        "compute.subnetworks.get",
        "compute.subnetworks.testIamPermissions",
        "compute.subnetworks.getIamPolicy",
        "cloudresourcemanager.projects.get",
        "cloudresourcemanager.projects.getIamPolicy",
        "cloudresourcemanager.projects.testIamPermissions",
        "compute.routers.list",
        "compute.firewalls.list",
        "compute.instances.aggregatedList",
    ),
    says="with NETWORK_CONFIG=existing: the project is not attached to the host project; a"
    " subnetwork does not exist, is of another network or not for interfaces of these GPUs, may not"
    " be used by these credentials or by Google's account that makes VMs, has too few free"
    " addresses, or no way to Google's APIs; with MAKE_FIREWALL, its firewall rules can't be made."
    " What its owner does not let these credentials see is a note; so are firewall rules that are"
    " not there, with the commands and the Terraform that make them",
    find=_find,
    of_zone=True,
    applies=lambda ctx: ctx.spec.existing is not None,
)
