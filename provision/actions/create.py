"""Create: check, plan, show the plan, apply it, wait for the machines, and say how to connect."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from provision.actions import copied_folder, report_page, secrets_access
from provision.codes import Code
from provision.context import connect
from provision.errors import ClusterError, TerraformError
from provision.google.api import GoogleApiError
from provision.kinds import registry
from provision.lifecycle import apply

if TYPE_CHECKING:
    from collections.abc import Iterator

    from provision.actions.report_page import Pages
    from provision.context import Cloud, Context
    from provision.deployment.deployment import Applied, Deployment
    from provision.deployment.kind import Kind


def create(context: Context) -> None:
    """Check, plan, show the plan, apply it, wait for the machines, say how to connect."""
    with report_page.written(context) as pages:
        _create(context, pages)


def _create(context: Context, pages: Pages) -> None:
    secrets_access.require(context)
    secrets_access.tell(context)
    context.look_for_terraform()
    cloud = connect(context)
    kind = registry.of(context.settings)
    exists = cloud.has_bucket()
    with copied_folder.packed(context, takes_files=kind.takes_files) as archive:
        target = apply.settle(context, cloud, kind, archive, bucket=exists)
        if context.replace_vms:
            kind.require_replaceable(target.spec)
        if not exists and cloud.folder.require_bucket(
            cloud.project_number, context.settings.region
        ):
            bucket = cloud.folder.location.bucket
            context.console.progress(f"Created the bucket gs://{bucket} for the state")
        pages.folder = cloud.folder
        while True:
            made = _applied(context, cloud, kind, target)
            with _standing(cloud):
                kind.capacity(context, cloud, made)
            # VMs that could not be requested while a resize request was open are requested now.
            if not made.postponed:
                break
    with _standing(cloud):
        kind.finish(context, cloud, made)


def _applied(
    context: Context, cloud: Cloud, kind: Kind[Any], target: Deployment[Any]
) -> Applied[Any]:
    """Apply; on failure, ask Google for the reason where Terraform does not know it.

    Raises:
        TerraformError: Terraform failed.
        CapacityError: Terraform failed because Google refused machines.
    """
    try:
        return apply.apply(context, cloud, kind, target)
    except TerraformError:
        kind.explain(cloud, target)
        raise


@contextlib.contextmanager
def _standing(cloud: Cloud) -> Iterator[None]:
    """Report Google's errors after the apply as errors of a cluster that exists.

    A `GoogleApiError` by itself stands for a failed online check, where nothing was created yet.

    Raises:
        ClusterError: In place of Google's error.
    """
    try:
        yield
    except GoogleApiError as error:
        (problem,) = error.problems
        raise ClusterError(
            "Everything was created, but a request to Google failed afterwards"
            f" ({error.code}), so it is not known how to connect",
            code=problem.code if problem.code is not Code.GOOGLE_REFUSED else Code.NOT_CONFIRMED,
            why=f"{problem.why}\nall resources are kept, and so is their state in"
            f" {cloud.folder.location.url}",
            fix="\n".join(
                filter(
                    None,
                    [problem.fix, "run Create again to continue, or Destroy to remove everything"],
                )
            ),
        ) from error
