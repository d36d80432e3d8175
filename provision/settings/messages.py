"""The messages about single values that are invalid."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from provision.codes import Code
from provision.errors import Alternatives, Problem
from provision.settings import job_options, masking
from provision.settings.model import BY_VARIABLES, Settings, example_of, option_of
from provision.settings.parsing import InvalidValueError, shorten

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

    from provision.settings.reading import Given, Reading

_SHOWN: Final = 4096
"""The number of characters of a value from which a message makes its excerpt."""

_NESTED: Final = {
    "gcs_mount_list": "mount",
    "gke_node_pools": "pool",
    "nfs_fileshare_list": "share",
    "secrets": "secret",
}


def of_error(details: ErrorDetails, read: Reading) -> Problem:
    """The problem for one validation error."""
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
    return Problem(
        code=Code.INVALID_VALUE,
        setting=given.name,
        what=f"{shown(name, read)} {_place(details)}{what}",
        why=why,
        fix=given.written(fix or example_of(name)),
        alternatives=Alternatives(
            settings={given.name: fix} if fix and "<" not in fix and name in BY_VARIABLES else {}
        ),
    )


def _of_option(details: ErrorDetails, given: Given) -> Problem:
    """The problem of an option in JOB_OPTIONS."""
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


def shown(name: str, read: Reading) -> str:
    """The value that was given, quoted, shortened and masked for a message."""
    return shorten(masked(name, read.given[name].raw[:_SHOWN]))


def masked(name: str, raw: str) -> str:
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
    """The position of the value in a list, and the value."""
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
