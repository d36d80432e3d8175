"""The check of the buckets to mount; `state.folder` checks the bucket of the state."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from provision.codes import Code
from provision.errors import Problem
from provision.google.api import GoogleApiError, Service
from provision.preflight.check import CheckNote

if TYPE_CHECKING:
    from collections.abc import Iterator

    from provision.preflight.check import CheckContext, Finding
    from provision.spec.cluster import ClusterSpec

_FORBIDDEN: Final = 403


def buckets(ctx: CheckContext[ClusterSpec]) -> Iterator[Finding]:
    """Check that the buckets to mount exist."""
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
        code=Code.RESOURCE_NOT_FOUND,
        setting="GCS_MOUNT_LIST",
        what=f"the bucket gs://{bucket} does not exist",
        why="this tool does not create the buckets that it mounts: their data outlives the cluster",
        fix=f"check its spelling, or create it with: gcloud storage buckets create gs://{bucket}"
        " --uniform-bucket-level-access --public-access-prevention",
    )


def _unseen(bucket: str, error: GoogleApiError) -> Problem:
    return Problem(
        code=Code.NOT_CHECKED,
        setting="GCS_MOUNT_LIST",
        what=f"could not check whether the bucket gs://{bucket} exists",
        why=error.message,
        fix="if it belongs to another project, make sure that the VMs' service account may use it",
    )
