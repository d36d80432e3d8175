"""The check of the buckets to mount; `state.folder` checks the bucket of the state."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from provision.codes import Code
from provision.errors import Problem
from provision.google.api import GoogleApiError, Service
from provision.preflight.check import CheckNote
from provision.state.location import FOLDER, RECORD, STATE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from provision.preflight.check import CheckContext, Finding
    from provision.spec.cluster import ClusterSpec

_FORBIDDEN: Final = 403
_EXISTS: Final = (
    "exists",
    "if it belongs to another project, make sure that the VMs' service account may use it",
)
_HOLDS_NONE: Final = (
    "holds states",
    "get the role Storage Object Viewer on it, or see to it that it holds none",
)


def buckets(ctx: CheckContext[ClusterSpec]) -> Iterator[Finding]:
    """Check that the buckets to mount exist, and hold no states."""
    for bucket in dict.fromkeys(mount.bucket for mount in ctx.spec.buckets):
        unknown = _EXISTS
        try:
            if ctx.answers.find(Service.STORAGE, f"b/{bucket}") is None:
                yield _missing(bucket)
                continue
            unknown = _HOLDS_NONE
            if folder := _of_deployment(ctx, bucket):
                yield _holds_states(bucket, folder)
        except GoogleApiError as error:
            if error.code != _FORBIDDEN:
                raise
            yield CheckNote(_unseen(bucket, *unknown, error.message))


def _of_deployment(ctx: CheckContext[ClusterSpec], bucket: str) -> str:
    """A folder of a deployment at the top of a bucket; "" if there is none.

    One request, and one or two for each folder of such a name: a whole list of a bucket of data may
    take thousands.
    """
    for folder in ctx.answers.folders(bucket):
        if folder.endswith(f"{FOLDER}/"):
            paths = (quote(f"{folder}{name}", safe="") for name in (RECORD, STATE))
            if any(ctx.answers.find(Service.STORAGE, f"b/{bucket}/o/{path}") for path in paths):
                return folder
    return ""


def _holds_states(bucket: str, folder: str) -> Problem:
    return Problem(
        code=Code.CONFLICTING_SETTINGS,
        setting="GCS_MOUNT_LIST",
        what=f"the bucket gs://{bucket} holds the state of a deployment",
        why=f"it is in {folder}; each machine that mounts the bucket could change it, and the next"
        " run of that deployment applies it with the rights of whoever starts it",
        fix="another bucket for the data",
    )


def _missing(bucket: str) -> Problem:
    return Problem(
        code=Code.RESOURCE_NOT_FOUND,
        setting="GCS_MOUNT_LIST",
        what=f"the bucket gs://{bucket} does not exist",
        why="this tool does not create the buckets that it mounts: their data outlives the cluster",
        fix=f"check its spelling, or create it with: gcloud storage buckets create gs://{bucket}"
        " --uniform-bucket-level-access --public-access-prevention",
    )


def _unseen(bucket: str, unknown: str, fix: str, why: str) -> Problem:
    return Problem(
        code=Code.NOT_CHECKED,
        setting="GCS_MOUNT_LIST",
        what=f"could not check whether the bucket gs://{bucket} {unknown}",
        why=why,
        fix=fix,
    )
