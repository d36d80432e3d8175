"""The capacity modes, the ways to get machines: one table with one row for each.

Rules, variables, checks, waits and Kubernetes objects all read here what a mode requires, which
quota it uses and what to wait for. A new mode is a new row.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from provision.catalogue.machines import RESERVED, Consumption
from provision.settings.choices import Way

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


@dataclass(frozen=True, kw_only=True)
class Meaning:
    """The properties of a capacity mode."""

    # the consumption option that a machine type must offer (see the catalogue)
    consumption: Consumption
    words: str  # how its machines are got, in words for people, such as "flex start, queued"
    way: Way | None = None  # the way of CAPACITY; None where it names none
    asked_by: tuple[str, ...] = ()  # the fields of the settings that together select the mode
    # whether no setting selects it: the machines or Google's answer decide on it
    decided: bool = False
    preemptible: bool = False  # whether it uses preemptible quota
    reserved: bool = False  # whether the machines come from a reservation that is named
    bound: bool = False  # whether the machines are bound to their reservation and end with it
    # Whether machines come with a request that Google queues. A GKE pool of this mode starts empty:
    # its nodes come when a job needs them.
    requested: bool = False
    flex_start: bool = False  # whether it is DWS flex start
    # whether a job's nodes come all at once, with a ProvisioningRequest, which says how long they
    # run
    queued: bool = False
    limited: bool = False  # whether machines without a run duration get the longest one


class Mode(enum.StrEnum):
    """A capacity mode, by its name in Terraform's variables."""

    STANDARD = "standard"
    SPOT = "spot"
    RESERVATION = "reservation"
    RESERVATION_BOUND = "reservation_bound"
    FLEX_START = "flex_start"
    QUEUED = "queued"
    FLEX_START_QUEUED = "flex_start_queued"

    @property
    def means(self) -> Meaning:
        """Its row in the table."""
        return MODES[self]

    @classmethod
    def asked(cls, wanted: Mapping[str, object]) -> Mode:
        """The mode that settings select; of two that exclude each other, the later row."""
        on = {name for name, value in wanted.items() if value}
        fitting = [
            mode for mode in cls if not mode.means.decided and on.issuperset(mode.means.asked_by)
        ]
        return max(fitting, key=lambda mode: (len(mode.means.asked_by), list(cls).index(mode)))


# mode, consumption option | words for people | way of CAPACITY | asked by | what else it is
_ROWS: Final = """
standard, on-demand | on demand | on_demand | |
spot, spot | Spot | spot | enable_spot | preemptible
reservation, reservation | reserved | reservation | reservation_name | reserved
reservation_bound, reservation | bound to a reservation | reservation | reservation_name |
    decided reserved bound
flex_start, flex start | flex start | flex_start | enable_flex_start |
    preemptible requested flex_start limited
queued, flex start | queued | | enable_queued_provisioning | preemptible requested queued
flex_start_queued, flex start | flex start, queued | |
    enable_flex_start enable_queued_provisioning | preemptible requested flex_start queued limited
"""


def _row(text: str) -> tuple[Mode, Meaning]:
    which, words, way, asked_by, flags = (it.strip() for it in text.split("|"))
    mode, _, consumption = which.partition(", ")
    own: dict[str, Any] = dict.fromkeys(flags.split(), True)
    means = Meaning(
        consumption=Consumption(consumption),
        words=words,
        way=Way(way) if way else None,
        asked_by=tuple(asked_by.split()),
        **own,
    )
    return Mode(mode), means


MODES: Final[Mapping[Mode, Meaning]] = dict(
    map(_row, _ROWS.strip().replace("\n    ", " ").splitlines())
)

PREEMPTIBLE: Final = frozenset(it.way for it in MODES.values() if it.way and it.preemptible)
"""The ways of CAPACITY that use preemptible quota."""

ASKING: Final = tuple(dict.fromkeys(name for it in MODES.values() for name in it.asked_by))
"""The settings that select a mode, without duplicates."""

POOL_KEYS: Final[Mapping[str, str]] = {
    "enable_spot": "spot",
    "enable_flex_start": "flex_start",
    "enable_queued_provisioning": "queued",
    "reservation_name": "reservation",
    "enable_compact_placement": "compact",
}
"""A setting about how machines are got -> the key with which one node pool has its own value."""

EXCLUSIVE: Final = (
    ("enable_spot", "enable_flex_start", "Google does not preempt flex start machines"),
    ("enable_spot", "enable_queued_provisioning", "queued provisioning does not support Spot VMs"),
    ("enable_spot", "reservation_name", "reservations do not support Spot VMs"),
    ("reservation_name", "enable_flex_start", "flex start does not use reservations"),
    (
        "reservation_name",
        "enable_queued_provisioning",
        "queued provisioning does not use reservations",
    ),
    (
        "enable_compact_placement",
        "enable_queued_provisioning",
        "queued provisioning does not support compact placement",
    ),
)
"""Two settings that exclude each other, with the reason (dws-rules F3 to F5, Q3 to Q5)."""

ASKED_FOR: Final[Mapping[Consumption, tuple[str, str]]] = {
    Consumption.ON_DEMAND: ("vm_type", ""),
    Consumption.SPOT: ("enable_spot", "ENABLE_SPOT=yes"),
    Consumption.FLEX_START: ("enable_flex_start", "ENABLE_FLEX_START=yes"),
    Consumption.RESERVATION: ("reservation_name", "RESERVATION_NAME=<your reservation>"),
}
"""Consumption option -> the field that selects it, and what to write; "" for the default."""


def asking_for(ways: Iterable[Consumption]) -> str:
    """The settings that ask for these consumption options, as a choice; "" if none is needed."""
    kinds = (Consumption.RESERVATION if way in RESERVED else way for way in ways)
    return " or ".join(filter(None, (ASKED_FOR[way][1] for way in dict.fromkeys(kinds))))
