"""The check of Filestore's quotas: the shares to create, compared with the limits of the region."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from provision.catalogue import filestores, zones
from provision.codes import Code
from provision.errors import Problem
from provision.google.api import Service
from provision.google.refusals import QUOTA_PAGE, QUOTA_ROLE
from provision.google.resources import FILESTORE
from provision.preflight.check import CheckNote

if TYPE_CHECKING:
    from collections.abc import Iterator

    from provision.catalogue.filestores import Tier
    from provision.preflight.check import CheckContext, Finding
    from provision.spec.cluster import ClusterSpec

_API: Final = "cloudquotas.googleapis.com"
_SERVICE: Final = "file.googleapis.com"
_UNLIMITED: Final = -1
# The older names of two tiers, which the API still answers.
_OLDER: Final = {"STANDARD": "BASIC_HDD", "PREMIUM": "BASIC_SSD"}


def quota(ctx: CheckContext[ClusterSpec]) -> Iterator[Finding]:
    """Check that the region's quotas are large enough for the shares, tier by tier."""
    wanted: dict[Tier, int] = {}
    for share in ctx.spec.shares:
        if share.tier in filestores.QUOTAS and share.size_gb is not None:
            wanted[share.tier] = wanted.get(share.tier, 0) + share.size_gb
    if not wanted:
        return
    if _API not in ctx.answers.enabled_apis(ctx.project):
        yield CheckNote(_unread(ctx))
        return
    for tier, needed in wanted.items():
        limit = _limit(ctx, filestores.QUOTAS[tier])
        if limit is None:
            continue
        used, own = _used(ctx, tier)
        if needed > limit - used + own:
            yield _short(ctx, tier, needed, limit, used, own)


def _limit(ctx: CheckContext[ClusterSpec], quota_id: str) -> int | None:
    """The limit of a quota in the region, in GiB; None if there is none, or Google tells none."""
    path = f"projects/{ctx.project}/locations/global/services/{_SERVICE}/quotaInfos/{quota_id}"
    found = ctx.answers.find(Service.CLOUD_QUOTAS, path) or {}
    for info in found.get("dimensionsInfos", []):
        own = info.get("dimensions", {}).get("region") == ctx.spec.region
        if own or ctx.spec.region in info.get("applicableLocations", []):
            value = int(info.get("details", {}).get("value", _UNLIMITED))
            return None if value == _UNLIMITED else value
    return None


def _used(ctx: CheckContext[ClusterSpec], tier: Tier) -> tuple[int, int]:
    """The GiB of a tier that there are in the region, and those of them of this deployment."""
    used = own = 0
    for one in ctx.answers.shares(ctx.project):
        location = one["name"].split("/")[3]
        here = ctx.spec.region in (location, zones.region_of(location))
        if not here or _OLDER.get(one["tier"], one["tier"]) != tier:
            continue
        size = sum(int(it.get("capacityGb", 0)) for it in one.get("fileShares", []))
        used += size
        own += size if ctx.is_ours(FILESTORE.look, one["name"], one) else 0
    return used, own


def _short(  # noqa: PLR0913, PLR0917 - the numbers of one quota
    ctx: CheckContext[ClusterSpec], tier: Tier, needed: int, limit: int, used: int, own: int
) -> Problem:
    name, region = filestores.QUOTAS[tier], ctx.spec.region
    mine = f", {own} by this deployment" if own else ""
    return Problem(
        code=Code.QUOTA_EXCEEDED,
        setting="NFS_FILESHARE_LIST",
        what=f"Filestore's quota {name} in {region} is too small: this deployment needs {needed}"
        f" GiB of {tier}",
        why=f"the limit of {ctx.project} is {limit} GiB, and {used} of it is used{mine}",
        fix=f"request an increase at {QUOTA_PAGE}?project={ctx.project}\n"
        f"filter by {name} and {region}, select it, click Edit ({QUOTA_ROLE})\n"
        "or use smaller shares, another tier, or a region that has quota",
    )


def _unread(ctx: CheckContext[ClusterSpec]) -> Problem:
    return Problem(
        code=Code.NOT_CHECKED,
        setting="NFS_FILESHARE_LIST",
        what="could not check whether Filestore's quota is large enough for the shares",
        why=f"{ctx.project} has not enabled {_API}, and no other API tells it",
        fix=f"gcloud services enable {_API} --project {ctx.project}, or check it at"
        f" {QUOTA_PAGE}?project={ctx.project}",
    )
