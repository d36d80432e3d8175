"""The online part of Validate: the online checks, and `terraform validate`."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from provision.context import connect
from provision.deployment import workspace
from provision.errors import CredentialsError
from provision.lifecycle import apply, pricing

if TYPE_CHECKING:
    from provision.context import Context
    from provision.deployment.deployment import Deployment
    from provision.deployment.kind import Kind


def validate(context: Context, kind: Kind[Any], target: Deployment[Any]) -> None:
    """Run the online checks; without credentials, only note that they were skipped.

    Args:
        context: The run.
        kind: The kind of cluster.
        target: The deployment, which has passed the offline checks.

    Raises:
        CheckError: Google would refuse what the settings ask for.
    """
    context.look_for_terraform()
    try:
        cloud = connect(context)
    except CredentialsError as error:
        (problem,) = error.problems
        pricing.tell(context, target.spec, pricing.offline(context))
        not_asked = dataclasses.replace(problem, what=f"Google was not asked: {problem.what}")
        missing = kind.missing(target.spec, context.environ)
        context.note([*missing, *context.guesses, not_asked])
        context.console.result("The settings are valid. Google was not asked: no credentials.")
        return
    archive = target.inputs.files
    target = apply.settle(context, cloud, kind, archive, bucket=cloud.has_bucket())
    # Nothing is planned.
    context.report.plan = None
    with context.log(None, "validate") as log, workspace.run_folder(target, backend=False) as root:
        tool = context.terraform(root, log)
        tool.init(backend=False)
        tool.validate()
    context.console.result("The settings are valid, and the online checks passed.")
