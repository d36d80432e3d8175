"""Whom Kueue takes quota from, so that another has it: one of less priority, or who borrowed it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rehearsal.cloud.kubernetes import jobs, queues

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from rehearsal.cloud.kubernetes.objects import Object, World
    from rehearsal.cloud.kubernetes.queues import Place, Usage
    from rehearsal.cloud.kubernetes.workloads import Entry

_PRIORITY: Final = "InClusterQueue"
_RECLAIMED: Final = "InCohortReclamation"


@dataclass(frozen=True)
class NoPlace:
    """There is no quota now."""

    why: str  # what is missing, in Kueue's words
    # the workloads that are evicted for it, each with the reason; [] for none
    victims: Sequence[tuple[Entry, str]] = ()
    words: str = ""  # what the evicted are told


def place(world: World, entries: Sequence[Entry], entry: Entry, queue: Object) -> Place | NoPlace:
    """The quota that a workload gets, or whom it has to be taken from first."""
    found = _assign(world, queue, entry, entries)
    if not isinstance(found, str):
        return found
    spared = list(entries)
    victims: list[tuple[Entry, str]] = []
    for victim, why in _candidates(world, queue, entry.workload, entries):
        spared.remove(victim)
        victims.append((victim, why))
        if not isinstance(_assign(world, queue, entry, spared), str):
            uid = entry.workload["metadata"]["uid"]
            job = entry.job["metadata"]["uid"]
            words = f"Preempted to accommodate a workload (UID: {uid}, JobUID: {job})"
            return NoPlace(found, victims, words)
    return NoPlace(found)


def _assign(world: World, queue: Object, entry: Entry, others: Sequence[Entry]) -> Place | str:
    """Quota of the workload's own queue, or of what the others of its cohort leave."""
    members = queues.family(world, queue)
    first = [queue, *(it for it in members if it["metadata"]["uid"] != queue["metadata"]["uid"])]
    names = {it["metadata"]["name"] for it in first}
    pod_sets = jobs.pod_sets(entry.job)
    return queues.assign(world, queues.together(first), pod_sets, _used(others, names))


def _candidates(
    world: World, queue: Object, workload: Object, everyone: Sequence[Entry]
) -> list[tuple[Entry, str]]:
    """Those that may be evicted: of least priority first, of equals the youngest."""
    policy = queue["spec"].get("preemption") or {}
    own, priority = queue["metadata"]["name"], workload["spec"]["priority"]
    found: list[tuple[Entry, str]] = []
    for it in everyone:
        lower = it.workload["spec"]["priority"] < priority
        if queues.holder(it.workload) == own:
            if policy.get("withinClusterQueue") == "LowerPriority" and lower:
                found.append((it, _PRIORITY))
        elif _reclaims(policy, lower=lower) and _is_borrowed(world, queue, it.workload, everyone):
            found.append((it, _RECLAIMED))
    found.sort(
        key=lambda each: (each[0].workload["spec"]["priority"], -each[0].workload["_number"])
    )
    return found


def _reclaims(policy: Object, *, lower: bool) -> bool:
    rule = policy.get("reclaimWithinCohort")
    return rule == "Any" or (rule == "LowerPriority" and lower)


def _is_borrowed(world: World, queue: Object, workload: Object, everyone: Sequence[Entry]) -> bool:
    """Whether a workload is of another queue of the cohort, which has more than its own."""
    name = queues.holder(workload)
    for member in queues.family(world, queue):
        if member["metadata"]["name"] == name != queue["metadata"]["name"]:
            return queues.borrows(member, _used(everyone, {name}))
    return False


def _used(entries: Sequence[Entry], names: Collection[str]) -> Usage:
    return queues.usage((entry.workload for entry in entries), names)
