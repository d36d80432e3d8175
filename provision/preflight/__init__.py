"""The online checks: what only Google can answer, asked before anything is made.

Each check is a function from a `Case` to what it finds; `table` has them all.
"""

from __future__ import annotations

import concurrent.futures
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from provision.errors import CheckError, Problem, StateError
from provision.google.api import GoogleApiError
from provision.preflight import images, machinery
from provision.preflight.answers import Answers
from provision.preflight.case import Case, Foreign, Note, Settled
from provision.preflight.table import CHECKS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from provision.deployment.record import Record
    from provision.google.api import GoogleApi
    from provision.preflight.case import Finding
    from provision.preflight.table import Check
    from provision.settings import Settings

_AT_ONCE: Final = 16
"""Checks that are made at the same time: all of them, and as many connections as are kept."""


@dataclass(frozen=True, kw_only=True)
class Findings:
    """What the checks have found.

    Attributes:
        problems: What Google would refuse.
        foreign: What is there under our names and is not ours to touch.
        notes: What is worth knowing, and what could not be found out.
        settings: The settings, with the image family that was chosen where nobody named one.
        gke_version: The full version that the cluster is to be made with; None for the channel's
            usual one.
    """

    problems: Sequence[Problem]
    foreign: Sequence[Problem]
    notes: Sequence[Problem]
    settings: Settings
    gke_version: str | None = None

    def require(self) -> Settings:
        """The settings, if nothing is wrong.

        Raises:
            CheckError: Something is; all of it is told.
            StateError: Nothing is wrong but that what is there is not ours.
        """
        if self.problems:
            raise CheckError.of([*self.problems, *self.foreign])
        if self.foreign:
            raise StateError.of(self.foreign)
        return self.settings


def run(
    settings: Settings,
    api: GoogleApi,
    *,
    cluster_id: str,
    record: Record | None = None,
    makes_bucket: bool = False,
) -> Findings:
    """Make all checks that apply and that the settings do not skip.

    Args:
        settings: The checked settings.
        api: Google.
        cluster_id: The marker's value.
        record: What exists already.
        makes_bucket: Whether the bucket for the state is still to be made.

    Raises:
        CredentialsError: Google does not take the credentials.
    """
    case = Case(
        settings=settings,
        answers=Answers(api),
        machines=machinery.of(settings),
        cluster_id=cluster_id,
        record=record,
        makes_bucket=makes_bucket,
    )
    skipped = settings.skip_checks or ()
    chosen = [it for it in CHECKS if it.name not in skipped and it.applies(case)]
    with concurrent.futures.ThreadPoolExecutor(_AT_ONCE) as pool:
        told = list(pool.map(lambda check: _made(check, case), chosen))
    unmade = [(check, error) for check, (_, error) in zip(chosen, told, strict=True) if error]
    return _sorted(case, [one for found, _ in told for one in found], _unmade(unmade))


def _made(check: Check, case: Case) -> tuple[list[Finding], GoogleApiError | None]:
    """What a check finds, and why it ended early if it did."""
    found: list[Finding] = []
    try:
        found.extend(check.find(case))
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


def _sorted(case: Case, found: Sequence[Finding], unmade: Sequence[Problem]) -> Findings:
    settled = [one for one in found if isinstance(one, Settled)]
    families = [one.image_family for one in settled if one.image_family]
    # Without the check, the one that would be looked for first.
    families += images.families(case.settings, case.record)[:1]
    settings = case.settings
    if families and not case.is_gke:
        settings = settings.model_copy(update={"image_family_name": families[0]})
    return Findings(
        problems=[one for one in found if isinstance(one, Problem)],
        foreign=[one.problem for one in found if isinstance(one, Foreign)],
        notes=[*(one.problem for one in found if isinstance(one, Note)), *unmade],
        settings=settings,
        gke_version=next((one.gke_version for one in settled if one.gke_version), None),
    )
