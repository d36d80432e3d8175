"""What Google's failures mean in each phase of a run: the exit code, the words, the way on.

A request to Google that fails is an error of an online check, "nothing was changed" (exit code 4).
That is true until the first write alone. From there on each phase has an error of its own.
"""

from __future__ import annotations

import contextlib
import enum
from typing import TYPE_CHECKING

from provision.codes import Code
from provision.errors import CheckError, ClusterError, ProvisionError, TerraformError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from provision.context import Cloud, Context

_KEPT = "what was made is kept, and so is its state in"


class Phase(enum.Enum):
    """A phase of a run after its first write."""

    error: type[ProvisionError]  # the error that a failure of Google's becomes
    code: Code  # the code of that error, where Google's own says nothing better
    what: str  # the error's first line, where nobody has a better one
    why: str  # what is to be said beside Google's own words, before the state's URL
    fix: str  # how to go on

    def __init__(
        self, error: type[ProvisionError], code: Code, what: str, why: str, fix: str
    ) -> None:
        self.error, self.code, self.what, self.why, self.fix = error, code, what, why, fix

    MAKING = (
        TerraformError,
        Code.NOT_CONFIRMED,
        "A request to Google failed while the cluster was being made",
        _KEPT,
        "run Create again to continue, or Destroy to remove everything",
    )
    STANDING = (
        ClusterError,
        Code.NOT_CONFIRMED,
        "Everything was created, but a request to Google failed afterwards",
        _KEPT,
        "run Create again to continue, or Destroy to remove everything",
    )
    REMOVING = (
        ClusterError,
        Code.NOT_REMOVED,
        "A request to Google failed while the cluster was being removed",
        "what is not removed is still in the state in",
        "run Destroy again to remove the rest",
    )


@contextlib.contextmanager
def during(phase: Phase, cloud: Cloud, what: str = "") -> Iterator[None]:
    """Turn Google's failures into the error of a phase, whose first line is `what`, if given."""
    try:
        yield
    except CheckError as error:
        first = error.problems[0]
        raise phase.error(
            what or phase.what,
            code=phase.code if first.code in {None, Code.GOOGLE_REFUSED} else first.code,
            why="\n".join([first.why or first.what, f"{phase.why} {cloud.folder.location.url}"]),
            fix="\n".join(filter(None, [first.fix, phase.fix])),
        ) from error


@contextlib.contextmanager
def aside(context: Context, *, but: type[ProvisionError] | tuple[()] = ()) -> Iterator[None]:
    """Do something more on the way out of a failure: if that fails too, it is a note.

    `but`: errors that say the cause of the first failure better than it does itself.
    """
    try:
        yield
    except but:
        raise
    except ProvisionError as error:
        context.note(error.problems)
