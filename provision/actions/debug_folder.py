"""The folder that Debug writes: everything that a run would use, with secrets masked."""

from __future__ import annotations

import json
import os
import platform
import shlex
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from provision import __version__
from provision.deployment import workspace
from provision.terraform import arguments

if TYPE_CHECKING:
    from collections.abc import Mapping

    from provision.deployment.deployment import Deployment
    from provision.report import Report
    from provision.spec.cluster import ClusterSpec
    from provision.terraform import Binary

_BIN: Final = "bin"
_VALUES: Final = "deployment.auto.tfvars.json"
"""Terraform reads it without being told to."""
_WRITES_NOTHING: Final = {"TF_CLI_ARGS_plan": "-lock=false"}
"""A plan in the shell takes no lock in the bucket."""


@dataclass(frozen=True)
class DebugFolder:
    """What Debug has written."""

    path: Path  # the folder, which is not deleted at the end of the run
    root: Path

    def tell(self, target: Deployment[ClusterSpec]) -> None:
        """Write a deployment's values to the root, with secrets masked."""
        text = json.dumps(target.masked_variables, indent=2)
        (self.root / _VALUES).write_text(f"{text}\n")

    def add(self, beside: Mapping[str, str]) -> None:
        """Write files beside Terraform's: relative path -> text."""
        for name, text in beside.items():
            path = self.path / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
        # What was planned for them; a plan of one's own shows more.
        (self.root / arguments.PLAN_FILE).unlink(missing_ok=True)


def write(
    target: Deployment[ClusterSpec], report: Report, binary: Binary, *, backend: bool
) -> DebugFolder:
    """Write the settings, the Terraform root with its values, and the versions.

    Nothing is written to the cloud.
    """
    folder = Path(tempfile.mkdtemp(prefix=f"{target.spec.name_prefix}-debug-"))
    root = workspace.fill_folder(folder, target, target.masked_variables, backend=backend)
    (root / workspace.VARIABLES_FILE).rename(root / _VALUES)
    versions = {
        "tool": __version__,
        "terraform": binary.version,
        "terraform_command": list(binary.argv),
        "python": platform.python_version(),
    }
    for name, content in (("settings", report.settings), ("versions", versions)):
        (folder / f"{name}.json").write_text(json.dumps(content, indent=2) + "\n")
    command = folder / _BIN / "terraform"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec {shlex.join(binary.argv)} "$@"\n')
    command.chmod(0o755)
    return DebugFolder(folder, root)


def open_shell(folder: DebugFolder, environ: Mapping[str, str]) -> None:
    """Run the user's shell in the root, with `terraform` first on PATH, until it exits."""
    shell = environ.get("SHELL") or "/bin/sh"
    path = os.pathsep.join([str(folder.path / _BIN), environ.get("PATH", os.defpath)])
    own = {**environ, **_WRITES_NOTHING, "PATH": path}
    subprocess.run([shell], cwd=folder.root, env=own, check=False)  # noqa: S603 - the user's own shell
