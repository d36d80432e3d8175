"""The online checks: what only Google can answer, asked before anything is created.

Each check is a function that takes a `CheckContext` and yields what it finds. `table` lists the
checks that every kind of cluster has; each kind of cluster adds its own.
"""

from __future__ import annotations

import concurrent.futures
import dataclasses
import time
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, Generic, Self

from provision.codes import Code
from provision.documents.checks import CheckState
from provision.documents.plan import Checks
from provision.errors import CheckError, Problem, StateError, StillWaiting, assignments
from provision.google.api import GoogleApiError
from provision.preflight.check import CheckContext, Effect, SpecT
from provision.preflight.table import CHECKS
from provision.settings.choices import OnlineCheck
from provision.words import counted

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from provision.google.owner import Owner
    from provision.preflight.check import Answers, Check, Finding, OfKind
    from provision.state.record import Record

_NOTES: Final = frozenset({Effect.NOTE, Effect.NOTE_IF_MADE})
_AT_ONCE: Final = 16
"""The number of concurrent checks: all of them, and as many as there are open connections."""


@dataclass(frozen=True, kw_only=True)
class CheckResults(Generic[SpecT]):
    """What all checks together have found."""

    problems: Sequence[Problem]  # what Google would refuse
    foreign: Sequence[Problem]  # resources with our names that do not belong to this deployment
    notes: Sequence[Problem]  # what is worth knowing
    unmade: Sequence[Problem]  # why checks could not be made; the codes are those of the reasons
    states: Mapping[str, CheckState]  # check -> what became of it
    spec: SpecT  # the specification, including the values that Google's answers resolved
    checks: Checks  # how many checks were made, and what was in order

    def remarks(self, *, is_gate: bool) -> list[Problem]:
        """The notes, and what is to be said of checks that could not be made.

        `is_gate`: as in `require`; then `require` tells of them, and this of the others.
        """
        if not is_gate:
            unsure = [dataclasses.replace(one, code=Code.NOT_CHECKED) for one in self.unmade]
            return [*self.notes, *unsure]
        good = (CheckState.PASSED, CheckState.PARTLY)
        passed = [name for name, it in self.states.items() if it in good]
        if not (self.unmade and passed):
            return [*self.notes]
        made = f"{counted(len(passed), 'online check')} passed: {', '.join(passed)}"
        return [*self.notes, Problem(what=made, code=Code.NOTE)]

    def of_looking(self) -> Self:
        """These, for a run that makes nothing: what an account that may only look lacks is a note.

        Of one that may do a part of what Create needs it is a problem, as it is meant to create.
        """
        codes = {Code.MAY_ONLY_LOOK, Code.PERMISSION_MISSING}
        lacks = [it for it in self.problems if it.code in codes]
        if not any(it.code is Code.MAY_ONLY_LOOK for it in lacks):
            return self
        left = [it for it in self.problems if it not in lacks]
        return dataclasses.replace(self, problems=left, notes=[*self.notes, *lacks])

    def require(self, *, is_gate: bool = False) -> SpecT:
        """The specification, if no check failed.

        `is_gate`: whether a check that could not be made counts as one that failed.

        Raises:
            StillWaiting: All that is wrong passes when the time of a reservation has begun.
        """
        problems = [*self.problems, *(self.unmade if is_gate else ())]
        if problems:
            every = [*problems, *self.foreign]
            raise (StillWaiting if waits(every) else CheckError).of(every)
        if self.foreign:
            raise StateError.of(self.foreign)
        return self.spec


def waits(problems: Collection[Problem]) -> bool:
    """Whether time alone solves all of some problems."""
    return bool(problems) and all(it.code is Code.WAITING for it in problems)


