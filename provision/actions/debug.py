"""Debug: write everything that a run would use to a folder, and open a shell there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provision import terraform
from provision.actions import copied_folder, debug_folder
from provision.deployment import deployment
from provision.deployment.deployment import RunInputs
from provision.kinds import registry

if TYPE_CHECKING:
    from provision.context import Context


def debug(context: Context) -> None:
    """Write everything that a run would use to a folder; on a terminal, open a shell there."""
    kind = registry.of(context.settings)
    with copied_folder.packed(context, takes_files=kind.takes_files) as archive:
        target = deployment.show(context, registry.deployment(context, RunInputs(files=archive)))
        folder = debug_folder.write(target, context.report, terraform.find(context.environ))
    context.console.result(f"Everything a run would use is in {folder}")
    if context.console.is_terminal:
        context.console.progress(
            f"Starting a shell in {folder}, with terraform on its PATH; leave it with: exit"
        )
        debug_folder.open_shell(folder, terraform.environment(context.environ))
