"""Removing a deployment: what the state has, and what only the cloud has."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Final

from provision.deployment.kind import Kind
from provision.errors import ClusterError, CredentialsError, StateError, TerraformError
from provision.google import resources
from provision.google.api import GoogleApiError
from provision.kinds.gke import control_plane
from provision.kinds.gke.kubernetes import ending
from provision.kinds.vms.requests import Request
from provision.lifecycle import sweep
from provision.time.retries import PassingError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from provision.context import Cloud, Context
    from provision.deployment.record import Record
    from provision.google.api import GoogleApi
    from provision.terraform import Terraform

_NOT_FOUND: Final = 404
_PARTS: Final = 5
"""Slashes in "projects/P/zones/Z/instanceGroupManagers/N"."""


def remove(context: Context, cloud: Cloud, record: Record, tool: Terraform) -> None:
    """Remove what the state has and what only the cloud has; either can stand in the other's way.

    Each round removes something, or fails.

    Args:
        context: The run; its report gets the counts.
        cloud: Where things are.
        record: The deployment.
        tool: In a root that declares nothing.

    Raises:
        TerraformError: Something can't be removed.
    """
    if record.kind == Kind.GKE:
        _give_up_requests(context, cloud)
    _cancel_requests(context, cloud, record)
    removed = 0
    while True:
        removed += _sweep(context, cloud, record, last=False)
        found = tool.plan(destroy=True)
        context.report.changes = found.counts | {"destroy": found.destroy + removed}
        try:
            tool.apply()
        except TerraformError:
            swept = 0
            # A Terraform that was killed has left its lock; what is told is how it ended.
            with contextlib.suppress(StateError):
                swept = _sweep(context, cloud, record, last=False)
            if not swept:
                raise
            removed += swept
        else:
            break
    # What a run that was killed had asked for can come to be after the first look.
    removed += _sweep(context, cloud, record, last=True)
    context.report.changes = found.counts | {"destroy": found.destroy + removed}


def _cancel_requests(context: Context, cloud: Cloud, record: Record) -> None:
    """Cancel the open requests for VMs: the deletion of a group would wait for them (rule M8)."""
    with _told("What is still asked of Google could not be cancelled"):
        for group in sorted(_groups(cloud, record)):
            found = [Request.of(document) for document in cloud.api.resize_requests(group)]
            for request in found:
                if request.is_open:
                    context.console.progress(f"Cancelling: {request.words}")
                    _cancel(cloud.api, group, request.name)


def _give_up_requests(context: Context, cloud: Cloud) -> None:
    """Cancel what a GKE cluster's jobs have asked for, as far as it is there and answers.

    All requests go with the cluster, so nothing that fails here stands in the way.
    """
    facts = control_plane.kept(cloud.folder)
    if facts is None or not facts.queued_pools:
        return
    path = resources.CLUSTER.path(project=facts.project, location=facts.location, name=facts.name)
    if cloud.api.find(resources.CLUSTER.look.service, path) is None:
        return
    cluster = control_plane.reach(facts, cloud.api, context.environ)
    try:
        count = ending.give_up(cluster, facts)
    except (ClusterError, CredentialsError, PassingError) as error:
        context.console.progress(f"The cluster's queue is not asked first: {error}")
        return
    if count:
        context.console.progress(f"Cancelled: {count} requests for nodes")


def _groups(cloud: Cloud, record: Record) -> set[str]:
    """The paths of the deployment's groups, in the state or left behind."""
    look = resources.GROUP.look
    own = {path for path in cloud.folder.known() if f"/{look.collection}/" in path}
    paths = {path for path in own if path.startswith("projects/") and path.count("/") == _PARTS}
    marked = cloud.api.marked(look, record.project_id, record.cluster_id)
    return paths | set(map(resources.path_in_document, marked))


def _cancel(api: GoogleApi, group: str, name: str) -> None:
    """Cancel a request; one that has ended meanwhile is as good (rule M15)."""
    try:
        api.cancel_resize_request(group, name)
    except GoogleApiError as error:
        if error.code != _NOT_FOUND and "final state" not in error.message:
            raise


@contextlib.contextmanager
def _told(what: str) -> Iterator[None]:
    """Google's refusal as a Destroy that has not ended."""
    try:
        yield
    except GoogleApiError as error:
        (problem,) = error.problems
        raise TerraformError(
            what,
            why=problem.why,
            fix="\n".join(filter(None, [problem.fix, "then run Destroy again"])),
        ) from error


def _sweep(context: Context, cloud: Cloud, record: Record, *, last: bool) -> int:
    """Remove what ended runs have left behind, under the lock, so that no run is at work."""
    with (
        cloud.folder.held("OperationTypeSweep"),
        _told("What earlier runs may have left behind could not be looked for"),
    ):
        return sweep.sweep(
            record.project_id,
            record.cluster_id,
            cloud.folder.known(),
            cloud.api,
            context.console.progress,
            last=last,
            buckets=_buckets(cloud, record),
        )


def _buckets(cloud: Cloud, record: Record) -> set[str]:
    """The buckets in which VMs have been given roles."""
    mounted = record.settings.get("GCS_MOUNT_LIST") or []
    return {cloud.folder.location.bucket} | {mount["bucket"] for mount in mounted}
