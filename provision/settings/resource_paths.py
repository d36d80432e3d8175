"""How networks, subnetworks and reservations that exist are named: alone, or by a path."""

from __future__ import annotations

import re
from dataclasses import dataclass
from ipaddress import IPv4Network
from typing import TYPE_CHECKING, ClassVar, Final, Self

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

EVERY_ADDRESS: Final = frozenset({"0.0.0.0/0", "::/0"})
"""The ranges that hold all there is."""
PRIVATE: Final = tuple(map(IPv4Network, ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16")))
"""RFC 1918."""
ALLOWED: Final = (*PRIVATE, IPv4Network("100.64.0.0/10"), IPv4Network("240.0.0.0/4"))
"""Where networks of our own may be: nobody's on the internet (VPC, "Subnets", undated)."""

_NAME: Final = r"[a-z](?:[-a-z0-9]{0,61}[a-z0-9])?"
PROJECT: Final = r"(?:(?:[a-z0-9][a-z0-9.-]{0,62}:)?[a-z][a-z0-9-]{4,28}[a-z0-9]|[0-9]{1,19})"
"""A project's ID, also below a domain, or its number: Google's APIs take either in a path. What has
this form can stand in a command that is made to be pasted."""
_PROJECT: Final = rf"projects/(?P<project>{PROJECT})"
# A console or `gcloud --uri` shows the whole URL.
_URL: Final = r"(?:https://[a-z.]+/compute/v1/)?"
_NETWORK: Final = re.compile(rf"(?:{_URL}{_PROJECT}/global/networks/)?(?P<name>{_NAME})")
_SUBNETWORK: Final = re.compile(
    rf"(?:{_URL}{_PROJECT}/regions/(?P<region>[a-z0-9-]{{1,63}})/subnetworks/)?(?P<name>{_NAME})"
)
# The form that Cluster Toolkit, XPK and the autoscaler of GKE all read (their sources, 2026).
_RESERVATION: Final = re.compile(
    rf"(?:{_PROJECT}/reservations/)?"
    rf"(?P<name>{_NAME})"
    rf"(?:/reservationBlocks/(?P<block>{_NAME})"
    rf"(?:/reservationSubBlocks/(?P<sub_block>{_NAME}))?)?"
)
# As a reservation's selfLink has it (compute v1, reservations.get).
_LINK: Final = re.compile(
    rf"(?:https://[a-z0-9./-]{{1,100}}/)?{_PROJECT}/zones/[a-z0-9-]{{1,63}}"
    r"/reservations/(?P<rest>[A-Za-z0-9/-]{1,300})"
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


def without_zone(text: str) -> str:
    """A reservation's path as Google's API and console have it, as it is read here; "" for none."""
    found = _LINK.fullmatch(text)
    path = f"projects/{found['project']}/reservations/{found['rest']}" if found else ""
    return path if ReservationPath.parse(path) else ""


class _Path:
    """A name, or a path with it at its end."""

    form: ClassVar[re.Pattern[str]]

    @classmethod
    def parse(cls, text: str) -> Self | None:
        """The parts of a name or path; None if the text is neither."""
        found = cls.form.fullmatch(text)
        return None if found is None else cls(**found.groupdict())


@dataclass(frozen=True, kw_only=True)
class NetworkPath(_Path):
    """The parts of NETWORK."""

    form = _NETWORK

    project: str | None  # the project that owns the network; None if it is not said
    name: str


@dataclass(frozen=True, kw_only=True)
class SubnetworkPath(_Path):
    """The parts of SUBNETWORK."""

    form = _SUBNETWORK

    project: str | None  # the project that owns the subnetwork; None if it is not said
    region: str | None  # its region; None if it is not said
    name: str


@dataclass(frozen=True, kw_only=True)
class ReservationPath(_Path):
    """The parts of RESERVATION_NAME."""

    form = _RESERVATION

    project: str | None  # the project that owns the reservation; None for the deployment's own
    name: str
    block: str | None  # one block of it; None for any
    sub_block: str | None  # one sub-block of the block; None for any

    def owner(self, project: str) -> str:
        """The project that owns it."""
        return self.project or project
