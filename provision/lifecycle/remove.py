"""Removing a deployment: the resources in the state, and those that only exist in the cloud."""

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
    """Remove the resources in the state and the marked ones that are not in it.

    Either can block the removal of the other, so this repeats; each round removes something or
    fails.

    Args:
        context: The run; its report gets the counts.
        cloud: Google and the state folder.
        record: The deployment.
        tool: Terraform in a root that declares no resources.
        release: Cancels what would block the removal; the kind of cluster provides it.

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
            # A killed Terraform leaves its lock; report how Terraform ended, not the lock.
            with contextlib.suppress(StateError):
                swept = _sweep(context, cloud, record, last=False)
            if not swept:
                raise
            removed += swept
        else:
            break
    # A resource that a killed run had requested can appear after the first sweep.
    removed += _sweep(context, cloud, record, last=True)
    context.report.changes = found.counts | {"destroy": found.destroy + removed}


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
            why=problem.why,
            fix="\n".join(filter(None, [problem.fix, "then run Destroy again"])),
        ) from error


def _sweep(context: Context, cloud: Cloud, record: Record, *, last: bool) -> int:
    """Remove what interrupted runs left behind; holds the lock, so no other run is active."""
    with (
        cloud.folder.held("OperationTypeSweep"),
        told("Could not check for resources that earlier runs left behind"),
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
    """The buckets on which the VMs' service account has been granted roles."""
    mounted = record.settings.get("GCS_MOUNT_LIST") or []
    return {cloud.folder.location.bucket} | {mount["bucket"] for mount in mounted}
