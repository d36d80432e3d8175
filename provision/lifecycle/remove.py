"""Removing a deployment: what the state has, and what only the cloud has."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from provision.errors import StateError, TerraformError
from provision.google.api import GoogleApiError
from provision.lifecycle import sweep

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from provision.context import Cloud, Context
    from provision.state.record import Record
    from provision.terraform import Terraform


def remove(
    context: Context,
    cloud: Cloud,
    record: Record,
    tool: Terraform,
    release: Callable[[Context, Cloud, Record], None],
) -> None:
    """Remove what the state has and what only the cloud has; either can stand in the other's way.

    Each round removes something, or fails.

    Args:
        context: The run; its report gets the counts.
        cloud: Where things are.
        record: The deployment.
        tool: In a root that declares nothing.
        release: Gives up what would stand in the way, as the kind of cluster has it.

    Raises:
        TerraformError: Something can't be removed.
    """
    release(context, cloud, record)
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


@contextlib.contextmanager
def told(what: str) -> Iterator[None]:
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
        told("What earlier runs may have left behind could not be looked for"),
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