def run(  # noqa: PLR0913 - each is a fact of its own
    spec: SpecT,
    answers: Answers,
    *,
    of_kind: OfKind,
    owner: Owner,
    in_state: Collection[str] = (),
    record: Record | None = None,
    makes_bucket: bool = False,
    of_zone: bool = False,
) -> CheckResults[SpecT]:
    """Run all checks that apply but SKIP_CHECKS; `of_zone`: only those that depend on the zone."""
    ctx = CheckContext(
        spec=spec,
        of_kind=of_kind,
        answers=answers,
        owner=owner,
        in_state=in_state,
        record=record,
        makes_bucket=makes_bucket,
    )
    every = (it for it in (*CHECKS, *of_kind.checks) if it.of_zone or not of_zone)
    checks = [it for it in every if it.name not in spec.skipped_checks]
    # In the order in which the enum defines their names.
    order = list(OnlineCheck)
    chosen = sorted((it for it in checks if it.applies(spec)), key=lambda it: order.index(it.name))
    begin = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(_AT_ONCE) as pool:
        made = dict(zip(chosen, pool.map(lambda check: _made(check, ctx), chosen), strict=True))
    seconds = round(time.monotonic() - begin, 1)
    found = [one for its, _ in made.values() for one in its]
    states: dict[str, CheckState] = {check.name: _state(*one) for check, one in made.items()}
    stops = CheckState.FAILED in states.values()
    # Of a zone that there is not, Google can't answer anything else either.
    no_zone = states.get(OnlineCheck.ZONE) is CheckState.FAILED
    unmade = {
        check: error
        for check, (_, error) in made.items()
        if error and not (no_zone and error.code == HTTPStatus.BAD_REQUEST)
    }
    settled = {name: value for one in found for name, value in one.settled.items()}
    return CheckResults(
        problems=[_with_settings(it) for it in _of(found, {Effect.STOPS})],
        foreign=_of(found, {Effect.FOREIGN}),
        notes=_of(found, {Effect.NOTE} if stops else _NOTES),
        unmade=_unmade(unmade),
        states=states | dict.fromkeys(spec.skipped_checks, CheckState.SKIPPED),
        spec=dataclasses.replace(spec, **settled),
        checks=Checks(
            made=len(chosen) - len(unmade),
            skipped=tuple(str(name) for name in spec.skipped_checks),
            seconds=seconds,
            permissions=sum(one.permissions for one in found) or None,
            apis=sum(one.apis for one in found) or None,
            quotas=tuple(one.quota for one in found if one.quota),
        ),
    )


def _made(check: Check, ctx: CheckContext[Any]) -> tuple[list[Finding], GoogleApiError | None]:
    """What a check finds, and the error if Google did not let it finish."""
    found: list[Finding] = []
    try:
        found.extend(check.find(ctx))
    except GoogleApiError as error:
        return found, error
    return found, None


def _state(found: Sequence[Finding], error: GoogleApiError | None) -> CheckState:
    if any(one.stops for one in found):
        return CheckState.FAILED
    if error is not None:
        return CheckState.UNCHECKED
    is_part = any(it.problem and it.problem.code is Code.NOT_CHECKED for it in found)
    return CheckState.PARTLY if is_part else CheckState.PASSED


def _of(found: Sequence[Finding], effects: Collection[Effect]) -> list[Problem]:
    return [one.problem for one in found if one.problem and one.effect in effects]


def _with_settings(problem: Problem) -> Problem:
    """A problem with the settings that its fix begins with, for programs."""
    there = dataclasses.replace(problem.alternatives, settings=assignments(problem.fix))
    return dataclasses.replace(problem, alternatives=there)


def _unmade(failures: Mapping[Check, GoogleApiError]) -> list[Problem]:
    """One problem for each reason why checks could not be completed."""
    reasons: dict[str, tuple[list[str], Problem]] = {}
    for check, error in failures.items():
        reasons.setdefault(error.message, ([], error.problems[0]))[0].append(check.name)
    return [
        Problem(
            code=of_error.code,
            what=f"could not be checked: {', '.join(names)}",
            why=message,
            fix="\n".join(filter(None, [of_error.fix, _skipping(names, of_error.code)])),
        )
        for message, (names, of_error) in reasons.items()
    ]


def _skipping(names: Sequence[str], code: Code | None) -> str:
    """How to do without checks; "" where another try may do."""
    if code is not None and code.is_retryable:
        return ""
    return f"SKIP_CHECKS={','.join(names)} skips these checks"
