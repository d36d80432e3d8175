"""The folder that Debug writes: everything that a run would use, with secrets masked."""

from __future__ import annotations

import json
import os
import platform
import shlex
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from provision import __version__
from provision.deployment import workspace

if TYPE_CHECKING:
    from collections.abc import Mapping

    from provision.deployment.deployment import Deployment
    from provision.report import Report
    from provision.spec.cluster import ClusterSpec
    from provision.terraform import Binary

_BIN = "bin"


def write(target: Deployment[ClusterSpec], report: Report, binary: Binary) -> Path:
    """Write the settings, the Terraform root with its values and backend, and the versions.

    Nothing is written to the cloud.

    Returns:
        The folder, which is not deleted at the end of the run.
    """
    folder = Path(tempfile.mkdtemp(prefix=f"{target.spec.name_prefix}-debug-"))
    workspace.fill_folder(folder, target, target.masked_variables, backend=True)
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
    return folder


def open_shell(folder: Path, environ: Mapping[str, str]) -> None:
    """Run the user's shell in the folder, with `terraform` first on PATH, until it exits."""
    shell = environ.get("SHELL") or "/bin/sh"
    path = os.pathsep.join([str(folder / _BIN), environ.get("PATH", os.defpath)])
    subprocess.run([shell], cwd=folder, env={**environ, "PATH": path}, check=False)  # noqa: S603 - the user's own shell
