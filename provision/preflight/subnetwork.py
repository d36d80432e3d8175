"""The check of a subnetwork that exists: that it is there, usable, large enough and has a way out.

It belongs to others, often in a host project: what these credentials may not see there is said to
be unseen, not missing. Each finding says who has to do what.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from provision.codes import Code
from provision.errors import Problem
from provision.google.api import Service
from provision.preflight import existing_reach, existing_rights
from provision.preflight.check import Check
from provision.preflight.existing import Case, seen, unseen
from provision.settings.choices import OnlineCheck

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from provision.preflight.check import CheckContext, Finding
    from provision.spec.cluster import VmSpec


def _find(ctx: CheckContext[VmSpec]) -> Iterator[Finding]:
    """Check the subnetwork that NETWORK and SUBNETWORK name."""
    if ctx.spec.existing is None:
        return
    case = Case(ctx, ctx.spec.existing)
    if case.is_abroad:
        apart = list(_attached(case))
        yield from apart
        if apart:
            return
    found, refused = seen(lambda: ctx.answers.subnetwork(case.it.subnetwork_path))
    if refused is not None:
        yield unseen(
            case,
            f"the subnetwork {case.it.subnetwork}: its network, free addresses and way out",
            refused,
        )
    elif found is None:
        yield _missing(case)
        return
    yield from existing_rights.of_caller(case)
    if case.is_abroad:
        yield from existing_rights.of_google(case)
    if found is not None:
        yield from _of_network(case, found)
        yield from existing_reach.room(case, found)
        yield from existing_reach.way_out(case, found)
    yield from existing_reach.rules(case, found)


def _attached(case: Case) -> Iterator[Finding]:
    project, host = case.ctx.project, case.it.project
    found, refused = seen(
        lambda: case.ctx.answers.find(Service.COMPUTE, f"projects/{project}/getXpnHost")
    )
    known = (found or {}).get("name")
    if refused is None and known != host:
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
        setting="SUBNETWORK",
        what=f"{it.project} has no subnetwork {it.subnetwork} in {it.region}",
        why="with NETWORK_CONFIG=existing, nothing is made there",
        fix=f"list what there is with: gcloud compute networks subnets list --project {it.project}"
        f" --regions {it.region}",
    )


def _of_network(case: Case, found: Mapping[str, Any]) -> Iterator[Finding]:
    actual = str(found["network"]).rpartition("/")[2]
    if actual != case.it.network:
        yield Problem(
            code=Code.CONFLICTING_SETTINGS,
            setting="NETWORK",
            what=f"{case.it.network} is not the network of the subnetwork {case.it.subnetwork}",
            why=f"that is in {actual}",
            fix=f"NETWORK=projects/{case.it.project}/global/networks/{actual}, or another"
            " SUBNETWORK",
        )


SUBNETWORK: Final = Check(
    name=OnlineCheck.SUBNETWORK,
    calls=(
        "compute.projects.getXpnHost",
        "compute.subnetworks.get",
        "compute.subnetworks.testIamPermissions",
        "compute.subnetworks.getIamPolicy",
        "cloudresourcemanager.projects.get",
        "cloudresourcemanager.projects.getIamPolicy",
        "compute.routers.list",
        "compute.firewalls.list",
        "compute.instances.aggregatedList",
    ),
    says="with NETWORK_CONFIG=existing: the project is not attached to the host project; the"
    " subnetwork does not exist, is of another network, may not be used by these credentials or by"
    " Google's account that makes VMs, has too few free addresses, or no way to Google's APIs. What"
    " its owner does not let these credentials see is a note; so are firewall rules that are not"
    " there, with the commands and the Terraform that make them",
    find=_find,
    of_zone=True,
    applies=lambda ctx: ctx.spec.existing is not None,
)
