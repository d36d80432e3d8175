"""The check of the buckets that are mounted; the state's own has its module, `state`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from provision.errors import Problem
from provision.google.api import GoogleApiError, Service
from provision.preflight.check import CheckNote

if TYPE_CHECKING:
    from collections.abc import Iterator

    from provision.preflight.check import CheckContext, Finding
    from provision.spec.cluster import ClusterSpec

_FORBIDDEN: Final = 403


def buckets(ctx: CheckContext[ClusterSpec]) -> Iterator[Finding]:
    """The buckets to be mounted exist."""
    for bucket in dict.fromkeys(mount.bucket for mount in ctx.spec.buckets):
        try:
            if ctx.answers.find(Service.STORAGE, f"b/{bucket}") is None:
                yield _missing(bucket)
        except GoogleApiError as error:
            if error.code != _FORBIDDEN:
                raise
            yield CheckNote(_unseen(bucket, error))


def _missing(bucket: str) -> Problem:
    return Problem(
        setting="GCS_MOUNT_LIST",
        what=f"the bucket gs://{bucket} does not exist",
        why="a bucket that is mounted is not made by this tool: its data outlive the cluster",
        fix=f"check its spelling, or make it with: gcloud storage buckets create gs://{bucket}"
        " --uniform-bucket-level-access --public-access-prevention",
    )


def _unseen(bucket: str, error: GoogleApiError) -> Problem:
    return Problem(
        setting="GCS_MOUNT_LIST",
        what=f"whether the bucket gs://{bucket} exists could not be found out",
        why=error.message,
        fix="if it belongs to another project, see that the VMs' service account may use it",
    )
