"""The argument lists of Terraform's commands.

python-terraform builds the lists but does not run them: it would put the child into our process
group (so that Ctrl-C reaches Terraform twice), can't forward signals, and buffers all output.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import python_terraform

if TYPE_CHECKING:
    from collections.abc import Sequence

PLAN_FILE: Final = "deployment.tfplan"

_FLAG = python_terraform.IsFlagged


def _arguments(command: str, *positional: str, **options: object) -> list[str]:
    built = python_terraform.Terraform().generate_cmd_string(command, *positional, **options)
    return [str(argument) for argument in built[1:]]


def init(*, backend: bool, color: bool) -> list[str]:
    """`terraform init`; without a backend if no state exists yet, or for `validate`."""
    return _arguments("init", input=False, backend=backend, no_color=_off(color))


def validate() -> list[str]:
    """`terraform validate` with JSON output."""
    return _arguments("validate", json=_FLAG)


def plan(
    *, var_file: str | None, destroy: bool, color: bool, replace: Sequence[str] = ()
) -> list[str]:
    """`terraform plan`; the saved plan is the one that is shown and applied."""
    return _arguments(
        "plan",
        input=False,
        out=PLAN_FILE,
        var_file=var_file,
        destroy=_FLAG if destroy else None,
        lock=False,
        replace=list(replace),
        no_color=_off(color),
    )


def apply(*, color: bool) -> list[str]:
    """`terraform apply` of exactly the saved plan."""
    return _arguments("apply", PLAN_FILE, input=False, lock=False, no_color=_off(color))


def forget(addresses: Sequence[str]) -> list[str]:
    """`terraform state rm` of these addresses."""
    return _arguments("state rm", *addresses, lock=False)


def untaint(address: str) -> list[str]:
    """`terraform untaint` of one address."""
    return _arguments("untaint", address, lock=False)


def pull() -> list[str]:
    """`terraform state pull`: the whole state as JSON."""
    return _arguments("state pull")


def push(file: str) -> list[str]:
    """`terraform state push` of a state that could not be saved."""
    return _arguments("state push", file, lock=False)


def show() -> list[str]:
    """`terraform show` of the saved plan as JSON."""
    return _arguments("show", PLAN_FILE, json=_FLAG)


def _off(color: bool) -> object:  # noqa: FBT001 - one word of three argument lists
    return None if color else _FLAG
