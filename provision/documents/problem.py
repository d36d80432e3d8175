"""A problem or note of a run, as programs read it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from provision.codes import Code

if TYPE_CHECKING:
    from provision import errors


@dataclass(frozen=True, kw_only=True)
class Alternatives:
    """What else would do."""

    zones: Annotated[tuple[str, ...], "zones that may do instead, the best first"] = ()
    settings: Annotated[
        Mapping[str, str], "setting -> the value that fixes it; all of them together"
    ]


@dataclass(frozen=True, kw_only=True)
class Problem:
    """One problem, which made the run fail, or one note, which did not."""

    code: Annotated[
        Code,
        "What it is about; docs/reference/problems.md has all codes. Codes stay as they are, "
        "while words may be improved.",
    ]
    retryable: Annotated[
        bool,
        "whether the same action with the same settings can succeed later, although nobody "
        "changes anything",
    ]
    setting: Annotated[str, 'the variable, or the option, as the user wrote it; "" for none']
    what: Annotated[str, "what is wrong, for people"]
    why: Annotated[str, "the rule or the cause, for people"]
    fix: Annotated[str, "a valid value, or the command that fixes it, for people"]
    alternatives: Annotated[Alternatives, "what else would do"]
    lock_id: Annotated[str | None, "the ID of the lock that is in the way, for --break-lock"] = None


def of(problem: errors.Problem) -> Problem:
    """The document of a problem or note; one without a code is about nothing in particular."""
    code = problem.code or Code.NOTE
    return Problem(
        code=code,
        retryable=code.is_retryable,
        setting=problem.setting,
        what=problem.what,
        why=problem.why,
        fix=problem.fix,
        alternatives=Alternatives(
            zones=tuple(problem.alternatives.zones),
            settings=dict(problem.alternatives.settings),
        ),
        lock_id=problem.lock_id or None,
    )
