"""The online checks: what only Google can answer, asked before anything is made.

Each check is a function that takes a `CheckContext` and yields what it finds. `table` lists the
checks that every kind of cluster has; each kind of cluster adds its own.
"""

from __future__ import annotations

import concurrent.futures
import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Generic

from provision.errors import CheckError, Problem, StateError
from provision.google.api import GoogleApiError
from provision.preflight.answers import Answers
from provision.preflight.check import CheckContext, CheckNote, Foreign, Settled, SpecT
from provision.preflight.table import CHECKS
from provision.settings.choices import OnlineCheck

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from provision.google.api import GoogleApi
    from provision.google.owner import Owner
    from provision.preflight.check import Check, Finding, OfKind
    from provision.state.record import Record

_AT_ONCE: Final = 16
"""Checks that are made at the same time: all of them, and as many connections as are kept."""


@dataclass(frozen=True, kw_only=True)
class CheckResults(Generic[SpecT]):
    """What all checks together have found.

    Attributes:
        problems: What Google would refuse.
        foreign: What is there under our names and is not ours to touch.
        notes: What is worth knowing, and what could not be found out.
        spec: What is asked for, with what Google's answers have settled.
    """

    problems: Sequence[Problem]
    foreign: Sequence[Problem]
    notes: Sequence[Problem]
    spec: SpecT

    def require(self) -> SpecT:
        """What is asked for, if nothing is wrong.

        Raises:
            CheckError: Something is; all of it is told.
            StateError: Nothing is wrong but that what is there is not ours.
        """
        if self.problems:
            raise CheckError.of([*self.problems, *self.foreign])
        if self.foreign:
            raise StateError.of(self.foreign)
        return self.spec


def run(  # noqa: PLR0913 - each is a fact of its own
    spec: SpecT,
    api: GoogleApi,
    *,
    of_kind: OfKind,
    owners: Collection[Owner],
    in_state: Collection[str] = (),
    record: Record | None = None,
    makes_bucket: bool = False,
) -> CheckResults[SpecT]:
    """Make all checks that apply and that the settings do not skip.

    Args:
        spec: What is asked for.
        api: Google.
        of_kind: What the kind of cluster adds.
        owners: Whose marker makes something this deployment's.
        in_state: Paths of what the state has.
        record: What exists already.
        makes_bucket: Whether the bucket for the state is still to be made.

    Raises:
        CredentialsError: Google does not take the credentials.
    """
    ctx = CheckContext(
        spec=spec,
        of_kind=of_kind,
        answers=Answers(api),
        owners=owners,
        in_state=in_state,
        record=record,
        makes_bucket=makes_bucket,
    )
    checks = [it for it in (*CHECKS, *of_kind.checks) if it.name not in spec.skipped_checks]
    # In the order of their names' definition, whoever brings them.
    order = list(OnlineCheck)
    chosen = sorted((it for it in checks if it.applies(ctx)), key=lambda it: order.index(it.name))
    with concurrent.futures.ThreadPoolExecutor(_AT_ONCE) as pool:
        told = list(pool.map(lambda check: _made(check, ctx), chosen))
    unmade = [(check, error) for check, (_, error) in zip(chosen, told, strict=True) if error]
    return _sorted(spec, [one for found, _ in told for one in found], _unmade(unmade))


def _made(check: Check, ctx: CheckContext[Any]) -> tuple[list[Finding], GoogleApiError | None]:
    """What a check finds, and why it ended early if it did."""
    found: list[Finding] = []
    try:
        found.extend(check.find(ctx))
    except GoogleApiError as error:
        return found, error
    return found, None


def _unmade(failures: Sequence[tuple[Check, GoogleApiError]]) -> list[Problem]:
    """A note for each reason why checks could not be made."""
    reasons: dict[str, tuple[list[str], GoogleApiError]] = {}
    for check, error in failures:
        reasons.setdefault(error.message, ([], error))[0].append(check.name)
    return [
        Problem(
            what=f"could not be checked: {', '.join(names)}",
            why=message,
            fix=error.problems[0].fix or f"SKIP_CHECKS={','.join(names)} leaves that out",
        )
        for message, (names, error) in reasons.items()
    ]


def _sorted(
    spec: SpecT, found: Sequence[Finding], unmade: Sequence[Problem]
) -> CheckResults[SpecT]:
    for one in found:
        if isinstance(one, Settled):
            spec = dataclasses.replace(spec, **one.values)
    return CheckResults(
        problems=[one for one in found if isinstance(one, Problem)],
        foreign=[one.problem for one in found if isinstance(one, Foreign)],
        notes=[*(one.problem for one in found if isinstance(one, CheckNote)), *unmade],
        spec=spec,
    )
