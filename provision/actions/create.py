"""Create: check, plan, show, apply that plan, wait, and say how to connect."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from provision.actions import copied_folder
from provision.context import connect
from provision.errors import ClusterError, TerraformError
from provision.google.api import GoogleApiError
from provision.kinds import registry
from provision.lifecycle import apply

if TYPE_CHECKING:
    from collections.abc import Iterator

    from provision.context import Cloud, Context
    from provision.deployment.deployment import Deployment, Made
    from provision.deployment.kind import Kind


def create(context: Context) -> None:
    """Check, plan, show, apply that plan, wait for the machines, say how to connect."""
    context.look_for_terraform()
    cloud = connect(context)
    kind = registry.of(context.settings)
    exists = cloud.has_bucket()
    with copied_folder.packed(context, takes_files=kind.takes_files) as archive:
        target = apply.settle(context, cloud, kind, archive, bucket=exists)
        if not exists and cloud.folder.require_bucket(
            cloud.project_number, context.settings.region
        ):
            bucket = cloud.folder.location.bucket
            context.console.progress(f"Made the bucket gs://{bucket} for the state")
        while True:
            made = _applied(context, cloud, kind, target)
            with _standing(cloud):
                kind.capacity(context, cloud, made)
            # What could not be asked for while a request was open is asked for now.
            if not made.postponed:
                break
    with _standing(cloud):
        kind.finish(context, cloud, made)


def _applied(context: Context, cloud: Cloud, kind: Kind[Any], target: Deployment[Any]) -> Made[Any]:
    """Apply, and ask Google for the reason where Terraform can't tell it.

    Raises:
        TerraformError: It failed.
        CapacityError: Google refused machines.
    """
    try:
        return apply.apply(context, cloud, kind, target)
    except TerraformError:
        kind.explain(cloud, target)
        raise


@contextlib.contextmanager
def _standing(cloud: Cloud) -> Iterator[None]:
    """What Google refuses to tell of a cluster that was made is no failed check of the beginning.

    Raises:
        ClusterError: In place of Google's error.
    """
    try:
        yield
    except GoogleApiError as error:
        (problem,) = error.problems
        raise ClusterError(
            "Everything was made, but Google did not answer what is asked then"
            f" ({error.code}), so how to connect is not known",
            why=f"{problem.why}\nall that was made is kept, and so is its state in"
            f" {cloud.folder.location.url}",
            fix="\n".join(
                filter(None, [problem.fix, "run Create again to go on, or Destroy to remove it"])
            ),
        ) from error
