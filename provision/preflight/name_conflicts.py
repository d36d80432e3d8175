"""The check of names: nobody else has a resource with a name that this deployment would use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provision.catalogue import accounts, names
from provision.google import owner, resources
from provision.preflight.check import Foreign

if TYPE_CHECKING:
    from collections.abc import Iterator

    from provision.google.resources import Resource
    from provision.preflight.check import CheckContext, Finding
    from provision.spec.cluster import ClusterSpec


def taken(ctx: CheckContext[ClusterSpec]) -> Iterator[Finding]:
    """Check that existing resources with our names carry our marker."""
    for row, name in _names(ctx):
        path = _path(ctx, row, name)
        found = ctx.answers.find(row.look.service, path)
        if found is not None and not ctx.is_ours(row.look, path, found):
            yield Foreign(resources.foreign(path, owner.read(found)))


def _names(ctx: CheckContext[ClusterSpec]) -> Iterator[tuple[Resource, str]]:
    """The resources that are created first: without these there are none of the others."""
    prefix, (main, name) = ctx.spec.name_prefix, ctx.of_kind.main
    yield main, name.of(prefix)
    if ctx.spec.service_account == "dedicated":
        yield resources.SERVICE_ACCOUNT, names.SERVICE_ACCOUNT.of(prefix)
    if ctx.spec.makes_network:
        network = names.NETWORK.at(prefix, ctx.spec.region)
        place = (network, ctx.spec.region, str(ctx.spec.first_range))
        yield resources.NETWORK, network
        yield resources.SUBNETWORK, names.SUBNETWORK.at(prefix, *place)
        yield resources.ROUTER, names.ROUTER.at(prefix, *place)
        yield resources.FIREWALL, names.FIREWALL_INTERNAL.at(prefix, network)
        yield resources.FIREWALL, names.FIREWALL_SSH.at(prefix, network)


def _path(ctx: CheckContext[ClusterSpec], row: Resource, own: str) -> str:
    spec = ctx.spec
    return row.path(
        project=ctx.project,
        region=spec.region,
        location=spec.region,
        zone=spec.zone,
        name=own,
        email=accounts.of_project(own, ctx.project),
    )
