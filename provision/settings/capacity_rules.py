"""Which ways to get machines exclude each other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from provision import machines
from provision.settings.choices import Orchestrator
from provision.settings.findings import Case, Finding, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

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
    if compact and flex_start and family is not None and not family.flex_compact:
        yield Finding(
            field="enable_compact_placement",
            what=f"does not go together with flex start for {vm_type}",
            why="with flex start only A3 Ultra, A4 and H4D can be placed compactly",
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


RULES: Final = (
    Rule((), _exclusive),
    Rule(("vm_type", "gke_node_pools", "enable_compact_placement", "enable_flex_start"), _compact),
    Rule(("max_run_duration", "orchestrator_type"), _shortest_run),
)
