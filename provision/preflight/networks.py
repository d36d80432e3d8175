"""The check of VPC networks: the default network exists, and our own has free IP ranges."""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING, Any

from provision.catalogue import names
from provision.codes import Code
from provision.errors import Problem
from provision.google.api import Service
from provision.google.resources import NETWORK, SUBNETWORK

if TYPE_CHECKING:
    from collections.abc import Iterator

    from provision.preflight.check import CheckContext, Finding
    from provision.spec.cluster import ClusterSpec


def network(ctx: CheckContext[ClusterSpec]) -> Iterator[Finding]:
    """Check that the default network exists, or that our network has no conflicting ranges."""
    yield from _overlaps(ctx) if ctx.spec.makes_network else _default(ctx)


def _default(ctx: CheckContext[ClusterSpec]) -> Iterator[Finding]:
    region = ctx.spec.region
    paths = {
        row.path(project=ctx.project, region=region, name="default"): kind
        for row, kind in ((NETWORK, "network"), (SUBNETWORK, "subnetwork"))
    }
    for path, kind in paths.items():
        if ctx.answers.find(Service.COMPUTE, path) is None:
            place = "" if kind == "network" else f" in {region}"
            yield Problem(
                code=Code.RESOURCE_NOT_FOUND,
                setting="NETWORK_CONFIG",
                what=f'{ctx.project} has no {kind} "default"{place}',
                why="default_network uses the network that Google creates with a project; somebody"
                " deleted it, or an organization policy prevents it",
                fix="NETWORK_CONFIG=new_network",
            )
            return


def ranges(ctx: CheckContext[ClusterSpec]) -> list[ipaddress.IPv4Network]:
    """The IP ranges of the first subnetwork."""
    return [ctx.spec.first_range, *ctx.of_kind.ranges]


def _overlaps(ctx: CheckContext[ClusterSpec]) -> Iterator[Finding]:
    made = names.NETWORK.at(ctx.spec.name_prefix, ctx.spec.region)
    made_at = NETWORK.path(project=ctx.project, name=made)
    found = ctx.answers.find(Service.COMPUTE, made_at)
    if found is None or not ctx.is_ours(NETWORK.look, made_at, found):
        return
    own = names.SUBNETWORK.pattern(ctx.spec.name_prefix)
    for link in found.get("subnetworks", []):
        path = link.partition("/v1/")[2]
        other = ctx.answers.find(Service.COMPUTE, path)
        if other is None or own.fullmatch(other["name"]):
            continue
        for taken, wanted in _conflicts(other, ranges(ctx)):
            yield Problem(
                code=Code.NO_FREE_ADDRESSES,
                setting="NAME_PREFIX",
                what=f"the IP range {wanted} is taken in the network {made}",
                why=f"the subnetwork {other['name']}, which this deployment did not create, has"
                f" {taken}",
                fix=f"delete it with: gcloud compute networks subnets delete {other['name']}"
                f" --project {ctx.project}, or choose another NAME_PREFIX",
            )


def _conflicts(
    other: dict[str, Any], wanted: list[ipaddress.IPv4Network]
) -> Iterator[tuple[ipaddress.IPv4Network, ipaddress.IPv4Network]]:
    """The ranges of a subnetwork that overlap with wanted ranges: pairs of both."""
    texts = [other, *other.get("secondaryIpRanges", [])]
    for text in texts:
        taken = ipaddress.IPv4Network(text["ipCidrRange"])
        yield from ((taken, one) for one in wanted if one.overlaps(taken))
