"""The IP ranges of networks that are made: who gets which part, and how many fit. Arithmetic."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from ipaddress import IPv4Network
from typing import TYPE_CHECKING, Final

from provision.catalogue import limits

if TYPE_CHECKING:
    from collections.abc import Iterable

    from provision.settings.model import Settings

_BLOCK: Final = IPv4Network("10.0.0.0/12")
_PODS: Final = IPv4Network("10.16.0.0/12")
_SERVICES: Final = IPv4Network("10.32.0.0/20")
_CUT: Final = 4
"""Bits between the block and its parts where GPUs have networks, as in modules/gpu-networks."""
OF_GOOGLE: Final = 4
"""The addresses of each first range that Google keeps (VPC, "Subnets", undated)."""
SMALLEST: Final = 29
"""The longest prefix of a subnetwork's first range (the same page)."""
SMALLEST_PODS: Final = 24
"""That of a range for pods: "must have a CIDR block larger or equal to /24" (GKE's answer).

It is said of a pool's range; of a cluster's it is believed (gotchas, 2026-11-24).
"""
SERVICES: Final = range(16, 28)
"""The prefixes that a range for Services can have (GKE, "VPC-native clusters", its table,
undated); that others are refused is believed (gotchas, 2026-11-24)."""
SMALLEST_SERVICES: Final = 28
"""The one more that another copy of that table has, with 16 Services: Google decides."""


@dataclass(frozen=True, kw_only=True)
class Ranges:
    """The ranges that the settings ask for."""

    # what nodes and GPU networks are cut from; None for 10.0.0.0/12, of which nodes have the first
    # sixteenth
    block: IPv4Network | None = None
    pods: IPv4Network = _PODS
    services: IPv4Network = _SERVICES
    max_pods: int | None = None  # the most pods of a node; None for Google's default

    @classmethod
    def of(cls, settings: Settings) -> Ranges:
        """Those of the settings."""
        return cls(
            block=IPv4Network(settings.network_range) if settings.network_range else None,
            pods=own(settings.gke_pods_range) or _PODS,
            services=own(settings.gke_services_range) or _SERVICES,
            max_pods=settings.gke_max_pods_per_node,
        )

    @property
    def whole(self) -> IPv4Network:
        """The block."""
        return self.block or _BLOCK

    def first(self, *, is_cut: bool) -> IPv4Network:
        """The range of the first interfaces: a part of the block if machines have more of them."""
        return self.interface(0) if is_cut or self.block is None else self.block

    def interface(self, place: int) -> IPv4Network:
        """The range of the interface at a place, 0 is the first, of a block that is cut."""
        # A block that is too small for all is refused, with the size that it needs.
        bits = min(_CUT, 32 - self.whole.prefixlen)
        return next(itertools.islice(self.whole.subnets(prefixlen_diff=bits), place, None))

    @property
    def pods_of_node(self) -> int:
        """The addresses that each node takes for its pods."""
        return addresses_for(self.max_pods or limits.USUAL_PODS)


def own(text: str | None) -> IPv4Network | None:
    """The range of a network of our own that a setting has; None if it names one of others."""
    return IPv4Network(text) if text and "/" in text else None


def pods_that_fit(pods: IPv4Network, nodes: int) -> int:
    """The most pods of each of so many nodes, and one more, for which a range has room; or 0."""
    each = pods.num_addresses // (nodes + 1)
    most = (1 << each.bit_length() >> 1) // 2 if each else 0
    return min(most, limits.USUAL_PODS) if most >= limits.LEAST_PODS else 0


def addresses_for(max_pods: int) -> int:
    """The addresses that a node takes for so many pods: twice as many, as a block, 16 at least.

    GKE, "Flexible Pod CIDR": 8 pods take a /28, 9 to 16 a /27, 110 a /24.
    """
    return max(16, int(1 << (2 * max_pods - 1).bit_length()))


@dataclass(frozen=True, kw_only=True)
class Part:
    """A range, and whether it is large enough."""

    field: str  # the setting that it comes from
    use: str
    given: IPv4Network  # the setting's range
    range: IPv4Network
    fits: int  # for how many machines it has room
    needed: int  # the longest prefix of the setting's range with room for all

    @property
    def is_too_small(self) -> bool:
        """Whether it has no room for all, or is smaller than Google takes."""
        return self.given.prefixlen > self.needed


def parts(ranges: Ranges, machines: int, *, is_gke: bool, is_cut: bool) -> tuple[Part, ...]:
    """Who gets which part, and how many fit.

    A GKE cluster also needs a first address for its control plane, and while its system nodes are
    upgraded, one node more ("maxSurge" of pools that say nothing).
    """
    surge = int(is_gke)
    more = OF_GOOGLE + is_gke + surge
    first = ranges.first(is_cut=is_cut)
    longest = min(SMALLEST, _prefix_for(machines + more)) - (_CUT if is_cut else 0)
    found = [
        Part(
            field="network_range",
            use="nodes" if is_gke else "VMs",
            given=ranges.whole,
            range=first,
            fits=max(first.num_addresses - more, 0),
            needed=longest,
        )
    ]
    if is_gke:
        each = ranges.pods_of_node
        found.append(
            Part(
                field="gke_pods_range",
                use="pods",
                given=ranges.pods,
                range=ranges.pods,
                fits=max(ranges.pods.num_addresses // each - surge, 0),
                needed=min(SMALLEST_PODS, _prefix_for((machines + surge) * each)),
            )
        )
    return tuple(found)


def overlapping(of: Iterable[tuple[str, IPv4Network]]) -> list[tuple[str, str]]:
    """The pairs of settings whose ranges overlap."""
    pairs = itertools.combinations(of, 2)
    return [(one, other) for (one, first), (other, second) in pairs if first.overlaps(second)]


def _prefix_for(addresses: int) -> int:
    return 32 - (addresses - 1).bit_length()
