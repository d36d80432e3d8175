"""What a platform team's file (TEAM_DEFAULTS) forbids."""

from __future__ import annotations

import fnmatch
from typing import TYPE_CHECKING, Any, Final

from provision.codes import Code
from provision.settings.choices import Orchestrator
from provision.spec import pools
from provision.spec.rules.findings import Case, Finding

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from provision.settings.team import Team


_OF_POOLS: Final = frozenset({"vm_type", "zone"})
"""What node pools say of themselves too."""


def judge(team: Team, case: Case) -> Iterator[Finding]:
    """What the settings have and the team does not allow."""
    for name, value in team.locked.items():
        if name not in case.bad and case.value(name) != value:
            yield _refused(team, name, f"is locked to {_words(value)}", f"remove {case.name(name)}")
    for name, most in team.at_most.items():
        found = case.value(name)
        if name not in case.bad and found is not None and found > most:
            text = team.texts.get(name) or _words(most)
            yield _refused(team, name, f"is more than {text}", f"{name.upper()}={text}")
    for name, patterns in team.allowed.items():
        outside = [it for it in _values(name, case) if not _fits(it, patterns)]
        if outside and name not in case.bad:
            of = ", ".join(dict.fromkeys(outside))
            some = ", ".join(patterns)
            is_of_pool = name in _OF_POOLS and case.asked("gke_node_pools")
            name = "gke_node_pools" if is_of_pool else name  # noqa: PLW2901 - who asks for it
            yield _refused(team, name, f"asks for {of}, which is none of {some}", "choose one")


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
        if settings.orchestrator_type is Orchestrator.GKE:
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
