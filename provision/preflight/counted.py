"""The resources that Google counts against quotas of their own: networks and what belongs to them.

A network that moves to another place is recreated beside the old one, under another name. So what
counts as there already are the resources whose names the next Create would give, not whatever this
deployment has.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from provision.catalogue import names
from provision.google import resources
from provision.preflight.metrics import Metric

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from provision.catalogue.gpu_networks import Network
    from provision.catalogue.names import DerivedName
    from provision.google.resources import Resource
    from provision.preflight.check import CheckContext
    from provision.spec.cluster import ClusterSpec

# The project's quotas, but for that of resource policies, which is a region's (discovery document
# of compute v1, Quota.metric).
_METRICS: Final = {
    resources.NETWORK: Metric(name="NETWORKS", everywhere=True),
    resources.SUBNETWORK: Metric(name="SUBNETWORKS", everywhere=True),
    resources.ROUTER: Metric(name="ROUTERS", everywhere=True),
    resources.FIREWALL: Metric(name="FIREWALLS", everywhere=True),
    resources.RESOURCE_POLICY: Metric(name="RESOURCE_POLICIES"),
}

_DEFAULT: Final = "default"
"""The name of the network that Google makes with a project."""


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """One resource that a deployment needs."""

    row: Resource
    name: str  # the name that a new one gets

    @property
    def metric(self) -> Metric:
        """The quota that it counts against."""
        return _METRICS[self.row]


def wanted(ctx: CheckContext[ClusterSpec]) -> Iterator[Wanted]:
    """The resources that count, all that this env.list asks for."""
    spec = ctx.spec
    if spec.makes_network:
        yield from _first_network(spec)
        yield from _gpu_networks(spec)
    network = names.NETWORK.at(spec.name_prefix, spec.region) if spec.makes_network else _DEFAULT
    for rule in ctx.of_kind.rules:
        yield _bound(resources.FIREWALL, rule, spec.name_prefix, network)
    for name in ctx.of_kind.policies:
        yield Wanted(row=resources.RESOURCE_POLICY, name=name)


def is_there(ctx: CheckContext[ClusterSpec], one: Wanted) -> bool:
    """Whether this deployment has it already, so that no other would be made."""
    path = one.row.path(project=ctx.project, region=ctx.spec.region, name=one.name)
    found = ctx.answers.find(one.row.look.service, path)
    return found is not None and ctx.is_ours(one.row.look, path, found)


def _first_network(spec: ClusterSpec) -> Iterator[Wanted]:
    prefix, region = spec.name_prefix, spec.region
    network = names.NETWORK.at(prefix, region)
    inside = (network, region, str(spec.first_range))
    yield _bound(resources.NETWORK, names.NETWORK, prefix, region)
    yield _bound(resources.SUBNETWORK, names.SUBNETWORK, prefix, *inside)
    yield _bound(resources.ROUTER, names.ROUTER, prefix, *inside)
    yield _bound(resources.FIREWALL, names.FIREWALL_INTERNAL, prefix, network)
    yield _bound(resources.FIREWALL, names.FIREWALL_SSH, prefix, network)


def _gpu_networks(spec: ClusterSpec) -> Iterator[Wanted]:
    """The networks of the GPUs' interfaces, as `terraform/modules/gpu-networks` names them."""
    yield from _of_one_kind(spec, spec.gpu_networks, "")
    for kind, its in spec.more_gpu_networks.items():
        yield from _of_one_kind(spec, its, kind)


def _of_one_kind(spec: ClusterSpec, its: Iterable[Network], kind: str) -> Iterator[Wanted]:
    place = 0
    for number, network in enumerate(its, start=1):
        bound = f"{spec.zone}-{network.profile}" if network.profile else spec.region
        made = _numbered(
            resources.NETWORK, names.GPU_NETWORK, spec, f"{kind}{number}", bound, str(network.mtu)
        )
        yield made
        for _ in range(network.subnets):
            place += 1
            cut = str(spec.ranges.interface(place))
            yield _numbered(
                resources.SUBNETWORK,
                names.GPU_SUBNETWORK,
                spec,
                f"{kind}{place}",
                made.name,
                spec.region,
                cut,
            )
        if network.profile is None:
            yield _numbered(
                resources.FIREWALL, names.FIREWALL_GPU, spec, f"{kind}{number}", made.name
            )


def _bound(row: Resource, name: DerivedName, prefix: str, *place: str) -> Wanted:
    return Wanted(row=row, name=name.at(prefix, *place))


def _numbered(
    row: Resource, name: DerivedName, spec: ClusterSpec, number: str, *place: str
) -> Wanted:
    own = name.numbered(number)
    return _bound(row, own, spec.name_prefix, *place)
