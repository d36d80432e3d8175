"""What can go wrong, and the exit code that says so.

    ProvisionError                 what happened, why, and how to fix it
    ├── SettingsError       (2)    the command line or the env.list
    ├── CredentialsError    (3)    no usable Google credentials
    ├── CheckError          (4)    an online check failed before anything was made
    ├── StateError          (5)    bucket, lock, or a state that is not ours
    ├── TerraformError      (6)    Terraform ended with a failure
    ├── CapacityError       (7)    Google refused the machines
    ├── ClusterError        (8)    part of the cluster failed, was lost, or could not be removed
    └── StillWaiting        (75)   no capacity yet; everything is kept
    Interrupted             (130, 143) a signal; no Exception, so that nobody swallows it

Anything else that escapes is a bug, and exit code 1.
"""

from __future__ import annotations

import enum
import signal
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Self

if TYPE_CHECKING:
    from collections.abc import Sequence


class ExitCode(enum.IntEnum):
    """The program's exit codes; the README's table is generated from the descriptions."""

    description: str

    def __new__(cls, value: int, description: str) -> Self:
        """Store the description with the number."""
        member = int.__new__(cls, value)
        member._value_ = value
        member.description = description
        return member

    DONE = 0, "done"
    UNEXPECTED = 1, "unexpected: a bug in this program"
    USAGE = 2, "command line or settings"
    CREDENTIALS = 3, "no usable Google credentials"
    CHECK = 4, "an online check failed; nothing was made"
    STATE = 5, "state: bucket, lock, or a state of another kind or owner"
    TERRAFORM = 6, "Terraform failed"
    CAPACITY = 7, "capacity refused: stock-out, quota, or a failed request"
    CLUSTER = 8, "part of the cluster failed, was lost, or could not be removed"
    WAITING = 75, "still waiting for capacity; everything is kept"
    INTERRUPTED = 130, "interrupted (SIGINT, Ctrl-C)"
    TERMINATED = 143, "terminated (SIGTERM, docker stop; SIGHUP, a closed terminal)"


@dataclass(frozen=True, kw_only=True)
class Problem:
    """One problem or note, written for the person who can fix it.

    Attributes:
        setting: The variable as the user wrote it; "" if it is about none.
        what: What is wrong; includes the value unless that is secret.
        why: The rule or the cause.
        fix: A valid value, or the command that fixes it.
    """

    setting: str = ""
    what: str
    why: str = ""
    fix: str = ""


class ProvisionError(Exception):
    """A failure that the user can act on."""

    exit_code: ClassVar[ExitCode] = ExitCode.UNEXPECTED

    def __init__(self, what: str, *, why: str = "", fix: str = "", setting: str = "") -> None:
        super().__init__(what)
        self.problems: tuple[Problem, ...] = (
            Problem(setting=setting, what=what, why=why, fix=fix),
        )

    @classmethod
    def of(cls, problems: Sequence[Problem]) -> Self:
        """Make one error from several problems, so that all are reported at once."""
        error = cls("; ".join(problem.what for problem in problems))
        error.problems = tuple(problems)
        return error


class SettingsError(ProvisionError):
    """The command line or the settings are invalid."""

    exit_code = ExitCode.USAGE


class CredentialsError(ProvisionError):
    """There are no credentials that Google accepts."""

    exit_code = ExitCode.CREDENTIALS


class CheckError(ProvisionError):
    """Google would refuse what the settings ask for."""

    exit_code = ExitCode.CHECK


class StateError(ProvisionError):
    """The state can't be read, is locked, or belongs to another tool or deployment."""

    exit_code = ExitCode.STATE


class TerraformError(ProvisionError):
    """Terraform failed."""

    exit_code = ExitCode.TERRAFORM


class CapacityError(ProvisionError):
    """Google refused the machines: stock-out, quota, or a failed request."""

    exit_code = ExitCode.CAPACITY


class ClusterError(ProvisionError):
    """Part of a cluster failed, its machines were lost, or a Destroy left some of it."""

    exit_code = ExitCode.CLUSTER


class StillWaiting(ProvisionError):  # noqa: N818 - not a failure: everything is kept
    """The timeout for capacity is over; everything is kept."""

    exit_code = ExitCode.WAITING


class Interrupted(BaseException):
    """A signal asked the run to stop, and it stopped cleanly.

    No `Exception`, as KeyboardInterrupt is none: it can be raised anywhere in anybody's code, and
    an `except Exception` there takes it for a failure of its own. Python's Thread.start did so, and
    the new thread died of that with a traceback.

    Attributes:
        signum: The signal.
        problems: What is to be said.
    """

    def __init__(self, signum: int, what: str, *, why: str = "", fix: str = "") -> None:
        super().__init__(what)
        self.signum = signum
        self.problems = (Problem(what=what, why=why, fix=fix),)

    @property
    def exit_code(self) -> ExitCode:
        """The exit code that shells use for SIGINT; for other signals, that for SIGTERM."""
        return ExitCode.INTERRUPTED if self.signum == signal.SIGINT else ExitCode.TERMINATED
