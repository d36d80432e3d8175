"""Debug: write everything that a run would use to a folder, and open a shell there."""

from __future__ import annotations

import dataclasses
import json
import os
import platform
import shlex
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from provision import __version__, words
from provision.actions import copied_folder
from provision.codes import Code
from provision.context import connect
from provision.deployment import deployment, workspace
from provision.deployment.deployment import RunInputs
from provision.deployment.workspace import Workspace
from provision.errors import Problem, ProvisionError, TerraformError
from provision.kinds import registry
from provision.lifecycle import apply
from provision.terraform import PLAN_FILE
from provision.terraform.plan import UNKNOWN

if TYPE_CHECKING:
    from collections.abc import Mapping

    from provision.context import Cloud, Context
    from provision.deployment.deployment import Deployment
    from provision.deployment.kind import Kind
    from provision.files.archive import Archive
    from provision.report import Report
    from provision.spec.cluster import ClusterSpec
    from provision.terraform import Binary

_DIFFERS = "so terraform plan in the folder shows other changes than Create would make"
_BIN: Final = "bin"
_VALUES: Final = "deployment.auto.tfvars.json"  # Terraform reads it without being told to
_WRITES_NOTHING: Final = {"TF_CLI_ARGS_plan": "-lock=false"}
"""A plan in the shell takes no lock in the bucket."""


@dataclass(frozen=True)
class _Folder:
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
        (self.root / PLAN_FILE).unlink(missing_ok=True)


def debug(context: Context) -> None:
    """Write everything that a run would use to a folder, where `terraform plan` works as it stands.

    On a terminal, open a shell there. Nothing is written to the cloud, not even a lock. Without
    Google the folder has what is known without it, and no state.
    """
    context.look_for_terraform()
    kind = registry.of(context.settings)
    with copied_folder.packed(context, takes_files=kind.takes_files) as archive:
        cloud = _reached(context)
        target, has_state = _described(context, cloud, kind, archive)
        if context.full:
            target = dataclasses.replace(target, masked_variables=target.variables)
        folder = _write(target, context.report, context.binary(), backend=has_state)
        _prepare(context, cloud, kind, target, folder, has_state=has_state)
    context.note(_differences(target, has_state=has_state))
    context.console.result(f"Everything a run would use is in {folder.path}")
    if context.console.is_terminal:
        context.console.progress(
            f"Starting a shell in {folder.root}: terraform plan works there and changes nothing;"
            " leave it with: exit"
        )
        _open_shell(folder, context.terraform_environ())


def _reached(context: Context) -> Cloud | None:
    """Google and the state folder; None if they can't be reached, which is then told."""
    try:
        return connect(context)
    except ProvisionError as error:
        context.note([_told("Google was not asked", it) for it in error.problems])
        return None


def _described(
    context: Context, cloud: Cloud | None, kind: Kind[Any], archive: Archive | None
) -> tuple[Deployment[Any], bool]:
    """The deployment, as far as it is known what Create would make, and whether it has a state."""
    has_state = False
    if cloud is not None:
        try:
            bucket = cloud.has_bucket()
            has_state = bucket and cloud.folder.has_state()
            return apply.settle(context, cloud, kind, archive, bucket=bucket), has_state
        except ProvisionError as error:
            context.note([_told("Create would not begin", it) for it in error.problems])
    inputs = RunInputs(files=archive, certificates=context.certificates)
    target = registry.deployment(context, inputs)
    return deployment.show(context, target), has_state


def _prepare(  # noqa: PLR0913 - what a run knows by then
    context: Context,
    cloud: Cloud | None,
    kind: Kind[Any],
    target: Deployment[Any],
    folder: _Folder,
    *,
    has_state: bool,
) -> None:
    """Initialize Terraform in the folder; write what only the state, or a plan, can tell."""
    with context.log(None, "debug") as log:
        tool = context.terraform(folder.root, log)
        desk = Workspace(folder.root, tool, live=False)
        try:
            tool.init()
        except TerraformError as error:
            context.note(
                [_told("the folder is not ready for terraform", it) for it in error.problems]
            )
            return
        if cloud is None:
            return
        if has_state:
            target, _ = kind.prepare(cloud, target, desk)
            folder.tell(target)
        try:
            beside = kind.beside_terraform(context, target, desk)
        except TerraformError as error:
            context.note([_told("terraform can't plan in the folder", it) for it in error.problems])
            return
    folder.add(beside)
    context.note(_placeholders(beside))


def _placeholders(beside: Mapping[str, str]) -> list[Problem]:
    """What files have in place of values that nobody knows yet."""
    found = [name for name, text in beside.items() if UNKNOWN in text]
    what = f"{UNKNOWN} stands in {words.listed(found)}"
    why = "only the apply tells what is to stand there"
    return [Problem(code=Code.NOTE, what=what, why=why)] if found else []


def _differences(target: Deployment[Any], *, has_state: bool) -> list[Problem]:
    """What makes a plan in the folder another one than Create's."""
    found = []
    if not has_state:
        what = "there is no state to plan against"
        why = "a plan in the folder shows everything as new"
        found.append(Problem(code=Code.NOT_CHECKED, what=what, why=why))
    masked = [
        name for name, value in target.variables.items() if value != target.masked_variables[name]
    ]
    if masked:
        found.append(
            Problem(
                code=Code.NOTE,
                what=f"secrets are masked in the folder: {', '.join(masked)}",
                why=f"it may be passed on, {_DIFFERS}",
                fix="aiinfra Plan, for the changes that Create would make; Debug --full writes"
                " commands and metadata as they are, for yourself alone",
            )
        )
    return found


def _told(what: str, problem: Problem) -> Problem:
    return Problem(
        code=problem.code,
        setting=problem.setting,
        what=f"{what}: {problem.what}",
        why=problem.why,
        fix=problem.fix,
    )


def _write(
    target: Deployment[ClusterSpec], report: Report, binary: Binary, *, backend: bool
) -> _Folder:
    """Write the settings, the Terraform root with its values, and the versions."""
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
    return _Folder(folder, root)


def _open_shell(folder: _Folder, environ: Mapping[str, str]) -> None:
    """Run the user's shell in the root, with `terraform` first on PATH, until it exits."""
    shell = environ.get("SHELL") or "/bin/sh"
    path = os.pathsep.join([str(folder.path / _BIN), environ.get("PATH", os.defpath)])
    own = {**environ, **_WRITES_NOTHING, "PATH": path}
    subprocess.run([shell], cwd=folder.root, env=own, check=False)  # noqa: S603 - the user's own shell
