"""From an env.list to `Settings`, with all problems reported at once."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from pydantic import ValidationError

from provision.codes import Code
from provision.errors import (
    Alternatives,
    Problem,
    ProvisionError,
    SettingsError,
    StateError,
    assignments,
)
from provision.settings import derived, job_options, masking, reading, spelling
from provision.settings.candidates import ASKED_BY
from provision.settings.derived import Derived
from provision.settings.model import BY_VARIABLES, Settings, example_of, option_of
from provision.settings.parsing import InvalidValueError, shorten
from provision.settings.reading import Given
from provision.spec.rules import every, team
from provision.spec.rules.findings import Case, Finding

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from pydantic_core import ErrorDetails

    from provision.settings.reading import Reading
    from provision.spec.rules.team import Team

_NOTHING: Final[Mapping[str, str]] = {}
_DERIVED: Final[Mapping[str, Derived]] = {
    name: about.default_factory
    for name, about in Settings.model_fields.items()
    if isinstance(about.default_factory, Derived)
}
_NEXT_NAME: Final = re.compile(r"\s+(?=[A-Z][A-Z0-9_]*=)")
_SHOWN: Final = 4096  # the number of characters of a value from which a message makes its excerpt

_NESTED: Final = {
    "gcs_mount_list": "mount",
    "gke_node_pools": "pool",
    "nfs_fileshare_list": "share",
    "secrets": "secret",
}
# pydantic's error for a default that depends on an invalid field; it is not a problem of its own.
_FOLLOWS: Final = "default_factory_not_called"


@dataclass(frozen=True)
class Loaded:
    """The result of loading the settings."""

    settings: Settings | None  # the settings; None if there is a problem
    problems: tuple[Problem, ...] = ()
    notes: tuple[Problem, ...] = ()
    guesses: tuple[Problem, ...] = ()  # those of them that Google's own answer replaces
    # principals that may change states on purpose, as the team's file has them
    state_writers: tuple[str, ...] = ()
    # Variable -> effective value as JSON, with secrets masked and commands and metadata sealed. An
    # invalid value is its raw text, and a default that depends on it is None. Empty if the env file
    # could not be read.
    effective: dict[str, Any] = field(default_factory=dict)
    # values that may hold credentials, unmasked
    private_texts: tuple[str, ...] = field(default=(), repr=False)
    # the same for values that are maps
    private_maps: tuple[Mapping[str, str], ...] = field(default=(), repr=False)


def load(  # noqa: PLR0913 - each is a source, or narrows what counts
    environ: Mapping[str, str],
    env_file: Path | None = None,
    *,
    flags: Mapping[str, str] = _NOTHING,
    only: Collection[str] | None = None,
    without: Collection[str] = (),
    fetch: Callable[[str], str] = lambda where: Path(where).read_text("utf-8"),
) -> Loaded:
    """Read, check and complete the settings of one run.

    `flags`: variable -> value from the command line, which override everything else. `only`: the
    variables that matter: problems of others are notes, and their fields have their defaults. None
    if all matter. `fetch`: reads what TEAM_DEFAULTS names; raises OSError, SettingsError or
    StateError where it can't, and CredentialsError where somebody has to log in first. Returns
    settings and problems; invalid input never raises an exception.
    """
    read = reading.read(environ, env_file, flags)
    if not read.readable:
        return Loaded(None, problems=tuple(read.problems))
    rules = _of_team(read, fetch)
    for name in without:
        read.given.pop(name.lower(), None)
    meant = read.as_meant()
    settings, problems = _judge_fields(meant)
    bad = {found.field for found in problems} | read.unclear()
    case = Case(
        settings=settings or _settle(meant, bad),
        names=MappingProxyType({name: given.name for name, given in meant.given.items()}),
        bad=frozenset(bad | _following(bad, meant)),
    )
    case, findings = every.judge_ways(case)
    found = [
        *(_Found(_field_of(problem.setting, read), problem) for problem in read.problems),
        *(_Found(_field_of(note.setting, read), note, is_note=True) for note in read.notes),
        *(it for it in problems if it.field not in read.unclear()),
        *(_of_finding(finding, case, meant) for finding in findings),
        *(_of_finding(finding, case, meant) for finding in team.judge(rules, case)),
    ]
    return replace(_sort_out(found, case, read, only), state_writers=rules.state_writers)


def _of_team(read: Reading, fetch: Callable[[str], str]) -> Team:
    """What TEAM_DEFAULTS says; its values are added to what was read, where nobody gave one."""
    named = read.given.get("team_defaults")
    if named is None:
        return team.Team(where="")
    try:
        rules = team.parse(fetch(named.text), named.text)
    except (OSError, ValueError, StateError, SettingsError, team.InvalidTeamError) as error:
        told = error.problems[0] if isinstance(error, ProvisionError) else None
        read.problems.append(
            Problem(
                code=Code.TEAM_RULE,
                setting=named.name,
                what=f"{shorten(named.text)} can't be used",
                why=": ".join(filter(None, [str(error), told.why if told else ""])),
                fix="ask the team that keeps the file, or leave TEAM_DEFAULTS out",
            )
        )
        return team.Team(where=named.text)
    added = rules.missing_in({name: it.text for name, it in read.given.items()})
    whose = f"TEAM_DEFAULTS={named.text} sets {{}}: {rules.ask}"
    read.given.update(
        {
            name: Given(name=name.upper(), raw=text, text=text, team=whose)
            for name, text in added.items()
        }
    )
    shown = (f"{name.upper()}={masking.mask_setting(name, text)}" for name, text in added.items())
    if added:
        read.notes.append(
            Problem(
                code=Code.NOTE,
                setting=named.name,
                what=f"sets {', '.join(shown)}",
                why=f"{named.text}; {rules.ask} about them",
            )
        )
    return rules


@dataclass(frozen=True)
class _Found:
    """A problem or note, and the field that it is about; "" for none."""

    field: str
    problem: Problem
    is_note: bool = False
    is_guess: bool = False


def _sort_out(
    found: Sequence[_Found], case: Case, read: Reading, only: Collection[str] | None
) -> Loaded:
    order = {name: number for number, name in enumerate(Settings.model_fields)}
    ordered = sorted(found, key=lambda it: order.get(it.field, -1))
    counts = [not it.is_note and (only is None or it.field.upper() in only) for it in ordered]
    problems = tuple(it.problem for it, stops in zip(ordered, counts, strict=True) if stops)
    notes = tuple(it.problem for it, stops in zip(ordered, counts, strict=True) if not stops)
    dropped = {it.field for it in ordered if not it.is_note}
    settings = _settle(read, dropped) if dropped else case.settings
    effective = _effective(case, read)
    return Loaded(
        settings=None if problems else settings,
        problems=problems,
        notes=notes,
        guesses=tuple(it.problem for it in ordered if it.is_guess),
        effective=effective,
        private_texts=tuple(read.given[name].raw for name in masking.PRIVATE if name in read.given),
        private_maps=tuple(
            _unspoken(values, effective)
            for values in (case.settings.metadata, case.settings.job_env, _secret(read))
        ),
    )


def _judge_fields(read: Reading) -> tuple[Settings | None, list[_Found]]:
    try:
        return Settings({name: given.text for name, given in read.given.items()}), []
    except ValidationError as error:
        return None, [
            _Found(_giver(str(details["loc"][0]), read), _of_error(details, read))
            for details in error.errors(include_url=False)
            if details["type"] != _FOLLOWS
        ]


def _giver(name: str, read: Reading) -> str:
    """The field that was given for one: JOB_OPTIONS for an option that no command line has."""
    return "job_options" if option_of(name) and name not in read.given else name


def _of_error(details: ErrorDetails, read: Reading) -> Problem:
    name = str(details["loc"][0])
    given = read.given.get(name)
    if given is None and option_of(name):
        return _of_option(details, read.given["job_options"])
    if given is None:
        return Problem(
            code=Code.MISSING_SETTING,
            setting=name.upper(),
            what="is not set",
            why=str(Settings.model_fields[name].description),
            fix=f"{name.upper()}={example_of(name)}",
        )
    what, why, fix = _words(details)
    # Quotes around a value are removed, but a " #" is not: it may be part of the value.
    if " #" in given.raw:
        why = f"{why}; a comment must be on a line of its own"
    if several := _on_one_line(given):
        return Problem(
            code=Code.INVALID_VALUE,
            setting=given.name,
            what=f"{_shown(name, read)} {_place(details)}{what}",
            why="each setting has a line of its own",
            fix=f"{' and '.join(several)}, a line each",
        )
    return Problem(
        code=Code.INVALID_VALUE,
        setting=given.name,
        what=f"{_shown(name, read)} {_place(details)}{what}",
        why=why,
        fix=given.written(fix or example_of(name)),
        alternatives=Alternatives(
            settings={given.name: fix} if fix and "<" not in fix and name in BY_VARIABLES else {}
        ),
    )


def _on_one_line(given: Given) -> list[str]:
    """The settings that stand on one line, as pages and shells have them; none if it is one."""
    first, *others = _NEXT_NAME.split(given.raw[:_SHOWN])
    if not others or not all(spelling.is_known(it.partition("=")[0]) for it in others):
        return []
    return [masking.mask(it) for it in (given.written(first), *others)]


def _of_option(details: ErrorDetails, given: Given) -> Problem:
    name = str(details["loc"][0])
    what, why, fix = _words(details)
    whole = job_options.corrected(given.text, option_of(name), fix or example_of(name))
    return Problem(
        code=Code.INVALID_VALUE,
        setting=given.name,
        what=f"has {option_of(name)} {shorten(masking.mask(str(details['input'])))}, which {what}",
        why=why,
        fix=given.written(whole),
        alternatives=Alternatives(settings={given.name: whole} if fix and "<" not in fix else {}),
    )


def _shown(name: str, read: Reading) -> str:
    """The value that was given, quoted, shortened and masked for a message."""
    return shorten(_masked(name, read.given[name].raw[:_SHOWN]))


def _masked(name: str, raw: str) -> str:
    """Mask what looks like a credential in the text of a value."""
    # Bytes of the environment that are not UTF-8 are decoded to characters that can't be printed.
    text = raw.encode("utf-8", "backslashreplace").decode("utf-8")
    match name:
        case "secrets":
            # Where a secret's name should be, its value may be.
            items = [item.partition("=")[2].lstrip() for item in text.split(",")]
            named = all(item.startswith("projects/") for item in items)
            return masking.mask_forms(text) if named else masking.MASK
        case _:
            return masking.mask_setting(name, text)


def _place(details: ErrorDetails) -> str:
    name, *rest = details["loc"]
    if not rest:
        return ""
    if isinstance(rest[0], str):  # a map, not a list
        return f"has {rest[0]}={shorten(masking.mask(str(details['input'])))}, which "
    number = int(rest[0]) + 1
    kind = _NESTED.get(str(name), "item")
    if details["type"] == "missing":
        return f"has {kind} {number}, which "
    value = shorten(masking.mask(str(details["input"])))
    if len(rest) == 1:
        return f"has {kind} {number}, {value}, which "
    value = f" {value}" if details["input"] is not None else ""
    return f"has {kind} {number}, whose {rest[1]}{value} "


def _words(details: ErrorDetails) -> tuple[str, str, str]:
    """What is wrong, the rule, and a valid value if the error has one."""
    context: dict[str, Any] = details.get("ctx", {})
    error = context.get("error")
    in_a_list = len(details["loc"]) > 1
    if isinstance(error, InvalidValueError):
        # The share's own fix is a whole one: a path, a tier and a size.
        return error.what, error.why, "" if in_a_list and "/" not in error.fix else error.fix
    match details["type"]:
        case "missing":
            return f"has no {details['loc'][-1]}", "every pool needs one", ""
        # In a list, a bound alone is no value of the setting.
        case "greater_than_equal":
            return (
                "is too small",
                f"at least {context['ge']}",
                "" if in_a_list else str(context["ge"]),
            )
        case "greater_than":
            return "is too small", f"more than {context['gt']:g}", ""
        case "less_than_equal":
            return (
                "is too large",
                f"at most {context['le']}",
                "" if in_a_list else str(context["le"]),
            )
        case _:
            return "can't be used", details["msg"], ""


def _settle(read: Reading, dropped: Collection[str]) -> Settings:
    """The settings without the dropped fields; a required field then has its example value."""
    if "capacity" in dropped:
        # What it stood in place of was never looked at.
        dropped = {*dropped, *ASKED_BY.values()}
    if any(map(option_of, dropped)):
        dropped = {*dropped, "job_options"}  # which may have another wrong value
    texts = {name: given.text for name, given in read.given.items() if name not in dropped}
    for name, about in Settings.model_fields.items():
        if about.is_required():
            texts.setdefault(name, example_of(name))
    return Settings(texts)


def _following(bad: Collection[str], read: Reading) -> set[str]:
    """The fields whose defaults depend on invalid ones."""
    following = {name for field in bad for name in derived.affected_by(field, _DERIVED)}
    return following - set(read.given)


def _field_of(variable: str, read: Reading) -> str:
    """The field that a variable sets, or that a misnomer means and nobody gave; "" for none."""
    known = spelling.SETTINGS.get(spelling.setting_of(variable), "")
    meant = next(iter(read.misnomers.get(variable, ())), "")
    return known or ("" if meant in read.given else meant)


def _of_finding(finding: Finding, case: Case, read: Reading) -> _Found:
    field = _giver(finding.field, read)
    what = finding.what
    if field != finding.field:
        what = f"has {option_of(finding.field)}, which {what}"
    elif case.asked(field) and field not in read.given:
        field = "capacity"  # which asks for it
    shown = f"{_shown(field, read)} " if case.asked(field) else ""
    fix, settings = finding.fix, assignments(finding.fix)
    if field in read.given and (whose := read.given[field].team):
        # Who runs this has not written it, and may not be able to write another value.
        fix, settings = f"{whose.format(case.name(field))}, to {fix}", {}
    problem = Problem(
        setting=case.name(field),
        what=shown + what,
        why=finding.why,
        fix=fix,
        code=finding.code,
        alternatives=Alternatives(zones=finding.zones, settings=settings),
    )
    return _Found(field, problem, is_note=finding.note, is_guess=finding.guess)


def _secret(read: Reading) -> dict[str, str]:
    """What is a credential as a whole, also where its value is refused, and its path alone."""
    whole = read.given["notify"].text if "notify" in read.given else ""
    path = whole.partition("//")[2].partition("/")[2]
    return {"secret": whole, "secret path": path} if whole else {}


def _unspoken(metadata: Mapping[str, str], effective: Mapping[str, Any]) -> dict[str, str]:
    """The metadata without values that are said anyway, such as the zone: nobody can hide those."""
    spoken = json.dumps(effective)
    return {
        key: value
        for key, value in metadata.items()
        if masking.is_telling(key) or value not in spoken
    }


def _effective(case: Case, read: Reading) -> dict[str, Any]:
    values = effective(case.settings)
    supposed = read.as_meant().given.keys() - read.given.keys()
    unknown = {*case.bad, *supposed, *_following(supposed, read)}
    for name in unknown.intersection(BY_VARIABLES):
        values[name.upper()] = _masked(name, read.given[name].raw) if name in read.given else None
    return values


def effective(settings: Settings) -> dict[str, Any]:
    """Variable -> effective value as JSON, with secrets masked, commands and metadata sealed."""
    values = settings.model_dump(mode="json", include=set(BY_VARIABLES))
    values["zone"] = settings.places.text
    values["labels"] = masking.mask_tree(values["labels"])
    return {name.upper(): value for name, value in masking.seal_settings(values).items()}
