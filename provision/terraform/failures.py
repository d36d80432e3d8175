"""What a Terraform that failed means: its words as an error, and the state that it could not save.

Terraform writes such a state to `errored.tfstate` in its working directory ("State Recovery" in
HashiCorp's documentation of backends), and this program's run folder is deleted at its end.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from provision.codes import Code
from provision.errors import (
    CapacityError,
    CredentialsError,
    ProvisionError,
    StateError,
    TerraformError,
)
from provision.google import auth, refusals
from provision.terraform.lock import Lock
from provision.time import deadline
from provision.time.deadline import TransientError
from provision.words import COLOUR

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from provision.terraform.child import Ended
    from provision.time.stages import Progress

# What Google, and Go's library of OAuth 2, say of a login that has ended meanwhile.
_LOGIN = re.compile(r"Error 401: |oauth2: \"?(?:invalid_grant|cannot fetch token)")
_EXISTS = re.compile(r"Error 409:.*already ?exists", re.IGNORECASE)
AGAIN: Final = "then run the same action again: it continues where this one stopped"
UNSAVED: Final = "errored.tfstate"


class ExistsError(TerraformError):
    """Terraform was to create something that exists."""


def text(output: bytes) -> str:
    """What a command printed, without color codes."""
    return COLOUR.sub("", output.decode("utf-8", "replace"))


def diagnostics(output: str) -> list[str]:
    """The errors in Terraform's own words, taken from its output.

    Each begins with "Error: "; the box that Terraform draws around it is removed.
    """
    lines = [re.sub(r"^[│|] ?", "", line) for line in output.splitlines()]
    found: list[list[str]] = []
    for line in lines:
        if line.startswith("Error: "):
            found.append([line])
        elif found and line.strip() == "╵":
            found.append([])
        elif found and found[-1]:
            found[-1].append(line)
    return ["\n".join(part).strip() for part in found if part]


def failure(command: str, done: Ended) -> ProvisionError:
    """The error for a command that failed."""
    output = text(done.output)
    errors = diagnostics(output)
    # The first init of a state takes the lock too, with another error message.
    locked = [error for error in errors if re.search(r"acquiring the state lock|\.tflock", error)]
    if locked:
        return _locked(locked[0])
    if errors and all(refusals.read("", error) in refusals.NO_MACHINES for error in errors):
        return _refused(command, errors)
    if any(map(_LOGIN.search, errors)):
        return _logged_out(command, errors)
    how = f"killed by signal {-done.code}" if done.code < 0 else f"exit code {done.code}"
    codes = {refusals.code_in(error, Code.TERRAFORM_FAILED) for error in errors}
    remedies = dict.fromkeys(filter(None, map(refusals.remedy, errors)))
    kind = ExistsError if any(map(_EXISTS.search, errors)) else TerraformError
    return kind(
        f"`terraform {command}` failed ({how})",
        # Several refusals of different kinds have no code in common.
        code=codes.pop() if len(codes) == 1 else Code.TERRAFORM_FAILED,
        why="\n".join(errors) or "\n".join(output.splitlines()[-5:]),
        fix="\n".join([*(remedies or ["fix what Terraform names"]), AGAIN]),
    )


def _refused(command: str, errors: Sequence[str]) -> CapacityError:
    """The error of a command that failed only because of a lack of machines or quota."""
    return CapacityError(
        f"Google refused what `terraform {command}` asked for",
        # Of several, the one for which somebody has to act.
        code=min(
            (refusals.code_in(error, Code.CAPACITY_REFUSED) for error in errors),
            key=lambda code: code.is_retryable,
        ),
        why="\n".join(errors),
        fix=f"for a quota, request an increase at {refusals.QUOTA_PAGE} ({refusals.QUOTA_ROLE});"
        " for a zone without resources, set ZONE to another zone; for a reservation that has too"
        f" few machines left, ask for fewer or wait until others have ended\n{AGAIN}",
    )


def _logged_out(command: str, errors: Sequence[str]) -> CredentialsError:
    reason = next(filter(None, map(auth.explain, errors)), None)
    return CredentialsError(
        f"Google stopped accepting the credentials during `terraform {command}`",
        why="\n".join(errors),
        fix=f"{reason.problems[0].fix if reason else auth.RENEW}\n{AGAIN}",
    )


def _locked(error: str) -> ProvisionError:
    lock = Lock.in_text(error)
    if lock is None:
        return StateError(
            "The lock of the Terraform state could not be taken",
            code=refusals.code_in(error, Code.STATE_LOCKED),
            why=error,
            fix=refusals.remedy(error),
        )
    return lock.error()


class _Stopped(Exception):  # noqa: N818 - somebody has asked to stop
    """Nobody waits for another try."""


def save_again(start: Callable[[], Ended], progress: Progress) -> bool:
    """Push the state, again and again for a minute or two; returns whether it is saved now."""

    def attempt() -> None:
        done = start()
        if done.code != 0 and done.interrupted_by is not None:
            raise _Stopped
        if done.code != 0:
            said = done.output.decode("utf-8", "replace").split()
            raise TransientError(f"the state could not be saved: {' '.join(said)[:300]}")

    try:
        deadline.policy(progress.clock, progress.tell)(attempt)
    except (TransientError, _Stopped):
        return False
    progress.tell("The state is saved now")
    return True


def keep_unsaved(file: Path) -> Path | None:
    """Copy the file out of the run folder; returns where it is, or None if nothing can be written.

    `file`: Terraform's; it has secrets, so only its owner may read the copy.
    """
    for place in (Path.cwd(), Path(tempfile.gettempdir())):
        with contextlib.suppress(OSError):
            descriptor, name = tempfile.mkstemp(suffix=f"-{UNSAVED}", dir=place)
            with os.fdopen(descriptor, "wb") as copy, file.open("rb") as source:
                shutil.copyfileobj(source, copy)
            return Path(name)
    return None


def words_of_unsaved(kept: Path | None) -> str:
    """What to tell of a state that is not saved."""
    where = f"it is in {kept}" if kept else "it is lost: nothing could be written here either"
    return (
        f"Terraform could not save its state; {where}."
        " The next Create or Destroy needs no file: it finds by name and marker what was made"
    )
