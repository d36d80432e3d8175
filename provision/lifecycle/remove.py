"""Removing a deployment: the resources in the state, and those that only exist in the cloud."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, Final

from provision.codes import Code
from provision.documents.changes import Changes
from provision.documents.timeline import OnInterrupt, StageName
from provision.errors import StateError, TerraformError
from provision.google import resources
from provision.google.api import GoogleApiError
from provision.google.owner import Owner
from provision.lifecycle import exclusive, namesakes, ownership, settle, sweep

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from provision.context import Cloud, Context
    from provision.deployment.kind import Kind
    from provision.state.location import Place
    from provision.state.record import Record
    from provision.terraform import Terraform

_NO_LOCK: Final = contextlib.nullcontext()
"""Without a bucket there is no lock, and no other run that could hold one."""


def remove(
    context: Context,
    cloud: Cloud,
    record: Record,
    tool: Terraform,
    kind: Kind[Any],
) -> None:
    """Remove the resources in the state and the marked ones that are not in it.

    Either can block the removal of the other, so this repeats; each round removes something or
    fails.

    Args:
        context: The run; its report gets the counts.
        cloud: Google and the state folder.
        record: The deployment.
        tool: Terraform in a root that declares no resources.
        kind: The kind of cluster, which cancels what would block the removal, and removes what the
            cluster itself has left.

    Raises:
        TerraformError: Something can't be removed.
        ClusterError: Something that the cluster made itself can't be removed.
    """
    kind.release(context, cloud, record)
    removed = 0
    while True:
        removed += _sweep(context, cloud, record, last=False)
        found = tool.plan(destroy=True)
        context.report.changes = found.counts + Changes(destroy=removed)
        try:
            tool.apply()
        except TerraformError:
            swept = 0
            # A killed Terraform leaves its lock; report how Terraform ended, not the lock.
            with contextlib.suppress(StateError):
                swept = _sweep(context, cloud, record, last=False)
            # What the cluster has left may use its network.
            swept += kind.sweep(context, cloud, last=False)
            if not swept:
                raise
            removed += swept
        else:
            break
    # A resource that a killed run had requested can appear after the first sweep.
    removed += _sweep(context, cloud, record, last=True)
    context.report.changes = found.counts + Changes(destroy=removed)
    removed += kind.sweep(context, cloud, last=True)
    context.report.changes = found.counts + Changes(destroy=removed)
    _require_no_older(context, cloud, record)


@contextlib.contextmanager
def told(what: str) -> Iterator[None]:
    """Turn Google's refusal into the error of a Destroy that did not finish.

    Args:
        what: What failed, as the error's first line.

    Raises:
        TerraformError: In place of Google's error.
    """
    try:
        yield
    except GoogleApiError as error:
        (problem,) = error.problems
        raise TerraformError(
            what,
            code=problem.code if problem.code is not Code.GOOGLE_REFUSED else Code.NOT_REMOVED,
            why=problem.why,
            fix="\n".join(filter(None, [problem.fix, "then run Destroy again"])),
        ) from error


def without_state(context: Context, cloud: Cloud, kinds: Sequence[Kind[Any]]) -> int:
    """Remove what lives under this deployment's names although there is no state.

    Args:
        context: The run; disks with data are noted and kept.
        cloud: Google and the state folder.
        kinds: The kinds of cluster that may have been here.

    Returns:
        How many there were.

    Raises:
        StateError: Something does, and nobody agreed to its removal, or it is another's; or
            another run is at work here.
        TerraformError: Something can't be removed.
        ClusterError: Something that a cluster made itself can't be removed.
    """
    location, place = cloud.folder.location, context.settings
    lock = cloud.folder.lock() if cloud.has_bucket() else None
    if lock is not None:
        # Of a run that was killed before it wrote a state; what it asked for may still be made.
        exclusive.free_stale(context, cloud, lock)
        settle.wait(cloud.api, [place], context.progress)
    found = namesakes.find(cloud.api, place, location)
    owners = ownership.ours(context, place, location)
    networks = namesakes.networks(found, owners)
    with told("What a cluster has left could not be looked for"):
        left = [kind.left(cloud, place, networks) for kind in kinds]
    has_left = any(one.paths for one in left)
    if (found or has_left) and not context.agreed:
        raise namesakes.error(found, place, location, left)
    own = {one.id for one in owners}
    others = [one for one in found if one.owner.id not in own]
    removed = 0
    if len(others) < len(found) or has_left:
        locked = cloud.folder.held("OperationTypeSweep") if cloud.has_bucket() else _NO_LOCK
        with locked, told("What lives without a state could not be removed"):
            # A cluster goes before what it has left, and that before its network.
            removed = _sweep_all(context, cloud, place, last=False)
            for kind in kinds:
                removed += kind.sweep_left(context, cloud, place, networks)
            removed += _sweep_all(context, cloud, place, last=True)
            left = [kind.left(cloud, place, ()) for kind in kinds]
    if others:
        raise namesakes.error(others, place, location)
    context.note([problem for one in left for problem in one.kept])
    if cloud.has_bucket() and (lock is not None or cloud.folder.has_empty_state()):
        # A run that ended before it made anything leaves a state without resources, or its note.
        with cloud.folder.held("OperationTypeSweep"):
            cloud.folder.clear()
    return removed


def _sweep(context: Context, cloud: Cloud, record: Record, *, last: bool) -> int:
    """Remove what interrupted runs left behind; holds the lock, so no other run is active."""
    with (
        cloud.folder.held("OperationTypeSweep"),
        told("Could not check for resources that earlier runs left behind"),
    ):
        buckets = _buckets(cloud, record)
        return _sweep_all(context, cloud, record, last=last, buckets=buckets)


def _sweep_all(
    context: Context,
    cloud: Cloud,
    place: Place,
    *,
    last: bool,
    buckets: Collection[str] = (),
) -> int:
    with context.progress.stage(StageName.SWEEP, OnInterrupt.LEAVES_REST):
        return sum(
            sweep.sweep(
                place.project_id,
                owner,
                cloud.folder.known(),
                cloud.api,
                context.console.progress,
                last=last,
                buckets=buckets,
            )
            for owner in ownership.ours(context, place, cloud.folder.location)
        )


def _require_no_older(context: Context, cloud: Cloud, record: Record) -> None:
    """See that nothing is left with the marker of the first version.

    Raises:
        StateError: Something is, and it may be another deployment's.
    """
    older = Owner.before_states(record.project_id, record.name_prefix)
    if older in ownership.ours(context, record, cloud.folder.location):
        return
    with told("What the first version may have left behind could not be looked for"):
        found = sweep.left(record.project_id, older, cloud.folder.known(), cloud.api)
    if found:
        raise StateError(
            f"{len(found)} resources live on that the first version of this tool made",
            code=Code.STATE_FOREIGN,
            why="their marker does not say of which state they are, so they may belong to another"
            " deployment with this NAME_PREFIX:\n" + "\n".join(found),
            fix="if they are this deployment's, run Destroy with --yes to delete them",
        )


def _buckets(cloud: Cloud, record: Record) -> set[str]:
    """The buckets on which the VMs' service account has been granted roles."""
    mounted = record.settings.get("GCS_MOUNT_LIST") or []
    # A record that was lost does not know the settings; the state has the roles.
    granted = cloud.folder.of_type(resources.BUCKET_ROLE.type).values()
    return (
        {cloud.folder.location.bucket}
        | {mount["bucket"] for mount in mounted}
        | {role["bucket"].removeprefix("b/") for role in granted}
    )
