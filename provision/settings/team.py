"""TEAM_DEFAULTS: what a platform team decides for all its users, in a TOML file.

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

import re
import tomllib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from pydantic import ValidationError

from provision.settings import spelling
from provision.settings.model import Settings, example_of, is_for, kind_in

if TYPE_CHECKING:
    from collections.abc import Mapping

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
        """The values of settings that nobody gave, and that mean something for the cluster.

        `given`: field -> the text that somebody gave.
        """
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
    machines = _machines(document.get("at_most"))
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


def _machines(at_most: object) -> Bound | None:
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
