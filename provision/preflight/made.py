"""What is made under names of the deployment's own: whose it is, if it is there, and what counts.

Google counts networks and what belongs to them against quotas of their own. A network that moves to
another place is recreated beside the old one, under another name. So what counts as there already
are the resources whose names the next Create would give, not whatever this deployment has.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from provision.catalogue import accounts, names
from provision.google import owner, resources
from provision.preflight.check import Effect, Finding

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from provision.catalogue.fabrics import Network
    from provision.google.resources import Resource
    from provision.preflight.check import CheckContext
    from provision.spec.cluster import ClusterSpec


@dataclass(frozen=True)
class Made:
    """One resource that a deployment needs."""

    row: Resource
    name: str  # the name that a new one gets

    def path(self, ctx: CheckContext[ClusterSpec]) -> str:
        """Where it is in Google's API."""
        return self.row.path(
            project=ctx.project,
            region=ctx.spec.region,
            location=ctx.spec.region,
            zone=ctx.spec.zone,
            name=self.name,
            email=accounts.of_project(self.name, ctx.project),
        )

    def found(self, ctx: CheckContext[ClusterSpec]) -> dict[str, Any] | None:
        """What has its name; None if nothing has."""
        return ctx.answers.find(self.row.look.service, self.path(ctx))

    def is_there(self, ctx: CheckContext[ClusterSpec]) -> bool:
        """Whether this deployment has it already, so that no other would be made."""
        found = self.found(ctx)
        return found is not None and ctx.is_ours(self.row.look, self.path(ctx), found)


def taken(ctx: CheckContext[ClusterSpec]) -> Iterator[Finding]:
    """Check that existing resources with our names carry our marker."""
    spec, (main, name) = ctx.spec, ctx.of_kind.main
    # The resources that are created first: without these there are none of the others.
    wanted = [Made(main, name.of(spec.name_prefix))]
    if spec.service_account == "dedicated":
        account = names.SERVICE_ACCOUNT.of(spec.name_prefix)
        wanted.append(Made(resources.SERVICE_ACCOUNT, account))
    if spec.makes_network:
        wanted += _first_network(spec)
    for one in wanted:
        found = one.found(ctx)
        if found is not None and not ctx.is_ours(one.row.look, one.path(ctx), found):
            foreign = resources.foreign(one.path(ctx), owner.read(found))
            yield Finding(foreign, Effect.FOREIGN)


def counted(ctx: CheckContext[ClusterSpec]) -> Iterator[Made]:
    """The resources that count, all that this env.list asks for."""
    spec = ctx.spec
    network = "default"  # the name of the network that Google makes with a project
    if spec.makes_network:
        network = names.NETWORK.at(spec.name_prefix, spec.region)
        yield from _first_network(spec)
        # The networks of the GPUs' interfaces, as `terraform/modules/gpu-networks` names them.
        for kind, its in {"": spec.gpu_networks, **spec.more_gpu_networks}.items():
            yield from _gpu_networks(spec, its, kind)
    for rule in ctx.of_kind.rules:
        yield Made(resources.FIREWALL, rule.at(spec.name_prefix, network))
    for name in ctx.of_kind.policies:
        yield Made(resources.RESOURCE_POLICY, name)


def _first_network(spec: ClusterSpec) -> Iterator[Made]:
    prefix, region = spec.name_prefix, spec.region
    network = names.NETWORK.at(prefix, region)
    inside = (network, region, str(spec.first_range))
    yield Made(resources.NETWORK, network)
    yield Made(resources.SUBNETWORK, names.SUBNETWORK.at(prefix, *inside))
    yield Made(resources.ROUTER, names.ROUTER.at(prefix, *inside))
    yield Made(resources.FIREWALL, names.FIREWALL_INTERNAL.at(prefix, network))
    yield Made(resources.FIREWALL, names.FIREWALL_SSH.at(prefix, network))


def _gpu_networks(spec: ClusterSpec, its: Iterable[Network], kind: str) -> Iterator[Made]:
    prefix, place = spec.name_prefix, 0
    for number, network in enumerate(its, start=1):
        bound = f"{spec.zone}-{network.profile}" if network.profile else spec.region
        own = names.GPU_NETWORK.numbered(f"{kind}{number}").at(prefix, bound, str(network.mtu))
        yield Made(resources.NETWORK, own)
        for _ in range(network.subnets):
            place += 1
            cut = str(spec.ranges.interface(place))
            subnetwork = names.GPU_SUBNETWORK.numbered(f"{kind}{place}")
            yield Made(resources.SUBNETWORK, subnetwork.at(prefix, own, spec.region, cut))
        if network.profile is None:
            rule = names.FIREWALL_GPU.numbered(f"{kind}{number}")
            yield Made(resources.FIREWALL, rule.at(prefix, own))
