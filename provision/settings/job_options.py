"""JOB_OPTIONS: options that each Run has, written as on its command line."""

from __future__ import annotations

import difflib
import shlex
from collections import deque
from typing import TYPE_CHECKING, Annotated, Final

from pydantic import AfterValidator

from provision.settings import parsing
from provision.settings.parsing import InvalidValueError, shorten

if TYPE_CHECKING:
    from collections.abc import Mapping

NAMES: Final = (
    *("name", "nodes", "time", "setup", "wait"),
    *("restarts", "restart-on", "image", "machine", "queue", "priority"),
)
_FIELDS: Final = {f"--{name}": f"job_{name.replace('-', '_')}" for name in NAMES}


def read(text: str) -> dict[str, str]:
    """Option -> its value; of one that comes again the last.

    Raises:
        InvalidValueError: There is another option, or one without a value.
    """
    try:
        left = deque(shlex.split(text))
    except ValueError:
        raise InvalidValueError(
            "has a quote that is not closed", "close it, or remove it"
        ) from None
    found = {}
    while left:
        name, value, _ = parsing.option(left, _FIELDS.__contains__)
        if name not in _FIELDS:
            close = difflib.get_close_matches(f"--{name.lstrip('-').lower()[:64]}", _FIELDS, n=1)
            raise InvalidValueError(
                f"has {shorten(name)}, which is none of the options that it may have",
                f"did you mean {close[0]}?" if close else f"they are {', '.join(_FIELDS)}",
            )
        if not value:
            raise InvalidValueError(f"has {name} without a value", "write it behind the option")
        found[name] = value
    return found


def with_them(texts: Mapping[str, str]) -> Mapping[str, str]:
    """The texts of fields, with those that JOB_OPTIONS has and no command line; if it is valid."""
    try:
        options = read(texts.get("job_options", ""))
    except InvalidValueError:
        return texts  # as the field says itself
    return {**{_FIELDS[option]: text for option, text in options.items()}, **texts}


def corrected(text: str, option: str, value: str) -> str:
    """The same JOB_OPTIONS with another value of one option, or with <what a person completes>."""
    quoted = {name: shlex.quote(it) for name, it in read(text).items()}
    quoted[option] = value if value.startswith("<") else shlex.quote(value)
    return " ".join(f"{name} {it}" for name, it in quoted.items())


def _check(text: str) -> str:
    read(text)
    return text


JobOptions = Annotated[str, AfterValidator(_check)]
