"""What can go wrong, and the exit code that says so.

    ProvisionError                 what happened, why, and what mends it
    ├── SettingsError       (2)    the command line or the env.list
    ├── CredentialsError    (3)    no usable Google credentials
    ├── CheckError          (4)    an online check failed before anything was made
    ├── StateError          (5)    bucket, lock, or a state that is not ours
    ├── TerraformError      (6)    Terraform ended with a failure
    ├── CapacityError       (7)    Google refused the machines
    ├── ClusterError        (8)    the cluster is up, but something on it failed
    ├── StillWaiting        (75)   no capacity yet; everything is kept
    └── Interrupted         (130, 143)

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
    """The program's exit codes; the README's table is made from the descriptions."""

    description: str

    def __new__(cls, value: int, description: str) -> Self:
        """Keep the description beside the number."""
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
    CLUSTER = 8, "the cluster is up, but something on it failed"
    WAITING = 75, "still waiting for capacity; everything is kept"
    INTERRUPTED = 130, "interrupted (SIGINT, Ctrl-C)"
    TERMINATED = 143, "terminated (SIGTERM, docker stop; SIGHUP, a closed terminal)"


@dataclass(frozen=True, kw_only=True)
class Problem:
    """One thing that is wrong or worth knowing, in words for the person who can mend it.

    Attributes:
        setting: The variable as the user wrote it, or "" when it is about none.
        what: What is wrong; carries the value received unless that is secret.
        why: The rule or the cause.
        fix: A value that would pass, or the command that mends it.
    """

    setting: str = ""
    what: str
    why: str = ""
    fix: str = ""


class ProvisionError(Exception):
    """A failure that somebody can act on."""

    exit_code: ClassVar[ExitCode] = ExitCode.UNEXPECTED

    def __init__(self, what: str, *, why: str = "", fix: str = "", setting: str = "") -> None:
        super().__init__(what)
        self.problems: tuple[Problem, ...] = (
            Problem(setting=setting, what=what, why=why, fix=fix),
        )

    @classmethod
    def of(cls, problems: Sequence[Problem]) -> Self:
        """Make one error of several problems, so that all are reported at once."""
        error = cls("; ".join(problem.what for problem in problems))
        error.problems = tuple(problems)
        return error


class SettingsError(ProvisionError):
    """The command line or the env.list can't be used."""

    exit_code = ExitCode.USAGE


class CredentialsError(ProvisionError):
    """Google does not know who is asking."""

    exit_code = ExitCode.CREDENTIALS


class CheckError(ProvisionError):
    """Google would refuse what the settings ask for."""

    exit_code = ExitCode.CHECK


class StateError(ProvisionError):
    """The state can't be reached, is held by somebody, or is not ours to touch."""

    exit_code = ExitCode.STATE


class TerraformError(ProvisionError):
    """Terraform ended with anything but success."""

    exit_code = ExitCode.TERRAFORM


class CapacityError(ProvisionError):
    """Google has no such machines to give."""

    exit_code = ExitCode.CAPACITY


class ClusterError(ProvisionError):
    """The machines run, but what should run on them failed."""

    exit_code = ExitCode.CLUSTER


class StillWaiting(ProvisionError):  # noqa: N818 - it is no failure: everything is kept
    """The time to wait for capacity is over; the request stands."""

    exit_code = ExitCode.WAITING


class Interrupted(ProvisionError):  # noqa: N818 - somebody's wish, not a failure
    """A signal arrived that asks to stop; the work was stopped in order."""

    def __init__(self, signum: int, what: str, *, why: str = "", fix: str = "") -> None:
        super().__init__(what, why=why, fix=fix)
        self.signum = signum

    @property
    def exit_code(self) -> ExitCode:  # type: ignore[override]  # the only error with two codes
        """As shells have it for SIGINT, and as for SIGTERM for all others."""
        return ExitCode.INTERRUPTED if self.signum == signal.SIGINT else ExitCode.TERMINATED
