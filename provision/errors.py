"""What can go wrong, and the exit code that says so.

    ProvisionError                 what happened, why, and how to fix it
    ├── SettingsError       (2)    the command line or the env.list
    ├── CredentialsError    (3)    no usable Google credentials
    ├── CheckError          (4)    an online check failed or could not be made; nothing was made
    ├── StateError          (5)    bucket, lock, or a state that is not ours
    ├── TerraformError      (6)    Terraform ended with a failure
    ├── CapacityError       (7)    Google refused the machines, or a wait for them was given up
    ├── ClusterError        (8)    part of the cluster failed, was lost, or could not be removed
    └── StillWaiting        (75)   no capacity yet; everything is kept
    Interrupted             (130, 143) a signal; no Exception, so that nobody swallows it

Anything else that escapes is a bug, and exit code 1.
"""

from __future__ import annotations

import dataclasses
import re
import signal
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Final, Self

from provision.codes import Code, ExitCode

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


@dataclass(frozen=True, kw_only=True)
class Alternatives:
    """What else would do, for a program that acts on a problem alone."""

    zones: tuple[str, ...] = ()  # zones that may do instead, the best first
    # setting -> the value that fixes it; all of them together
    settings: Mapping[str, str] = field(default_factory=dict, hash=False)


_NONE: Final = Alternatives()
_ASSIGNMENT: Final = re.compile(
    # Whole values alone: one with <...> in it has to be completed by a person.
    r"(?P<name>[A-Z][A-Z_]*)=(?P<value>[^\s,;<>]+)(?=[\s,;]|$)(?P<joint> and |, )?"
)
_UNFINISHED: Final = re.compile(r"[A-Z][A-Z_]*=")
_RISKY: Final = "SKIP_CHECKS"  # no program may decide to look away


def assignments(fix: str) -> dict[str, str]:
    """The settings with which a fix begins: "GPU_COUNT=8, and more machines" has one.

    `fix`: as in `Problem.fix`: what is to be written stands first, what else would do follows.
    """
    found: dict[str, str] = {}
    at, joint = 0, ""
    while (one := _ASSIGNMENT.match(fix, at)) is not None:
        found[one["name"]] = one["value"]
        at, joint = one.end(), one["joint"] or ""
        if not joint:
            break
    if joint == " and " or (joint and _UNFINISHED.match(fix, at)):
        return {}  # there is more for a person to do, without which the settings are wrong
    return {name: value for name, value in found.items() if name != _RISKY}


@dataclass(frozen=True, kw_only=True)
class Problem:
    """One problem or note, written for the person who can fix it, and marked for programs."""

    setting: str = ""  # the variable, or the option, as the user wrote it; "" for none
    what: str  # what is wrong; includes the value unless that is secret
    why: str = ""  # the rule or the cause
    fix: str = ""  # a valid value, or the command that fixes it
    code: Code | None = None  # what it is about; None for the default of the error that has it
    alternatives: Alternatives = _NONE  # what else would do
    lock_id: str = ""  # the ID of the lock that is in the way; "" for none


class ProvisionError(Exception):
    """A failure that the user can act on."""

    exit_code: ClassVar[ExitCode] = ExitCode.UNEXPECTED
    usual_code: ClassVar[Code] = Code.UNEXPECTED
    """The code of its problems that have none."""

    def __init__(  # noqa: PLR0913 - the parts of a problem
        self,
        what: str,
        *,
        why: str = "",
        fix: str = "",
        setting: str = "",
        code: Code | None = None,
        alternatives: Alternatives = _NONE,
        lock_id: str = "",
    ) -> None:
        super().__init__(what)
        self.problems: tuple[Problem, ...] = (
            Problem(
                setting=setting,
                what=what,
                why=why,
                fix=fix,
                code=code or self.usual_code,
                alternatives=alternatives,
                lock_id=lock_id,
            ),
        )

    @classmethod
    def of(cls, problems: Sequence[Problem]) -> Self:
        """Make one error from several problems, so that all are reported at once."""
        error = cls("; ".join(problem.what for problem in problems))
        error.problems = tuple(
            dataclasses.replace(problem, code=problem.code or cls.usual_code)
            for problem in problems
        )
        return error


class SettingsError(ProvisionError):
    """The command line or the settings are invalid."""

    exit_code = ExitCode.USAGE
    usual_code = Code.CONFLICTING_SETTINGS


class CredentialsError(ProvisionError):
    """There are no credentials that Google accepts."""

    exit_code = ExitCode.CREDENTIALS
    usual_code = Code.CREDENTIALS_REFUSED


class CheckError(ProvisionError):
    """Google would refuse what the settings ask for."""

    exit_code = ExitCode.CHECK
    usual_code = Code.GOOGLE_REFUSED


class StateError(ProvisionError):
    """The state can't be read, is locked, or belongs to another tool or deployment."""

    exit_code = ExitCode.STATE
    usual_code = Code.STATE_UNREADABLE


class TerraformError(ProvisionError):
    """Terraform failed."""

    exit_code = ExitCode.TERRAFORM
    usual_code = Code.TERRAFORM_FAILED


class CapacityError(ProvisionError):
    """There are no machines: stock-out, quota, a failed request, or a wait that was given up."""

    exit_code = ExitCode.CAPACITY
    usual_code = Code.CAPACITY_REFUSED


class ClusterError(ProvisionError):
    """Part of a cluster failed, its machines were lost, or a Destroy left some of it."""

    exit_code = ExitCode.CLUSTER
    usual_code = Code.NOT_IN_ORDER


class StillWaiting(ProvisionError):  # noqa: N818 - not a failure: everything is kept
    """The timeout for capacity is over; everything is kept."""

    exit_code = ExitCode.WAITING
    usual_code = Code.WAITING


class Interrupted(BaseException):
    """A signal asked the run to stop, and it stopped cleanly.

    No `Exception`, as KeyboardInterrupt is none: it can be raised anywhere in anybody's code, and
    an `except Exception` there takes it for a failure of its own. Python's Thread.start did so, and
    the new thread died of that with a traceback.
    """

    usual_code = Code.INTERRUPTED

    def __init__(self, signum: int, what: str, *, why: str = "", fix: str = "") -> None:
        super().__init__(what)
        self.signum = signum
        self.problems = (Problem(what=what, why=why, fix=fix, code=self.usual_code),)

    @property
    def exit_code(self) -> ExitCode:
        """The exit code that shells use for SIGINT; for other signals, that for SIGTERM."""
        return ExitCode.INTERRUPTED if self.signum == signal.SIGINT else ExitCode.TERMINATED


class Declined(SettingsError):  # noqa: N818 - not a failure: a decision
    """A person said no, before anything was done."""

    usual_code = Code.DECLINED


class Unanswered(Interrupted):
    """A signal came at a question, before anything was done."""
