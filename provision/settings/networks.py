"""How a network and a subnetwork that exist are named: alone, or with the project they are in."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Self

_NAME: Final = r"[a-z](?:[-a-z0-9]{0,61}[a-z0-9])?"
_PROJECT: Final = r"projects/(?P<project>[^/\s]{1,100})"
# A console or `gcloud --uri` shows the whole URL.
_URL: Final = r"(?:https://[a-z.]+/compute/v1/)?"
_NETWORK: Final = re.compile(rf"(?:{_URL}{_PROJECT}/global/networks/)?(?P<name>{_NAME})")
_SUBNETWORK: Final = re.compile(
    rf"(?:{_URL}{_PROJECT}/regions/(?P<region>[a-z0-9-]{{1,63}})/subnetworks/)?(?P<name>{_NAME})"
)


@dataclass(frozen=True, kw_only=True)
class NetworkPath:
    """The parts of NETWORK.

    Attributes:
        project: The project that owns the network; None if it is not said.
        name: Its name.
    """

    project: str | None
    name: str

    @classmethod
    def parse(cls, text: str) -> Self | None:
        """The parts of a name or path; None if the text is neither."""
        found = _NETWORK.fullmatch(text)
        return None if found is None else cls(**found.groupdict())


@dataclass(frozen=True, kw_only=True)
class SubnetworkPath:
    """The parts of SUBNETWORK.

    Attributes:
        project: The project that owns the subnetwork; None if it is not said.
        region: Its region; None if it is not said.
        name: Its name.
    """

    project: str | None
    region: str | None
    name: str

    @classmethod
    def parse(cls, text: str) -> Self | None:
        """The parts of a name or path; None if the text is neither."""
        found = _SUBNETWORK.fullmatch(text)
        return None if found is None else cls(**found.groupdict())
