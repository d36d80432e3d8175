"""The part of Validate that asks Google, and has Terraform read its own modules."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from provision.context import connect
from provision.deployment import deployment
from provision.errors import CredentialsError
from provision.lifecycle import apply

if TYPE_CHECKING:
    from provision.context import Context
    from provision.deployment.deployment import Deployment


def validate(context: Context, target: Deployment) -> None:
    """Make the online checks; without credentials, only say that they were not made.

    Args:
        context: The run.
        target: What the settings describe, found good offline.

    Raises:
        CheckError: Google would refuse it.
    """
    try:
        cloud = connect(context)
    except CredentialsError as error:
        (problem,) = error.problems
        context.note([dataclasses.replace(problem, what=f"Google was not asked: {problem.what}")])
        context.console.result("The settings are valid. Google was not asked: no credentials.")
        return
    target = apply.settle(context, cloud, target.findings.files, bucket=cloud.has_bucket())
    with context.log(None, "validate") as log, deployment.run_folder(target, backend=False) as root:
        tool = context.terraform(root, log)
        tool.init(backend=False)
        tool.validate()
    context.console.result("The settings are valid, and the online checks passed.")
