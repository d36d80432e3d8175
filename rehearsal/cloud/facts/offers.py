"""Which zones have which machine types and GPUs, and in which ways Google gives them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rehearsal.cloud import facts
from rehearsal.cloud.facts import machines, places

if TYPE_CHECKING:
    from collections.abc import Mapping

EVERYWHERE: Final = "everywhere"
"""The scenario in which every zone has everything."""


def _rows(name: str) -> Mapping[str, frozenset[str]]:
    rows = facts.read("offers")[name]
    return {row: frozenset(it["places"].split()) for row, it in rows.items()}


_MACHINES: Final = _rows("machine_types")
_GPUS: Final = _rows("accelerators")
_NOT_OFFERED: Final[Mapping[str, list[str]]] = facts.read("consumption")["not_offered"]


def has_machine(zone: str, name: str, scenarios: frozenset[str]) -> bool:
    """Whether a zone has a machine type; those without GPUs of their own are in all zones."""
    return _has(_MACHINES.get(name), zone, scenarios)


def has_gpu(zone: str, name: str, scenarios: frozenset[str]) -> bool:
    """Whether a zone has a GPU: one to attach, or one of a machine type that it has."""
    if name in _GPUS:
        return _has(_GPUS[name], zone, scenarios)
    carriers = (it.name for it in machines.MACHINES.values() if it.gpu == name)
    return any(has_machine(zone, carrier, scenarios) for carrier in carriers)


def is_given(machine: str, model: str, scenarios: frozenset[str]) -> bool:
    """Whether machines of a type come with a provisioning model; those that are not known may."""
    prefixes = tuple(_NOT_OFFERED.get(model, ()))
    is_known = machine in machines.MACHINES
    return EVERYWHERE in scenarios or not is_known or not machine.startswith(prefixes)


def _has(there: frozenset[str] | None, zone: str, scenarios: frozenset[str]) -> bool:
    if there is None or EVERYWHERE in scenarios:
        return True
    return not there.isdisjoint({zone, places.region_of(zone)})
