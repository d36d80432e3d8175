"""Validate: check the settings offline, and also with Google if there are credentials."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provision.actions import copied_folder, secrets_access
from provision.deployment import deployment
from provision.deployment.deployment import RunInputs
from provision.kinds import registry
from provision.lifecycle import pricing

if TYPE_CHECKING:
    from provision.context import Context


def show_role(context: Context, *, looks: bool = False) -> None:
    """Print a custom role with the permissions that the actions of this env.list need."""
    from provision.preflight import role  # noqa: PLC0415 - as below

    kind = registry.of(context.settings)
    spec = kind.spec(context.settings)
    of_kind = kind.preflight(spec)
    every = role.whole(spec, of_kind)
    every = role.reading(every) if looks else [*every, *role.of_bake(of_kind, every)]
    context.report.role = sorted(every)
    context.console.result(role.as_yaml(spec, of_kind, looks=looks))


def validate(context: Context) -> None:
    """Check the settings and the folder to copy, then run the online checks."""
    kind = registry.of(context.settings)
    if context.role:
        show_role(context)
        return
    secrets_access.tell(context)
    with copied_folder.packed(context, takes_files=kind.takes_files) as archive:
        inputs = RunInputs(files=archive, certificates=context.certificates)
        target = deployment.show(context, registry.deployment(context, inputs))
        if context.offline:
            # Another machine may be the one that creates the cluster.
            context.note(kind.missing(target.spec, context.environ))
            pricing.tell(context, target.spec, pricing.offline(context))
            context.console.result("The settings are valid. Google was not asked (--offline).")
            return
        # Imported here: offline, half of the run time would go into loading Google's libraries.
        from provision.actions import validate_online  # noqa: PLC0415

        validate_online.validate(context, kind, target)
