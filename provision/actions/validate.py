"""Validate: check the settings offline, and also with Google if there are credentials."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, Final

from provision.actions import copied_folder, secrets_access
from provision.context import connect
from provision.deployment import deployment
from provision.deployment.deployment import RunInputs
from provision.documents.checks import CheckState
from provision.errors import CredentialsError
from provision.kinds import registry
from provision.lifecycle import pricing

if TYPE_CHECKING:
    from provision.context import Context
    from provision.deployment.deployment import Deployment
    from provision.deployment.kind import Kind

_OFFLINE: Final = "or run Validate --offline, which asks nothing of Google"


def show_role(context: Context, *, looks: bool = False) -> None:
    """Print a custom role with the permissions that the actions of this env.list need."""
    from provision.preflight import role  # noqa: PLC0415 - only needed here

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
        _online(context, kind, target)


def _online(context: Context, kind: Kind[Any], target: Deployment[Any]) -> None:
    """Run the online checks; without credentials, a person is told that nobody asked Google."""
    # Imported here: offline, half of the run time would go into loading Google's libraries.
    from provision.deployment import workspace  # noqa: PLC0415 - as just said
    from provision.lifecycle import apply  # noqa: PLC0415 - as just said

    context.look_for_terraform()
    try:
        cloud = connect(context)
    except CredentialsError as error:
        _unasked(context, kind, target, error)
        return
    archive = target.inputs.files
    target = apply.settle(context, cloud, kind, archive, bucket=cloud.has_bucket(), is_gate=True)
    # Nothing is planned.
    context.report.plan = None
    with context.log(None, "validate") as log, workspace.run_folder(target, backend=False) as root:
        tool = context.terraform(root, log)
        tool.init(backend=False)
        tool.validate()
    context.console.result(f"The settings are valid, and the online checks passed{_but(context)}.")


def _unasked(
    context: Context, kind: Kind[Any], target: Deployment[Any], error: CredentialsError
) -> None:
    """Tell what is known without Google."""
    (problem,) = error.problems
    pricing.tell(context, target.spec, pricing.offline(context))
    context.note([*kind.missing(target.spec, context.environ), *context.guesses])
    if not context.console.is_terminal:
        fix = "\n".join(filter(None, [problem.fix, _OFFLINE]))
        raise CredentialsError.of([dataclasses.replace(problem, fix=fix)])
    not_asked = dataclasses.replace(problem, what=f"Google was not asked: {problem.what}")
    context.note([not_asked])
    context.console.result("The settings are valid. Google was not asked: no credentials.")


def _but(context: Context) -> str:
    """What the online checks have not looked at."""
    states = context.report.online_checks or {}
    partly, skipped = (
        ", ".join(name for name, it in states.items() if it is state)
        for state in (CheckState.PARTLY, CheckState.SKIPPED)
    )
    return (f", as far as they could look ({partly})" if partly else "") + (
        f"; SKIP_CHECKS left out {skipped}" if skipped else ""
    )
