"""Create: check, plan, show the plan, apply it, wait for the machines, and say how to connect.

Plan is its first half, which changes nothing.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from provision.actions import copied_folder, report_page, validate
from provision.context import connect
from provision.documents.events import Milestone
from provision.errors import CapacityError, TerraformError
from provision.google import auth
from provision.kinds import registry
from provision.lifecycle import apply, calendar, in_use, phases, plan_document
from provision.lifecycle.phases import Phase
from provision.lifecycle.search import Search

if TYPE_CHECKING:
    from provision.actions.report_page import Pages
    from provision.context import Cloud, Context
    from provision.deployment.deployment import Applied, Deployment
    from provision.deployment.kind import Kind
    from provision.documents.plan import Plan


def create(context: Context, *, copies: bool = True) -> None:
    """Check, plan, show the plan, apply it, wait for the machines, say how to connect.

    `copies`: whether the folder of the run is for the VMs; that of a job is not.
    """
    with report_page.written(context) as pages:
        _create(context, pages, copies=copies)


def _create(context: Context, pages: Pages, *, copies: bool) -> None:
    validate.require_meant(context)
    validate.tell_of_secrets(context)
    context.look_for_terraform()
    kind = registry.of(context.settings)
    # A folder that is not there is told before anybody has to log in.
    with (
        copied_folder.packed(context, takes_files=kind.takes_files)
        if copies
        else contextlib.nullcontext()
    ) as archive:
        cloud = connect(context)
        exists = cloud.has_bucket()
        target = apply.settle(context, cloud, kind, archive, bucket=exists)
        if outlived := auth.outlived(context.environ, context.settings.capacity_timeout):
            context.note([outlived])
        if context.replace_vms:
            kind.require_replaceable(target.spec)
        agreed = apply.agree(context, cloud, kind, target)
        wanted, folder = target.spec, cloud.folder
        where = (cloud.project_number, wanted.region, wanted.kms_key)
        if not exists and folder.require_bucket(*where):
            context.console.progress(
                f"Created the bucket gs://{folder.location.bucket} for the state"
            )
        pages.folder = folder
        made = Search(context, cloud, kind, target, archive).run(
            lambda place: _standing(context, cloud, kind, place, agreed)
        )
        spec = made.target.spec
        asked = sum(it.size.first for it in spec.pools if it not in spec.system_pools)
        if asked:
            told = "its machine runs" if asked == 1 else f"all {asked} machines run"
            context.reached(Milestone.MACHINES, told)
        in_use.remove_unused(context, cloud, kind, made)
    with phases.during(Phase.STANDING, cloud):
        kind.finish(context, cloud, made)


def _standing(
    context: Context,
    cloud: Cloud,
    kind: Kind[Any],
    target: Deployment[Any],
    agreed: Plan | None,
) -> Applied[Any]:
    while True:
        try:
            with phases.during(Phase.MAKING, cloud):
                made = apply.apply(context, cloud, kind, target, agreed)
        except TerraformError:
            # Terraform may not know the reason: Google is asked for it.
            with phases.aside(context, but=CapacityError):
                kind.explain(cloud, target)
            raise
        with phases.during(Phase.STANDING, cloud):
            kind.capacity(context, cloud, made)
        # VMs that could not be requested while a resize request was open are requested now.
        if not made.postponed:
            return made


def plan(context: Context) -> bool:
    """Show what Create would do. Nothing is made, no lock is taken, and only a log is written."""
    if context.role:
        validate.show_role(context, looks=True)
        return False
    with report_page.written(context):
        return _plan(context)


def _plan(context: Context) -> bool:
    context.look_for_terraform()
    kind = registry.of(context.settings)
    # A folder that is not there is told before anybody has to log in.
    with copied_folder.packed(context, takes_files=kind.takes_files) as archive:
        cloud = connect(context)
        exists = cloud.has_bucket()
        validate.tell_of_secrets(context)
        target = apply.settle(context, cloud, kind, archive, bucket=exists, looks=True)
        calendar.tell(context, cloud, target.spec)
        backend = exists and cloud.folder.has_state()
        found, older = apply.plan(context, cloud, kind, target, backend=backend)
    context.report.changes = found.counts
    plan_document.tell_of_older(context, older)
    return bool(older) or found.matters
