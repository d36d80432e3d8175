"""Turning the output of a failed Terraform into an error."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from provision.codes import Code
from provision.errors import CapacityError, ProvisionError, StateError, TerraformError
from provision.google import refusals
from provision.printable import COLOUR
from provision.terraform.lock import Lock

if TYPE_CHECKING:
    from collections.abc import Sequence

    from provision.terraform.child import Ended

_EXISTS = re.compile(r"Error 409:.*already ?exists", re.IGNORECASE)


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
    how = f"killed by signal {-done.code}" if done.code < 0 else f"exit code {done.code}"
    codes = {refusals.code_in(error, Code.TERRAFORM_FAILED) for error in errors}
    remedies = dict.fromkeys(filter(None, map(refusals.remedy, errors)))
    kind = ExistsError if any(map(_EXISTS.search, errors)) else TerraformError
    return kind(
        f"`terraform {command}` failed ({how})",
        # Several refusals of different kinds have no code in common.
        code=codes.pop() if len(codes) == 1 else Code.TERRAFORM_FAILED,
        why="\n".join(errors) or "\n".join(output.splitlines()[-5:]),
        fix="\n".join(
            [
                *(remedies or ["fix what Terraform names"]),
                "then run the same action again: it continues where this one stopped",
            ]
        ),
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
        " few machines left, ask for fewer or wait until others have ended\n"
        "then run the same action again: it continues where this one stopped",
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
