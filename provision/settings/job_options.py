"""JOB_OPTIONS: options that each Run has, written as on its command line; and the tasks of one."""

from __future__ import annotations

import difflib
import re
import shlex
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Final, Self

from pydantic import AfterValidator, BeforeValidator

from provision.settings import parsing
from provision.settings.parsing import InvalidValueError, shorten

if TYPE_CHECKING:
    from collections.abc import Mapping

NAMES: Final = (
    *("name", "nodes", "gpus", "array", "time", "setup", "wait"),
    *("restarts", "restart-on", "image", "machine", "queue", "priority"),
)
_ARRAY: Final = re.compile(r"([0-9]{1,9})-([0-9]{1,9})(?:%([0-9]{1,9}))?")
MOST_TASKS: Final = 1000
"""Also the highest number: one less than MaxArraySize if nobody sets that (slurm.conf(5) 24.11)."""
_FIELDS: Final = {f"--{name}": f"job_{name.replace('-', '_')}" for name in NAMES}


@dataclass(frozen=True)
class JobArray:
    """The numbers of a job's tasks: each runs its program once, with its own in JOB_INDEX."""

    first: int
    last: int
    most: int | None = None  # how many of them run at a time; None for all that have room

    @property
    def tasks(self) -> int:
        """How many there are."""
        return self.last - self.first + 1

    @classmethod
    def of(cls, text: str) -> Self:
        """What `FIRST-LAST` means, or that with %MOST behind it."""
        found = _ARRAY.fullmatch(text)
        if not found:
            raise InvalidValueError(
                "is no range of tasks", "FIRST-LAST, as 0-63, or 0-63%8 for 8 of them at a time"
            )
        array = cls(int(found[1]), int(found[2]), None if found[3] is None else int(found[3]))
        if array.tasks < 1 or array.most == 0:
            least, most = sorted([array.first, array.last])
            why = "LAST is FIRST or more, and MOST at least 1"
            raise InvalidValueError("has no task", why, fix=f"{least}-{most}")
        if array.last > MOST_TASKS or array.tasks > MOST_TASKS:
            raise InvalidValueError(
                "asks for more than a job can have",
                f"it has at most {MOST_TASKS} tasks, the last of them no more than {MOST_TASKS}:"
                " let each do several, or run it several times",
                fix=f"0-{MOST_TASKS - 1}",
            )
        return array


def read(text: str) -> dict[str, str]:
    """Option -> its value; of one that comes again the last."""
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
ArrayText = Annotated[JobArray, BeforeValidator(JobArray.of)]
