"""Which settings have another value than at the last Create."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from provision.documents.plan import SettingChange
from provision.settings import masking
from provision.settings.derived import Derived
from provision.settings.model import Settings

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

_LONGEST: Final = 60
"""Characters of a value that is shown."""
_OF_THE_RUN: Final = frozenset(
    {
        "ACTION",
        "ASK_ABOVE",
        "CAPACITY_TIMEOUT",
        "JOB_COMMAND",
        "JOB_ENV",
        "JOB_OPTIONS",
        "MAX_HOURLY_COST",
        "MINIMIZE_TERRAFORM_LOGGING",
        "PRICES",
        "PROTECT",
        "SHOW_PROXY_URL",
        "SKIP_CHECKS",
    }
)
"""Settings of which nothing in the cloud depends."""


def of(
    before: Mapping[str, Any], now: Mapping[str, Any], given: Collection[str]
) -> tuple[SettingChange, ...]:
    """What changed, in the order of the settings.

    A default that follows another setting, such as the number of GPUs that of the machine type, is
    not named beside it. `before`: the effective settings of the last Create, as its record has
    them. `given`: the settings that the user has set now, by their names in an env.list.
    """
    # Whoever may write to the bucket may have written it in clear.
    before = masking.seal_settings(before)
    # A record has been JSON, so lists and tuples are alike there.
    plain: dict[str, Any] = json.loads(json.dumps(dict(now), default=str))
    changed = [
        name
        for name, value in plain.items()
        if name in before and before[name] != value and name not in _OF_THE_RUN
    ]
    return tuple(
        SettingChange(setting=name, words=", ".join(_words(before[name], plain[name])))
        for name in changed
        if name in given or not _leaders(name).intersection(changed)
    )


def _leaders(setting: str) -> set[str]:
    """The settings that the default of one is computed from."""
    default = Settings.model_fields[setting.lower()].default_factory
    return {name.upper() for name in default.of} if isinstance(default, Derived) else set()


def _words(old: Any, new: Any) -> Iterator[str]:
    kinds = (dict, type(None))
    if isinstance(old, kinds) and isinstance(new, kinds):
        yield from _entries(old or {}, new or {})
    elif _is_long(old) or _is_long(new):
        yield "changed"
    else:
        yield f"{_text(old)} -> {_text(new)}"


def _entries(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    """What changed in a setting with keys and values."""
    for key in {**old, **new}:
        if key not in old:
            yield f"+ {key}={_text(new[key])}" if not _is_long(new[key]) else f"+ {key}"
        elif key not in new:
            yield f"- {key}"
        elif old[key] != new[key]:
            long = _is_long(old[key]) or _is_long(new[key])
            yield f"{key} changed" if long else f"{key}={_text(old[key])} -> {_text(new[key])}"


def _is_long(value: Any) -> bool:
    text = _text(value)
    return len(text) > _LONGEST or "\n" in text or masking.MASK in text


def _text(value: Any) -> str:
    match value:
        case None:
            return "unset"
        case bool():
            return "yes" if value else "no"
        case list() | dict():
            return json.dumps(value)
        case _:
            return str(value)
