"""Reservations: which machines they bind, and how their capacity is cut into blocks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rehearsal.cloud import facts

if TYPE_CHECKING:
    from collections.abc import Mapping

_FACTS: Final = facts.read("reservations")


def never_reserved(machine: str) -> bool:
    """Whether machines of that type cannot be reserved."""
    return machine in _FACTS["never_reserved"]


def specific_only(machine: str) -> bool:
    """Whether a reservation of that machine type must be one that VMs have to name."""
    return machine in _FACTS["specific_only"]


def sold_by_calendar(machine: str) -> bool:
    """Whether Google sells such VMs for a time to come, in calendar mode."""
    return machine in _FACTS["sold_by_calendar"]


def always_bound(machine: str) -> bool:
    """Whether VMs of that type are bound to their reservation, whatever it is."""
    return machine.startswith(tuple(_FACTS["always_bound"]))


def may_be_bound(machine: str) -> bool:
    """Whether there are reservations to which VMs of that type are bound."""
    return always_bound(machine) or machine.startswith(
        tuple(_FACTS["bound_when_dense_or_for_a_time"])
    )


def of_a_block(machine: str, count: int) -> int:
    """How many VMs one block has, of a reservation of so many."""
    return _size(_FACTS["instances_of_a_block"], machine, count)


def of_a_sub_block(machine: str, count: int) -> int:
    """How many VMs one sub-block has, of a block of so many."""
    return _size(_FACTS["instances_of_a_sub_block"], machine, count)


def _size(sizes: Mapping[str, int], machine: str, otherwise: int) -> int:
    found = (size for beginning, size in sizes.items() if machine.startswith(beginning))
    return min(next(found, otherwise), otherwise)
