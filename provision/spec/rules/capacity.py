"""Which ways to get machines exclude each other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from provision.catalogue import machines
from provision.catalogue.machines import Consumption
from provision.settings.choices import Orchestrator
from provision.spec.rules.findings import Case, Finding, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from provision.settings.pools import NodePool

# Each pair, with the reason.
_EXCLUSIVE: Final = (
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
_POOL_KEYS: Final = {
    "enable_spot": "spot",
    "enable_flex_start": "flex_start",
    "enable_queued_provisioning": "queued",
    "reservation_name": "reservation",
}
_SHORTEST_GROUP_RUN: Final = 600
"""Seconds; a template's run duration and a resize request's have the same least value."""

_MOST_REQUESTED: Final = 1000
"""The most VMs that one resize request asks for."""

# How each way to get machines is asked for; who asks for none gets them on demand.
_ASKED_BY: Final = {
    Consumption.SPOT: ("enable_spot", "ENABLE_SPOT=yes"),
    Consumption.FLEX_START: ("enable_flex_start", "ENABLE_FLEX_START=yes"),
    Consumption.RESERVATION: ("reservation_name", "RESERVATION_NAME=<your reservation>"),
}


def of_pool(pool: NodePool, case: Case) -> Iterator[Finding]:
    """Disagreements of one node pool, where what it leaves open is as the cluster says."""
    wanted = {
        name: getattr(pool, key) if getattr(pool, key) is not None else case.value(name)
        for name, key in _POOL_KEYS.items()
    }
    wanted["enable_compact_placement"] = case.value("enable_compact_placement")
    own = {name for name, key in _POOL_KEYS.items() if getattr(pool, key) is not None}
    for one, other, why in _conflicts(wanted):
        if own & {one, other}:  # else the cluster's own settings disagree, and that is said once
            yield Finding(
                field=_POOL_KEYS.get(one, one),
                what=f"does not go together with {_POOL_KEYS.get(other, other)}",
                why=why,
                fix="choose one of them",
            )
    yield from _flex_compact(
        pool.vm_type,
        compact=bool(wanted["enable_compact_placement"]),
        flex_start=bool(wanted["enable_flex_start"]),
    )


def _conflicts(wanted: Mapping[str, object]) -> Iterator[tuple[str, str, str]]:
    for one, other, why in _EXCLUSIVE:
        if wanted[one] and wanted[other]:
            yield one, other, why


def _flex_compact(vm_type: str, *, compact: bool, flex_start: bool) -> Iterator[Finding]:
    family = machines.family(vm_type)
    *others, last = machines.compact_with_flex_start()
    if compact and flex_start and family is not None and not family.flex_compact:
        yield Finding(
            field="enable_compact_placement",
            what=f"does not go together with flex start for {vm_type}",
            why=f"with flex start only {', '.join(others)} and {last} can be placed compactly",
            fix="ENABLE_COMPACT_PLACEMENT=no",
        )


def _exclusive(case: Case) -> Iterator[Finding]:
    names = {name for pair in _EXCLUSIVE for name in pair[:2]}
    wanted = {name: name not in case.bad and case.value(name) for name in names}
    for one, other, why in _conflicts(wanted):
        yield Finding(
            field=one,
            what=f"does not go together with {case.name(other)}",
            why=why,
            fix=f"take {case.name(one)} or {case.name(other)} out",
        )


def _compact(case: Case) -> Iterator[Finding]:
    settings = case.settings
    if settings.gke_node_pools is None:
        yield from _flex_compact(
            settings.vm_type,
            compact=settings.enable_compact_placement,
            flex_start=settings.enable_flex_start,
        )


def _shortest_run(case: Case) -> Iterator[Finding]:
    seconds = case.settings.max_run_duration
    if (
        case.settings.orchestrator_type is not Orchestrator.GKE
        and seconds is not None
        and seconds < _SHORTEST_GROUP_RUN
    ):
        yield Finding(
            field="max_run_duration",
            what="is too short for a group of VMs",
            why="10m to 7d",
            fix="MAX_RUN_DURATION=10m",
        )


def _is_group(case: Case) -> bool:
    return case.settings.orchestrator_type is not Orchestrator.GKE


def _offered(case: Case) -> Iterator[Finding]:
    machine = machines.lookup(case.settings.vm_type)
    if not _is_group(case) or machine is None:
        return
    asked = [way for way, (name, _) in _ASKED_BY.items() if case.value(name)]
    offers = [way for way in Consumption if way in machine.consumption]
    for way in asked or [Consumption.ON_DEMAND]:
        if way in machine.consumption:
            continue
        field, _ = _ASKED_BY.get(way, ("vm_type", ""))
        yield Finding(
            field=field,
            what=f"does not offer {machine.name}" if asked else "can't be had on demand",
            why=f"the ways to get one: {_or(offers)}",
            fix=f"take {case.name(field)} out"
            if Consumption.ON_DEMAND in offers
            else _or([_ASKED_BY[it][1] for it in offers]),
            # An open reservation serves VMs that name none, so asking for nothing may be meant.
            note=not asked and Consumption.RESERVATION in machine.consumption,
        )


def _or(items: Sequence[str]) -> str:
    *others, last = items
    return f"{', '.join(others)} or {last}" if others else last


def _flex_machine(case: Case) -> Iterator[Finding]:
    settings = case.settings
    if (
        _is_group(case)
        and settings.enable_flex_start
        and machines.lookup(settings.vm_type) is None
        and not machines.may_flex_start(settings.vm_type)
    ):
        yield Finding(
            field="enable_flex_start",
            what=f"does not offer {settings.vm_type}",
            why="flex start has all machine types with GPUs but A4X and A4X Max, and H4D",
            fix=f"VM_TYPE=a3-highgpu-8g, or take {case.name('enable_flex_start')} out",
        )


def _one_request(case: Case) -> Iterator[Finding]:
    settings = case.settings
    if _is_group(case) and settings.enable_flex_start and settings.instance_count > _MOST_REQUESTED:
        yield Finding(
            field="instance_count",
            what="is more than flex start hands out at once",
            why=f"one resize request asks for at most {_MOST_REQUESTED} VMs",
            fix=f"INSTANCE_COUNT={_MOST_REQUESTED}, and another cluster with a NAME_PREFIX of its"
            " own for the rest",
        )


RULES: Final = (
    Rule((), _exclusive),
    Rule(("vm_type", "orchestrator_type", *_POOL_KEYS), _offered),
    Rule(("vm_type", "orchestrator_type", "enable_flex_start"), _flex_machine),
    Rule(("instance_count", "orchestrator_type", "enable_flex_start"), _one_request),
    Rule(("vm_type", "gke_node_pools", "enable_compact_placement", "enable_flex_start"), _compact),
    Rule(("max_run_duration", "orchestrator_type"), _shortest_run),
)
