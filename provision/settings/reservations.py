"""How a reservation is named: alone, in another project, or down to one of its sub-blocks."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Self

_NAME: Final = r"[a-z](?:[-a-z0-9]{0,61}[a-z0-9])?"
# The form that Cluster Toolkit, XPK and the autoscaler of GKE all read (their sources, 2026).
_PATH: Final = re.compile(
    r"(?:projects/(?P<project>[^/\s]{1,100})/reservations/)?"
    rf"(?P<name>{_NAME})"
    rf"(?:/reservationBlocks/(?P<block>{_NAME})"
    rf"(?:/reservationSubBlocks/(?P<sub_block>{_NAME}))?)?"
)


# As a reservation's selfLink has it (compute v1, reservations.get).
_LINK: Final = re.compile(
    r"(?:https://\S{1,100}/)?projects/(?P<project>[^/\s]{1,100})/zones/[a-z0-9-]{1,63}"
    r"/reservations/(?P<rest>\S{1,300})"
)


def without_zone(text: str) -> str:
    """A reservation's path as Google's API and console have it, in the form that is read here.

    Returns "" if it is none.
    """
    found = _LINK.fullmatch(text)
    path = f"projects/{found['project']}/reservations/{found['rest']}" if found else ""
    return path if ReservationPath.parse(path) else ""


@dataclass(frozen=True, kw_only=True)
class ReservationPath:
    """The parts of RESERVATION_NAME."""

    project: str | None  # the project that owns the reservation; None for the deployment's own
    name: str
    block: str | None  # one block of it; None for any
    sub_block: str | None  # one sub-block of the block; None for any

    @classmethod
    def parse(cls, text: str) -> Self | None:
        """The parts of a name or path; None if the text is neither."""
        found = _PATH.fullmatch(text)
        return None if found is None else cls(**found.groupdict())

    def owner(self, project: str) -> str:
        """The project that owns it."""
        return self.project or project
