"""The check of the buckets to mount; `state.folder` checks the bucket of the state."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from provision.catalogue import accounts
from provision.codes import Code
from provision.google import resources
from provision.google.api import GoogleApiError, Service
from provision.preflight.check import Effect, Finding, note, refuse
from provision.spec.cluster import BucketGrant
from provision.state import terraform_state
from provision.state.location import DEEPEST, FOLDER, RECORD, STATE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from provision.preflight.check import CheckContext
    from provision.spec.cluster import ClusterSpec

_FORBIDDEN: Final = 403
_EXISTS: Final = (
    "exists",
    "if it belongs to another project, make sure that the VMs' service account may use it",
)
_MOST: Final = 50
"""Requests for folders of one bucket; a list has up to 1,000 entries."""
_TOO_MANY: Final = (
    "holds states",
    "see to it that it holds none",
    f"not all of its folders were looked at: {_MOST} lists were not enough",
)
_HOLDS_NONE: Final = (
    "holds states",
    "get the role Storage Object Viewer on it, or see to it that it holds none",
)


def buckets(ctx: CheckContext[ClusterSpec]) -> Iterator[Finding]:
    """Check that the buckets to mount exist, hold no states, and how access to them is granted."""
    grants: dict[str, BucketGrant] = {}
    for bucket in dict.fromkeys(mount.bucket for mount in ctx.spec.buckets):
        unknown = _EXISTS
        try:
            found = ctx.answers.find(Service.STORAGE, f"b/{bucket}")
            if found is None:
                yield _missing(bucket)
                continue
            # Roles on a bucket may have conditions with uniform bucket-level access alone (Cloud
            # Storage, "Use IAM Conditions on buckets", read in 2026-11).
            access = found.get("iamConfiguration", {}).get("uniformBucketLevelAccess", {})
            if ctx.spec.service_account != "dedicated" and not access.get("enabled"):
                grants[bucket] = _grant(ctx, bucket)
                yield _shared(bucket, grants[bucket])
            unknown = _HOLDS_NONE
            folder = _of_deployment(ctx, bucket)
            if folder is None:
                yield _unseen(bucket, *_TOO_MANY)
            elif folder:
                yield _holds_states(bucket, folder)
        except GoogleApiError as error:
            if error.code != _FORBIDDEN:
                raise
            yield _unseen(bucket, *unknown, error.message)
    if grants:
        yield Finding(settled={"bucket_grants": grants})


def _grant(ctx: CheckContext[ClusterSpec], bucket: str) -> BucketGrant:
    """Whether the account has its role on a bucket by somebody else's hand."""
    account = ctx.spec.service_account
    if account == "default":
        account = accounts.default(ctx.answers.project_number(ctx.project))
    member = f"serviceAccount:{account}"
    if terraform_state.grant(f"b/{bucket}", resources.MOUNTS, member, {}) in ctx.in_state:
        return BucketGrant.PLAIN
    policy = ctx.answers.find(Service.STORAGE, f"b/{bucket}/iam") or {}
    given = any(
        binding.get("role") == resources.MOUNTS and member in binding.get("members", ())
        for binding in policy.get("bindings", ())
    )
    return BucketGrant.GIVEN if given else BucketGrant.PLAIN


def _shared(bucket: str, grant: BucketGrant) -> Finding:
    ends = (
        "it has the role already, so that is left to whoever gave it"
        if grant is BucketGrant.GIVEN
        else "Create gives it the role, and Destroy takes it away, from whoever else relies on it"
    )
    return note(
        Code.NOTE,
        Effect.NOTE_IF_MADE,
        setting="GCS_MOUNT_LIST",
        what=f"the role of the VMs' account on gs://{bucket} can't be told from another's",
        why=f"the bucket takes no conditions; {ends}",
        fix=f"gcloud storage buckets update gs://{bucket} --uniform-bucket-level-access, or"
        " SERVICE_ACCOUNT=dedicated",
    )


def _of_deployment(ctx: CheckContext[ClusterSpec], bucket: str) -> str | None:
    """A folder of a deployment in a bucket; "" if there is none, None if that is not known.

    One request a folder, and one or two more for each of such a name: data may be in thousands.
    """
    left = [("", "")]
    for asked, (above, page) in enumerate(left):
        if asked == _MOST:
            return None
        folders, more = ctx.answers.folders(bucket, above, page)
        for folder in folders:
            if folder.endswith(f"{FOLDER}/"):
                paths = (f"{folder}{name}" for name in (RECORD, STATE))
                if any(ctx.answers.begins_any(bucket, path) for path in paths):
                    return folder
            elif folder.count("/") <= DEEPEST:
                left.append((folder, ""))
        if more:
            left.append((above, more))
    return ""


def _holds_states(bucket: str, folder: str) -> Finding:
    return refuse(
        Code.CONFLICTING_SETTINGS,
        setting="GCS_MOUNT_LIST",
        what=f"the bucket gs://{bucket} holds the state of a deployment",
        why=f"it is in {folder}; each machine that mounts the bucket could change it, and the next"
        " run of that deployment applies it with the rights of whoever starts it",
        fix="another bucket for the data",
    )


def _missing(bucket: str) -> Finding:
    return refuse(
        Code.RESOURCE_NOT_FOUND,
        setting="GCS_MOUNT_LIST",
        what=f"the bucket gs://{bucket} does not exist",
        why="this tool does not create the buckets that it mounts: their data outlives the cluster",
        fix=f"check its spelling, or create it with: gcloud storage buckets create gs://{bucket}"
        " --uniform-bucket-level-access --public-access-prevention",
    )


def _unseen(bucket: str, unknown: str, fix: str, why: str) -> Finding:
    return note(
        Code.NOT_CHECKED,
        setting="GCS_MOUNT_LIST",
        what=f"could not check whether the bucket gs://{bucket} {unknown}",
        why=why,
        fix=fix,
    )
