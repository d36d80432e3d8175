"""Whether the bucket of a state is fit to hold one, and the commands that fix it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from provision.codes import Code
from provision.errors import Problem, StateError

if TYPE_CHECKING:
    from collections.abc import Collection

_EVERYBODY: Final = frozenset({"allUsers", "allAuthenticatedUsers"})
_UPDATE: Final = "gcloud storage buckets update"
_SETTING: Final = "TERRAFORM_GCS_PATH"


def audit(
    bucket: str, *, versioned: bool, uniform: bool, readers: Collection[str], needs_uniform: bool
) -> list[Problem]:
    """What is worth knowing of a bucket.

    Args:
        bucket: Its name.
        versioned: Whether it keeps older versions of objects.
        uniform: Whether IAM alone decides who may do what (uniform bucket-level access).
        readers: Who has any role in it, as IAM names them.
        needs_uniform: Whether roles with conditions are to be granted in it.

    Raises:
        StateError: No state should be written there, or the apply would fail.
    """
    url = f"gs://{bucket}"
    everybody = sorted(_EVERYBODY & set(readers))
    if everybody:
        raise StateError(
            f"The bucket {url} is open to {' and '.join(everybody)}",
            code=Code.BUCKET_UNSAFE,
            why="the Terraform state has everything that the settings hold, secrets too",
            fix=f"run: {_UPDATE} {url} --public-access-prevention; or set TERRAFORM_GCS_PATH to"
            " another bucket",
            setting=_SETTING,
        )
    mending = f"run: {_UPDATE} {url} --uniform-bucket-level-access"
    if not uniform and needs_uniform:
        raise StateError(
            f"The bucket {url} has no uniform bucket-level access",
            code=Code.BUCKET_UNSAFE,
            why="VMs and pods get roles on parts of its folder, and Cloud Storage takes roles"
            " with conditions only with it",
            fix=mending,
            setting=_SETTING,
        )
    notes = []
    if not uniform:
        notes.append(
            Problem(
                code=Code.BUCKET_UNSAFE,
                setting=_SETTING,
                what=f"the bucket {url} has no uniform bucket-level access",
                why="access lists of single objects can open the state to others",
                fix=mending,
            )
        )
    if not versioned:
        notes.append(
            Problem(
                code=Code.BUCKET_UNSAFE,
                setting=_SETTING,
                what=f"the bucket {url} keeps no older versions",
                why="a state that is damaged or deleted can't be restored",
                fix=f"run: {_UPDATE} {url} --versioning",
            )
        )
    return notes
