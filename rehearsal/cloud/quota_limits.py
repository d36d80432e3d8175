"""Limits of quotas: Filestore's by Cloud Quotas v1, Compute Engine's by Service Usage v1beta1.

The latter tells also those that no region shows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from rehearsal.cloud import projects, services
from rehearsal.cloud.compute import quotas, stock
from rehearsal.cloud.facts import filestore_tiers, places
from rehearsal.cloud.facts import quotas as facts
from rehearsal.cloud.routes import Routes
from rehearsal.cloud.wire import GoogleError, Reply

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from rehearsal.cloud.store import Store
    from rehearsal.cloud.wire import Request


_API: Final = "cloudquotas.googleapis.com"
_SERVICE: Final = "file.googleapis.com"


def check(
    request: Request, present: Iterable[Mapping[str, Any]], location: str, asked: Mapping[str, Any]
) -> None:
    """Refuse a share that is too large for what a tier has left in a region."""
    tier, region = _tier(asked), _region(location)
    if tier not in facts.SHARES:
        return
    others = (it for it in present if _tier(it) == tier and _region_of(it) == region)
    used = sum(map(_size, others))
    most = facts.limit_of_shares(tier, request.scenarios)
    if used + _size(asked) > most:
        name = facts.SHARES[tier]
        raise GoogleError(
            429,
            f"Quota limit '{name}' has been exceeded. Limit: {most} in region {region}.",
            status="RESOURCE_EXHAUSTED",
            details=[
                {
                    "@type": "type.googleapis.com/google.rpc.QuotaFailure",
                    "violations": [
                        {
                            "subject": "project",
                            "description": f"Quota '{name}' exhausted. Limit {most} in region"
                            f" {region}",
                        }
                    ],
                }
            ],
        )


def _tier(instance: Mapping[str, Any]) -> str:
    found = filestore_tiers.find(instance.get("tier", ""))
    return found.name if found else ""


def _size(instance: Mapping[str, Any]) -> int:
    return sum(int(it.get("capacityGb", 0)) for it in instance["fileShares"])


def _region(location: str) -> str:
    return location if location in places.ZONES else places.region_of(location)


def _region_of(instance: Mapping[str, Any]) -> str:
    return _region(instance["name"].split("/")[3])


def _get_share(request: Request, store: Store, project: str, quota: str) -> Reply:
    owner = projects.permitted(project, store)
    services.require(request, store, owner, _API, "Cloud Quotas API")
    tier = next((tier for tier, name in facts.SHARES.items() if name == quota), None)
    base = f"projects/{owner.number}/locations/global/services/{_SERVICE}/quotaInfos"
    if tier is None:
        raise GoogleError(404, f"Quota {base}/{quota} was not found.", status=None)
    limit = facts.limit_of_shares(tier, request.scenarios)
    return Reply(
        body={
            "name": f"{base}/{quota}",
            "quotaId": quota,
            "service": _SERVICE,
            "isPrecise": True,
            "dimensions": ["region"],
            "dimensionsInfos": [
                # As every 64-bit number of these APIs: a text.
                {"details": {"value": str(limit)}, "applicableLocations": list(places.REGIONS)}
            ],
        }
    )


# No discovery document of this API comes with the client library.
shares = Routes(
    {
        f"GET projects/{{project}}/locations/global/services/{_SERVICE}/quotaInfos/{{quota}}": (
            _get_share
        ),
    }
)


_COMPUTE = "compute.googleapis.com"
_RESIZE_REQUESTS = "active_resize_requests"
_USUAL_RESIZE_REQUESTS = 100


def _get_metric(request: Request, store: Store, project: str, metric: str) -> Reply:
    owner = projects.permitted(project, store)
    name = metric.removeprefix(f"{_COMPUTE}/")
    regional: dict[str, int] = {}
    if name == _RESIZE_REQUESTS:
        limit = _USUAL_RESIZE_REQUESTS
    elif quotas.is_of_gpus(name.upper()):
        limit = int(quotas.gpu_limit(request, store, name.upper()))
        own = {it: stock.gpu_quota(request, store, it) for it in places.REGIONS}
        regional = {region: int(most) for region, most in own.items() if most is not None}
    else:
        raise GoogleError(404, f"Quota metric {metric} not found.", status=None)
    base = f"projects/{owner.number}/services/{_COMPUTE}/consumerQuotaMetrics"
    path = f"{base}/{metric.replace('/', '%2F')}"
    # As all 64-bit numbers of these APIs: a text, and left out when it is 0.
    usual = {"effectiveLimit": str(limit), "defaultLimit": str(limit)} if limit else {}
    buckets: list[dict[str, Any]] = [usual]
    for region, most in regional.items():
        shown = {"effectiveLimit": str(most)} if most else {}
        buckets.append({**shown, "dimensions": {"region": region}})
    return Reply(
        body={
            "name": path,
            "metric": metric,
            "displayName": name.replace("_", " "),
            "unit": "1",
            "consumerQuotaLimits": [
                {
                    "name": f"{path}/limits/%2Fproject%2Fregion",
                    "metric": metric,
                    "unit": "1/{project}/{region}",
                    "quotaBuckets": buckets,
                }
            ],
        }
    )


metrics = Routes(
    {f"GET projects/{{project}}/services/{_COMPUTE}/consumerQuotaMetrics/{{metric}}": _get_metric},
    api="serviceusage.v1beta1",
)
