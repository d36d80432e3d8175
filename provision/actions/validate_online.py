"""The part of Validate that asks Google, and has Terraform read its own modules."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from provision.cloud import connect
from provision.deployment import deployment
from provision.errors import CredentialsError
from provision.lifecycle import apply

if TYPE_CHECKING:
    from provision.context import Run
    from provision.deployment.deployment import Deployment


def validate(run: Run, target: Deployment) -> None:
    """Make the online checks; without credentials, only say that they were not made.

    Args:
        run: The run.
        target: What the settings describe, found good offline.

    Raises:
        CheckError: Google would refuse it.
    """
    try:
        cloud = connect(run)
    except CredentialsError as error:
        (problem,) = error.problems
        run.note([dataclasses.replace(problem, what=f"Google was not asked: {problem.what}")])
        run.console.result("The settings are valid. Google was not asked: no credentials.")
        return
    target = apply.settle(run, cloud, target.findings.files, bucket=cloud.has_bucket())
    with run.log(None, "validate") as log, deployment.run_folder(target, backend=False) as root:
        tool = run.terraform(root, log)
        tool.init(backend=False)
        tool.validate()
    run.console.result("The settings are valid, and the online checks passed.")
