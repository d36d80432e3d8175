"""Which machines take which placement policies."""

from __future__ import annotations

from typing import Final

from rehearsal.cloud import facts

_FACTS: Final = facts.read("placement")


def takes_compact(machine: str) -> bool:
    """Whether machines of a type can be placed by a compact placement policy."""
    return machine.startswith(tuple(_FACTS["compact"]))


def takes_workload(machine: str, model: str) -> bool:
    """Whether a group of machines that come by a provisioning model takes a workload policy."""
    way = "by_flex_start" if model == "FLEX_START" else "by_spot_or_reservation"
    return machine.startswith(tuple(_FACTS[f"workload_{way}"]))


def needs_policy(machine: str) -> bool:
    """Whether several machines of a type need a policy, as they are parts of one (A4X)."""
    return machine.startswith(tuple(_FACTS["several_need_a_policy"]))
