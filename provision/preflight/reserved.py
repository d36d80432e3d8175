"""A reservation that machines are asked from, and how it and they are put into words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from provision.settings.resource_paths import ReservationPath

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from provision.spec.pools import Pool

Document = dict[str, Any]
SKIP: Final = "SKIP_CHECKS=reservation goes on without this check"


@dataclass(frozen=True, kw_only=True)
class Asked:
    """A reservation that pools name, in one zone."""

    text: str  # as the settings name it
    path: ReservationPath
    owner: str  # the project that owns it
    zone: str
    pools: Sequence[Pool]  # whose machines come from it

    @property
    def setting(self) -> str:
        """The setting that names it."""
        return "RESERVATION_NAME" if self.pools[0].zone_setting == "ZONE" else "GKE_NODE_POOLS"

    @property
    def url(self) -> str:
        """Its path in Google's API."""
        return f"projects/{self.owner}/zones/{self.zone}/reservations/{self.path.name}"

    def covers(self, text: str, project: str) -> bool:
        """Whether a name or path is of this reservation, or of this part of it."""
        path = ReservationPath.parse(text)
        if path is None or (path.owner(project), path.name) != (self.owner, self.path.name):
            return False
        parts = ((self.path.block, path.block), (self.path.sub_block, path.sub_block))
        return all(own in {None, other} for own, other in parts)

    @property
    def machines(self) -> str:
        """What the settings ask of it, in words."""
        types = dict.fromkeys(_machine(pool) for pool in self.pools)
        return f"{' and '.join(types)} in {self.zone}"


def properties(found: Document) -> Document:
    """What each machine of a reservation is; {} if Google keeps it in a template instead."""
    own: Document = (found.get("specificReservation") or {}).get("instanceProperties") or {}
    return own


def assured(found: Document) -> int:
    """How many of its machines Google has given; all, if Google does not say."""
    specific = found.get("specificReservation") or {}
    return int(specific.get("assuredCount", specific.get("count", 0)))


def last(link: str) -> str:
    """The last part of a link: the name."""
    return link.rpartition("/")[2]


def wanted_gpus(pool: Pool) -> dict[str, int] | None:
    """The GPUs of each machine: type -> number; None if that is not known."""
    if pool.machine is None and not pool.attached:
        return None
    return {pool.gpu_type: pool.gpus} if pool.gpu_type else {}


def gpus_in_words(gpus: Mapping[str, int] | None) -> str:
    """GPUs by type and number, as words."""
    return " and ".join(f"{count} x {kind}" for kind, count in (gpus or {}).items()) or "no GPUs"


def _machine(pool: Pool) -> str:
    attached = f" with {gpus_in_words(wanted_gpus(pool))}" if pool.attached else ""
    return pool.machine_type + attached
