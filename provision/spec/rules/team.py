"""What a platform team's file (TEAM_DEFAULTS) forbids."""

from __future__ import annotations

import fnmatch
from typing import TYPE_CHECKING, Any, Final, TypeVar

from provision.codes import Code
from provision.spec import pools
from provision.spec.rules.findings import Case, Finding

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from provision.settings.team import Team


_Rule = TypeVar("_Rule")
_OF_POOLS: Final = frozenset({"vm_type", "zone"})
"""What node pools say of themselves too."""


def judge(team: Team, case: Case) -> Iterator[Finding]:
    """What the settings have and the team does not allow."""
    for name in team.never:
        if case.asked(name) and name not in team.texts:
            yield _refused(team, name, "is not for users to set", f"remove {case.name(name)}")
    for name, only in _judged(team.locked, case):
        if case.value(name) != only.value:
            yield _refused(team, name, f"is locked to {only.text}", f"remove {case.name(name)}")
    for name, most in _judged(team.at_most, case):
        found = case.value(name)
        if found is not None and found > most.value:
            yield _refused(team, name, f"is more than {most.text}", f"{name.upper()}={most.text}")
    yield from _machines(team, case)
    for name, patterns in _judged(team.allowed, case):
        outside = [it for it in _values(name, case) if not _fits(it, patterns)]
        if outside:
            what = f"asks for {', '.join(dict.fromkeys(outside))}, none of {', '.join(patterns)}"
            in_pools = name in _OF_POOLS and case.asked("gke_node_pools")
            yield _refused(team, "gke_node_pools" if in_pools else name, what, "choose one")


def _machines(team: Team, case: Case) -> Iterator[Finding]:
    """All machines of a cluster that run jobs, however many pools they are in."""
    counting = ("instance_count", "gke_node_pools", "gke_node_pool_count", "gke_max_node_count")
    if team.machines is None or not case.bad.isdisjoint(counting):
        return
    found = case.settings.instance_count
    if case.settings.is_gke:
        found = sum(pool.size.most for pool in pools.of(case.settings))
    if found > team.machines.value:
        name = next((it for it in counting[1:] if case.asked(it)), counting[0])
        what = f"makes {found:,} machines in all, more than {team.machines.text}"
        yield _refused(team, name, what, "ask for fewer")


def _judged(rules: Mapping[str, _Rule], case: Case) -> Iterator[tuple[str, _Rule]]:
    """The rules of settings that are valid and mean something for this kind of cluster."""
    for name, rule in rules.items():
        if name not in case.bad and case.settings.takes(name):
            yield name, rule


def _refused(team: Team, name: str, what: str, fix: str) -> Finding:
    return Finding(
        code=Code.TEAM_RULE,
        field=name,
        what=what,
        why=f"the team allows no other: TEAM_DEFAULTS={team.where}",
        fix=f"{fix}, or {team.ask}",
    )


def _values(name: str, case: Case) -> Iterable[str]:
    """The values of a setting, and of the node pools that say the same of themselves."""
    settings = case.settings
    if name in _OF_POOLS and "gke_node_pools" not in case.bad:
        if settings.is_gke:
            of_pools = pools.of(settings)
            return [it.machine_type if name == "vm_type" else it.zone for it in of_pools]
        return settings.places.zones if name == "zone" else [settings.vm_type]
    value = case.value(name)
    if value is None:
        return []
    return map(_words, value if isinstance(value, tuple | list) else [value])


def _words(value: Any) -> str:
    return ("yes" if value else "no") if isinstance(value, bool) else str(value)


def _fits(value: str, patterns: Iterable[str]) -> bool:
    return any(fnmatch.fnmatchcase(value.lower(), it) for it in patterns)
