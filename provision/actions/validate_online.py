"""The online part of Validate: the online checks, and `terraform validate`."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from provision.context import connect
from provision.deployment import workspace
from provision.documents.checks import CheckState
from provision.errors import CredentialsError
from provision.lifecycle import apply, pricing

if TYPE_CHECKING:
    from provision.context import Context
    from provision.deployment.deployment import Deployment
    from provision.deployment.kind import Kind

_OFFLINE = "or run Validate --offline, which asks nothing of Google"


def validate(context: Context, kind: Kind[Any], target: Deployment[Any]) -> None:
    """Run the online checks; without credentials, a person is told that nobody asked Google."""
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
