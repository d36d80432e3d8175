"""TEAM_DEFAULTS: what a platform team decides for all its users in a TOML file, and forbids.

    contact = "ml-platform@example.com"
    never = ["CA_BUNDLE"]
    state_writers = ["domain:example.com"]
    [defaults]
    NETWORK_CONFIG = "existing"
    [locked]
    ENABLE_PUBLIC_IPS = false
    [at_most]
    MAX_HOURLY_COST = 200
    MACHINES = 16
    [allowed]
    VM_TYPE = ["a3-*", "g2-standard-*"]

It guards against slips. Who may set the variable may leave it out too: what nobody may get around
is Google's organization policies.
"""

from __future__ import annotations

import fnmatch
import re
import tomllib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeVar

from pydantic import ValidationError

from provision.codes import Code
from provision.settings import spelling
from provision.settings.model import Settings, example_of, is_for, kind_in
from provision.spec import pools
from provision.spec.rules.findings import Case, Finding

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

MACHINES: Final = "MACHINES"
"""What `at_most` may limit beside settings: all machines of a cluster that run jobs."""
NEVER: Final = "never"
"""The settings that nobody but the file itself may give."""
WRITERS: Final = "state_writers"
"""Whole domains, and accounts of machines, that may change states on purpose."""
_WRITER: Final = re.compile(
    r"domain:[a-z0-9][a-z0-9.-]{0,251}[a-z0-9]|serviceAccount:[a-z0-9.-]{1,100}@[a-z0-9.-]{1,190}"
)
_TABLES: Final = ("defaults", "locked", "at_most", "allowed")


class InvalidTeamError(Exception):
    """The file can't be used, for a reason that people can read."""


@dataclass(frozen=True)
class Bound:
    """A value that the team allows, or the greatest one."""

    value: Any
    text: str


@dataclass(frozen=True, kw_only=True)
class Team:
    """What the file says; settings by their fields."""

    where: str
    contact: str = ""  # whom to ask; "" for nobody
    # field -> its value where the user gives none, as text
    texts: Mapping[str, str] = field(default_factory=dict)
    locked: Mapping[str, Bound] = field(default_factory=dict)  # field -> the only value it may have
    # field -> the greatest value it may have
    at_most: Mapping[str, Bound] = field(default_factory=dict)
    machines: Bound | None = None  # the most machines of a whole cluster; None for no limit
    never: tuple[str, ...] = ()  # fields that nobody may set
    # principals that may change states on purpose, as IAM has them
    state_writers: tuple[str, ...] = ()
    # field -> patterns of the values that it may have, with `*`
    allowed: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def missing_in(self, given: Mapping[str, str]) -> dict[str, str]:
        """The values of settings that nobody gave, and that mean something for the cluster."""
        kind = kind_in({**self.texts, **given})
        return {
            name: text
            for name, text in self.texts.items()
            if name not in given and is_for(name, kind)
        }

    @property
    def ask(self) -> str:
        """Whom to ask."""
        return f"ask {self.contact or 'the team that keeps the file'}"


def parse(text: str, where: str) -> Team:
    """Read the file."""
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InvalidTeamError(f"it is not TOML: {error}") from None
    parts = ("contact", NEVER, WRITERS, *_TABLES)
    unknown = sorted(document.keys() - set(parts))
    if unknown:
        raise InvalidTeamError(f"{unknown[0]} is none of {', '.join(parts)}")
    never = document.get(NEVER, [])
    if not isinstance(never, list):
        raise InvalidTeamError(f"{NEVER} is a list of settings")
    writers = document.get(WRITERS, [])
    if not isinstance(writers, list) or not all(_WRITER.fullmatch(str(it)) for it in writers):
        raise InvalidTeamError(
            f"{WRITERS} is a list of whole domains and service accounts, each as IAM has it, such"
            ' as ["domain:example.com"]'
        )
    machines = _limit_of_machines(document.get("at_most"))
    tables = {name: _by_field(name, document.get(name, {})) for name in _TABLES}
    defaults, locked, at_most = (
        {name: _bound(name, it) for name, it in tables[table].items()} for table in _TABLES[:3]
    )
    for name, most in at_most.items():
        if isinstance(most.value, bool) or not isinstance(most.value, int | float):
            raise InvalidTeamError(f"{name.upper()} in at_most is no number")
    # A limit of what is unlimited by default is its default too.
    fields = Settings.model_fields
    limits = {name: most for name, most in at_most.items() if fields[name].default is None}
    texts = limits | defaults | locked
    return Team(
        where=where,
        contact=str(document.get("contact", "")),
        texts={name: it.text for name, it in texts.items()},
        locked=locked,
        at_most=at_most,
        machines=machines,
        state_writers=tuple(map(str, writers)),
        never=tuple(_by_field(NEVER, dict.fromkeys(map(str, never)))),
        allowed={
            name: tuple(str(one).lower() for one in (it if isinstance(it, list) else [it]))
            for name, it in tables["allowed"].items()
        },
    )


def _limit_of_machines(at_most: object) -> Bound | None:
    """The limit of all machines, which is taken out of the table, as it is no setting."""
    most = at_most.pop(MACHINES, None) if isinstance(at_most, dict) else None
    if most is None:
        return None
    if isinstance(most, bool) or not isinstance(most, int) or most < 1:
        raise InvalidTeamError(f"{MACHINES} in at_most is no number of machines")
    return Bound(most, str(most))


def _by_field(table: str, found: object) -> dict[str, Any]:
    if not isinstance(found, dict):
        raise InvalidTeamError(f"{table} is a table: [{table}], and NAME = value below it")
    for name in found:
        if name not in spelling.SETTINGS or name == "TEAM_DEFAULTS":
            raise InvalidTeamError(f"{name} in {table} is not a setting")
    return {spelling.SETTINGS[name]: it for name, it in found.items()}


def _bound(name: str, given: Any) -> Bound:
    text = _text(given)
    required = {
        it: example_of(it) for it, about in Settings.model_fields.items() if about.is_required()
    }
    try:
        return Bound(getattr(Settings(required | {name: text}), name), text)
    except ValidationError as error:
        said = error.errors(include_url=False)[0]["msg"]
        raise InvalidTeamError(f"{name.upper()}={text}: {said}") from None


def _text(given: Any) -> str:
    match given:
        case bool():
            return "yes" if given else "no"
        case list():
            return ",".join(map(str, given))
        case _:
            return str(given)


_Rule = TypeVar("_Rule")
_OF_POOLS: Final = frozenset({"vm_type", "zone"})  # what node pools say of themselves too


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
