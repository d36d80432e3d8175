"""A problem or note of a run, as programs read it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from provision.codes import Code

if TYPE_CHECKING:
    from provision import errors


@dataclass(frozen=True, kw_only=True)
class Alternatives:
    """What else would do."""

    zones: tuple[str, ...] = ()  # zones that may do instead, the best first
    settings: Mapping[str, str]  # setting -> the value that fixes it; all of them together


@dataclass(frozen=True, kw_only=True)
class Problem:
    """One problem, which made the run fail, or one note, which did not."""

    # What it is about; docs/reference/problems.md has all codes. Codes stay as they are, while
    # words may be improved.
    code: Code
    # whether the same action with the same settings can succeed later, although nobody changes
    # anything
    retryable: bool
    setting: str  # the variable, or the option, as the user wrote it; "" for none
    what: str  # what is wrong, for people
    why: str  # the rule or the cause, for people
    fix: str  # a valid value, or the command that fixes it, for people
    alternatives: Alternatives  # what else would do
    lock_id: str | None = None  # the ID of the lock that is in the way, for --break-lock


def of(problem: errors.Problem) -> Problem:
    """The document of a problem or note.

    `problem`: the problem; one without a code is a note about nothing in particular.
    """
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
