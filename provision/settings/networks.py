"""How a network and subnetworks that exist are named: alone, or with the project they are in."""

from __future__ import annotations

import re
from dataclasses import dataclass
from ipaddress import IPv4Network
from typing import TYPE_CHECKING, Final, Self

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

EVERY_ADDRESS: Final = frozenset({"0.0.0.0/0", "::/0"})
"""The ranges that hold all there is."""
PRIVATE: Final = tuple(map(IPv4Network, ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16")))
"""RFC 1918."""
ALLOWED: Final = (*PRIVATE, IPv4Network("100.64.0.0/10"), IPv4Network("240.0.0.0/4"))
"""Where networks of our own may be: nobody's on the internet (VPC, "Subnets", undated)."""

_NAME: Final = r"[a-z](?:[-a-z0-9]{0,61}[a-z0-9])?"
_PROJECT: Final = r"projects/(?P<project>[^/\s]{1,100})"
# A console or `gcloud --uri` shows the whole URL.
_URL: Final = r"(?:https://[a-z.]+/compute/v1/)?"
_NETWORK: Final = re.compile(rf"(?:{_URL}{_PROJECT}/global/networks/)?(?P<name>{_NAME})")
_SUBNETWORK: Final = re.compile(
    rf"(?:{_URL}{_PROJECT}/regions/(?P<region>[a-z0-9-]{{1,63}})/subnetworks/)?(?P<name>{_NAME})"
)

_SEVERAL: Final = re.compile(r"([^{}]*)\{(\d{1,2})\.\.(\d{1,2})\}([^{}]*)")


def expanded(item: str) -> Iterator[str]:
    """The names that one item means: `gpu-{0..2}` is gpu-0, gpu-1 and gpu-2, as in a shell."""
    found = _SEVERAL.fullmatch(item)
    if found is None:
        yield item
        return
    before, first, last, after = found.groups()
    yield from (f"{before}{number}{after}" for number in range(int(first), int(last) + 1))


def owners(named: Iterable[str | None]) -> Iterator[str]:
    """The projects that names and paths of networks and subnetworks say."""
    for text in named:
        found = NetworkPath.parse(text or "") or SubnetworkPath.parse(text or "")
        if found is not None and found.project is not None:
            yield found.project


@dataclass(frozen=True, kw_only=True)
class NetworkPath:
    """The parts of NETWORK."""

    project: str | None  # the project that owns the network; None if it is not said
    name: str

    @classmethod
    def parse(cls, text: str) -> Self | None:
        """The parts of a name or path; None if the text is neither."""
        found = _NETWORK.fullmatch(text)
        return None if found is None else cls(**found.groupdict())


@dataclass(frozen=True, kw_only=True)
class SubnetworkPath:
    """The parts of SUBNETWORK."""

    project: str | None  # the project that owns the subnetwork; None if it is not said
    region: str | None  # its region; None if it is not said
    name: str

    @classmethod
    def parse(cls, text: str) -> Self | None:
        """The parts of a name or path; None if the text is neither."""
        found = _SUBNETWORK.fullmatch(text)
        return None if found is None else cls(**found.groupdict())
