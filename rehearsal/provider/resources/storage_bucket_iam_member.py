"""google_storage_bucket_iam_member."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rehearsal.provider.resources.iam_member import IamMember
from rehearsal.provider.resources.policies import Guarded, Policy

if TYPE_CHECKING:
    from rehearsal.provider.api import Api
    from rehearsal.provider.resource import State


def _of(bucket: str) -> Guarded:
    path = f"{bucket}/iam"

    def fetch(api: Api) -> Policy:
        return api.plain("storage", "GET", path, query={"optionsRequestedPolicyVersion": "3"})

    def store(api: Api, policy: Policy) -> None:
        api.plain("storage", "PUT", path, policy)

    return Guarded(f'storage bucket "{bucket}"', f"iam-storage-bucket-{bucket}", fetch, store)


def _with_b(bucket: str) -> str:
    """The state has a bucket as "b/NAME"."""
    return f"b/{bucket.removeprefix('b/')}"


def _same_bucket(prior: Any, wanted: Any, _: State) -> bool:
    return bool(prior and wanted) and _with_b(prior) == _with_b(wanted)


RESOURCE = IamMember(parent="bucket", of=_of, canonical=_with_b, same=_same_bucket)
