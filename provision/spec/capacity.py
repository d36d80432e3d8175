"""The ways to get machines, and what each of them means: the one table of it.

What a way asks for, refuses, costs in quota and waits for is read here by rules, variables, checks,
waits and Kubernetes objects alike. Another way is another row.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from provision.catalogue.machines import Consumption

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, kw_only=True)
class Meaning:
    """What a way to get machines means.

    Attributes:
        consumption: What the catalogue says of machine types that can be had so.
        asked_by: The settings, by field, that together ask for it; none of the others is set.
        preemptible: Whether it uses preemptible quota.
        reserved: Whether the reservation has used the quota already.
        requested: Whether machines come by a request that Google queues. A GKE pool of them
            starts empty: its nodes come when a job asks for them.
        flex_start: Whether it is DWS flex start.
        queued: Whether a job's nodes come all at once, by a ProvisioningRequest.
        limited: Whether a machine that nobody gave a run duration has the longest one.
        run_of_nodes: Whether a node pool says how long its nodes run; else each request does.
    """

    consumption: Consumption
    asked_by: tuple[str, ...] = ()
    preemptible: bool = False
    reserved: bool = False
    requested: bool = False
    flex_start: bool = False
    queued: bool = False
    limited: bool = False
    run_of_nodes: bool = True


class Mode(enum.StrEnum):
    """A way to get machines, as Terraform's variables name it."""

    STANDARD = "standard"
    SPOT = "spot"
    RESERVATION = "reservation"
    FLEX_START = "flex_start"
    QUEUED = "queued"
    FLEX_START_QUEUED = "flex_start_queued"

    @property
    def means(self) -> Meaning:
        """Its row."""
        return MODES[self]

    @classmethod
    def asked(cls, wanted: Mapping[str, object]) -> Mode:
        """The way that settings ask for; of two that exclude each other, the later row.

        Args:
            wanted: Field of the settings -> its value; fields that ask for no way do not matter.
        """
        on = {name for name, value in wanted.items() if value}
        fitting = [mode for mode in cls if on.issuperset(mode.means.asked_by)]
        return max(fitting, key=lambda mode: (len(mode.means.asked_by), list(cls).index(mode)))


MODES: Final[Mapping[Mode, Meaning]] = {
    Mode.STANDARD: Meaning(consumption=Consumption.ON_DEMAND),
    Mode.SPOT: Meaning(consumption=Consumption.SPOT, asked_by=("enable_spot",), preemptible=True),
    Mode.RESERVATION: Meaning(
        consumption=Consumption.RESERVATION, asked_by=("reservation_name",), reserved=True
    ),
    Mode.FLEX_START: Meaning(
        consumption=Consumption.FLEX_START,
        asked_by=("enable_flex_start",),
        preemptible=True,
        requested=True,
        flex_start=True,
        limited=True,
    ),
    Mode.QUEUED: Meaning(
        consumption=Consumption.FLEX_START,
        asked_by=("enable_queued_provisioning",),
        preemptible=True,
        requested=True,
        queued=True,
        run_of_nodes=False,
    ),
    Mode.FLEX_START_QUEUED: Meaning(
        consumption=Consumption.FLEX_START,
        asked_by=("enable_flex_start", "enable_queued_provisioning"),
        preemptible=True,
        requested=True,
        flex_start=True,
        queued=True,
        limited=True,
    ),
}

ASKING: Final = tuple(dict.fromkeys(name for it in MODES.values() for name in it.asked_by))
"""The settings that ask for a way, each once."""

POOL_KEYS: Final[Mapping[str, str]] = {
    "enable_spot": "spot",
    "enable_flex_start": "flex_start",
    "enable_queued_provisioning": "queued",
    "reservation_name": "reservation",
}
"""A setting that asks for a way -> the key by which one node pool asks for it."""

EXCLUSIVE: Final = (
    ("enable_spot", "enable_flex_start", "flex start machines are not taken back before their end"),
    ("enable_spot", "enable_queued_provisioning", "queued nodes are not spot machines"),
    ("enable_spot", "reservation_name", "a reservation holds machines that are not spot"),
    ("reservation_name", "enable_flex_start", "flex start takes from its own pool of machines"),
    ("reservation_name", "enable_queued_provisioning", "queued nodes come from no reservation"),
    (
        "enable_compact_placement",
        "enable_queued_provisioning",
        "queued nodes can't be placed compactly",
    ),
)
"""Two settings that exclude each other, with the reason (dws-rules F3 to F5, Q3 to Q5)."""

ASKED_FOR: Final[Mapping[Consumption, tuple[str, str]]] = {
    Consumption.ON_DEMAND: ("vm_type", ""),
    Consumption.SPOT: ("enable_spot", "ENABLE_SPOT=yes"),
    Consumption.FLEX_START: ("enable_flex_start", "ENABLE_FLEX_START=yes"),
    Consumption.RESERVATION: ("reservation_name", "RESERVATION_NAME=<your reservation>"),
}
"""How a user asks for machines so: the field, and what to write; on demand needs no asking."""
